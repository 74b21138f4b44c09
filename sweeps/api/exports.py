"""Exports: runs, lengths and errors as CSV or Parquet, answers as JSON Lines."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import compute, csv, parquet

from seqcls.errors import ConfigError, Parameter
from sweeps.api.selecting import selection_of
from sweeps.files import refuse_taken, whole_files
from sweeps.processes import OnProgress
from sweeps.records import LENGTH_COUNTS
from sweeps.results import exact_type
from sweeps.store.database import Store
from sweeps.store.reads import queries
from sweeps.store.reads.misclassified import TestStrings, answers_of, errors_table, with_border
from sweeps.store.reads.selection import Selection, as_list
from sweeps.store.reads.stored import length_frame
from sweeps.store.shortcuts import shortcut_scores, with_shortcuts
from sweeps.store.statements import chunks
from sweeps.store.tables import RunState

JSONL = "jsonl"
"""The kind that writes every answer of every run into one file."""

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001
"""First characters of cells that spreadsheets compute; full-width ones are of Chinese keyboards."""

LENGTHS = pa.schema([(name, pa.int64()) for name in ("run_id", "length", *LENGTH_COUNTS)])

SHORTCUTS = pa.schema(
    [
        ("config_id", pa.int64()),
        ("reader", pa.string()),
        ("reason", pa.string()),
        ("length", pa.int64()),
        ("within", pa.bool_()),
        ("tested", pa.int64()),
        ("right", pa.int64()),
    ]
)

WRITERS: dict[str, Any] = {"csv": csv.CSVWriter, "parquet": parquet.ParquetWriter}


def export(
    store: Store,
    folder: str | Path,
    kind: str = "csv",
    sweeps: str | Sequence[str] = (),
    on_progress: OnProgress | None = None,
    *,
    spreadsheet: bool = False,
    force: bool = False,
    **chosen: Any,
) -> dict[Path, int]:
    """Writes `runs`, `lengths`, `errors` and `shortcuts` into a folder, whole files or none.

    `shortcuts` has the accuracies of shortcut readers on the tests of these runs, by length.

    Args:
        folder: the folder; it is made where it is missing.
        kind: `csv` or `parquet`; or `jsonl`, which writes every answer into `answers`.
        sweeps: only runs of these; all where it is empty.
        on_progress: called with the number of runs that are written, and of all.
        spreadsheet: of `csv`, write `'` before texts that a spreadsheet would compute as formulas.
        force: replace files, in a folder that holds no others.
        chosen: which runs, as for `sweeps.api.selecting.selection_of`: `model_seeds=0`.

    Returns:
        The number of rows of each file.

    Raises:
        UnknownRunError: there is no such sweep.
        ConfigError: the kind is unknown, or there is a file of that name.
        MachineError: the disk is full.
    """
    folder, selection = Path(folder), selection_of(store, as_list(sweeps), **chosen)
    if spreadsheet and kind != "csv":
        raise ConfigError(
            Parameter("spreadsheet", True),
            f" with format {kind!r}: only csv has formulas; leave one of them out",
        )
    if kind == JSONL:
        return _answers(store, folder, selection, on_progress, force=force)
    if kind not in WRITERS:
        raise ConfigError(f"format {kind!r}: expected {', '.join(WRITERS)} or {JSONL}")
    paths = {name: folder / f"{name}.{kind}" for name in ("runs", "lengths", "errors", "shortcuts")}
    # Checked before minutes of reading, and again when the files are moved.
    refuse_taken(paths.values(), force=force)
    frame = with_shortcuts(store, queries.runs(store, selection))
    frame = with_border(store, frame, selection)
    scores = shortcut_scores(store, set(frame["config_id"].tolist()))
    # A column of a file cannot hold several names: they become one text.
    frame = frame.assign(sweeps=frame["sweeps"].map(", ".join))
    # The stored results of finished runs do not change during the export.
    ids = frame.loc[frame["state"] == RunState.DONE, "id"].tolist()
    parts: dict[str, Iterable[pa.Table]] = {
        "runs": [arrow_table(frame)],
        "lengths": _lengths(store, ids),
        "errors": _errors(store, ids, on_progress),
        "shortcuts": [pa.Table.from_pandas(scores, SHORTCUTS, preserve_index=False)],
    }
    with whole_files(folder, force=force) as new:
        return {
            path: _write(new / path.name, kind, parts[name], spreadsheet)
            for name, path in paths.items()
        }


def arrow_table(frame: pd.DataFrame) -> pa.Table:
    """Converts a frame to an Arrow table; a column of values of several types becomes text."""
    typed = {str(name): _cast(frame[name]) for name in frame if frame[name].dtype == object}
    return pa.Table.from_pandas(frame.assign(**typed), preserve_index=False)


def _cast(column: "pd.Series[Any]") -> "pd.Series[Any]":
    kind: Any = exact_type(column)
    if kind != "object":
        return column.astype(kind)
    try:
        pa.array(column, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
        return column.map(str, na_action="ignore").astype("string")
    return column


def _answers(
    store: Store, folder: Path, selection: Selection, on_progress: OnProgress | None, *, force: bool
) -> dict[Path, int]:
    """Writes every answer of every run, a line each, in the columns that evaluation tools use."""
    path = folder / f"answers.{JSONL}"
    refuse_taken([path], force=force)
    frame = queries.runs(store, selection)
    done = frame[frame["state"] == RunState.DONE]
    number = 0
    with (
        whole_files(folder, force=force) as new,
        (new / path.name).open("w", encoding="utf-8") as file,
    ):
        for place, (run_id, seed) in enumerate(zip(done["id"], done["model_seed"], strict=True), 1):
            for answer in answers_of(store, int(run_id)):
                row = {**answer, "run": int(run_id), "seed": int(seed)}
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
                number += 1
            if on_progress is not None:
                on_progress(place, len(done))
    return {path: number}


# In parts, since the results of all runs may not fit into memory; the first one is empty.


def _lengths(store: Store, ids: Sequence[int]) -> Iterator[pa.Table]:
    for some in [[], *chunks(ids)]:
        counts = pa.Table.from_pandas(length_frame(store, some), LENGTHS, preserve_index=False)
        yield counts.replace_schema_metadata()


def _errors(store: Store, ids: Sequence[int], on_progress: OnProgress | None) -> Iterator[pa.Table]:
    strings, written = TestStrings(store), 0
    for some in [[], *chunks(ids)]:
        yield errors_table(store, some, strings)
        written += len(some)
        if on_progress is not None:
            on_progress(written, len(ids))


def without_formulas(table: pa.Table) -> pa.Table:
    """Prefixes texts that a spreadsheet would compute with `'`."""
    pattern = f"^([{re.escape(''.join(FORMULA))}])"
    for place, field in enumerate(table.schema):
        if pa.types.is_string(field.type) or pa.types.is_large_string(field.type):
            texts = compute.replace_substring_regex(table[place], pattern, r"'\1")
            table = table.set_column(place, field, texts)
    return table.rename_columns([re.sub(pattern, r"'\1", name) for name in table.column_names])


def _write(path: Path, kind: str, parts: Iterable[pa.Table], spreadsheet: bool) -> int:
    """Writes a table, given in parts, into a file; returns its number of rows."""
    tables, rows = map(without_formulas, parts) if spreadsheet else iter(parts), 0
    first = next(tables)
    with WRITERS[kind](path, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)
            rows += table.num_rows
    return rows
