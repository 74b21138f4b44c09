"""Does the last digit say where on a cycle of five places the moves lead?"""

import re
from dataclasses import dataclass

import numpy as np

from seqcls.functions.modular import MODULUS, MOVES, place_after
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.automata.explored import explored
from seqcls.tasks.language import Language, LetterRow

_SHAPE = re.compile(r"[-+=]*[0-4]")
_RIGHT, _WRONG = MODULUS, MODULUS + 1


@dataclass(frozen=True)
class CycleNavigation(Language):
    """Moves (+ one on, - one back, = none), then the place where they end, counted modulo 5.

    `++=2`, `-4` and `0` are positive; `+0`, `++` and the empty string are negative.
    """

    alphabet = MOVES + "01234"

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton: a place, or after a digit whether it is the right one."""

        def step(place: int, letter: int) -> int:
            if place >= MODULUS:
                return _WRONG
            if letter < len(MOVES):
                return (place + place_after(MOVES[letter])) % MODULUS
            return _RIGHT if letter - len(MOVES) == place else _WRONG

        return explored(len(self.alphabet), 0, step, lambda place: place == _RIGHT)

    def accepts(self, text: str) -> bool:
        if _SHAPE.fullmatch(text) is None:
            return False
        return place_after(text[:-1]) == int(text[-1])

    def has_positive(self, length: int) -> bool:
        return length > 0

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the moves are, and determine the last token."""
        letters = rng.integers(len(MOVES), size=length, dtype=np.uint8)
        moves = "".join([MOVES[letter] for letter in letters[:-1].tolist()])
        letters[-1] = len(MOVES) + place_after(moves)
        return letters

    def describe(self) -> str:
        return (
            "Moves on a cycle of five places (+ one on, - one back, = none) that end with the "
            "place where they lead are positive."
        )
