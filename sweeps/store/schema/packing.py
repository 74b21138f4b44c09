"""Misclassified strings as bytes: what a run's errors take in the database."""

import numpy as np
from jaxtyping import Int64

from seqcls.results import StringErrors

NUMBER_BYTES = 3
"""Enough for the strings of any test set: a configuration has at most a million."""


def packed(errors: StringErrors) -> tuple[bytes, bytes]:
    """Numbers and logits, the highest byte first; logits in the precision that they have."""
    numbers = errors.numbers.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    with np.errstate(over="ignore", under="ignore"):
        single = errors.logits.astype(np.float32)
    exact = bool((single == errors.logits).all())
    logits = single.astype(">f4") if exact else errors.logits.astype(">f8")
    return numbers.tobytes(), logits.tobytes()


def unpacked(numbers: bytes, logits: bytes) -> StringErrors:
    """What `packed` made bytes of.

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
