"""Runs, lengths and errors as files for other programs: CSV or Parquet."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from seqcls.errors import ConfigError
from sweeps.store import queries
from sweeps.store.arrow import ERRORS, LENGTHS, Strings, errors_of, lengths_of
from sweeps.store.engine import Store
from sweeps.store.tables import RunState
from sweeps.store.views import View

WRITERS: dict[str, Any] = {"csv": pa.csv.CSVWriter, "parquet": pa.parquet.ParquetWriter}
FORMATS = tuple(WRITERS)

RUNS_AT_ONCE = 500
"""Results of so many runs are held in memory at a time."""

OnProgress = Callable[[float, int], None]


def export(
    store: Store,
    folder: Path,
    kind: str,
    wanted: View,
    on_progress: OnProgress | None = None,
) -> dict[Path, int]:
    """Writes `runs`, `lengths` and `errors` into a folder, whole files or none.

    Args:
        store: the database.
        folder: where to; it is made where it is missing.
        kind: `csv` or `parquet`.
        wanted: which runs.
        on_progress: told how many runs are written, and of how many.

    Returns:
        The number of rows of each file.

    Raises:
        ConfigError: the kind is unknown, a file of that name is there, or none can be written.
        StoreError: the database cannot be read.
    """
    if kind not in FORMATS:
        raise ConfigError(f"format {kind!r}: expected {' or '.join(FORMATS)}")
    paths = {name: folder / f"{name}.{kind}" for name in ("runs", "lengths", "errors")}
    for path in paths.values():
        if path.exists():
            raise ConfigError(f"{str(path)!r} is there; move it or name another folder")
    frame = _plain(queries.runs(store, wanted))
    # Of runs that are done: what is stored of them does not change while this goes on.
    ids = frame.loc[frame["state"] == RunState.DONE, "id"].tolist()
    try:
        return _write_all(folder, kind, paths, frame, _Results(store, ids, on_progress))
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"cannot write into {str(folder)!r}: {reason}; name another folder"
        ) from None


class _Results:
    """The results of runs, a part after another."""

    def __init__(self, store: Store, ids: Sequence[int], on_progress: OnProgress | None) -> None:
        self._store = store
        self._ids = ids
        self._on_progress = on_progress

    def __iter__(self) -> Iterator[dict[str, pa.Table]]:
        strings = Strings()
        for start in range(0, len(self._ids), RUNS_AT_ONCE):
            some = self._ids[start : start + RUNS_AT_ONCE]
            with self._store.begin() as connection:
                lengths = lengths_of(connection, some)
                errors = errors_of(connection, some, strings)
            yield {"lengths": lengths, "errors": errors}
            if self._on_progress is not None:
                self._on_progress(start + len(some), len(self._ids))


def _write_all(
    folder: Path, kind: str, paths: dict[str, Path], frame: pd.DataFrame, results: _Results
) -> dict[Path, int]:
    folder.mkdir(parents=True, exist_ok=True)
    runs = pa.Table.from_pandas(frame, preserve_index=False)
    schemas = {"runs": runs.schema, "lengths": LENGTHS, "errors": ERRORS}
    rows = dict.fromkeys(paths, 0)
    # Written beside their names first, so that what is there under these is always whole.
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        places = {name: Path(unfinished) / path.name for name, path in paths.items()}
        writers = {name: WRITERS[kind](places[name], schema) for name, schema in schemas.items()}
        try:
            writers["runs"].write_table(runs)
            rows["runs"] = runs.num_rows
            for part in results:
                for name, table in part.items():
                    writers[name].write_table(table)
                    rows[name] += table.num_rows
        finally:
            for writer in writers.values():
                writer.close()
        for name, path in paths.items():
            places[name].rename(path)
    return {path: rows[name] for name, path in paths.items()}


def _plain(runs: pd.DataFrame) -> pd.DataFrame:
    """Without what a column of a file cannot hold: names of sweeps become one text."""
    plain = runs.copy()
    plain["sweeps"] = plain["sweeps"].map(", ".join)
    return plain
