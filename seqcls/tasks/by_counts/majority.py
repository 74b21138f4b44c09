"""Are there more 1s than 0s?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.tasks.base import FLARE, NotRegular
from seqcls.tasks.language import Language, LetterRow, OfCounts, random_bits


@dataclass(frozen=True)
class Majority(OfCounts, Language):
    """Strings with strictly more 1s than 0s are positive.

    `1` and `110` are positive; `10`, `0` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular(
        "deterministic context-free", FLARE, counts=True, share=True
    )
    alphabet = "01"

    def accepts(self, text: str) -> bool:
        return 2 * text.count("1") > len(text)

    def labels_of_counts(
        self, counts: Int64[np.ndarray, "string letter"]
    ) -> Bool[np.ndarray, " string"]:
        return np.asarray(counts[:, 1] > counts[:, 0])

    def has_positive(self, length: int) -> bool:
        return length > 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: fair bits, turned over where the 0s prevail, drawn again where none does."""
        while True:
            bits = random_bits(rng, length)
            excess = 2 * int(bits.sum()) - length
            if excess:
                return bits if excess > 0 else 1 - bits

    def describe(self) -> str:
        return "Strings with more 1s than 0s are positive."
