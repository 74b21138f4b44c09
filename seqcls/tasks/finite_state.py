"""Small regular languages of bits in which the order decides."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton, AutomatonLanguage, explore
from seqcls.tasks.base import DEFECT, LetterRow, random_bits


@dataclass(frozen=True)
class First(AutomatonLanguage):
    """Strings that begin with 1 are positive.

    `1` and `100` are positive; `01` and the empty string are negative.
    """

    alphabet = "01"
    words = "Strings that begin with 1 are positive."

    @cached_property
    def automaton(self) -> Automaton:
        # State 0 has read nothing; in 1 the string began with 1, and in 2 with 0.
        return Automaton(np.array([[2, 1], [1, 1], [2, 2]]), np.array([False, True, False]))

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: fair bits after a 1."""
        bits = random_bits(rng, length)
        bits[0] = 1
        return bits


@dataclass(frozen=True)
class EvenPairs(AutomatonLanguage):
    """Strings whose last token is their first are positive: they have as many 01 as 10.

    `0`, `0110` and the empty string are positive; `01` and `1100` are negative.
    """

    alphabet = "01"
    words = "Strings whose last token is the same as their first are positive."

    @cached_property
    def automaton(self) -> Automaton:
        """The minimal automaton: its states are the first token and the last."""

        def step(ends: tuple[int, ...], letter: int) -> tuple[int, ...]:
            return (*ends[:1], letter) if ends else (letter, letter)

        start: tuple[int, ...] = ()
        return explore(2, start, step, lambda ends: ends[:1] == ends[1:])

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: fair bits, and the last is the first."""
        bits = random_bits(rng, length)
        bits[-1:] = bits[:1]
        return bits


@dataclass(frozen=True)
class Repeat01(AutomatonLanguage):
    """The strings (01)* are positive.

    `0101` and the empty string are positive; `0`, `10` and `0110` are negative.
    """

    alphabet = "01"
    words = "Strings that repeat 01, any number of times, are positive."

    @cached_property
    def automaton(self) -> Automaton:
        # State 0 waits for 0, state 1 for 1, and 2 is for strings that nothing mends.
        return Automaton(np.array([[1, 2], [2, 0], [2, 2]]), np.array([True, False, False]))

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The one string of that length."""
        return np.arange(length, dtype=np.int64).astype(np.uint8) & 1

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """The number of each token, and the length before the first defect."""
        return {**super().features(strings), DEFECT: self.automaton.sound_lengths(strings)}
