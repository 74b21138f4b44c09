"""Counts of letters, judged or written: letters that are required, majority, parity, and the most
frequent token.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from pydantic import AfterValidator, Field

from seqcls.cache import remembered
from seqcls.declarations import About, Fields
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.strings.token_strings import Counts, Truths
from seqcls.strings.tokenizer import LETTERS, MAX_LETTERS
from seqcls.tasks.automaton import Automaton, RegularLanguage
from seqcls.tasks.base import (
    FLARE,
    BulkTask,
    CountTask,
    Language,
    LetterRow,
    NotRegular,
    random_bits,
)
from seqcls.tasks.transductions import FormTransduction, OneToken, TargetRow, Transduction

MAX_REQUIRED_LETTERS = 10
"""The sampler has a budget for each of the 2**r sets of required letters."""


def _sort_letters(letters: str) -> str:
    if not letters or len(set(letters)) < len(letters):
        raise ValueError("expected distinct letters, at least one, such as 'ab'")
    if len(letters) > MAX_REQUIRED_LETTERS:
        raise ValueError(f"expected at most {MAX_REQUIRED_LETTERS} letters")
    return "".join(sorted(letters))


@dataclass(frozen=True)
class RequiredLetters(Fields, alone=True):
    """num_letters: The size of the alphabet of tasks over lowercase letters; others bring an
        alphabet of their own.
    required_letters: The letters that every positive string of `contains_all` holds.
    """

    num_letters: Annotated[int, Field(ge=1, le=MAX_LETTERS), About("Task", 10)] = 3
    required_letters: Annotated[str, AfterValidator(_sort_letters), About("Task", 11)] = "ab"


@dataclass(frozen=True)
class ContainsAll(RequiredLetters, CountTask, BulkTask):
    """Strings with every required letter are positive.

    With the letters `a` and `b` required: `baac` is positive; `aac`, `c{9}` and the empty string
    are negative.
    """

    def __post_init__(self) -> None:
        outside = sorted(set(self.required_letters) - set(self.alphabet))
        if outside:
            raise ConfigError(
                f"required_letters={self.required_letters!r}: {outside[0]!r} is outside the "
                f"alphabet {self.alphabet!r}; raise num_letters or require other letters"
            )

    @property
    def alphabet(self) -> str:
        return LETTERS[: self.num_letters]

    @property
    @remembered
    def automaton(self) -> Automaton:
        """The minimal automaton: its states are the sets of required letters that occurred, as
        bits.
        """
        bits = np.zeros(self.num_letters, dtype=np.int64)
        bits[list(self.required)] = 1 << np.arange(len(self.required))
        sets = np.arange(1 << len(self.required))
        # Letters that are not required set no bit, and so change no state.
        return Automaton(sets[:, None] | bits, sets == len(sets) - 1)

    @cached_property
    def required(self) -> tuple[int, ...]:
        """The numbers of the required letters, ascending."""
        return tuple(self.alphabet.index(x) for x in self.required_letters)

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The numbers of all other letters, ascending."""
        return tuple(x for x in range(self.num_letters) if x not in self.required)

    def labels_of_counts(self, counts: Counts) -> Truths:
        return np.asarray((counts[:, self.required] > 0).all(axis=1))

    has, draw_many = RegularLanguage.has, RegularLanguage.draw_many

    def describe(self) -> str:
        letters = [f"at least one {letter}" for letter in self.required_letters]
        return f"Strings with {' and '.join(letters)} are positive."


@dataclass(frozen=True)
class Majority(CountTask, Language):
    """Strings with strictly more 1s than 0s are positive.

    `1` and `110` are positive; `10`, `0` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular(
        "deterministic context-free", FLARE, counts=True, share=True
    )
    alphabet = "01"
    words = "Strings with more 1s than 0s are positive."

    def accepts(self, text: str) -> bool:
        return 2 * text.count("1") > len(text)

    def labels_of_counts(self, counts: Counts) -> Truths:
        return np.asarray(counts[:, 1] > counts[:, 0])

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: fair bits, turned over where the 0s prevail, drawn again where none does."""
        while True:
            bits = random_bits(rng, length)
            excess = 2 * int(bits.sum()) - length
            # As many 1s as 0s are no majority, whichever way the bits are turned.
            if excess:
                return bits if excess > 0 else 1 - bits


@dataclass(frozen=True)
class Parity(CountTask, Language):
    """Strings with an odd number of 1s are positive.

    `1` and `0111` are positive; `11`, `0` and the empty string are negative.
    """

    alphabet = "01"
    words = "Strings with an odd number of 1s are positive."

    @property
    def automaton(self) -> Automaton:
        return Automaton(np.array([[0, 1], [1, 0]]), np.array([False, True]))

    def accepts(self, text: str) -> bool:
        return text.count("1") % 2 == 1

    def labels_of_counts(self, counts: Counts) -> Truths:
        return np.asarray(counts[:, 1] % 2 == 1)

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: all bits but the last are fair, and that one makes the number odd."""
        bits = random_bits(rng, length)
        bits[-1] = 1 - bits[:-1].sum() % 2
        return bits


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
class ParityWord(OneToken, FormTransduction):
    """`0111` becomes `1`, for odd, and `11` becomes `0`, for even."""

    order_sensitive: ClassVar[bool] = False
    alphabet = "01"
    form = "at least one bit"
    words = "Bits: the output is 1 if the number of 1s is odd, and 0 if it is even."

    def answer(self, letters: list[int]) -> list[int]:
        return [sum(letters) % 2]


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
