"""What a column may hold: every value is checked where it enters the program.

The tables that this program makes hold nothing else, but a file may be damaged, or come from
elsewhere with tables that check nothing.
"""

import json
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, get_args

import numpy as np
from jaxtyping import Int64
from sqlalchemy import REAL, BigInteger, Dialect, Double, Integer, LargeBinary, MetaData, Text
from sqlalchemy.types import TypeDecorator, TypeEngine

from seqcls.errors import InvalidStringError, StoreDamagedError
from seqcls.results import ErrorKind, StringErrors
from seqcls.strings.tokenizer import Tokenizer
from sweeps.results import Output

MOST = 2**53
"""Counts, and sums of them, are exact up to here in every language that may read them."""

LEAST_REAL, MOST_REAL = sys.float_info.min, sys.float_info.max

SHOWN = 60
"""Characters of a damaged value that a message shows."""


@dataclass(frozen=True)
class ValueKind:
    """The values that a column may hold, aside from NULL."""

    expected: str
    fits: Callable[[Any], bool]
    sql: str
    """The same for SQLite, of a `{column}` of the table; `fits` there is the function above."""


def whole_kind(least: int, most: int = MOST) -> ValueKind:
    """Whole numbers between two, both included."""
    return ValueKind(
        f"a whole number from {least:,} to {most:,}",
        lambda value: type(value) is int and least <= value <= most,
        f"typeof({{column}}) = 'integer' AND {{column}} BETWEEN {least} AND {most}",
    )


def number_kind(expected: str, least: float = -MOST_REAL, most: float = MOST_REAL) -> ValueKind:
    """Finite numbers between two, both included."""
    return ValueKind(
        expected,
        lambda value: type(value) in (float, int) and least <= value <= most,
        f"typeof({{column}}) IN ('real', 'integer') AND {{column}} BETWEEN {least!r} AND {most!r}",
    )


def text_kind(expected: str = "text", reads: Callable[[str], object] | None = None) -> ValueKind:
    """Text that can be read as something; what cannot makes `reads` raise a ValueError."""

    def fits(value: Any) -> bool:
        if type(value) is not str or reads is None:
            return type(value) is str
        try:
            reads(value)
        except (ValueError, RecursionError):
            return False
        return True

    return ValueKind(
        expected, fits, "typeof({column}) = 'text' AND fits({kind}, CAST({column} AS BLOB))"
    )


def one_word_of(words: type[StrEnum]) -> ValueKind:
    """One of these words."""
    return text_kind(f"one of {', '.join(words)}", words)


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


TEXT = text_kind()
DIGEST = text_kind("64 hexadecimal digits", _digest)
JSON = text_kind("a JSON object", _object)
TIME = text_kind("a time in ISO 8601 with its offset from UTC", _time)
ID = whole_kind(0)
COUNT = whole_kind(0)
REVISION = whole_kind(0, 2**63 - 1)
SEED = whole_kind(0, 2**63 - 1)
LENGTH = whole_kind(0, 1_000_000)
EPOCH = whole_kind(0, 1_000_000)
SOME = whole_kind(1)
WORD = text_kind("text that is not empty", _word)
FINITE = number_kind("a finite number")
SECONDS = number_kind("a finite number from 0", 0.0)
SHARE = number_kind("a number above 0 and up to 1", LEAST_REAL, 1.0)
AGREEMENT = number_kind("a number from 0 to 1", 0.0, 1.0)
BYTES = ValueKind(
    "bytes",
    lambda value: isinstance(value, bytes | memoryview),
    "typeof({column}) = 'blob'",
)
NUMBERS = ValueKind(
    "bytes, three for each string",
    lambda value: isinstance(value, bytes | memoryview) and len(value) > 0 == len(value) % 3,
    "typeof({column}) = 'blob' AND length({column}) > 0 AND length({column}) % 3 = 0",
)


class Checked(TypeDecorator[Any]):
    """A column's type, whose values are held against their kind when they are read."""

    impl = TypeEngine
    cache_ok = True

    def __init__(self, kind: ValueKind, of: TypeEngine[Any]) -> None:
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

        def check(value: Any) -> Any:
            if value is None:
                return None
            if not fits(value):
                raise self._damage_error(value)
            return value if made is None else made(value)

        return check

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
                raise self._damage_error(value)

    def _damage_error(self, value: object) -> StoreDamagedError:
        said = describe_damage(self.table, self.column, value, self.kind)
        return StoreDamagedError(said, table=self.table, column=self.column)


def describe_damage(what: str, column: str, value: object, kind: ValueKind) -> str:
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


# What columns are made of: each has a type of its own, which knows the column and checks it.

# What a strict table of SQLite calls them.
_BIG_INTEGER = BigInteger().with_variant(Integer, "sqlite")
_REAL: TypeEngine[float] = Double().with_variant(REAL, "sqlite")


