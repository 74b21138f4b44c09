"""Is the string the same backwards, and of even length?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.tasks.base import FLARE, NotRegular
from seqcls.tasks.language import Language, LetterRow, random_bits


@dataclass(frozen=True)
class UnmarkedReversal(Language):
    """Bits and the same bits backwards.

    `0110` and the empty string are positive; `01` and `010` are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-free", FLARE)
    alphabet = "01"

    def accepts(self, text: str) -> bool:
        return len(text) % 2 == 0 and text == text[::-1]

    def has_positive(self, length: int) -> bool:
        return length % 2 == 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the first half is."""
        half = random_bits(rng, length // 2)
        return np.concatenate([half, half[::-1]])

    def describe(self) -> str:
        return "Bits directly followed by the same bits backwards: such strings are positive."
