"""Where moves lead on a cycle, and what an expression is worth, modulo 5."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.functions.modular import MODULUS, MOVES, OPERATORS, expression_value, place_after
from seqcls.tasks.language import LetterRow
from seqcls.tasks.transductions.base import OfText


class _OneDigit(OfText):
    def longest_target(self, length: int) -> int:
        return min(length, 1)


@dataclass(frozen=True)
class WritePlace(_OneDigit):
    """`++=` becomes `2`."""

    order_sensitive: ClassVar[bool] = False
    alphabet = MOVES + "01234"
    form = "moves +, - and ="

    def answer(self, text: str) -> str | None:
        return None if text.strip(MOVES) else str(place_after(text))

    def has_input(self, length: int) -> bool:
        return length >= 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return rng.integers(len(MOVES), size=length, dtype=np.uint8)

    def describe(self) -> str:
        return (
            "Moves on a cycle of five places (+ one on, - one back, = none): the output is the "
            "place where they lead."
        )


@dataclass(frozen=True)
class WriteValue(_OneDigit):
    """`2+3*2` becomes `0`."""

    alphabet = OPERATORS + "01234"
    form = "digits 0 to 4 with +, - or * between"

    def answer(self, text: str) -> str | None:
        value = expression_value(text)
        return None if value is None else str(value)

    def has_input(self, length: int) -> bool:
        return length % 2 == 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        letters = np.empty(length, dtype=np.uint8)
        letters[0::2] = len(OPERATORS) + rng.integers(MODULUS, size=(length + 1) // 2)
        letters[1::2] = rng.integers(len(OPERATORS), size=length // 2)
        return letters

    def describe(self) -> str:
        return (
            "Digits with +, - or * between: the output is what they are worth from left to right, "
            "modulo 5."
        )
