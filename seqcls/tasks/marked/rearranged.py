"""Is what follows the mark `#` the right rearrangement of what stands before it?"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from seqcls.functions.rearranging import ascending, backwards, odds_first, same
from seqcls.tasks.base import FLARE, NotRegular
from seqcls.tasks.language import Language, LetterRow

MARK = "#"


class Marked(Language):
    """u#f(u), for a rearrangement f of the tokens of u."""

    rearranged: ClassVar["staticmethod[[Sequence[Any]], list[Any]]"]
    """What has to follow the mark."""

    def accepts(self, text: str) -> bool:
        middle = len(text) // 2
        before, mark, after = text[:middle], text[middle : middle + 1], text[middle + 1 :]
        return mark == MARK and MARK not in before and list(after) == self.rearranged(before)

    def has_positive(self, length: int) -> bool:
        return length % 2 == 1

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: what stands before the mark is."""
        mark = self.alphabet.index(MARK)
        before = rng.integers(mark, size=length // 2, dtype=np.uint8)
        after = self.rearranged(before.tolist())
        return np.array([*before, mark, *after], dtype=np.uint8)


@dataclass(frozen=True)
class MarkedReversal(Marked):
    """u#u with the second u backwards.

    `01#10` and `#` are positive; `01#01`, `11` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("deterministic context-free", FLARE)
    alphabet = "01" + MARK
    rearranged = staticmethod(backwards)

    def describe(self) -> str:
        return "Bits, a #, and the same bits backwards: such strings are positive."


@dataclass(frozen=True)
class MarkedCopy(Marked):
    """u#u.

    `01#01` and `#` are positive; `01#10`, `11` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01" + MARK
    rearranged = staticmethod(same)

    def describe(self) -> str:
        return "Bits, a #, and the same bits again: such strings are positive."


@dataclass(frozen=True)
class OddsFirst(Marked):
    """u#v: v holds the tokens of u at places 1, 3, 5, ..., then those at places 2, 4, 6, ....

    `0011#0101` and `#` are positive; `01#10` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01" + MARK
    rearranged = staticmethod(odds_first)

    def describe(self) -> str:
        return "Bits, a #, and the same bits, those at odd places first: such strings are positive."


@dataclass(frozen=True)
class BucketSort(Marked):
    """u#v: v holds the digits of u in ascending order.

    `3132#1233` and `#` are positive; `21#21` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "12345" + MARK
    rearranged = staticmethod(ascending)

    def describe(self) -> str:
        return "Digits, a #, and the same digits in ascending order: such strings are positive."
