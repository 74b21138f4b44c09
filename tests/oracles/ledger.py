"""Comparison of shown values with true ones, and a record of differences."""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracles.compared import is_none
from tests.oracles.facts import Row

EXACT = {"rel_tol": 1e-9, "abs_tol": 1e-12}
"""Tolerances of two ways to compute the same in double precision."""


@dataclass
class Ledger:
    """Compared values of a database, and their differences."""

    database: str
    compared: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)
    different: Counter[str] = field(default_factory=Counter)

    def value(self, surface: str, what: str, shown: Any, true: Any, digits: int = 17) -> None:
        """Compares one value with the truth."""
        self.compared[surface] += 1
        if not same(shown, true, digits):
            self.different[surface] += 1
            self.differences.append(f"{surface}: {what}: shown {shown!r}, is {true!r}")

    def row(
        self, surface: str, what: str, shown: Mapping[Any, Any], true: Row, digits: int = 17
    ) -> None:
        """Compares a row with a true one, in the columns of both."""
        for name in true:
            if name in shown:
                self.value(surface, f"{what}, {name}", shown[name], true[name], digits)

    def rows(
        self,
        surface: str,
        what: str,
        shown: Iterable[Mapping[Any, Any]],
        true: Mapping[Any, Row],
        key: Callable[[Mapping[Any, Any]], Any],
        digits: int = 17,
    ) -> None:
        """Compares a table with all rows that it must have, each once, and no other."""
        found: dict[Any, Mapping[Any, Any]] = {}
        for row in shown:
            own = key(row)
            if own in found:
                self.value(surface, f"{what}: rows {own}", 2, 1)
            found[own] = row
        self.value(surface, f"{what}: rows", len(found), len(true))
        for own in {*found, *true}:
            if own not in found or own not in true:
                self.value(surface, f"{what}: row {own}", own in found, own in true)
            else:
                self.row(surface, f"{what}, row {own}", found[own], true[own], digits)


class InFile(str):
    """A number as written in a text file, with all its digits."""


def same(shown: Any, true: Any, digits: int = 17) -> bool:
    """True if a shown value is the true one, in the digits in which it is shown."""
    if isinstance(shown, list | tuple | np.ndarray) or isinstance(true, list | tuple):
        return _list(shown) == _list(true)
    if isinstance(true, str):
        return str(shown) == true or (true == "" and is_none(shown))
    if isinstance(shown, InFile) and shown.lower() == "nan":
        return isinstance(true, float) and math.isnan(true)
    if is_none(true) or is_none(shown):
        return is_none(true) and is_none(shown)
    if isinstance(true, bool):
        return bool(shown == true) or str(shown).lower() == str(true).lower()
    if isinstance(shown, InFile):
        # Another program must read the same number.
        return bool(float(shown) == true) or math.isclose(float(shown), true, **EXACT)
    if isinstance(shown, str):
        return _is_text_of(shown, float(true))
    if isinstance(true, int):
        return bool(int(shown) == true == shown)
    if digits < 17:
        return bool(abs(float(shown) - true) <= 0.5000001 * 10.0**-digits)
    return math.isclose(float(shown), float(true), **EXACT)


def _list(value: Any) -> list[Any]:
    return list(value) if isinstance(value, list | tuple | np.ndarray) else [value]


MINUS = "\N{MINUS SIGN}"
NUMBER = rf"[-{MINUS}+]?[\d,]+(?:\.\d+)?(?:e[-+]?\d+)?"


def _is_text_of(text: str, true: float) -> bool:
    """True if a number is written right, to half a unit of its last place."""
    plain = text.strip().replace(",", "").replace(MINUS, "-")
    share = plain.endswith("%")
    digits = plain.rstrip("%")
    if not re.fullmatch(NUMBER, digits):
        return False
    scale = 100 if share else 1
    mantissa, _, exponent = digits.lower().partition("e")
    decimals = len(mantissa.partition(".")[2]) - int(exponent or 0)
    unit = 10.0**-decimals
    if (
        share
        and abs(float(digits)) in (0, 100)
        and not math.isclose(abs(true) * 100, abs(float(digits)), **EXACT)
    ):
        # 0% and 100% are exact.
        return False
    return abs(float(digits) - true * scale) <= 0.5 * unit * (1 + 1e-9) + 1e-12 * abs(true)
