"""What stands packed in a column: misclassified strings, counts by length, wrong outputs."""

import json
from collections.abc import Sequence
from typing import Any, get_args

import numpy as np
from jaxtyping import Int64

from seqcls.errors import InvalidStringError
from seqcls.results import ErrorKind, StringErrors
from seqcls.strings.tokenizer import Tokenizer
from sweeps.results import Output

# Misclassified strings as bytes: what a run's errors take in the database.

NUMBER_BYTES = 3
"""Enough for the strings of any test set: a configuration has at most a million."""


def pack_errors(errors: StringErrors) -> tuple[bytes, bytes]:
    """Numbers and logits, the highest byte first; logits in the precision that they have."""
    numbers = errors.numbers.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    with np.errstate(over="ignore", under="ignore"):
        single = errors.logits.astype(np.float32)
    exact = bool((single == errors.logits).all())
    logits = single.astype(">f4") if exact else errors.logits.astype(">f8")
    return numbers.tobytes(), logits.tobytes()


def unpack_errors(numbers: bytes, logits: bytes) -> StringErrors:
    """What `pack_errors` made bytes of.

    Raises:
        ValueError: the two are not of equally many strings.
    """
    rows = unpacked_numbers(numbers)
    width = 4 if len(logits) == 4 * len(rows) else 8
    values = np.frombuffer(logits, dtype=f">f{width}").astype(np.float64)
    if len(values) != len(rows):
        raise ValueError(f"{len(rows)} numbers and {len(logits)} bytes of logits")
    return StringErrors(rows, values)


def unpacked_numbers(numbers: bytes) -> Int64[np.ndarray, " error"]:
    """The numbers alone, of one run or of several, one after another."""
    parts = np.frombuffer(numbers, dtype=np.uint8).reshape(-1, NUMBER_BYTES).astype(np.int64)
    return np.asarray((parts[:, 0] << 16) | (parts[:, 1] << 8) | parts[:, 2])


NO_ERRORS = StringErrors(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
"""Those of a run that misclassified nothing."""


# What a shortcut reader reads rightly, by length, as JSON.


def packed_lengths(rows: Sequence[tuple[int, int, int]]) -> str:
    """An array of lengths, each an array of it, its test strings and those read rightly."""
    return json.dumps(rows, separators=(",", ":"))


def unpacked_lengths(text: str) -> list[tuple[int, int, int]]:
    """Lengths with how many test strings each has, and how many of them are read rightly.

    Raises:
        ValueError: it is no array of those.
    """
    rows = json.loads(text)
    if not isinstance(rows, list) or not all(map(_is_length, rows)):
        raise ValueError("no lengths")
    return [(length, tested, right) for length, tested, right in rows]


def _is_length(row: Any) -> bool:
    if not isinstance(row, list) or [type(part) for part in row] != [int, int, int]:
        return False
    length, tested, right = row
    return bool(length >= 0 and 0 <= right <= tested)


# Wrong outputs of a transduction as JSON: what a run's take in the database.

ERROR_KINDS: tuple[str, ...] = get_args(ErrorKind)

MOST_PLACE = 2**31 - 1
"""What every database holds as a whole number."""


def packed_outputs(outputs: Sequence[Output]) -> str:
    """An array of outputs, each an array of its text, first wrong place and kind of error."""
    return json.dumps(outputs, ensure_ascii=False, separators=(",", ":"))


def unpacked_outputs(text: str) -> list[Output]:
    """What `packed_outputs` made text of.

    Raises:
        ValueError: it is no array of outputs, or one of none.
    """
    outputs = json.loads(text)
    if not isinstance(outputs, list) or not outputs or not all(map(_is_output, outputs)):
        raise ValueError("no outputs")
    return [(said, place, kind) for said, place, kind in outputs]


def is_beyond(output: Output) -> bool:
    """Whether the first wrong place is one that the output cannot have."""
    text, place, _ = output
    most = len(text)
    if "{" in text:
        try:
            # Of tokens with names there are fewer than characters.
            most = sum(Tokenizer(sorted(set(text))).counts(text))
        except InvalidStringError:
            return False
    return place > most


def _is_output(value: Any) -> bool:
    if not isinstance(value, list) or [type(part) for part in value] != [str, int, str]:
        return False
    text, place, kind = value
    # Tokens are printable, so that there is nothing that a database or a file cannot hold.
    return text.isprintable() and 0 <= place <= MOST_PLACE and kind in ERROR_KINDS
