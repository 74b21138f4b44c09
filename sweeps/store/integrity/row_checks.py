"""Whether a value is one that its column may hold, asked in SQL; and what a row is called."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Table

from sweeps.store.schema.tables import Base
from sweeps.store.schema.values import Checked, Kind

TABLES: dict[str, Table] = dict(Base.metadata.tables)

CONTRADICTING = (
    "(wrong > tested OR tn + fp + fn + tp <> tested OR fp + fn <> wrong "
    "OR (tn IS NULL) + (fp IS NULL) + (fn IS NULL) + (tp IS NULL) NOT IN (0, 4))"
)
"""The condition, in SQL, that a row's counts of strings say different things."""

CONTRADICTING_OUTPUTS = (
    "(right_length_given > tested OR (right_length_given IS NULL) + (edits IS NULL) "
    "+ (target_tokens IS NULL) NOT IN (0, 3))"
)
"""The same of what is counted of outputs."""

_KINDS: list[Kind] = []
"""By the number that SQLite knows them by."""


def fitting(table: Table, name: str) -> str:
    """The condition, in SQL, that a column's value is one that it may hold."""
    kind = kind_of(table, name)
    if kind not in _KINDS:
        _KINDS.append(kind)
    condition = kind.sql.format(column=name, kind=_KINDS.index(kind))
    nothing = f"{name} IS NULL OR " if table.columns[name].nullable else ""
    return f"({nothing}({condition}))"


def kind_of(table: Table, name: str) -> Kind:
    """What a column may hold."""
    column_type = table.columns[name].type
    assert isinstance(column_type, Checked)
    return column_type.kind


def fits(kind: int, data: bytes) -> bool:
    """Whether text may stand in a column; the conditions call it, and know kinds by number."""
    try:
        return _KINDS[kind].fits(data.decode())
    except UnicodeDecodeError:
        return False


def keys_of(table: Table) -> str:
    """The columns of the primary key, as a list in SQL."""
    return ", ".join(column.name for column in table.primary_key)


def named(table: Table, values: dict[str, Any]) -> str:
    """What the row with these values is called."""
    return row_name(table, [values[column.name] for column in table.primary_key])


def row_name(table: Table, keys: Sequence[Any]) -> str:
    """A row as `run 12`, or as `run 12 (epoch 3)` where it is a part of a run."""
    names = [column.name for column in table.primary_key]
    if names == ["id"]:
        return f"{table.name} {short(keys[0])}"
    owner = names[0].removesuffix("_id")
    rest = " ".join(f"{name} {short(key)}" for name, key in zip(names[1:], keys[1:], strict=True))
    return f"{owner} {short(keys[0])} ({' '.join(filter(None, [table.name, rest]))})"


def short(value: object) -> str:
    """A value in one line of at most 40 characters."""
    return " ".join(repr(value).split())[:40]
