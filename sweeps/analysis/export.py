"""Runs, lengths and errors as files for other programs: CSV or Parquet."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from seqcls.errors import ConfigError
from sweeps.files import refuse_taken, whole_files
from sweeps.on_progress import OnProgress
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import RUNS_AT_ONCE
from sweeps.store.reading import queries
from sweeps.store.reading.selection import View
from sweeps.store.schema.tables import RunState
from sweeps.store.strings.arrow import ERRORS, LENGTHS, Strings, errors_of, lengths_of

WRITERS: dict[str, Any] = {"csv": pa.csv.CSVWriter, "parquet": pa.parquet.ParquetWriter}


def export(
    store: Store,
    folder: Path,
    kind: str,
    wanted: View,
    on_progress: OnProgress | None = None,
    *,
    force: bool = False,
) -> dict[Path, int]:
    """Writes `runs`, `lengths` and `errors` into a folder, whole files or none.

    Args:
        store: the database.
        folder: where the files go; created if missing.
        kind: `csv` or `parquet`.
        wanted: which runs.
        on_progress: called with the number of runs written, and of all runs.
        force: replace files that this program wrote and nobody changed since.

    Returns:
        The number of rows of each file.

    Raises:
        ConfigError: the kind is unknown, or there is a file of that name.
        MachineError: the disk is full.
        StoreError: the database cannot be read.
    """
    if kind not in WRITERS:
        raise ConfigError(f"format {kind!r}: expected {' or '.join(WRITERS)}")
    paths = {name: folder / f"{name}.{kind}" for name in ("runs", "lengths", "errors")}
    refuse_taken(paths.values(), force=force)
    frame = _plain(queries.runs(store, wanted))
    # Of runs that are done: what is stored of them does not change while this goes on.
    ids = frame.loc[frame["state"] == RunState.DONE, "id"].tolist()
    with whole_files(folder, force=force) as new:
        rows = _write_all(new, kind, frame, _results(store, ids, on_progress))
    return {path: rows[name] for name, path in paths.items()}


def _results(
    store: Store, ids: Sequence[int], on_progress: OnProgress | None
) -> Iterator[dict[str, pa.Table]]:
    """The results of runs, a part after another."""
    strings = Strings()
    for start in range(0, len(ids), RUNS_AT_ONCE):
        some = ids[start : start + RUNS_AT_ONCE]
        with store.begin() as connection:
            lengths = lengths_of(connection, some)
            errors = errors_of(connection, some, strings)
        yield {"lengths": lengths, "errors": errors}
        if on_progress is not None:
            on_progress(start + len(some), len(ids))


def _write_all(
    folder: Path, kind: str, frame: pd.DataFrame, results: Iterator[dict[str, pa.Table]]
) -> dict[str, int]:
    runs = pa.Table.from_pandas(frame, preserve_index=False)
    schemas = {"runs": runs.schema, "lengths": LENGTHS, "errors": ERRORS}
    rows = dict.fromkeys(schemas, 0)
    with ExitStack() as opened:
        writers = {
            name: opened.enter_context(WRITERS[kind](folder / f"{name}.{kind}", schema))
            for name, schema in schemas.items()
        }
        writers["runs"].write_table(runs)
        rows["runs"] = runs.num_rows
        for part in results:
            for name, table in part.items():
                writers[name].write_table(table)
                rows[name] += table.num_rows
    return rows


def _plain(runs: pd.DataFrame) -> pd.DataFrame:
    """Without what a column of a file cannot hold: names of sweeps become one text."""
    plain = runs.copy()
    plain["sweeps"] = plain["sweeps"].map(", ".join)
    return plain
