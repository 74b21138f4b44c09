"""Rows of a dataset by their length, label and letters."""

from functools import lru_cache

import numpy as np
from jaxtyping import Int64

from seqcls.datasets.known import dataset_of
from seqcls.tokens.strings import NO_LETTER, TokenStrings

Rows = Int64[np.ndarray, " row"]


@lru_cache(maxsize=256)
def rows_of_length(digest: str, length: int, label: bool | None) -> Rows:
    """The rows of a length, and of a label where one is asked for."""
    dataset = dataset_of(digest)
    there = dataset.strings.lengths == length
    if label is not None and dataset.labels is not None:
        there = there & (dataset.labels == label)
    return np.flatnonzero(there)


def rows_of(digest: str, strings: TokenStrings) -> Rows:
    """The row of each string; -1 where the dataset has none."""
    known = _by_letters(digest)
    letters = dataset_of(digest).strings.letters
    rows = np.full(len(strings), -1, dtype=np.int64)
    for number, (row, length) in enumerate(zip(strings.letters, strings.lengths, strict=True)):
        candidate = known.get(hash(row[:length].tobytes()), -1)
        if candidate >= 0 and _is_string(letters[candidate], row[:length]):
            rows[number] = candidate
    return rows


def _is_string(letters: np.ndarray, string: np.ndarray) -> bool:
    end = len(string)
    if end > len(letters) or not np.array_equal(letters[:end], string):
        return False
    return end == len(letters) or bool(letters[end] == NO_LETTER)


@lru_cache(maxsize=4)
def _by_letters(digest: str) -> dict[int, int]:
    strings = dataset_of(digest).strings
    rows = zip(strings.letters, strings.lengths.tolist(), strict=True)
    return {hash(row[:length].tobytes()): number for number, (row, length) in enumerate(rows)}
