"""Languages of small automata that draw positive strings themselves, and what is written of them.

Bits whose order decides; places on a cycle and expressions evaluated from left to right, modulo 5;
products of group elements. Of the last three each is a language, whose strings end with the result
or have the identity as theirs, and a transduction, which writes the result.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Annotated, ClassVar

import numpy as np

from seqcls.cache import remembered
from seqcls.declarations import About, Fields
from seqcls.errors import InvalidStringError
from seqcls.permutation_groups import GroupName, group_tokens, products
from seqcls.strings.alphabets import has_names
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton, RegularLanguage, explore
from seqcls.tasks.base import DEFECT, Language, LetterRow, random_bits
from seqcls.tasks.regular import minimal_automaton
from seqcls.tasks.transductions import OneToken, TargetRow, TextTransduction, Transduction


class AutomatonLanguage(Language):
    """A language that its minimal automaton decides, and that draws positive strings itself."""

    pattern: ClassVar[str]
    """A regular expression of its strings; not read where `automaton` is another."""

    @cached_property
    def automaton(self) -> Automaton:
        """The minimal automaton, its letters those of `alphabet`."""
        return minimal_automaton(self.pattern, "".join(self.alphabet))

    def accepts(self, text: str) -> bool:
        tokens = text.split() if has_names(self.alphabet) else text
        path = self.automaton.path([self.alphabet.index(token) for token in tokens])
        return bool(self.automaton.accepting[path[-1]])

    labels, has = RegularLanguage.labels, RegularLanguage.has


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
    pattern = "[01]?|0[01]*0|1[01]*1"
    words = "Strings whose last token is the same as their first are positive."

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
    pattern = "(01)*"
    words = "Strings that repeat 01, any number of times, are positive."

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The one string of that length."""
        return np.arange(length, dtype=np.int64).astype(np.uint8) & 1

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """The number of each token, and the length before the first defect."""
        return {**super().features(strings), DEFECT: self.automaton.sound_lengths(strings)}


# Counting modulo 5.

MOVES = "+-="
OPERATORS = "+-*"
MODULUS = 5

_EXPRESSION = re.compile(r"[0-4](?:[-+*][0-4])*")


def place_after(moves: str) -> int:
    """The place after moves from place 0 on a cycle: `+` one on, `-` one back, `=` none."""
    return (moves.count("+") - moves.count("-")) % MODULUS


def expression_value(text: str) -> int | None:
    """The value of an expression like `2+3*2`, strictly from left to right; None if it is none."""
    if _EXPRESSION.fullmatch(text) is None:
        return None
    value = int(text[0])
    for operator, digit in zip(text[1::2], text[2::2], strict=True):
        if operator == "+":
            value += int(digit)
        elif operator == "-":
            value -= int(digit)
        else:
            # Reduced here, since only products grow fast.
            value = value * int(digit) % MODULUS
    return value % MODULUS


# States after a digit, numbered after those of the places.
_RIGHT_DIGIT, _WRONG_DIGIT = MODULUS, MODULUS + 1