def whole(kind: ValueKind = COUNT) -> Checked:
    """A whole number of four bytes."""
    return Checked(kind, Integer())


def big(kind: ValueKind = COUNT) -> Checked:
    """A whole number of eight bytes."""
    return Checked(kind, _BIG_INTEGER)


def text(kind: ValueKind = TEXT) -> Checked:
    """Text."""
    return Checked(kind, Text())


def real(kind: ValueKind = FINITE) -> Checked:
    """A finite number."""
    return Checked(kind, _REAL)


def packed_bytes(kind: ValueKind = BYTES) -> Checked:
    """Bytes."""
    return Checked(kind, LargeBinary())


# Misclassified strings as bytes: what a run's errors take in the database.

NUMBER_BYTES = 3
"""Enough for the strings of any test set: a configuration has at most a million."""


def pack_errors(errors: StringErrors) -> tuple[bytes, bytes]:
    """Numbers and logits, the highest byte first; logits in the precision that they have."""
    numbers = errors.numbers.astype(">u4").view(np.uint8).reshape(-1, 4)[:, 1:]
    with np.errstate(over="ignore", under="ignore"):
        single = errors.logits.astype(np.float32)
    exact = bool((single == errors.logits).all())
    logits = single.astype(">f4") if exact else errors.logits.astype(">f8")
    return numbers.tobytes(), logits.tobytes()


def unpack_errors(numbers: bytes, logits: bytes) -> StringErrors:
    """What `pack_errors` made bytes of.

    Raises:
        ValueError: the two are not of equally many strings.
    """
    rows = unpacked_numbers(numbers)
    width = 4 if len(logits) == 4 * len(rows) else 8
    values = np.frombuffer(logits, dtype=f">f{width}").astype(np.float64)
    if len(values) != len(rows):
        raise ValueError(f"{len(rows)} numbers and {len(logits)} bytes of logits")
    return StringErrors(rows, values)


def unpacked_numbers(numbers: bytes) -> Int64[np.ndarray, " error"]:
    """The numbers alone, of one run or of several, one after another."""
    parts = np.frombuffer(numbers, dtype=np.uint8).reshape(-1, NUMBER_BYTES).astype(np.int64)
    return np.asarray((parts[:, 0] << 16) | (parts[:, 1] << 8) | parts[:, 2])


NO_ERRORS = StringErrors(np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float64))
"""Those of a run that misclassified nothing."""


# What a shortcut reader reads rightly, by length, as JSON.


def packed_lengths(rows: Sequence[tuple[int, int, int]]) -> str:
    """An array of lengths, each an array of it, its test strings and those read rightly."""
    return json.dumps(rows, separators=(",", ":"))


def unpacked_lengths(text: str) -> list[tuple[int, int, int]]:
    """Lengths with how many test strings each has, and how many of them are read rightly.

    Raises:
        ValueError: it is no array of those.
    """
    rows = json.loads(text)
    if not isinstance(rows, list) or not all(map(_is_length, rows)):
        raise ValueError("no lengths")
    return [(length, tested, right) for length, tested, right in rows]


def _is_length(row: Any) -> bool:
    if not isinstance(row, list) or [type(part) for part in row] != [int, int, int]:
        return False
    length, tested, right = row
    return bool(length >= 0 and 0 <= right <= tested <= MOST)


# Wrong outputs of a transduction as JSON: what a run's take in the database.

ERROR_KINDS: tuple[str, ...] = get_args(ErrorKind)

MOST_PLACE = 2**31 - 1
"""What every database holds as a whole number."""


def packed_outputs(outputs: Sequence[Output]) -> str:
    """An array of outputs, each an array of its text, first wrong place and kind of error."""
    return json.dumps(outputs, ensure_ascii=False, separators=(",", ":"))


def unpacked_outputs(text: str) -> list[Output]:
    """What `packed_outputs` made text of.

    Raises:
        ValueError: it is no array of outputs, or one of none.
    """
    outputs = json.loads(text)
    if not isinstance(outputs, list) or not outputs or not all(map(_is_output, outputs)):
        raise ValueError("no outputs")
    return [(said, place, kind) for said, place, kind in outputs]


def is_beyond(output: Output) -> bool:
    """Whether the first wrong place is one that the output cannot have."""
    text, place, _ = output
    most = len(text)
    if "{" in text:
        try:
            # Of tokens with names there are fewer than characters.
            most = sum(Tokenizer(sorted(set(text))).counts(text))
        except InvalidStringError:
            return False
    return place > most


def _is_output(value: Any) -> bool:
    if not isinstance(value, list) or [type(part) for part in value] != [str, int, str]:
        return False
    text, place, kind = value
    # Tokens are printable, so that there is nothing that a database or a file cannot hold.
    return text.isprintable() and 0 <= place <= MOST_PLACE and kind in ERROR_KINDS
