"""Are there as many pairs 01 as pairs 10?"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool

from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.automata.explored import explored
from seqcls.tasks.language import Language, LetterRow, random_bits
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True)
class EvenPairs(Language):
    """Strings whose last token is their first are positive: they have as many 01 as 10.

    `0`, `0110` and the empty string are positive; `01` and `1100` are negative.
    """

    alphabet = "01"

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton: its states are the first token and the last."""

        def step(ends: tuple[int, ...], letter: int) -> tuple[int, ...]:
            return (*ends[:1], letter) if ends else (letter, letter)

        start: tuple[int, ...] = ()
        return explored(2, start, step, lambda ends: ends[:1] == ends[1:])

    def accepts(self, text: str) -> bool:
        return text[:1] == text[-1:]

    def labels(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        if not strings.letters.shape[1]:
            return np.ones(len(strings), dtype=bool)
        last = np.maximum(strings.lengths - 1, 0)
        return np.asarray(strings.letters[:, 0] == strings.letters[np.arange(len(last)), last])

    def has(self, length: int, positive: bool) -> bool:
        return positive or length > 1

    def has_positive(self, length: int) -> bool:
        del length
        return True

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: fair bits, and the last is the first."""
        bits = random_bits(rng, length)
        bits[-1:] = bits[:1]
        return bits

    def describe(self) -> str:
        return "Strings whose last token is the same as their first are positive."
