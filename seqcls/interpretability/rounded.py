"""Numbers of rules and proofs, with as many digits as make true what is said of them."""

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

MOST_DIGITS = 17
"""So many tell any two numbers in double precision apart."""


def rounded(x: float, *, up: bool, digits: int = 3) -> Decimal:
    """The nearest number of so many digits that is not below x, or not above it."""
    context = Context(prec=digits, rounding=ROUND_CEILING if up else ROUND_FLOOR)
    return context.create_decimal_from_float(x)


def written(x: Decimal) -> str:
    """A rounded number, all its digits."""
    return f"{float(x):.{MOST_DIGITS - 2}g}"


def between(low: float, high: float) -> str:
    """A number that is not below `low`, and below `high`: `low` itself in four digits or more."""
    if float(low).is_integer():
        return f"{low:.0f}"
    tried: Iterator[str] = (f"{low:.{digits}g}" for digits in range(4, MOST_DIGITS))
    return next((text for text in tried if low <= float(text) < high), f"{low:.{MOST_DIGITS}g}")


def percent(share: float, places: int = 2) -> str:
    """A share of a total, with more places where it would read as all or nothing, and is not."""
    tried = (f"{share:.{more}%}" for more in range(places, MOST_DIGITS))
    return next(x for x in tried if (float(x[:-1]) in (0, 100)) == (share in (0, 1)))
