"""Formulas over letter counts: parsed by Python's grammar, never run by Python.

A letter is the number of its occurrences. Whole numbers, + - * and % (by a number), comparisons,
also chained, `and`, `or`, `not` and parentheses are understood. A token that is no letter or word
is written with a #: `#0 > #1`. Strings that satisfy a formula are drawn by their letter counts.
"""

import ast
import keyword
import math
import operator
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, partial, reduce
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float64, Int64

from seqcls.errors import ConfigError
from seqcls.strings.notation import shorten
from seqcls.strings.token_strings import Letters

# Each level takes several frames of Python's stack, which has a thousand.
MAX_DEPTH = 60
MAX_NUMBER = 10**9

_NAME = r"#\S|[\w\x80-\U0010ffff]+"
"""A token with its sign, or what Python takes for one word: a name, a keyword, a number."""

_OTHER_SIGNS = [
    (r"=<|=>|≤|≥", "write <= or >="),
    (r"<>|=/=|≠", "for inequality write !="),
    (r"(?<![=<>!:])=(?!=)", "for equality write =="),
    (r"&&|\|\|", "write 'and' or 'or'"),
    (r"!(?!=)|¬", "write 'not'"),
    (r"\d +_\d|_\d+ +_\d", "for a product write *, as in 2 * a"),
]
"""Signs of other languages, with the signs to use here."""

_SUMS: dict[type, Any] = {ast.Add: np.add, ast.Sub: np.subtract}
_COMPARISONS: dict[type, Any] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}


class _Read(NamedTuple):
    """A parsed part of a formula, as functions."""

    value: Callable[[Sequence[np.ndarray]], Any]
    """Its value, given the counts of each letter."""
    most: Callable[[int], int]
    """A bound on the magnitude of all intermediate values, given one on the counts."""


def _read(
    parts: Sequence[_Read],
    value: Callable[..., Any],
    most: Callable[..., int] = lambda *bounds: max(bounds),
) -> _Read:
    """Combine parts: a function of their values, and one of their bounds."""
    return _Read(
        lambda counts: value(*(part.value(counts) for part in parts)),
        lambda counted: most(*(part.most(counted) for part in parts)),
    )


def _compare(signs: Sequence[Callable[..., Any]], *values: Any) -> Any:
    """True where each value and the next compare by the sign between them."""
    compared = (sign(*pair) for sign, pair in zip(signs, pairwise(values), strict=True))
    return reduce(np.logical_and, (np.asarray(result).astype(bool) for result in compared))


class Formula:
    """A formula over the counts of an alphabet's letters.

    Raises:
        ConfigError: it cannot be read, or is no condition on these letters.
    """

    def __init__(self, text: str, alphabet: Sequence[str]) -> None:
        self._text = text
        self._alphabet = alphabet
        self._names: dict[str, str] = {}
        """The tree's names with what the text has for them."""
        self.letters: set[int] = set()
        """The letters that it names, by number."""
        # A token with which another begins must not be found in its place.
        longest_first = "|".join(map(re.escape, sorted(alphabet, key=len, reverse=True)))
        self._source = re.sub(f"#(?:{longest_first})|{_NAME}", self._code, text).strip()
        self._formula = self._condition(self._parse(), 0)

    def holds(self, counts: Sequence[np.ndarray]) -> np.ndarray:
        """True where it holds, given an array of counts for each letter of the alphabet."""
        largest = max(int(column.max(initial=0)) for column in counts)
        # A power of two below the largest of 64 bits, so that adding two such numbers does not
        # wrap.
        if self._formula.most(largest) >= 2**62:
            # Numbers that a machine word cannot hold: Python's, slower and exact.
            counts = [column.astype(object) for column in counts]
        shape = counts[0].shape
        return np.broadcast_to(np.asarray(self._formula.value(counts), dtype=bool), shape)

    def _code(self, match: re.Match[str]) -> str:
        """A new name for a token: Python would normalize `ª` to `a`."""
        written = match[0]
        if keyword.iskeyword(written) or written[0].isdecimal():
            # Python reads `1and` as `1 and`, and warns.
            return re.sub(r"^([\d_]+)(?=(?:and|or|not|if|else|in|is)$)", r"\1 ", written)
        name = f"_{len(self._names)}"
        self._names[name] = written
        return f" {name} "

    def _parse(self) -> ast.expr:
        if re.search("['\"]", self._source):
            raise self._refusal("a text is not a whole number or letter")
        try:
            return ast.parse(self._source, mode="eval").body
        # Python's parser raises any of these, by what a text holds and how deep it goes.
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            written = re.sub(r"#\S", "", self._text) + self._source
            reasons = [reason for sign, reason in _OTHER_SIGNS if re.search(sign, written)]
            raise self._refusal(next(iter(reasons), "it cannot be read")) from None

    def _condition(self, node: ast.expr, depth: int) -> _Read:
        self._check_depth(depth)
        match node:
            case ast.BoolOp(op=op, values=values):
                together = np.logical_and if isinstance(op, ast.And) else np.logical_or
                parts = [self._condition(value, depth + 1) for value in values]
                return _read(parts, lambda *held: reduce(together, held))
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _read([self._condition(operand, depth + 1)], np.logical_not)
            case ast.Compare(left=left, ops=ops, comparators=others):
                if not all(type(op) in _COMPARISONS for op in ops):
                    raise self._refusal("numbers are compared by < <= > >= == !=")
                signs = [_COMPARISONS[type(op)] for op in ops]
                parts = [self._number(value, depth + 1) for value in (left, *others)]
                return _read(parts, partial(_compare, signs))
        raise self._refusal(f"{self._source_of(node)} is not a comparison")

    def _number(self, node: ast.expr, depth: int) -> _Read:
        self._check_depth(depth)
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                if value > MAX_NUMBER:
                    raise self._refusal(f"a number is more than {MAX_NUMBER:,}")
                return _Read(lambda _: value, lambda _: value)
            case ast.Name(id=name):
                token = self._names[name].removeprefix("#")
                if token not in tuple(self._alphabet):
                    raise self._refusal(f"{token!r} is outside the alphabet {self._alphabet!r}")
                letter = self._alphabet.index(token)
                self.letters.add(letter)
                return _Read(lambda counts: counts[letter], lambda most: most)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as op, operand=operand):
                own = operator.neg if isinstance(op, ast.USub) else operator.pos
                return _read([self._number(operand, depth + 1)], own)
            case ast.BinOp(left=left, op=ast.Mod(), right=right):
                known = right.value if isinstance(right, ast.Constant) else None
                if type(known) is not int or not 1 <= known <= MAX_NUMBER:
                    raise self._refusal("what follows % is a whole number of at least 1")
                part = self._number(left, depth + 1)
                return _read([part], lambda value: value % known, lambda most: most + known)
            case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
                parts = [self._number(side, depth + 1) for side in (left, right)]
                if isinstance(op, ast.Mult):
                    return _read(parts, np.multiply, lambda x, y: max(x, y, x * y))
                return _read(parts, _SUMS[type(op)], operator.add)
        raise self._refusal(
            f"{self._source_of(node)} is not a whole number, letter, or sum, difference, product "
            "or remainder of such"
        )

    def _check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._refusal(f"it is nested more than {MAX_DEPTH} deep")

    def _source_of(self, node: ast.expr) -> str:
        # The source as written: `ast.unparse` takes a stack as deep as the tree.
        source = ast.get_source_segment(self._source, node) or ""
        shown = re.sub(r" ?\b(_\d+)\b ?", lambda name: self._names.get(name[1], name[0]), source)
        return shorten(shown, 40)

    def _refusal(self, reason: str) -> ConfigError:
        return ConfigError(
            f"formula={shorten(self._text)}: {reason}; expected a condition on letter counts, "
            "such as 'a > b' or 'a % 2 == 1'"
        )


