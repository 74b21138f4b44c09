"""Does the string begin with 1?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.language import Language, LetterRow, random_bits
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True)
class First(Language):
    """Strings that begin with 1 are positive.

    `1` and `100` are positive; `01` and the empty string are negative.
    """

    alphabet = "01"

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton."""
        return Automaton(np.array([[2, 1], [1, 1], [2, 2]]), np.array([False, True, False]))

    def accepts(self, text: str) -> bool:
        return text.startswith("1")

    def labels(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        return np.asarray((strings.letters[:, :1] == 1).any(axis=1))

    def has_positive(self, length: int) -> bool:
        return length > 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: fair bits after a 1."""
        bits = random_bits(rng, length)
        bits[0] = 1
        return bits

    def describe(self) -> str:
        return "Strings that begin with 1 are positive."
