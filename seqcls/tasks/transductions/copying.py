"""Write the tokens of the input again, in some order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from seqcls.errors import InvalidStringError
from seqcls.functions.rearranging import ascending, backwards, odds_first, same, twice
from seqcls.tasks.language import LetterRow
from seqcls.tasks.transductions.base import (
    Places,
    TargetPlaces,
    TargetRow,
    Transduction,
    numbered_tokens,
)


@dataclass(frozen=True)
class OfTokens(Transduction):
    """Inputs are uniform strings of `num_tokens` tokens, or those that hold no token twice."""

    num_tokens: int = 2
    distinct: bool = False

    reads: ClassVar[frozenset[str]] = frozenset({"num_tokens", "distinct"})

    @property
    def alphabet(self) -> Sequence[str]:
        return numbered_tokens(self.num_tokens)

    rearranged: ClassVar["staticmethod[[Sequence[Any]], list[Any]]"]
    """What is right of an input."""

    def target(self, letters: LetterRow) -> TargetRow:
        tokens = letters.tolist()
        if not tokens:
            raise InvalidStringError("expected at least one token")
        if self.distinct and len(set(tokens)) < len(tokens):
            raise InvalidStringError("expected no token twice")
        return np.array(self.rearranged(tokens), dtype=np.uint8)

    def has_input(self, length: int) -> bool:
        return length >= 1 and (not self.distinct or length <= self.num_tokens)

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        if self.distinct:
            return rng.permutation(self.num_tokens)[:length].astype(np.uint8)
        return rng.integers(self.num_tokens, size=length, dtype=np.uint8)

    def longest_target(self, length: int) -> int:
        longest = min(length, self.num_tokens) if self.distinct else length
        return len(self.rearranged(range(longest)))

    @property
    def _inputs(self) -> str:
        distinct = ", none with a token twice" if self.distinct else ""
        return f"Strings over an alphabet of {self.num_tokens}{distinct}"


class Moved(OfTokens):
    """Where a token of the input goes does not depend on what it is, so it shares its place."""

    def coupling_obstacle(self) -> None:
        """A token belongs together with its copies."""

    def couples(
        self, input_letters: LetterRow, target_letters: TargetRow
    ) -> tuple[Places, TargetPlaces]:
        """As the base class says; tokens after the target's last stand alone."""
        places = np.arange(1, len(input_letters) + 1)
        moved = self.rearranged(places.tolist())[: len(target_letters)]
        return places, np.array([*moved, *[0] * (len(target_letters) - len(moved))], dtype=np.int64)


@dataclass(frozen=True)
class Copy(Moved):
    """`abba` becomes `abba`."""

    rearranged = staticmethod(same)

    def describe(self) -> str:
        return f"{self._inputs}: the output is the same string."


@dataclass(frozen=True)
class Reverse(Moved):
    """`abb` becomes `bba`."""

    rearranged = staticmethod(backwards)

    def separator_place(self, input_letters: LetterRow) -> int:
        """One place behind the input's last token, with which the output begins."""
        return len(input_letters) + 1

    def describe(self) -> str:
        return f"{self._inputs}: the output is the string backwards."


@dataclass(frozen=True)
class Duplicate(Moved):
    """`abb` becomes `abbabb`."""

    rearranged = staticmethod(twice)

    def describe(self) -> str:
        return f"{self._inputs}: the output is the string twice."


@dataclass(frozen=True)
class WriteOddsFirst(Moved):
    """`aabb` becomes `abab`: the tokens at places 1, 3, 5, ..., then those at 2, 4, 6, ...."""

    rearranged = staticmethod(odds_first)

    def describe(self) -> str:
        return f"{self._inputs}: the output holds its tokens at odd places, then the others."


@dataclass(frozen=True)
class Sort(OfTokens):
    """`baab` becomes `aabb`."""

    order_sensitive: ClassVar[bool] = False
    rearranged = staticmethod(ascending)

    def describe(self) -> str:
        return f"{self._inputs}: the output holds the same tokens in ascending order."
