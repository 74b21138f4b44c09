"""Equations of binary numbers, which are true or false.

Numbers have the least significant bit first; zeros may trail, and no number is empty.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float64, Int64

from seqcls.cache import remembered
from seqcls.tasks.base import FLARE, Language, LetterRow, NotRegular
from seqcls.tasks.drawing import below, bits_of, choose
from seqcls.tasks.numbers import between, value

WINDOW = 40
"""Greatest difference in length from the most frequent sums; the others are left out, 2^-40 of
all."""


@dataclass(frozen=True)
class BinaryAddition(Language):
    """x+y=z.

    `01+1=11` and `0+0=000` are positive; `1+1=1`, `+1=1` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01+="
    words = "Correct sums of binary numbers, least significant bit first, are positive."

    def accepts(self, text: str) -> bool:
        numbers = _numbers(text, "+=")
        return numbers is not None and numbers[0] + numbers[1] == numbers[2]

    def has_positive(self, length: int) -> bool:
        return length >= 5

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the numbers' lengths by how many sums have them, then numbers that fit."""
        sizes, sums = _sums(length)
        # Rounded up, the drawn number may be the whole sum, which is past the last row.
        row = min(int(np.searchsorted(sums, rng.random() * sums[-1], "right")), len(sums) - 1)
        x, y, z = sizes[row].tolist()
        while True:
            # No operand is larger than the sum, so none is drawn that its digits cannot hold.
            first, second = below(rng, 1 << min(x, z)), below(rng, 1 << min(y, z))
            if first + second < 1 << z:
                return _digits_of([(first, x), (second, y), (first + second, z)])


@dataclass(frozen=True)
class BinaryMultiplication(Language):
    """x*y=z.

    `11*01=011` and `0*1=0` are positive; `1*1=01`, `*1=1` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01*="
    words = "Correct products of binary numbers, least significant bit first, are positive."

    def accepts(self, text: str) -> bool:
        numbers = _numbers(text, "*=")
        return numbers is not None and numbers[0] * numbers[1] == numbers[2]

    def has_positive(self, length: int) -> bool:
        return length >= 5

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform numbers of uniform lengths, drawn again until the product fits what is left.

        A uniform string would nearly always be a product with zero: a long factor beside it is
        free.
        """
        while True:
            x, y = (int(size) for size in rng.integers(1, length - 3, size=2))
            z = length - 2 - x - y
            if z < 1:
                continue
            first, second = below(rng, 1 << x), below(rng, 1 << y)
            if (first * second).bit_length() <= z:
                return _digits_of([(first, x), (second, y), (first * second, z)])


@dataclass(frozen=True)
class ComputeSqrt(Language):
    """x=r, where r is the square root of x, rounded down.

    `01=1` and `0=00` are positive; `001=1`, `=` and the empty string are negative.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet = "01="
    words = (
        "A binary number, =, and its square root, rounded down (least bits first), "
        "are positive where the root is right."
    )

    def accepts(self, text: str) -> bool:
        numbers = _numbers(text, "=")
        return numbers is not None and math.isqrt(numbers[0]) == numbers[1]

    def has_positive(self, length: int) -> bool:
        return length >= 3

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the numbers' lengths by how many roots fit them, then a number."""
        sizes = range(1, length - 1)
        # Roots of n bits belong to numbers of up to 2n, whatever room these have.
        bits = [min(x, 2 * (length - 1 - x)) for x in sizes]
        x = sizes[choose(rng, [1 << size for size in bits])]
        number = below(rng, 1 << bits[x - 1])
        return _digits_of([(number, x), (math.isqrt(number), length - 1 - x)])


def _numbers(text: str, marks: str) -> list[int] | None:
    """The numbers that are written between the marks; None where the text is not of that form."""
    parts = between(text, marks, "01")
    return None if parts is None else [value(part, 2, least_first=True) for part in parts]


def _digits_of(numbers: list[tuple[int, int]]) -> LetterRow:
    """The letters of numbers of given lengths, with the marks 2, 3, ... between them.

    The last mark is always the alphabet's last letter.
    """
    letters: list[int] = []
    for mark, (number, length) in enumerate(numbers, start=2):
        letters += [*bits_of(number, length), mark]
    return np.array(letters[:-1], dtype=np.uint8)


@remembered
def _sums(length: int) -> tuple[Int64[np.ndarray, "split 3"], Float64[np.ndarray, " split"]]:
    """Lengths x, y, z of the numbers of a sum, and running sums of how many sums have them.

    Of x bits and y bits, the less y, there are 2^(x+y) sums where z is greater than both. Else
    z <= x, and with m = min(y, z) there are (2^z - s) first numbers for each second one s < 2^m.
    """
    middle = (length - 2) // 3
    middle_ones = np.arange(max(1, middle - WINDOW), middle + WINDOW + 1)
    x, y = (sizes.ravel() for sizes in np.meshgrid(middle_ones, middle_ones, indexing="ij"))
    sizes = np.stack([x, y, length - 2 - x - y], axis=1)
    sizes = sizes[sizes[:, 2] >= 1]
    longer, shorter, z = sizes[:, :2].max(axis=1), sizes[:, :2].min(axis=1), sizes[:, 2]
    least = np.minimum(shorter, z)
    # Divided by about the largest of them, no number overflows.
    scale = 2 * middle
    # Powers of two, exact: the same on every machine.
    numbers = np.where(
        z > longer,
        np.ldexp(1.0, longer + shorter - scale),
        np.ldexp(1.0, z + least - scale)
        - np.ldexp(1.0, 2 * least - 1 - scale)
        + np.ldexp(1.0, least - 1 - scale),
    )
    return sizes, np.cumsum(numbers)
