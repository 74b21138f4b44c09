"""Predictions as Python has them, frames or columns or answers by string, row by row.

Columns are put beside each other by position, whatever index they have: a column that was made in
another order than its neighbors cannot be told from one that was not, but none is reordered here.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from seqcls.errors import DatasetError
from sweeps.questions.judged_predictions import Prediction

KNOWN = ("id", "tokens", "prediction", "score")
EXPECTED = (
    "expected columns 'tokens' (or 'id') and 'prediction', as in a frame or "
    "{'tokens': [...], 'prediction': [...]}, or a mapping of strings to predictions"
)


def prediction_rows(predictions: Any) -> tuple[bool, list[Prediction]]:
    """The predictions, and whether they name strings by ids.

    Args:
        predictions: a frame of any library, columns by name, rows as mappings by name, or
            predictions by string.

    Raises:
        DatasetError: it is none of these, or columns are not equally long.
    """
    columns = _columns(predictions)
    by_id = "tokens" not in columns
    for name in ("id" if by_id else "tokens", "prediction"):
        if name not in columns:
            said = ", ".join(map(str, columns))[:100]
            missing = "id or tokens" if name == "id" else name
            raise DatasetError(f"predictions have the columns {said!r}, not {missing}: {EXPECTED}")
    names = ["id" if by_id else "tokens", "prediction", *(["score"] if "score" in columns else [])]
    given = {name: _column(name, columns[name]) for name in names}
    if len({len(values) for values in given.values()}) > 1:
        said = ", ".join(f"{name} {len(values):,}" for name, values in given.items())
        raise DatasetError(f"predictions have columns of different lengths: {said}")
    rows = zip(*given.values(), strict=True)
    return by_id, [Prediction(f"row {number}", *row) for number, row in enumerate(rows, 1)]


def _columns(predictions: Any) -> Mapping[str, Any]:
    """The columns by name, as they are given."""
    names = getattr(predictions, "column_names", None)
    if names is None and not isinstance(predictions, Mapping):
        names = getattr(predictions, "columns", None)
    if names is None and isinstance(predictions, np.ndarray):
        names = predictions.dtype.names
    if names is not None:
        listed = list(names)
        if twice := [name for name in KNOWN if listed.count(name) > 1]:
            raise DatasetError(f"predictions have two columns {twice[0]!r}; remove one")
        return {str(name): predictions[name] for name in listed if name in KNOWN} or {
            str(name): None for name in listed
        }
    if isinstance(predictions, Mapping):
        if any(name in KNOWN and not _is_answer(predictions[name]) for name in predictions):
            return predictions
        return {"tokens": list(predictions), "prediction": list(predictions.values())}
    rows = list(predictions) if isinstance(predictions, Iterable) else None
    if rows and all(isinstance(row, Mapping) for row in rows):
        there = [name for name in KNOWN if any(name in row for row in rows)]
        return {name: [row.get(name) for row in rows] for name in there}
    raise DatasetError(
        f"predictions are {' '.join(repr(predictions).split())[:60]}, of type "
        f"{type(predictions).__name__}: {EXPECTED}"
    )


def _is_answer(value: Any) -> bool:
    """Whether a value is one prediction, and no column of several."""
    is_single = isinstance(value, str) or not isinstance(value, Iterable)
    return is_single or getattr(value, "ndim", None) == 0


def _column(name: str, values: Any) -> list[Any]:
    """The values of a column, in the order in which they were given, as Python has them."""
    if isinstance(values, Mapping):
        # As `frame.to_dict()` has it, by index.
        values = list(values.values())
    elif _is_answer(values) or isinstance(values, bytes | set | frozenset):
        raise DatasetError(
            f"column {name!r} is {' '.join(repr(values).split())[:60]}, expected a list, an array "
            "or a series"
        )
    for method in ("to_pylist", "to_list", "tolist"):
        if callable(found := getattr(values, method, None)):
            values = found()
            break
    return [_item(value) for value in values]


def _item(value: Any) -> Any:
    """A cell; a number of NumPy or PyTorch as Python has it."""
    if isinstance(value, str | int | float | list | tuple) or value is None:
        return value
    if callable(as_list := getattr(value, "tolist", None)):
        return as_list()
    return None if value is pd.NA or value is pd.NaT else value
