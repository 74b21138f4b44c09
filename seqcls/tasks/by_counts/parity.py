"""Is the number of 1s odd?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.language import Language, LetterRow, OfCounts, random_bits


@dataclass(frozen=True)
class Parity(OfCounts, Language):
    """Strings with an odd number of 1s are positive.

    `1` and `0111` are positive; `11`, `0` and the empty string are negative.
    """

    alphabet = "01"

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton."""
        return Automaton(np.array([[0, 1], [1, 0]]), np.array([False, True]))

    def accepts(self, text: str) -> bool:
        return text.count("1") % 2 == 1

    def labels_of_counts(
        self, counts: Int64[np.ndarray, "string letter"]
    ) -> Bool[np.ndarray, " string"]:
        return np.asarray(counts[:, 1] % 2 == 1)

    def has_positive(self, length: int) -> bool:
        return length > 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: all bits but the last are fair, and that one makes the number odd."""
        bits = random_bits(rng, length)
        bits[-1] = 1 - bits[:-1].sum() % 2
        return bits

    def describe(self) -> str:
        return "Strings with an odd number of 1s are positive."
