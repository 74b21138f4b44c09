"""Is the string 01, again and again?"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.language import Language, LetterRow
from seqcls.tasks.letters import DEFECT
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True)
class Repeat01(Language):
    """The strings (01)* are positive.

    `0101` and the empty string are positive; `0`, `10` and `0110` are negative.
    """

    alphabet = "01"

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton."""
        return Automaton(np.array([[1, 2], [2, 0], [2, 2]]), np.array([True, False, False]))

    def accepts(self, text: str) -> bool:
        return text == "01" * (len(text) // 2)

    def has_positive(self, length: int) -> bool:
        return length % 2 == 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The one string of that length."""
        del rng
        return np.arange(length, dtype=np.int64).astype(np.uint8) & 1

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """How often each token occurs, and the place of the first defect."""
        letters = strings.letters
        sound = np.logical_and.accumulate(letters == np.arange(letters.shape[1]) % 2, axis=1)
        return {**super().features(strings), DEFECT: sound.sum(axis=1)}

    def describe(self) -> str:
        return "Strings that repeat 01, any number of times, are positive."
