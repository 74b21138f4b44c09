"""Transductions to the most frequent token, and to the parity of bits."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.strings.tokenizer import LETTERS
from seqcls.tasks.base import LetterRow
from seqcls.tasks.transductions import OneToken, TargetRow, Transduction


class _Unique(OneToken):
    """Inputs are uniform among the strings in which one token is more frequent than all others."""

    order_sensitive: ClassVar[bool] = False

    def target(self, letters: LetterRow) -> TargetRow:
        return np.array([_most_frequent(letters)], dtype=np.uint8)

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return _without_tie(rng, len(self.alphabet), length)


@dataclass(frozen=True)
class MostFrequent(_Unique):
    """`abcb` becomes `b`."""

    alphabet = LETTERS
    words = "Letters, one of them more often than all others: the output is that letter."


@dataclass(frozen=True)
class BinaryMajority(_Unique):
    """`110` becomes `1`."""

    alphabet = "01"
    words = "Bits, not as many 0s as 1s: the output is the bit that is there more often."


@dataclass(frozen=True)
class InterleavedMajority(Transduction):
    """`100110101` becomes `100`: of bits 1, 4, ..., of 2, 5, ... and of 3, 6, ... the majority."""

    alphabet = "01"
    words = (
        "Three strings of bits, token by token in turn, none with as many 0s as 1s: the "
        "output is the bit that is more frequent in each."
    )

    def target(self, letters: LetterRow) -> TargetRow:
        if not self.has_input(len(letters)):
            raise InvalidStringError("expected three strings of one length, token by token in turn")
        return np.array([_most_frequent(letters[x::3]) for x in range(3)], dtype=np.uint8)

    def has_input(self, length: int) -> bool:
        return length >= 3 and length % 3 == 0

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return np.stack([_without_tie(rng, 2, length // 3) for _ in range(3)], axis=1).ravel()

    def longest_target(self, length: int) -> int:
        return 3 if length >= 3 else 0


@dataclass(frozen=True)
class ParityWord(OneToken):
    """`0111` becomes `1`, for odd, and `11` becomes `0`, for even."""

    order_sensitive: ClassVar[bool] = False
    alphabet = "01"
    words = "Bits: the output is 1 if the number of 1s is odd, and 0 if it is even."

    def target(self, letters: LetterRow) -> TargetRow:
        if not len(letters):
            raise InvalidStringError("expected at least one bit")
        return np.array([np.count_nonzero(letters) % 2], dtype=np.uint8)


def _most_frequent(letters: LetterRow) -> int:
    # The empty string has one count, too, so that there is a greatest.
    counts = np.bincount(letters, minlength=1)
    if not len(letters) or np.count_nonzero(counts == counts.max()) > 1:
        raise InvalidStringError("expected one token to be more frequent than every other")
    return int(counts.argmax())


def _without_tie(rng: np.random.Generator, num_letters: int, length: int) -> LetterRow:
    """Uniform: drawn again while the most frequent token is not the only one."""
    while True:
        letters = rng.integers(num_letters, size=length, dtype=np.uint8)
        counts = np.bincount(letters)
        if np.count_nonzero(counts == counts.max()) == 1:
            return letters