MAX_VECTORS = 300_000
"""Count vectors of one length that are listed at most."""

Vectors = Int64[np.ndarray, "vector class"]


def vectors(length: int, classes: int) -> Vectors:
    """Every way to distribute a length over classes of letters."""
    columns: list[np.ndarray] = []
    # Class by class, each row is repeated for all that the class may take of what is left.
    left = np.array([length])
    for _ in range(classes - 1):
        sizes = left + 1
        rows = np.repeat(np.arange(len(left)), sizes)
        starts = np.cumsum(sizes) - sizes
        values = np.arange(len(rows)) - starts[rows]
        columns = [column[rows] for column in columns]
        columns.append(values)
        left = left[rows] - values
    # Column by column in memory, as formulas read them.
    return np.array([*columns, left], dtype=np.int64).T


def running_weights(counts: Vectors, sizes: tuple[int, ...]) -> Float64[np.ndarray, " vector"]:
    """Running sums of the numbers of strings with these letter counts, up to a common factor.

    `sizes` are the numbers of letters in the classes. Only products, quotients and powers of two:
    the same on every machine.
    """
    length = int(counts[0].sum())
    # Made for a power of two, the table serves many lengths.
    mantissas, exponents = _products(None, 1 << length.bit_length())
    strings, powers = np.ones(len(counts)), np.zeros(len(counts), dtype=np.int64)
    for column, size in zip(counts.T, sizes, strict=True):
        # A vector has n! / (k1! k2! ...) orders, times size**k for each class; n! is common to all.
        power, exponent = _products(size, length)
        strings, shift = np.frexp(strings / mantissas[column] * power[column])
        powers += shift - exponents[column] + exponent[column]
    sums: np.ndarray = np.cumsum(np.ldexp(strings, powers - powers.max()))
    return sums


def draw_orders(rng: np.random.Generator, counts: Vectors, classes: list[list[int]]) -> Letters:
    """A uniform string of each count vector; all vectors have one sum."""
    length = int(counts[0].sum())
    ends = counts.cumsum(axis=1)
    which = (np.arange(length) >= ends[:, :, None]).sum(axis=1)
    letters = np.array([members[0] for members in classes], dtype=np.uint8)[which]
    for number, members in enumerate(classes):
        if len(members) > 1:
            in_class = which == number
            letters[in_class] = rng.choice(
                np.array(members, dtype=np.uint8), size=int(in_class.sum())
            )
    return rng.permuted(letters, axis=1)


@lru_cache(maxsize=256)
def _products(base: int | None, limit: int) -> tuple[np.ndarray, np.ndarray]:
    """Powers of a base up to a limit, or factorials, as mantissas and exponents of two."""
    mantissas = np.empty(limit + 1)
    exponents = np.empty(limit + 1, dtype=np.int64)
    mantissa, exponent = 1.0, 0
    for place in range(limit + 1):
        factor = (base or place) if place else 1
        mantissa, shift = math.frexp(mantissa * factor)
        exponent += shift
        mantissas[place], exponents[place] = mantissa, exponent
    return mantissas, exponents
