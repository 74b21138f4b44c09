"""Many rows at once, past what SQLAlchemy does for each."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from sweeps.store.tables import Base


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


def _copy(connection: Connection, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    import psycopg

    driver: Any = connection.connection.driver_connection
    try:
        with driver.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except psycopg.Error as error:
        raise DBAPIError.instance(statement, None, error, psycopg.Error) from error
