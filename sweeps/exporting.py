"""Runs, lengths and errors as files for other programs: CSV or Parquet."""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from seqcls.errors import ConfigError
from sweeps.store import queries
from sweeps.store.engine import Store

FORMATS = ("csv", "parquet")
RUNS_AT_ONCE = 500
"""Results of so many runs are held in memory at a time."""


def export(store: Store, folder: Path, kind: str, wanted: queries.RunFilter) -> dict[Path, int]:
    """Writes `runs`, `lengths` and `errors` into a folder, whole files or none.

    Args:
        store: the database.
        folder: where to; it is made where it is missing.
        kind: `csv` or `parquet`.
        wanted: which runs.

    Returns:
        The number of rows of each file.

    Raises:
        ConfigError: the kind is unknown, or a file of that name is there already.
    """
    if kind not in FORMATS:
        raise ConfigError(f"format {kind!r}: expected {' or '.join(FORMATS)}")
    paths = {name: folder / f"{name}.{kind}" for name in ("runs", "lengths", "errors")}
    for path in paths.values():
        if path.exists():
            raise ConfigError(f"{str(path)!r} is there; move it or name another folder")
    folder.mkdir(parents=True, exist_ok=True)
    frame = _plain(queries.runs(store, wanted))
    ids = frame["id"].tolist()
    parts = {
        "runs": iter([frame]),
        "lengths": _in_parts(store, ids, "lengths"),
        "errors": _in_parts(store, ids, "errors"),
    }
    # Written beside their names first, so that what is there under these is always whole.
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        written = {
            name: _write(Path(unfinished) / path.name, kind, parts[name])
            for name, path in paths.items()
        }
        for path in paths.values():
            (Path(unfinished) / path.name).rename(path)
    return {path: written[name] for name, path in paths.items()}


def _in_parts(store: Store, ids: Sequence[int], what: str) -> Iterator[pd.DataFrame]:
    query = {"lengths": queries.length_scores, "errors": queries.errors_of}[what]
    for start in range(0, max(len(ids), 1), RUNS_AT_ONCE):
        yield query(store, ids[start : start + RUNS_AT_ONCE])


def _plain(runs: pd.DataFrame) -> pd.DataFrame:
    """Without what a column of a file cannot hold: names of sweeps become one text."""
    plain = runs.copy()
    plain["sweeps"] = plain["sweeps"].map(", ".join)
    return plain


def _write(path: Path, kind: str, parts: Iterator[pd.DataFrame]) -> int:
    tables = (pa.Table.from_pandas(part, preserve_index=False) for part in parts)
    first = next(tables)
    writers = {"csv": pa.csv.CSVWriter, "parquet": pa.parquet.ParquetWriter}
    rows = 0
    with writers[kind](path, first.schema) as writer:
        for table in (first, *tables):
            writer.write_table(table.cast(first.schema))
            rows += table.num_rows
    return rows
