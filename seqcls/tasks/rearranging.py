"""Rearrangements of tokens, to recognize and to write.

In the languages, the part after a mark, or the second half of a string, is a rearrangement of the
part before it; transductions write the input's tokens in that order.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.tasks.base import FLARE, Language, LetterRow, NotRegular, random_bits
from seqcls.tasks.transductions import (
    INPUT,
    DistinctTokens,
    FormTransduction,
    NumberedTokens,
    Places,
    TargetPlaces,
    TargetRow,
)

T = TypeVar("T")


def same(tokens: Sequence[T]) -> list[T]:
    """`abb` stays `abb`."""
    return list(tokens)


def backwards(tokens: Sequence[T]) -> list[T]:
    """`abb` becomes `bba`."""
    return list(tokens[::-1])


def twice(tokens: Sequence[T]) -> list[T]:
    """`abb` becomes `abbabb`."""
    return [*tokens, *tokens]


def odds_first(tokens: Sequence[T]) -> list[T]:
    """`0011` becomes `0101`: the tokens at places 1, 3, 5, ..., then those at 2, 4, 6, ...."""
    return [*tokens[0::2], *tokens[1::2]]


MARK = "#"


@dataclass(frozen=True)
class Marked(Language):
    """u#f(u), for a rearrangement f of the tokens of u."""

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01" + MARK
    rearranged: ClassVar["staticmethod[[Sequence[Any]], list[Any]]"]
    """The function f of the tokens before the mark."""

    def accepts(self, text: str) -> bool:
        # f(u) is as long as u, so that the mark can only be in the middle.
        middle = len(text) // 2
        before, mark, after = text[:middle], text[middle : middle + 1], text[middle + 1 :]
        return mark == MARK and MARK not in before and list(after) == self.rearranged(before)

    def has_positive(self, length: int) -> bool:
        return length % 2 == 1

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the tokens before the mark are."""
        mark = self.alphabet.index(MARK)
        before = rng.integers(mark, size=length // 2, dtype=np.uint8)
        after = self.rearranged(before.tolist())
        return np.array([*before, mark, *after], dtype=np.uint8)


class MarkedReversal(Marked):
    """u#u with the second u backwards.

    `01#10` and `#` are positive; `01#01`, `11` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("deterministic context-free", FLARE)
    rearranged = staticmethod(backwards)
    words = "Bits, a #, and the same bits backwards: such strings are positive."


class MarkedCopy(Marked):
    """u#u.

    `01#01` and `#` are positive; `01#10`, `11` and the empty string are negative.
    """

    rearranged = staticmethod(same)
    words = "Bits, a #, and the same bits again: such strings are positive."


class OddsFirst(Marked):
    """u#v: v holds the tokens of u at places 1, 3, 5, ..., then those at places 2, 4, 6, ....

    `0011#0101` and `#` are positive; `01#10` and the empty string are negative.
    """

    rearranged = staticmethod(odds_first)
    words = "Bits, a #, and the same bits, those at odd places first: such strings are positive."


class BucketSort(Marked):
    """u#v: v holds the digits of u in ascending order.

    `3132#1233` and `#` are positive; `21#21` and the empty string are negative.
    """

    alphabet = "12345" + MARK
    rearranged = staticmethod(sorted)
    words = "Digits, a #, and the same digits in ascending order: such strings are positive."


