"""Files of predictions: `model, seed, id|tokens, prediction`, a line each."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seqcls.config import MAX_MODEL_SEED
from seqcls.datasets.content import MAX_ROWS
from seqcls.errors import DatasetError
from seqcls.spelling import nearest
from sweeps.datasets.formats import SPLIT_NAMES, is_index, table_of

NEEDED = ("model", "seed", "prediction")
COLUMNS = (*NEEDED, "id", "tokens", "score", "split", "config")
SETTING = "config."
"""What columns begin with that are settings of the model."""


class PredictionRow(NamedTuple):
    """One prediction, as a file has it."""

    place: str
    model: str
    seed: int
    settings: str
    """As JSON."""
    string: Any
    prediction: Any
    score: Any


def read_predictions(path: Path) -> tuple[bool, list[PredictionRow]]:
    """The predictions of a file, in its order, and whether they name strings by ids.

    Raises:
        DatasetError: it cannot be read, or a row of it is refused: with the line named.
    """
    predictions: list[PredictionRow] = []
    by_id = False
    for place, cells in _rows(path):
        if not predictions:
            _check_columns(list(cells))
            by_id = "tokens" not in cells
        if len(predictions) == MAX_ROWS:
            raise DatasetError(f"{place}: expected at most {MAX_ROWS:,} rows")
        try:
            row = _row(place, cells, by_id)
        except DatasetError as error:
            raise DatasetError(f"{place}: {error}") from None
        if row is not None:
            predictions.append(row)
    if not predictions:
        raise DatasetError("no predictions for test strings")
    return by_id, predictions


def _row(place: str, cells: Mapping[str, Any], by_id: bool) -> PredictionRow | None:
    name = "id" if by_id else "tokens"
    for needed in (*NEEDED, name):
        if needed not in cells or cells[needed] is None:
            raise DatasetError(f"no {needed!r}")
    split = cells.get("split")
    if split not in (None, ""):
        known = SPLIT_NAMES.get(split.strip().lower()) if isinstance(split, str) else None
        if known is None:
            raise DatasetError(f"split is {split!r:.60}, expected train, validation or test")
        if known != "test":
            return None
    return PredictionRow(
        place, _model(cells["model"]), _seed(cells["seed"]), _settings(cells), cells[name],
        cells["prediction"], cells.get("score"),
    )  # fmt: skip


def _model(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise DatasetError(f"model is {value!r:.60}, expected a name")
    return value.strip()


def _seed(value: Any) -> int:
    text = str(value).strip()
    if isinstance(value, bool) or not (text.isascii() and text.isdigit()) or len(text) > 19:
        raise DatasetError(f"seed is {value!r:.60}, expected a whole number from 0")
    if int(text) > MAX_MODEL_SEED:
        raise DatasetError(f"seed is {value!r:.60}, expected at most {MAX_MODEL_SEED}")
    return int(text)


def _settings(cells: Mapping[str, Any]) -> str:
    """The settings of a model: of the column `config`, as JSON, and of columns `config.NAME`."""
    columns: dict[str, Any] = {}
    if (given := cells.get("config")) not in (None, ""):
        try:
            given = json.loads(given) if isinstance(given, str) else given
        except (ValueError, RecursionError) as error:
            raise DatasetError(f"config is no JSON: {str(error)[:80]}") from None
        if not isinstance(given, dict):
            raise DatasetError(f'config is {given!r:.60}, expected an object as {{"d_model": 64}}')
        columns.update(given)
    for name, value in cells.items():
        if name.startswith(SETTING) and value not in (None, ""):
            columns[name.removeprefix(SETTING)] = _plain(value)
    try:
        return json.dumps(columns, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise DatasetError(f"config: {str(error)[:80]}") from None


def _plain(value: Any) -> Any:
    try:
        parsed = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
    return parsed if isinstance(parsed, bool | int | float | str) else value


def _check_columns(names: Sequence[str]) -> None:
    shown = ", ".join(names)[:100]
    for needed in NEEDED:
        if needed not in names:
            said = nearest(needed, list(names)[:50])
            raise DatasetError(f"columns {shown!r}: expected one named {needed!r} ({said})")
    if ("id" in names) == ("tokens" in names):
        raise DatasetError(f"columns {shown!r}: expected either 'id' or 'tokens'")
    for name in names:
        if name not in COLUMNS and not name.startswith(SETTING):
            said = nearest(name, list(COLUMNS))
            raise DatasetError(
                f"column {name!r:.60} means nothing here ({said}); call it 'config.{name[:40]}' if "
                "it is a setting of the model"
            )


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    table = table_of(path)
    names = [name for name in table.names if not is_index(name)]
    if not names or len(set(names)) < len(names):
        raise DatasetError(f"{table.heading}: expected names of columns, each once")
    for place, cells in table.rows(names):
        yield place, {name: cell for name, cell in cells.items() if not is_index(name)}
