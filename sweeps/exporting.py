"""Runs, lengths and errors as files for other programs: CSV or Parquet."""

import itertools
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from seqcls.errors import ConfigError
from sweeps.store import queries
from sweeps.store.engine import Store
from sweeps.store.tables import RunState

FORMATS = ("csv", "parquet")

# Named types, since a part without rows says nothing of them.
LENGTHS = pa.schema([(name, pa.int64()) for name in ("run_id", "length", "tn", "fp", "fn", "tp")])
ERRORS = pa.schema(
    [
        ("run_id", pa.int64()),
        ("string", pa.string()),
        ("length", pa.int64()),
        ("label", pa.int64()),
        ("logit", pa.float64()),
        ("occurrences", pa.int64()),
    ]
)
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
        ConfigError: the kind is unknown, a file of that name is there, or none can be written.
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
    parts = {
        "runs": iter([pa.Table.from_pandas(frame, preserve_index=False)]),
        "lengths": _in_parts(store, ids, queries.length_scores, LENGTHS),
        "errors": _in_parts(store, ids, queries.errors_of, ERRORS),
    }
    try:
        return _write_all(folder, kind, paths, parts)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(
            f"cannot write into {str(folder)!r}: {reason}; name another folder"
        ) from None


def _write_all(
    folder: Path, kind: str, paths: dict[str, Path], parts: dict[str, Iterator[pa.Table]]
) -> dict[Path, int]:
    folder.mkdir(parents=True, exist_ok=True)
    # Written beside their names first, so that what is there under these is always whole.
    with tempfile.TemporaryDirectory(dir=folder) as unfinished:
        written = {
            name: _write(Path(unfinished) / path.name, kind, parts[name])
            for name, path in paths.items()
        }
        for path in paths.values():
            (Path(unfinished) / path.name).rename(path)
    return {path: written[name] for name, path in paths.items()}


def _in_parts(
    store: Store,
    ids: Sequence[int],
    query: Callable[[Store, Sequence[int]], pd.DataFrame],
    schema: pa.Schema,
) -> Iterator[pa.Table]:
    for start in range(0, max(len(ids), 1), RUNS_AT_ONCE):
        part = query(store, ids[start : start + RUNS_AT_ONCE])
        yield pa.Table.from_pandas(part, schema=schema, preserve_index=False)


def _plain(runs: pd.DataFrame) -> pd.DataFrame:
    """Without what a column of a file cannot hold: names of sweeps become one text."""
    plain = runs.copy()
    plain["sweeps"] = plain["sweeps"].map(", ".join)
    return plain


def _write(path: Path, kind: str, parts: Iterator[pa.Table]) -> int:
    first = next(parts)
    writers = {"csv": pa.csv.CSVWriter, "parquet": pa.parquet.ParquetWriter}
    rows = 0
    with writers[kind](path, first.schema) as writer:
        for table in itertools.chain([first], parts):
            writer.write_table(table)
            rows += table.num_rows
    return rows