@dataclass(frozen=True)
class UnmarkedReversal(Language):
    """Bits and the same bits backwards.

    `0110` and the empty string are positive; `01` and `010` are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-free", FLARE)
    alphabet = "01"
    words = "Bits directly followed by the same bits backwards: such strings are positive."

    def accepts(self, text: str) -> bool:
        return len(text) % 2 == 0 and text == text[::-1]

    def has_positive(self, length: int) -> bool:
        return length % 2 == 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the first half is."""
        half = random_bits(rng, length // 2)
        return np.concatenate([half, half[::-1]])


BLANK = "_"


@dataclass(frozen=True)
class MissingDuplicate(Language):
    """Exactly one token is `_`; read as 1, it makes the string some string twice.

    `0_01` and `_1` are positive; `0_00`, `0101`, `__` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01" + BLANK
    words = (
        "Strings with one blank (_) that are the same bits twice when it is read as 1 are positive."
    )

    def accepts(self, text: str) -> bool:
        half = len(text) // 2
        full = text.replace(BLANK, "1")
        return text.count(BLANK) == 1 and full[:half] == full[half:]

    def has_positive(self, length: int) -> bool:
        return length >= 2 and length % 2 == 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the blank's place is, and so are the bits that it does not determine."""
        half = length // 2
        once = random_bits(rng, half)
        place = int(rng.integers(length))
        # The blank is read as 1, so its partner in the other half is one.
        once[place % half] = 1
        letters = np.concatenate([once, once])
        letters[place] = self.alphabet.index(BLANK)
        return letters


@dataclass(frozen=True)
class TokenTransduction(DistinctTokens, NumberedTokens, FormTransduction):
    """Inputs are uniform strings of `num_tokens` tokens, or those that hold no token twice."""

    form = "at least one token"
    rearranged: ClassVar["staticmethod[[Sequence[Any]], list[Any]]"]
    """The target, as a function of the input's tokens."""
    output: ClassVar[str]
    """The target in words, after "the output"."""

    def answer(self, letters: list[int]) -> list[int]:
        if self.distinct and len(set(letters)) < len(letters):
            raise InvalidStringError("expected no token twice")
        return self.rearranged(letters)

    def has_input(self, length: int) -> bool:
        return length >= 1 and (not self.distinct or length <= self.num_tokens)

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        if self.distinct:
            # The beginning of a uniform permutation is a uniform string without repetitions.
            return rng.permutation(self.num_tokens)[:length].astype(np.uint8)
        return rng.integers(self.num_tokens, size=length, dtype=np.uint8)

    def longest_target(self, length: int) -> int:
        longest = min(length, self.num_tokens) if self.distinct else length
        return len(self.rearranged(range(longest)))

    def describe(self) -> str:
        distinct = ", none with a token twice" if self.distinct else ""
        return f"Strings over an alphabet of {self.num_tokens}{distinct}: the output {self.output}."


class Moved(TokenTransduction):
    """A transduction that moves tokens by their places alone, so that copies share a place."""

    def coupling_obstacle(self) -> None:
        """A token belongs together with its copies."""

    def couples(
        self, input_letters: LetterRow, target_letters: TargetRow
    ) -> tuple[Places, TargetPlaces]:
        """Implements `Transduction.couples`; tokens after the target's last have 0."""
        places = np.arange(1, len(input_letters) + 1)
        # The function that moves tokens moves the numbers of their places alike.
        moved = self.rearranged(places.tolist())[: len(target_letters)]
        return places, np.array([*moved, *[0] * (len(target_letters) - len(moved))], dtype=np.int64)


class Copy(Moved):
    """`abba` becomes `abba`."""

    rearranged = staticmethod(same)
    output = "is the same string"
    decided_by = INPUT


class Reverse(Moved):
    """`abb` becomes `bba`."""

    rearranged = staticmethod(backwards)
    output = "is the string backwards"

    def separator_place(self, input_letters: LetterRow) -> int:
        """One place after the input's last token, the first of the output."""
        return len(input_letters) + 1


class Duplicate(Moved):
    """`abb` becomes `abbabb`."""

    rearranged = staticmethod(twice)
    output = "is the string twice"


class WriteOddsFirst(Moved):
    """`aabb` becomes `abab`: the tokens at places 1, 3, 5, ..., then those at 2, 4, 6, ...."""

    rearranged = staticmethod(odds_first)
    output = "holds its tokens at odd places, then the others"


class Sort(TokenTransduction):
    """`baab` becomes `aabb`."""

    order_sensitive: ClassVar[bool] = False
    rearranged = staticmethod(sorted)
    output = "holds the same tokens in ascending order"
