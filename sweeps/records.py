"""The full results of a run as JSON in its row: an array for each length, epoch and error.

Floats have the fewest digits that round-trip in their own precision. JSON has neither NaN, which is
stored as null, nor infinity, which is stored as 9e999: a number too large for a double.
"""

import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int64

from seqcls.results import Confusion, Evaluation

OUTPUT_COUNTS = ("right_length_given", "edits", "target_tokens")
"""Further counts at each length for transductions."""

LENGTH_FIELDS = ("length", "tested", "wrong", *Confusion._fields, *OUTPUT_COUNTS)
"""Fields of an array of `lengths`: the confusion is null if there is none, and the last three are
left out without outputs."""

LENGTH_COUNTS = (*Confusion._fields, "tested", "wrong", *OUTPUT_COUNTS)
"""Counts at each length."""

LOSS_FIELDS = ("epoch", "train_loss", "validation_loss")
"""Fields of an array of `losses`."""

ERROR_FIELDS = ("number", "logit", "output", "first_wrong", "error_kind")
"""Fields of an array of `errors`: the string's number in the test set; the last three only for
transductions."""


def lengths_text(evaluation: Evaluation) -> str:
    """`LENGTH_FIELDS` at each length of a test."""
    columns: list[Sequence[int | None]] = [
        evaluation.lengths.tolist(),
        evaluation.tested_by_length.tolist(),
        evaluation.wrong_by_length.tolist(),
    ]
    none = [None] * len(evaluation.lengths)
    columns += [none] * 4 if evaluation.cells is None else evaluation.cells.T.tolist()
    if (outputs := evaluation.outputs) is not None:
        columns += [getattr(outputs, name).tolist() for name in OUTPUT_COUNTS]
    return rows_text(zip(*columns, strict=True))


def errors_text(evaluation: Evaluation) -> str:
    """`ERROR_FIELDS` of each misclassified string."""
    errors, outputs = evaluation.errors, evaluation.outputs
    columns: list[Iterable[str]] = [
        map(str, errors.numbers.tolist()),
        texts_of_floats(errors.logits),
    ]
    if outputs is not None:
        # Tokens are printable, so that a database can store them.
        columns += [map(_quote, outputs.texts), map(str, outputs.first_wrong.tolist())]
        columns.append(map(_quote, outputs.error_kinds))
    return f"[{','.join(map(_array, zip(*columns, strict=True)))}]"


def _array(values: Iterable[str]) -> str:
    return f"[{','.join(values)}]"


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_ODD = {"nan": "null", "inf": "9e999", "-inf": "-9e999"}


def texts_of_floats(values: np.ndarray) -> list[str]:
    """Floats as JSON, each with the fewest digits of its own precision."""
    # NumPy writes the fewest digits that round-trip in this precision.
    return [_ODD.get(text, text) for text in values.astype("U32").tolist()]


def rows_text(rows: Iterable[Iterable[Any]]) -> str:
    """Rows of numbers as JSON."""
    text = json.dumps(list(map(tuple, rows)), separators=(",", ":"))
    # Rows of numbers contain no other capitals, and one search is faster than replacing.
    if "N" in text or "I" in text:
        text = text.replace("NaN", "null").replace("Infinity", "9e999")
    return text


def read_rows(text: str | None) -> list[list[Any]]:
    """The rows of a text; empty for None."""
    return [] if text is None else json.loads(text)


def error_numbers(text: str | None) -> Int64[np.ndarray, " error"]:
    """The numbers of the misclassified strings in a text of errors."""
    return np.array([row[0] for row in read_rows(text)], dtype=np.int64)
