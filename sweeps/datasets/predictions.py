"""Files of predictions: `model, seed, id|tokens, prediction`, a line each."""

import ast
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.config import MAX_MODEL_SEED
from seqcls.errors import DatasetError
from seqcls.imported import PREFIX, of_value, plain_settings
from seqcls.strings.datasets import MAX_ROWS
from seqcls.text import TwiceError, canonical_json, each_once, nearest
from sweeps.datasets.layouts import SPLIT_NAMES
from sweeps.datasets.tables import Row, Table, kind_of, refused_in, table_of

NEEDED = ("model", "seed", "prediction")
COLUMNS = (*NEEDED, "id", "tokens", "score", "split", "config")


class Prediction(NamedTuple):
    """One answer of a model, as it was given."""

    place: str
    """Such as `line 7`."""
    string: Any
    """Its tokens, or the id of its row."""
    answer: Any
    score: Any = None


Run = tuple[str, int, str]
"""The name of a model, its seed, and its settings as JSON."""


def read_predictions(path: Path) -> tuple[bool, dict[Run, list[Prediction]]]:
    """The predictions in a file for test strings, by run, and whether they name strings by ids.

    Raises:
        DatasetError: it cannot be read, or a row of it is refused: with the line named.
    """
    table = table_of(path)
    tested: list[Row] = []
    name, checked = "", set[tuple[str, ...]]()
    for place, cells in _rows(table):
        if len(tested) == MAX_ROWS:
            raise DatasetError(f"{place}: expected at most {MAX_ROWS:,} rows")
        with refused_in(f"{place if name else table.heading}: "):
            if tuple(cells) not in checked:
                # Lines of JSON need not have the names of the first.
                _check_columns([*cells, *(x for x in (*NEEDED, name) if name and x not in cells)])
                name = name or ("tokens" if "tokens" in cells else "id")
                checked.add(tuple(cells))
        with refused_in(f"{place}: "):
            if _is_tested(cells):
                tested.append((place, cells))
    if not tested:
        raise DatasetError("no predictions for test strings")
    # Of these files every cell is text.
    if kind_of(path) in (".csv", ".tsv", ".txt"):
        tested = _read_numbers(tested)
    runs: dict[Run, list[Prediction]] = {}
    for place, cells in tested:
        with refused_in(f"{place}: "):
            for needed in (*NEEDED, name):
                if is_missing(cells.get(needed)):
                    empty = "; where the output is empty, say so in JSON Lines or Parquet, as ''"
                    raise DatasetError(f"no {needed!r}{empty * (needed == 'prediction')}")
            run = _model(cells["model"]), seed_of(cells["seed"]), _settings(cells)
        given = Prediction(place, cells[name], cells["prediction"], cells.get("score"))
        runs.setdefault(run, []).append(given)
    return name == "id", runs


def _rows(table: Table) -> Iterator[Row]:
    names = [name for name in table.names if not is_index(name)]
    for place, cells in table.rows(names):
        yield place, {x: cell for x, cell in cells.items() if not is_index(x)}


def is_index(name: str) -> bool:
    """Whether a column is the index of a frame, which pandas writes beside it."""
    return re.fullmatch(r"|unnamed: \d+|__index_level_\d+__", name) is not None


def are_predictions(path: Path) -> bool:
    """Whether the first row of a file has a prediction."""
    try:
        return any("prediction" in cells for _, cells in islice(_rows(table_of(path)), 1))
    except (DatasetError, OSError):
        # What it is else, is said where it is read.
        return False


def _is_tested(cells: Mapping[str, Any]) -> bool:
    split = cells.get("split")
    if split in (None, "") or split != split:
        return True
    known = SPLIT_NAMES.get(split.strip().lower()) if isinstance(split, str) else None
    if known is None:
        raise DatasetError(f"split is {split!r:.60}, expected train, validation or test")
    return known == "test"


