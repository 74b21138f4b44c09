"""What columns are made of: each has a type of its own, which knows the column and checks it."""

from sqlalchemy import REAL, BigInteger, Double, Integer, LargeBinary, Text
from sqlalchemy.types import TypeEngine

from sweeps.store.schema import values
from sweeps.store.schema.values import Checked, Kind

# What a strict table of SQLite calls them.
_BIG_INTEGER = BigInteger().with_variant(Integer, "sqlite")
_REAL: TypeEngine[float] = Double().with_variant(REAL, "sqlite")


def whole(kind: Kind = values.COUNT) -> Checked:
    """A whole number of four bytes."""
    return Checked(kind, Integer())


def big(kind: Kind = values.COUNT) -> Checked:
    """A whole number of eight bytes."""
    return Checked(kind, _BIG_INTEGER)


def text(kind: Kind = values.TEXT) -> Checked:
    """Text."""
    return Checked(kind, Text())


def real(kind: Kind = values.FINITE) -> Checked:
    """A finite number."""
    return Checked(kind, _REAL)


def packed_bytes(kind: Kind = values.BYTES) -> Checked:
    """Bytes."""
    return Checked(kind, LargeBinary())
