"""Is the equation true, from left to right and modulo 5?"""

import re
from dataclasses import dataclass

import numpy as np

from seqcls.tasks.language import Language, LetterRow

OPERATORS = "+-*"
MODULUS = 5

_SHAPE = re.compile(r"[0-4](?:[-+*][0-4])*=[0-4]")


@dataclass(frozen=True)
class ModularArithmetic(Language):
    """digit (operator digit)* = digit, worked out strictly from left to right, modulo 5.

    `2+3*2=0` and `4=4` are positive; `1+1=3`, `1+=1` and the empty string are negative.
    """

    alphabet = OPERATORS + "=01234"

    def accepts(self, text: str) -> bool:
        return _SHAPE.fullmatch(text) is not None and _value(text[:-2]) == int(text[-1])

    def has_positive(self, length: int) -> bool:
        return length >= 3 and length % 2 == 1

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the left side is, and determines the last token."""
        letters = np.empty(length, dtype=np.uint8)
        letters[0::2] = rng.integers(MODULUS, size=(length + 1) // 2) + len(OPERATORS) + 1
        letters[1::2] = rng.integers(len(OPERATORS), size=length // 2)
        letters[-2] = len(OPERATORS)
        left = "".join([self.alphabet[letter] for letter in letters[:-2].tolist()])
        letters[-1] = len(OPERATORS) + 1 + _value(left)
        return letters

    def describe(self) -> str:
        return "Equations that are true when worked out from left to right, modulo 5, are positive."


def _value(left: str) -> int:
    value = int(left[0])
    for operator, digit in zip(left[1::2], left[2::2], strict=True):
        if operator == "+":
            value += int(digit)
        elif operator == "-":
            value -= int(digit)
        else:
            # The only way to grow: kept small.
            value = value * int(digit) % MODULUS
    return value % MODULUS
