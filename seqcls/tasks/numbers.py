"""Sums, products and roots of numbers, digit by digit, with marks between: `01+1=11`.

In the languages an equation of binary numbers is right; transductions write the result.
"""

import math
import operator
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Float64, Int64

from seqcls.cache import remembered
from seqcls.declarations import About, Fields
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import FLARE, Language, LetterRow, NotRegular, texts
from seqcls.tasks.drawing import below, choose
from seqcls.tasks.transductions import OneToken, Places, TargetPlaces, TargetRow, TextTransduction


def between(text: str, marks: str, digits: str) -> list[str] | None:
    """The numbers before, between and after the marks; None where the text is not of that form.

    Args:
        marks: one character each, in the order of the text.
        digits: the digits that a number may have; it has at least one.
    """
    number = f"([{digits}]+)"
    found = re.fullmatch(number + "".join(f"[{mark}]{number}" for mark in marks), text)
    return list(found.groups()) if found else None


def write_number(number: int, base: int) -> str:
    """A number in base 2 or 10, without zeros that change nothing."""
    return f"{number:b}" if base == 2 else str(number)


def num_carries(x: int, y: int, base: int) -> int:
    """Number of carries of a sum: each takes `base` from the sum of digits and adds 1 to it."""
    x_digits, y_digits, sum_digits = (
        sum(map(int, write_number(number, base))) for number in (x, y, x + y)
    )
    return (x_digits + y_digits - sum_digits) // (base - 1)


LONGEST = 4_000
"""The most tokens of an input: Python reads and writes no decimal numbers of over 4,300 digits."""


@dataclass(frozen=True)
class Base(Fields):
    """base: The base of the numbers of arithmetic tasks."""

    base: Annotated[Literal[2, 10], About("Task", 14)] = 2


@dataclass(frozen=True)
class Numbers(Base):
    """digit_order: Whether numbers start with their highest or their lowest digit."""

    digit_order: Annotated[Literal["most_first", "least_first"], About("Task", 15)] = "most_first"


@dataclass(frozen=True)
class Operands(Numbers):
    """operand_lengths: `equal`: operands are padded with zeros to one length."""

    operand_lengths: Annotated[Literal["free", "equal"], About("Task", 16)] = "free"


@dataclass(frozen=True)
class NumberTransduction(Numbers, TextTransduction):
    """Inputs are numbers with a mark after each; all numbers are written in one order."""

    marks: ClassVar[str] = "="
    operand_lengths = "free"
    result: ClassVar["staticmethod[..., int]"]
    """The result, as a function of the numbers of an input."""
    output: ClassVar[str]
    """The result in words, after "the output is"."""

    @property
    def alphabet(self) -> str:
        return "0123456789"[: self.base] + self.marks

    @property
    def _step(self) -> int:
        """The step from a digit to the next lower one."""
        return -1 if self.digit_order == "least_first" else 1

    @property
    def _is_equal(self) -> bool:
        return self.operand_lengths == "equal"

    @property
    def _order(self) -> str:
        return self.digit_order.replace("_", " significant ")

    @property
    def form(self) -> str:
        names = "".join(name + mark for name, mark in zip("xy", self.marks, strict=False))
        zeros = "no number with zeros that change nothing"
        return (
            f"{names} with digits 0 to {self.base - 1}, {self._order}, "
            f"{'both numbers of one length' if self._is_equal else zeros}, of up to {LONGEST:,} "
            "tokens"
        )

    def write(self, text: str) -> str | None:
        numbers = self._numbers(text)
        if numbers is None:
            return None
        return write_number(self.result(*self._worth(numbers)), self.base)[:: self._step]

    def _worth(self, numbers: list[str]) -> list[int]:
        return [int(number[:: self._step], self.base) for number in numbers]

    def _numbers(self, text: str) -> list[str] | None:
        """The numbers of an input as texts; None where it is no input."""
        if len(text) > LONGEST or text[-1:] != "=":
            return None
        numbers = between(text[:-1], self.marks[:-1], self.alphabet[: self.base])
        if numbers is None:
            return None
        if self._is_equal:
            return numbers if len(numbers[0]) == len(numbers[1]) else None
        # A zero as the highest digit changes nothing, but in `0` itself.
        highest = [number[:: self._step][0] for number in numbers if len(number) > 1]
        return None if "0" in highest else numbers

    def has_input(self, length: int) -> bool:
        fits = not self._is_equal or length % 2 == 0
        return fits and 2 * len(self.marks) <= length <= LONGEST

    def describe(self) -> str:
        operands = "Two numbers" if len(self.marks) > 1 else "A number"
        if self._is_equal:
            operands = "Numbers padded to one length"
        return f"{operands} in base {self.base}, {self._order}: the output is {self.output}."

    def _draw_digits(self, rng: np.random.Generator, length: int) -> list[int]:
        """The digits of a uniform number of that many digits, the highest not zero."""
        digits = rng.integers(self.base, size=length)
        if length > 1:
            digits[0] = rng.integers(1, self.base)
        written: list[int] = digits[:: self._step].tolist()
        return written


