"""Many rows at once, past what SQLAlchemy does for each."""

from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import repeat
from typing import Any

from sqlalchemy import Connection, Select
from sqlalchemy.exc import DBAPIError

from sweeps.results.digest import Columns
from sweeps.store.schema.tables import Base
from sweeps.store.schema.values import Checked


def insert_rows(connection: Connection, table: type[Base], rows: Sequence[Sequence[Any]]) -> None:
    """Inserts rows whose values stand in the order of the table's columns, as part of the
    connection's transaction.
    """
    if not rows:
        return
    name, columns = table.__tablename__, table.__table__.columns.keys()
    names = ", ".join(columns)
    if connection.dialect.name == "postgresql":
        _copy(connection, f"COPY {name} ({names}) FROM STDIN", rows)
        return
    marks = ", ".join("?" * len(columns))
    # Tuples go to the driver as they are.
    connection.exec_driver_sql(
        f"INSERT INTO {name} ({names}) VALUES ({marks})", list(map(tuple, rows))
    )


def rows_of_run(table: type[Base], run_id: int, columns: Columns) -> list[tuple[Any, ...]]:
    """A run's rows as `insert_rows` takes them, made of their other columns by name."""
    _, *names = table.__table__.columns.keys()
    return list(zip(repeat(run_id), *(columns[name].tolist() for name in names), strict=False))


def plain_rows(
    connection: Connection, table: type[Base], columns: Sequence[str], run_ids: Iterable[int]
) -> list[tuple[Any, ...]]:
    """Columns of these runs' rows in the order of the table's keys, as the driver's own tuples.

    As part of the connection's transaction.
    """
    keys = ", ".join(column.name for column in table.__table__.primary_key)
    chosen = ", ".join(str(int(run_id)) for run_id in run_ids)
    statement = (
        f"SELECT {', '.join(columns)} FROM {table.__tablename__} "
        f"WHERE run_id IN ({chosen or 'NULL'}) ORDER BY {keys}"
    )
    with closing(connection.connection.cursor()) as cursor:
        try:
            cursor.execute(statement)
            rows = list(cursor.fetchall())
        except connection.dialect.loaded_dbapi.Error as error:
            raise _wrapped(statement, error, connection) from error
    return rows


def fetched(
    connection: Connection, query: Select[*tuple[Any, ...]]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of a query's columns, and its rows as the driver's own tuples.

    Raises:
        StoreDamagedError: a column does not allow one of its values.
    """
    result = connection.execute(query)
    names = list(result.keys())
    try:
        rows = [] if result.cursor is None else list(result.cursor.fetchall())
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(str(query), error, connection) from error
    for column, values in zip(query.selected_columns, zip(*rows, strict=True), strict=False):
        if isinstance(column.type, Checked):
            column.type.check_all(values)
    return names, rows


def _wrapped(statement: str, error: Exception, connection: Connection) -> Exception:
    """A driver's error as SQLAlchemy's, by which `Store.begin` knows it."""
    base = connection.dialect.loaded_dbapi.Error
    return DBAPIError.instance(statement, None, error, base, dialect=connection.dialect)


def _copy(connection: Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except connection.dialect.loaded_dbapi.Error as error:
        raise _wrapped(statement, error, connection) from error