@dataclass(frozen=True)
class CycleNavigation(AutomatonLanguage):
    """Moves (+ one on, - one back, = none), then the place where they end, counted modulo 5.

    `++=2`, `-4` and `0` are positive; `+0`, `++` and the empty string are negative.
    """

    alphabet = MOVES + "01234"
    words = (
        "Moves on a cycle of five places (+ one on, - one back, = none) that end with the "
        "place where they lead are positive."
    )

    @cached_property
    def automaton(self) -> Automaton:
        """The minimal automaton: a place, or after a digit whether it is the right one."""

        def step(place: int, letter: int) -> int:
            if place >= MODULUS:
                return _WRONG_DIGIT
            if letter < len(MOVES):
                return (place + place_after(MOVES[letter])) % MODULUS
            return _RIGHT_DIGIT if letter - len(MOVES) == place else _WRONG_DIGIT

        return explore(len(self.alphabet), 0, step, lambda place: place == _RIGHT_DIGIT)

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the moves are, and determine the last token."""
        letters = rng.integers(len(MOVES), size=length, dtype=np.uint8)
        moves = "".join([MOVES[letter] for letter in letters[:-1].tolist()])
        letters[-1] = len(MOVES) + place_after(moves)
        return letters


_TRUE_EQUATION = (0, 0, 0)


@dataclass(frozen=True)
class ModularArithmetic(AutomatonLanguage):
    """digit (operator digit)* = digit, evaluated strictly from left to right, modulo 5.

    `2+3*2=0` and `4=4` are positive; `1+1=3`, `1+=1` and the empty string are negative.
    """

    alphabet = OPERATORS + "=01234"
    words = "Equations that are true when worked out from left to right, modulo 5, are positive."

    @cached_property
    def automaton(self) -> Automaton:
        """The minimal automaton.

        Before a digit its states are the values that each digit would give, after it the value;
        after `=` the value with a mark, and after the last digit whether it was right.
        """
        mark = len(OPERATORS)

        def step(state: tuple[int, ...], letter: int) -> tuple[int, ...]:
            digit = letter - mark - 1
            if len(state) == MODULUS:
                return (state[digit],) if digit >= 0 else ()
            if len(state) == 1 and letter < mark:
                worked_out = (f"{state[0]}{OPERATORS[letter]}{x}" for x in range(MODULUS))
                # The texts are expressions, so that none is None; `or` is for the types alone.
                return tuple(expression_value(text) or 0 for text in worked_out)
            if len(state) == 1 and letter == mark:
                return (*state, mark)
            return _TRUE_EQUATION if len(state) == 2 and digit == state[0] else ()

        start = tuple(range(MODULUS))
        return explore(len(self.alphabet), start, step, lambda state: state == _TRUE_EQUATION)

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: the left side is, and determines the last token."""
        letters = np.empty(length, dtype=np.uint8)
        # Digits come after the operators and `=`.
        letters[0::2] = rng.integers(MODULUS, size=(length + 1) // 2) + len(OPERATORS) + 1
        letters[1::2] = rng.integers(len(OPERATORS), size=length // 2)
        # `=` comes after the operators in the alphabet.
        letters[-2] = len(OPERATORS)
        left = "".join([self.alphabet[letter] for letter in letters[:-2].tolist()])
        value = expression_value(left)
        assert value is not None
        letters[-1] = len(OPERATORS) + 1 + value
        return letters


@dataclass(frozen=True)
class WritePlace(OneToken, TextTransduction):
    """`++=` becomes `2`."""

    order_sensitive: ClassVar[bool] = False
    alphabet = MOVES + "01234"
    form = "moves +, - and ="
    words = (
        "Moves on a cycle of five places (+ one on, - one back, = none): the output is the "
        "place where they lead."
    )

    def write(self, text: str) -> str | None:
        return None if text.strip(MOVES) else str(place_after(text))

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return rng.integers(len(MOVES), size=length, dtype=np.uint8)


@dataclass(frozen=True)
class WriteValue(OneToken, TextTransduction):
    """`2+3*2` becomes `0`."""

    alphabet = OPERATORS + "01234"
    form = "digits 0 to 4 with +, - or * between"
    words = (
        "Digits with +, - or * between: the output is what they are worth from left to right, "
        "modulo 5."
    )

    def write(self, text: str) -> str | None:
        value = expression_value(text)
        return None if value is None else str(value)

    def has_input(self, length: int) -> bool:
        return length % 2 == 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        letters = np.empty(length, dtype=np.uint8)
        letters[0::2] = len(OPERATORS) + rng.integers(MODULUS, size=(length + 1) // 2)
        letters[1::2] = rng.integers(len(OPERATORS), size=length // 2)
        return letters


# Products of group elements.


@dataclass(frozen=True)
class Elements(Fields):
    """group: Whose elements are the tokens of `word_problem` and `write_products`."""

    group: Annotated[GroupName, About("Task", 7)] = "Z5"


@dataclass(frozen=True)
class WordProblem(Elements, AutomatonLanguage):
    """Elements of a group whose product, the first of them applied first, is the identity.

    With the group Z5, the numbers added modulo 5: `14`, `212` and the empty string are positive;
    `1` and `24` are negative.
    """

    @property
    def alphabet(self) -> Sequence[str]:
        return group_tokens(self.group)

    @property
    @remembered
    def automaton(self) -> Automaton:
        """The minimal automaton: its states are the elements."""
        table = products(self.group)
        # To read an element is to multiply by it, beginning with the identity, which is 0.
        return Automaton(table, np.arange(len(table)) == 0)

    def positive(self, rng: np.random.Generator, length: int) -> LetterRow:
        """Uniform: all tokens but the last are, and it undoes their product."""
        letters = rng.integers(len(self.alphabet), size=length, dtype=np.uint8)
        product = self.automaton.path(letters[:-1].tolist())[-1]
        # The product with the inverse is the identity, the least of all elements.
        letters[-1:] = self.automaton.table[product].argmin()
        return letters

    def describe(self) -> str:
        return (
            f"Elements of the group {self.group} whose product, the first of them applied first, "
            "is the identity are positive."
        )


@dataclass(frozen=True)
class WriteProducts(Elements, Transduction):
    """With the group Z5, the numbers added modulo 5, `134` becomes `143`."""

    @property
    def alphabet(self) -> Sequence[str]:
        return group_tokens(self.group)

    def target(self, letters: LetterRow) -> TargetRow:
        if not len(letters):
            raise InvalidStringError("expected at least one element")
        table = products(self.group)
        written = accumulate(letters.tolist(), lambda before, letter: int(table[before, letter]))
        return np.array(list(written), dtype=np.uint8)

    def describe(self) -> str:
        return (
            f"Elements of the group {self.group}: the output holds the product of those up to "
            "each, the first of them applied first."
        )