@dataclass(frozen=True)
class Calculation(Operands, NumberTransduction):
    """Two numbers: of lengths that are free, or padded with zeros to one length."""

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Operands of uniform, or equal, lengths; then uniform numbers."""
        if self._is_equal:
            x, y = rng.integers(self.base, size=(2, length // 2 - 1)).tolist()
        else:
            # Two tokens are marks, and each operand has one digit at least.
            size = int(rng.integers(1, length - 2))
            x, y = self._draw_digits(rng, size), self._draw_digits(rng, length - 2 - size)
        return np.array([*x, self.base, *y, self.base + 1], dtype=np.uint8)

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """Number of digits of the operands; 0 of a string that is no input."""
        return self._features([self._numbers(text) for text in texts(self.alphabet, strings)])

    def _features(self, inputs: list[list[str] | None]) -> dict[str, np.ndarray]:
        sizes = [sorted(map(len, numbers or ("", ""))) for numbers in inputs]
        shorter, longer = np.array(sizes, dtype=np.int64).reshape(-1, 2).T
        return {"digits of the longer operand": longer, "digits of the shorter operand": shorter}


@dataclass(frozen=True)
class Addition(Calculation):
    """`110+11=` becomes `1001`."""

    marks: ClassVar[str] = "+="
    result = staticmethod(operator.add)
    output = "their sum"

    def longest_target(self, length: int) -> int:
        if length < 4:
            return 0
        # A carry adds one digit to the longer operand, of all tokens but three, or half of them.
        return (length - 2) // 2 + 1 if self._is_equal else length - 2

    def _features(self, inputs: list[list[str] | None]) -> dict[str, np.ndarray]:
        worth = [self._worth(numbers or ["0", "0"]) for numbers in inputs]
        carries = [num_carries(x, y, self.base) for x, y in worth]
        return {**super()._features(inputs), "carries": np.array(carries, dtype=np.int64)}

    def coupling_obstacle(self) -> str | None:
        if self.digit_order == "least_first":
            return None
        return (
            "most_first writes the sum's first digit before its weight is known, as a last carry "
            "may move it; set digit_order='least_first'"
        )

    def couples(
        self, input_letters: LetterRow, target_letters: TargetRow
    ) -> tuple[Places, TargetPlaces] | None:
        """Digits of one weight share its number, 1 for the ones; marks have 0."""
        if self.coupling_obstacle() is not None:
            return None
        places = np.zeros(len(input_letters), dtype=np.int64)
        weight = 0
        for place, letter in enumerate(input_letters.tolist()):
            # A mark begins another number, whose weights start anew.
            weight = weight + 1 if letter < self.base else 0
            places[place] = weight
        return places, np.arange(1, len(target_letters) + 1)


@dataclass(frozen=True)
class Multiplication(Calculation):
    """`11*10=` becomes `110`."""

    marks: ClassVar[str] = "*="
    result = staticmethod(operator.mul)
    output = "their product"

    def longest_target(self, length: int) -> int:
        if length < 4:
            return 0
        # Of all splits the most even one has the longest product.
        shorter = (length - 2) // 2
        longer = shorter if self._is_equal else length - 2 - shorter
        # Only 1 * 1, in base 2, and a 1 beside a longer number make fewer digits than both have.
        return shorter + longer - (self.base == 2 and shorter == 1)


@dataclass(frozen=True)
class SquareRoot(NumberTransduction):
    """`1010=` becomes `11`: roots are rounded down."""

    result = staticmethod(math.isqrt)
    output = "its square root, rounded down"

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return np.array([*self._draw_digits(rng, length - 1), self.base], dtype=np.uint8)

    def longest_target(self, length: int) -> int:
        return length // 2


@dataclass(frozen=True)
class ModularSum(Base, OneToken, TextTransduction):
    """`0111` becomes `1`: the sum of the digits modulo the base."""

    order_sensitive: ClassVar[bool] = False
    form = "at least one digit"

    @property
    def alphabet(self) -> str:
        return "0123456789"[: self.base]

    def write(self, text: str) -> str:
        return str(sum(map(int, text)) % self.base)

    def describe(self) -> str:
        return f"Digits from 0 to {self.base - 1}: the output is their sum modulo {self.base}."


WINDOW = 40
"""Greatest difference in length from the most frequent sums; the others are left out, 2^-40 of
all."""


class Equation(Language):
    """Equations of binary numbers with the least significant bit first, marks between them.

    Zeros may trail, and no number is empty.
    """

    hierarchy: ClassVar[NotRegular] = NotRegular("context-sensitive", FLARE)
    alphabet: ClassVar[str]
    """The bits, then the marks."""
    result: ClassVar["staticmethod[..., int]"]
    """The last number, as a function of the others."""

    def accepts(self, text: str) -> bool:
        parts = between(text, self.alphabet[2:], "01")
        if parts is None:
            return False
        # The highest bit is the last.
        *operands, last = (int(part[::-1], 2) for part in parts)
        return self.result(*operands) == last

    def has_positive(self, length: int) -> bool:
        # Each mark follows a number.
        return length > 2 * len(self.alphabet[2:])


@dataclass(frozen=True)
class BinaryAddition(Equation):
    """x+y=z.

    `01+1=11` and `0+0=000` are positive; `1+1=1`, `+1=1` and the empty string are negative.
    """

    alphabet = "01+="
    result = staticmethod(operator.add)
    words = "Correct sums of binary numbers, least significant bit first, are positive."

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
class BinaryMultiplication(Equation):
    """x*y=z.

    `11*01=011` and `0*1=0` are positive; `1*1=01`, `*1=1` and the empty string are negative.
    """

    alphabet = "01*="
    result = staticmethod(operator.mul)
    words = "Correct products of binary numbers, least significant bit first, are positive."

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
class ComputeSqrt(Equation):
    """x=r, where r is the square root of x, rounded down.

    `01=1` and `0=00` are positive; `001=1`, `=` and the empty string are negative.
    """

    alphabet = "01="
    result = staticmethod(math.isqrt)
    words = (
        "A binary number, =, and its square root, rounded down (least bits first), "
        "are positive where the root is right."
    )

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the numbers' lengths by how many roots fit them, then a number."""
        sizes = range(1, length - 1)
        # Roots of n bits belong to numbers of up to 2n, whatever room these have.
        bits = [min(x, 2 * (length - 1 - x)) for x in sizes]
        x = sizes[choose(rng, [1 << size for size in bits])]
        number = below(rng, 1 << bits[x - 1])
        return _digits_of([(number, x), (math.isqrt(number), length - 1 - x)])


def _digits_of(numbers: list[tuple[int, int]]) -> LetterRow:
    """The letters of numbers of given lengths, with the marks 2, 3, ... between them.

    The last mark is always the alphabet's last letter.
    """
    letters: list[int] = []
    for mark, (number, length) in enumerate(numbers, start=2):
        lowest_first = f"{number:0{length}b}"[::-1]
        letters += [*map(int, lowest_first[:length]), mark]
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
