"""Is the string 01, again and again?"""

from dataclasses import dataclass

import numpy as np

from seqcls.tasks.language import Language, LetterRow


@dataclass(frozen=True)
class Repeat01(Language):
    """The strings (01)* are positive.

    `0101` and the empty string are positive; `0`, `10` and `0110` are negative.
    """

    alphabet = "01"

    def accepts(self, text: str) -> bool:
        return text == "01" * (len(text) // 2)

    def has_positive(self, length: int) -> bool:
        return length % 2 == 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The one string of that length."""
        del rng
        return np.arange(length, dtype=np.int64).astype(np.uint8) & 1

    def describe(self) -> str:
        return "Strings that repeat 01, any number of times, are positive."