def is_missing(value: Any) -> bool:
    """Whether a cell is None, or the NaN of a frame's empty cell."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _model(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"model is {value!r:.60}, expected a name")
    return value.strip()


def seed_of(value: Any) -> int:
    """A seed, which a frame has as 42.0 where one of another row is missing.

    Raises:
        DatasetError: it is no whole number, or none that a seed can be.
    """
    if callable(item := getattr(value, "item", None)):
        # A number of NumPy or PyTorch.
        value = item()
    if isinstance(value, int) and not isinstance(value, bool) and value > MAX_MODEL_SEED:
        raise DatasetError(f"seed is too large, expected at most {MAX_MODEL_SEED}")
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not isinstance(value, bool) and (whole := _WHOLE.fullmatch(text)):
        # A longer number need not be read.
        if len(whole[1]) > 19 or int(whole[1]) > MAX_MODEL_SEED:
            raise DatasetError(f"seed is {value!r:.60}, expected at most {MAX_MODEL_SEED}")
        return int(whole[1])
    raise DatasetError(f"seed is {value!r:.60}, expected a whole number from 0")


_WHOLE = re.compile(r"0*([0-9]+)(?:\.0+)?", re.ASCII)


def _settings(cells: Mapping[str, Any]) -> str:
    """The settings of a model: of the column `config`, as JSON, and of columns `config.NAME`."""
    columns: dict[str, Any] = {}
    if not is_missing(given := cells.get("config")) and given != "":
        if isinstance(given, str):
            try:
                given = json.loads(given, object_pairs_hook=each_once)
            except TwiceError as error:
                raise DatasetError(f"config has {error}") from None
            except (ValueError, RecursionError) as error:
                raise DatasetError(f"config is no JSON: {str(error)[:80]}") from None
        if not isinstance(given, dict):
            raise DatasetError(f'config is {given!r:.60}, expected an object as {{"d_model": 64}}')
        columns.update(given)
    for name, value in cells.items():
        if name.startswith(PREFIX) and value != "" and not is_missing(value):
            setting = name.removeprefix(PREFIX)
            if setting in columns:
                raise DatasetError(
                    f"setting {setting!r:.60} stands in 'config' and in {name!r:.60}; keep one"
                )
            columns[setting] = value
    try:
        # Rows of one model have one text, whether its numbers are 64 or 64.0.
        return canonical_json(of_value(plain_settings(columns)))
    except (ValueError, RecursionError) as error:
        raise DatasetError(f"config: {str(error)[:200]}") from None


def _read_numbers(rows: Sequence[Row]) -> list[Row]:
    """Rows of text whose settings are numbers, or true and false, in the columns in which all are.

    A cell is a number where the number is written as the cell is: 1.10, 007, 1_000 and 5500e03 are
    not, and neither is any other cell of their column, nor are nan and inf.
    """
    # An empty cell may be a missing value, and nothing tells the empty output from it.
    known: dict[str, dict[str, Any]] = {"prediction": {"": None}}
    for name in filter(lambda name: name.startswith(PREFIX), rows[0][1]):
        texts = {cells[name].strip() for _, cells in rows} - {""}
        values = {text: _number(text) for text in texts}
        is_one_kind = len({type(value) is bool for value in values.values()}) == 1
        known[name] = values if is_one_kind and None not in values.values() else {}
    return [
        (place, cells | {x: y.get(text := cells[x].strip(), text) for x, y in known.items()})
        for place, cells in rows
    ]


def _number(text: str) -> int | float | bool | None:
    """The number that a cell is, or the truth as Python writes it; None where it is text."""
    with suppress(ValueError, SyntaxError):
        value = ast.literal_eval(text) if _LITERAL.fullmatch(text) else None
        return value if repr(value) == text != "-0.0" else None
    return None


_LITERAL = re.compile(r"-?[0-9][-+.e0-9]*|True|False")


def _check_columns(names: Sequence[str]) -> None:
    shown = ", ".join(names)[:100]
    for needed in NEEDED:
        if needed not in names:
            said = nearest(needed, list(names)[:50])
            raise DatasetError(f"columns {shown!r}: expected one named {needed!r} ({said})")
    if ("id" in names) == ("tokens" in names):
        raise DatasetError(f"columns {shown!r}: expected either 'id' or 'tokens'")
    for name in names:
        if name not in COLUMNS and not name.startswith(PREFIX):
            said = nearest(name, list(COLUMNS))
            raise DatasetError(
                f"column {name!r:.60} means nothing here ({said}); call it 'config.{name[:40]}' if "
                "it is a setting of the model"
            )
