"""What a column may hold: every value is checked where it enters the program.

The tables that this program makes hold nothing else, but a file may be damaged, or come from
elsewhere with tables that check nothing.
"""

import json
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from sqlalchemy import Dialect, MetaData
from sqlalchemy.types import TypeDecorator, TypeEngine

from seqcls.errors import StoreDamagedError

MOST = 2**53
"""Counts, and sums of them, are exact up to here in every language that may read them."""

LEAST_REAL, MOST_REAL = sys.float_info.min, sys.float_info.max

SHOWN = 60
"""Characters of a damaged value that a message shows."""


@dataclass(frozen=True)
class Kind:
    """The values that a column may hold, aside from NULL."""

    expected: str
    fits: Callable[[Any], bool]
    sql: str
    """The same for SQLite, of a `{column}` of the table; `fits` there is the function above."""


def whole(least: int, most: int = MOST) -> Kind:
    """Whole numbers between two, both included."""
    return Kind(
        f"a whole number from {least:,} to {most:,}",
        lambda value: type(value) is int and least <= value <= most,
        f"typeof({{column}}) = 'integer' AND {{column}} BETWEEN {least} AND {most}",
    )


def number(expected: str, least: float = -MOST_REAL, most: float = MOST_REAL) -> Kind:
    """Finite numbers between two, both included."""
    return Kind(
        expected,
        lambda value: type(value) in (float, int) and least <= value <= most,
        f"typeof({{column}}) IN ('real', 'integer') AND {{column}} BETWEEN {least!r} AND {most!r}",
    )


def text(expected: str = "text", reads: Callable[[str], object] | None = None) -> Kind:
    """Text that can be read as something; what cannot makes `reads` raise a ValueError."""

    def fits(value: Any) -> bool:
        if type(value) is not str or reads is None:
            return type(value) is str
        try:
            reads(value)
        except (ValueError, RecursionError):
            return False
        return True

    return Kind(
        expected, fits, "typeof({column}) = 'text' AND fits({kind}, CAST({column} AS BLOB))"
    )


def one_word_of(words: type[StrEnum]) -> Kind:
    """One of these words."""
    return text(f"one of {', '.join(words)}", words)


def _object(value: str) -> dict[str, Any]:
    parsed = json.loads(value)
    if not isinstance(parsed, dict):
        raise ValueError("no object")
    return parsed


def _time(value: str) -> datetime:
    parsed = datetime.fromisoformat(value)
    if parsed.tzinfo is None:
        raise ValueError("no time zone")
    return parsed


def _word(value: str) -> str:
    if not value:
        raise ValueError("empty")
    return value


def _digest(value: str) -> str:
    if len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise ValueError("no digest")
    return value


TEXT = text()
DIGEST = text("64 hexadecimal digits", _digest)
JSON = text("a JSON object", _object)
TIME = text("a time in ISO 8601 with its offset from UTC", _time)
ID = whole(0)
COUNT = whole(0)
REVISION = whole(0, 2**63 - 1)
SEED = whole(0, 2**63 - 1)
LENGTH = whole(0, 1_000_000)
EPOCH = whole(0, 1_000_000)
SOME = whole(1)
WORD = text("text that is not empty", _word)
FINITE = number("a finite number")
SECONDS = number("a finite number from 0", 0.0)
SHARE = number("a number above 0 and up to 1", LEAST_REAL, 1.0)
AGREEMENT = number("a number from 0 to 1", 0.0, 1.0)
BYTES = Kind(
    "bytes",
    lambda value: isinstance(value, bytes | memoryview),
    "typeof({column}) = 'blob'",
)
NUMBERS = Kind(
    "bytes, three for each string",
    lambda value: isinstance(value, bytes | memoryview) and len(value) > 0 == len(value) % 3,
    "typeof({column}) = 'blob' AND length({column}) > 0 AND length({column}) % 3 = 0",
)


class Checked(TypeDecorator[Any]):
    """A column's type, whose values are held against their kind when they are read."""

    impl = TypeEngine
    cache_ok = True

    def __init__(self, kind: Kind, of: TypeEngine[Any]) -> None:
        # The base class would replace `impl` by one of its own.
        self.impl_instance = of
        vars(self)["impl"] = of
        self.kind = kind
        self.table = self.column = "?"

    def coerce_compared_value(self, op: Any, value: Any) -> Any:
        """A value beside the column, in a sum say, is of its own type, as beside any other."""
        return self.impl_instance.coerce_compared_value(op, value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        """Checks every value but NULL, then converts it as the type does."""
        made = self.impl_instance.result_processor(dialect, coltype)
        fits = self.kind.fits

        def checked(value: Any) -> Any:
            if value is None:
                return None
            if not fits(value):
                raise self._damaged(value)
            return value if made is None else made(value)

        return checked

    def check_all(self, values: Collection[Any]) -> None:
        """The same of a whole column as the driver gives it, in a fraction of the time.

        Raises:
            StoreDamagedError: the column may not hold one of them.
        """
        there: Collection[Any] = values
        if (kinds := set(map(type, values))) - {int}:
            there = {value for value in values if value is not None}
        elif kinds:
            # Whole numbers between two, if both of these are.
            there = (min(values), max(values))
        for value in there:
            if not self.kind.fits(value):
                raise self._damaged(value)

    def _damaged(self, value: object) -> StoreDamagedError:
        said = damaged(self.table, self.column, value, self.kind)
        return StoreDamagedError(said, table=self.table, column=self.column)


def damaged(what: str, column: str, value: object, kind: Kind) -> str:
    """What is wrong with a value, without what to do about it."""
    shown = " ".join(repr(value).split())
    shown = f"{shown[:SHOWN]}…" if len(shown) > SHOWN else shown
    return f"{what}: {column} is {shown}, expected {kind.expected}"


def name_columns(metadata: MetaData) -> None:
    """Tells every column's type which one it is of, for its messages."""
    for table in metadata.tables.values():
        for column in table.columns:
            if isinstance(column.type, Checked):
                column.type.table, column.type.column = table.name, column.name
