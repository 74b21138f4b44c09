"""Reading files of predictions: rows of `model, seed, id|tokens, prediction`."""

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.config import MAX_MODEL_SEED
from seqcls.errors import DatasetError
from seqcls.imported import PREFIX, normalize_numbers, plain_settings
from seqcls.strings.tokenizer import unpack_array
from seqcls.text import TwiceError, canonical_json, nearest, refuse_duplicates
from sweeps.datasets.layouts import split_of
from sweeps.datasets.tables import Table, kind_of, refused_in, rows_of

NEEDED = ("model", "seed", "prediction")
_STRING = ("id", "tokens")
COLUMNS = (*NEEDED, *_STRING, "score", "split", "config")


class Prediction(NamedTuple):
    """One answer of a model, as given in the file."""

    place: str
    """The place in the file, such as `line 7`."""
    string: Any
    """The tokens of the string, or the id of its row."""
    answer: Any
    score: Any = None


class Predictions(NamedTuple):
    """The answers of one model."""

    by_id: bool
    """True if strings are given by the ids of rows."""
    rows: list[Prediction]


Run = tuple[str, int, str]
"""The name of a model, its seed, and its settings as JSON."""


def read_predictions(path: Path) -> dict[Run, Predictions]:
    """Reads the predictions in a file for test strings, by run.

    Raises:
        DatasetError: it cannot be read, or a row is refused; with the line.
    """
    table = Table.from_rows(rows_of(path))
    if table.damage:
        raise DatasetError(table.damage)
    string = _column_of_strings(table)
    tested = []
    for row, split in enumerate(table.columns.get("split", [None] * len(table.places))):
        with refused_in(f"{table.places[row]}: "):
            # Predictions for training and validation strings are ignored.
            if split == "" or is_missing(split) or split_of(split) == "test":
                tested.append(row)
    if not tested:
        raise DatasetError("no predictions for test strings")
    columns = {name: [cells[row] for row in tested] for name, cells in table.columns.items()}
    # In these files every cell is text.
    if kind_of(path) in (".csv", ".tsv", ".txt"):
        columns |= {x: _numbers(columns[x]) for x in columns if x.startswith(PREFIX)}
        # An empty cell cannot be distinguished from a missing value.
        columns["prediction"] = [x if x.strip() else None for x in columns["prediction"]]
    runs: dict[Run, Predictions] = {}
    for row, *values in zip(tested, *columns.values(), strict=True):
        cells, place = dict(zip(columns, values, strict=True)), table.places[row]
        with refused_in(f"{place}: "):
            for needed in (*NEEDED, string):
                if is_missing(cells[needed]):
                    empty = "; where the output is empty, say so in JSON Lines or Parquet, as ''"
                    raise DatasetError(f"no {needed!r}{empty * (needed == 'prediction')}")
            if not isinstance(model := cells["model"], str) or not model.strip():
                raise DatasetError(f"model is {model!r:.60}, expected a name")
            run = model.strip(), seed_of(cells["seed"]), _settings(cells)
        given = Prediction(place, cells[string], cells["prediction"], cells.get("score"))
        runs.setdefault(run, Predictions(string == "id", [])).rows.append(given)
    return runs


def are_predictions(path: Path) -> bool:
    """True if the first row of a file has a prediction."""
    try:
        return any("prediction" in cells for _, cells in islice(rows_of(path), 1))
    except (DatasetError, OSError):
        # The error is reported where the file is read as something else.
        return False


def is_missing(value: Any) -> bool:
    """True if a cell is None, or the NaN of a frame's empty cell."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def seed_of(value: Any) -> int:
    """The seed in a cell, which is 42.0 in a frame where that of another row is missing.

    Raises:
        DatasetError: it is no whole number, or out of range.
    """
    value = unpack_array(value)
    is_number = isinstance(value, str | int | float) and not isinstance(value, bool)
    with suppress(ValueError):
        # At most 19 digits besides leading zeros.
        found = re.fullmatch(r"0*([0-9]{1,19})(?:\.0+)?", str(value).strip(), re.ASCII)
        if is_number and found and int(found[1]) <= MAX_MODEL_SEED:
            return int(found[1])
    raise DatasetError(f"seed is {value!r:.60}, expected a whole number from 0 to {MAX_MODEL_SEED}")


def _settings(cells: Mapping[str, Any]) -> str:
    """The settings of a model as JSON, from the column `config` and columns `config.NAME`."""
    given = cells.get("config")
    settings: Any = {} if is_missing(given) or given == "" else given
    try:
        if isinstance(settings, str):
            settings = json.loads(settings, object_pairs_hook=refuse_duplicates)
        if not isinstance(settings, dict):
            raise DatasetError(f'config is {given!r:.60}, expected an object as {{"d_model": 64}}')
        columns = {
            name.removeprefix(PREFIX): value
            for name, value in cells.items()
            if name.startswith(PREFIX) and value != "" and not is_missing(value)
        }
        if twice := settings.keys() & columns.keys():
            both = f"'config' and in {PREFIX + min(twice)!r:.60}; keep one"
            raise DatasetError(f"setting {min(twice)!r:.60} is in {both}")
        # Normalized, so that rows of one model agree, whether its numbers are 64 or 64.0.
        return canonical_json(normalize_numbers(plain_settings(settings | columns)))
    except (TwiceError, ValueError, RecursionError) as error:
        raise DatasetError(f"config: {str(error)[:200]}") from None


def _numbers(cells: Sequence[str]) -> list[Any]:
    """The cells of a column of text as numbers, or as booleans, if all are.

    A cell is a number if Python writes the number in the same way: 1.10, 007, 1_000 and 5500e03 are
    texts, and so are then all cells of their column; nan and inf are texts, too.
    """
    values = {text: _number(text) for text in {cell.strip() for cell in cells} - {""}}
    is_one_kind = len({type(value) is bool for value in values.values()}) == 1
    known = values if is_one_kind and None not in values.values() else {}
    return [known.get(text, text) for text in map(str.strip, cells)]


def _number(text: str) -> int | float | bool | None:
    """The number or the Python boolean in a cell; None if it is text."""
    with suppress(ValueError, SyntaxError):
        # literal_eval alone would also accept tuples, strings and 1_000.
        is_literal = re.fullmatch(r"-?[0-9][-+.e0-9]*|True|False", text)
        value = ast.literal_eval(text) if is_literal else None
        # Only texts that Python writes back unchanged are numbers: 1.10 and 007 may be names.
        return value if repr(value) == text != "-0.0" else None
    return None


def _column_of_strings(table: Table) -> str:
    """The column that identifies strings: `id` or `tokens`.

    Raises:
        DatasetError: a required column is missing, or one is unknown.
    """
    columns = table.columns
    shown = ", ".join(columns)[:100]
    for needed in NEEDED:
        if needed not in columns:
            hint = nearest(needed, list(columns)[:50])
            raise DatasetError(f"columns {shown!r}: expected one named {needed!r} ({hint})")
    if len(strings := [x for x in _STRING if x in columns]) != 1:
        raise DatasetError(f"columns {shown!r}: expected either 'id' or 'tokens'")
    for name in columns:
        if name not in COLUMNS and not name.startswith(PREFIX):
            hint = nearest(name, list(COLUMNS))
            # Lines of JSON may have other names than the first.
            row = next((row for row, x in enumerate(columns[name]) if x is not None), 0)
            raise DatasetError(
                f"{table.places[row]}: column {name!r:.60} means nothing here ({hint}); call it "
                f"'config.{name[:40]}' if it is a setting of the model"
            )
    return strings[0]
