"""Write the input again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.tasks.transductions.base import LetterRow, Transduction, numbered_tokens


@dataclass(frozen=True)
class OfTokens(Transduction):
    """Inputs are uniform strings of `num_tokens` tokens, or those that hold no token twice."""

    num_tokens: int = 2
    distinct: bool = False

    reads: ClassVar[frozenset[str]] = frozenset({"num_tokens", "distinct"})

    @property
    def alphabet(self) -> Sequence[str]:
        return numbered_tokens(self.num_tokens)

    def has_input(self, length: int) -> bool:
        return length >= 1 and (not self.distinct or length <= self.num_tokens)

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        if self.distinct:
            return rng.permutation(self.num_tokens)[:length].astype(np.uint8)
        return rng.integers(self.num_tokens, size=length, dtype=np.uint8)

    @property
    def _inputs(self) -> str:
        what = "that holds none twice" if self.distinct else "of them"
        return f"{self.num_tokens} tokens, and a string {what}"


@dataclass(frozen=True)
class Copy(OfTokens):
    """`abba` becomes `abba`."""

    def target(self, letters: LetterRow) -> LetterRow:
        return letters

    def describe(self) -> str:
        return f"{self._inputs}: the output is the same string."
