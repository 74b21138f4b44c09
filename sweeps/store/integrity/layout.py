"""What tables and columns a SQLite file has, and whether those tables check their values."""

import hashlib
import sqlite3
from dataclasses import dataclass

from sweeps.store.integrity.row_checks import TABLES


@dataclass(frozen=True)
class Layout:
    """What SQLite says of a file's tables."""

    obstacle: str | None
    """Why they cannot hold what this program writes; None where every column is there."""

    checks_itself: bool
    """Whether all of them are strict, and so hold no value of another type."""


_layouts: dict[bytes, Layout] = {}
"""By the hash of the schema's text, from which alone SQLite makes its tables."""


def layout_of(connection: sqlite3.Connection) -> Layout:
    """What a file's tables are; SQLite is asked once per schema, and not per opening of a file.

    To answer it works out the columns of all views too, which takes milliseconds.

    Args:
        connection: one that was just opened and serves nothing else; it is left in a transaction.

    Raises:
        sqlite3.Error: the schema cannot be read.
    """
    # Until the connection is closed all answers are of one state of the file.
    connection.execute("BEGIN")
    # As bytes: two texts that cannot be decoded might look the same once they are.
    text = ", ".join(f"CAST({name} AS BLOB)" for name in ("type", "name", "tbl_name", "sql"))
    schema = connection.execute(f"SELECT {text} FROM main.sqlite_schema").fetchall()
    key = hashlib.sha256(repr(schema).encode()).digest()
    if key not in _layouts:
        _layouts[key] = _layout(connection)
    return _layouts[key]


def _layout(connection: sqlite3.Connection) -> Layout:
    query = (
        "SELECT list.strict, list.name, info.name FROM pragma_table_list AS list, "
        "pragma_table_xinfo(list.name) AS info WHERE list.schema = 'main' AND list.type = 'table'"
    )
    rows = connection.execute(query).fetchall()
    there = {(table, column) for _, table, column in rows}
    strict = {table for is_strict, table, _ in rows if is_strict}
    obstacle = next(
        (
            f"its table {table.name!r} has no column {column.name!r}"
            for table in TABLES.values()
            for column in table.columns
            if (table.name, column.name) not in there
        ),
        None,
    )
    return Layout(obstacle, checks_itself=set(TABLES) <= strict)
