"""Formats of numbers, labels and shares."""

import math
from collections.abc import Iterator, Mapping, Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from typing import Any, NamedTuple

import numpy as np


class Table(NamedTuple):
    """Rows that are shown between the sentences of an answer."""

    title: str
    rows: Sequence[Mapping[str, Any]]
    """The cells of each row by column: texts, numbers, or None for an empty cell."""


# How numbers and labels are written in sentences.


EMPTY = "ε"
"""The empty string, where one is shown."""


def number(x: float) -> str:
    """Three digits, or whole where they are more."""
    # Three digits of a number with four or more would need an exponent.
    return f"{x:,.0f}" if 1000 <= abs(x) < 1e9 else f"{x:.3g}"


def sign(positive: bool) -> str:
    """The name of a label or of an answer."""
    return "positive" if positive else "negative"


# Numbers as texts, in one format everywhere, with enough digits for the statement to be true.

MOST_DIGITS = 17
"""Enough to distinguish any two numbers in double precision."""

LONG_SCORE = 1e12
"""From here on a score is written with an exponent."""

LEAST_P = 0.0001
"""A smaller p-value is given as an inequality, since the test is no more exact."""


def round_digits(x: float, *, up: bool, digits: int = 3) -> Decimal:
    """The nearest number with this many digits that is not below x, or not above it."""
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return context.create_decimal_from_float(x)


def format_decimal(x: Decimal) -> str:
    """A rounded number, all its digits."""
    return f"{float(x):.{MOST_DIGITS - 2}g}"


def between(low: float, high: float) -> str:
    """A number that is not below `low`, and below `high`: `low` itself in four digits or more."""
    if float(low).is_integer():
        return f"{low:.0f}"
    # A bound has to distinguish the two numbers in the form in which it is read.
    tried: Iterator[str] = (f"{low:.{digits}g}" for digits in range(4, MOST_DIGITS))
    return next((text for text in tried if low <= float(text) < high), f"{low:.{MOST_DIGITS}g}")


def score_text(score: float) -> str:
    """A logit or a log-probability as tables write it: `-1.2346`; empty where it is NaN."""
    if math.isnan(score):
        return ""
    if math.isinf(score):
        return "∞" if score > 0 else "-∞"
    return f"{score:.4f}" if abs(score) < LONG_SCORE else f"{score:.4e}"


def percent(share: float, places: int = 2) -> str:
    """A share of a total as tables of pages and charts write it, without zeros at its end: `98.6%`.

    It has more places where it would read as all or nothing, and is not.

    Args:
        share: or a difference of two.
        places: digits after the point that it is rounded to.
    """
    # What is left of sums in double precision is nothing.
    share = float(np.round(share, 14)) + 0.0
    tried = (f"{share:.{more}%}" for more in range(places, MOST_DIGITS))
    text = next(x for x in tried if (abs(float(x[:-1])) in (0, 100)) == (abs(share) in (0, 1)))
    number = text.removesuffix("%")
    return f"{number.rstrip('0').rstrip('.') if '.' in number else number}%"


def percents(low: float, high: float, places: int = 1) -> str:
    """An interval of shares."""
    return f"{percent(low, places)} to {percent(high, places)}"


def p_value_text(p: float) -> str:
    """A p-value with its relation: `p = 0.0312`, or `p < 0.0001`."""
    return f"p < {LEAST_P}" if p < LEAST_P else f"p = {p:.3g}"
