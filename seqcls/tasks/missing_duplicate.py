"""Would the string be some string twice if its blank were a 1?"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.tasks.base import FLARE, NotRegular
from seqcls.tasks.language import Language, LetterRow, random_bits

BLANK = "_"


@dataclass(frozen=True)
class MissingDuplicate(Language):
    """Exactly one token is `_`; read as 1, it makes the string some string twice.

    `0_01` and `_1` are positive; `0_00`, `0101`, `__` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01" + BLANK

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
        once[place % half] = 1
        letters = np.concatenate([once, once])
        letters[place] = self.alphabet.index(BLANK)
        return letters

    def describe(self) -> str:
        return (
            "Strings with one blank (_) that are the same bits twice when it is read as 1 "
            "are positive."
        )
