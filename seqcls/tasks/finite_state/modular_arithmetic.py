"""Is the equation true, from left to right and modulo 5?"""

from dataclasses import dataclass

import numpy as np

from seqcls.functions.modular import MODULUS, OPERATORS, expression_value
from seqcls.tasks.automata.automaton import Automaton
from seqcls.tasks.automata.explored import explored
from seqcls.tasks.language import Language, LetterRow

_RIGHT = (0, 0, 0)


@dataclass(frozen=True)
class ModularArithmetic(Language):
    """digit (operator digit)* = digit, worked out strictly from left to right, modulo 5.

    `2+3*2=0` and `4=4` are positive; `1+1=3`, `1+=1` and the empty string are negative.
    """

    alphabet = OPERATORS + "=01234"

    @property
    def automaton(self) -> Automaton:
        """The minimal automaton.

        Before a digit its states are the values that each digit would make, after it the value;
        after `=` the value with a mark, and then nothing or whether it was right.
        """
        mark = len(OPERATORS)

        def step(state: tuple[int, ...], letter: int) -> tuple[int, ...]:
            digit = letter - mark - 1
            if len(state) == MODULUS:
                return (state[digit],) if digit >= 0 else ()
            if len(state) == 1 and letter < mark:
                worked_out = (f"{state[0]}{OPERATORS[letter]}{x}" for x in range(MODULUS))
                return tuple(expression_value(text) or 0 for text in worked_out)
            if len(state) == 1 and letter == mark:
                return (*state, mark)
            return _RIGHT if len(state) == 2 and digit == state[0] else ()

        start = tuple(range(MODULUS))
        return explored(len(self.alphabet), start, step, lambda state: state == _RIGHT)

    def accepts(self, text: str) -> bool:
        left, mark, right = text.partition("=")
        value = expression_value(left)
        return bool(mark) and value is not None and right == str(value)

    def has_positive(self, length: int) -> bool:
        return length >= 3 and length % 2 == 1

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the left side is, and determines the last token."""
        letters = np.empty(length, dtype=np.uint8)
        letters[0::2] = rng.integers(MODULUS, size=(length + 1) // 2) + len(OPERATORS) + 1
        letters[1::2] = rng.integers(len(OPERATORS), size=length // 2)
        letters[-2] = len(OPERATORS)
        left = "".join([self.alphabet[letter] for letter in letters[:-2].tolist()])
        value = expression_value(left)
        assert value is not None
        letters[-1] = len(OPERATORS) + 1 + value
        return letters

    def describe(self) -> str:
        return "Equations that are true when worked out from left to right, modulo 5, are positive."
