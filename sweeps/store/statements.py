"""Statements that several reads and writes share, bulk inserts, and frames of rows."""

import importlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select, bindparam, exists, insert, select
from sqlalchemy.orm import aliased

from sweeps.store.database import Store
from sweeps.store.tables import Base, Config, Run, RunState, Sweep, SweepRun, TestSetRow, now

if TYPE_CHECKING:
    import pandas as pd


def insert_rows(db: Connection, table: type[Base], rows: Sequence[Sequence[Any]]) -> None:
    """Inserts rows whose values are in the order of the table's columns."""
    if rows:
        names = table.__table__.columns.keys()
        db.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def fetch(
    connection: Connection, query: Select[*tuple[Any, ...]]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of a query's columns, and its rows as the driver's own tuples.

    Building a frame from them takes a sixth of the time that it takes from SQLAlchemy's rows.
    """
    result = connection.execute(query)
    return list(result.keys()), [] if result.cursor is None else list(result.cursor.fetchall())


# The rows of a query as a data frame.


def frame(store: Store, query: Select[*tuple[Any, ...]]) -> "pd.DataFrame":
    """All rows of a query, in a transaction of its own."""
    with store.read() as connection:
        return read(connection, query)


def read(connection: Connection, query: Select[*tuple[Any, ...]]) -> "pd.DataFrame":
    """All rows of a query, as part of the connection's transaction.

    A column of whole numbers stays integral where some are missing.
    """
    import pandas as pd

    # Not pandas.read_sql_query, whose own error would hide that of the database.
    names, rows = fetch(connection, query)
    frame = pd.DataFrame(rows, columns=names)
    for place, name in enumerate(names):
        # Pandas converts whole numbers beside None into floats, and rounds large ones.
        if frame[name].dtype == float and not any(isinstance(row[place], float) for row in rows):
            frame[name] = pd.array([row[place] for row in rows], dtype="Int64")
    return frame


# Statements that several writes share.

CHUNK = 500
"""Number of values in one statement, which databases limit, and of runs whose results are in memory
at a time."""

Value = TypeVar("Value")


def chunks(values: Iterable[Value]) -> Iterator[list[Value]]:
    """The values in lists of `CHUNK`."""
    listed = list(values)
    for start in range(0, len(listed), CHUNK):
        yield listed[start : start + CHUNK]


def one_of(column: Any, values: Iterable[int | str]) -> ColumnElement[bool]:
    """The condition that a column has one of these values, which are written into the statement
    itself: there may be more than a database takes as parameters.
    """
    some = [x if isinstance(x, str) else int(x) for x in values]
    chosen: Any = bindparam("chosen", some, unique=True, expanding=True, literal_execute=True)
    condition: ColumnElement[bool] = column.in_(chosen)
    return condition


def insert_new(connection: Connection, table: type[Base], rows: Sequence[dict[str, Any]]) -> None:
    """Inserts the rows that violate no unique constraint, and skips the others."""
    if rows:
        # Only this database's dialect: loading PostgreSQL's would cost each process 20 ms.
        dialect = importlib.import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), list(rows))


def put_configs(
    connection: Connection,
    test_sets: Mapping[str, str],
    configs: Mapping[str, Mapping[str, Any]],
) -> dict[str, int]:
    """Adds those of these test sets and configurations that are missing.

    Args:
        test_sets: fields as JSON by key; strings are stored later.
        configs: other columns by key, with the key of the test set in place of its id.

    Returns:
        The configurations' ids by key, in the given order.
    """

    def put(table: type[Config | TestSetRow], rows: Mapping[str, dict[str, Any]]) -> dict[str, int]:
        insert_new(connection, table, [{"key": key, **row} for key, row in rows.items()])
        # Read back, since an insert does not return rows that existed already.
        query = select(table.key, table.id).where(one_of(table.key, rows))
        ids = dict(connection.execute(query).all())
        return {key: ids[key] for key in rows}

    ids = put(TestSetRow, {key: {"json": text} for key, text in test_sets.items()})
    tested = {key: ids.get(row["test_set_id"] or "") for key, row in configs.items()}
    return put(Config, {x: {**row, "test_set_id": tested[x]} for x, row in configs.items()})


def insert_sweep(
    connection: Connection,
    name: str,
    description: str,
    spec: str,
    *,
    launch_token: str | None = None,
    **others: str | None,
) -> int:
    """Adds a sweep without runs and returns its id.

    Args:
        others: values of further columns.
    """
    token = launch_token or uuid.uuid4().hex
    values = {"name": name, "description": description, "spec": spec, **others}
    new = insert(Sweep).values(**values, created_at=now(), launch_token=token)
    return connection.execute(new.returning(Sweep.id)).scalar_one()


def queue_runs(connection: Connection, seeded: Iterable[tuple[int, int]]) -> None:
    """Queues those of these runs, (configuration id, model seed), that are missing."""
    queued = [
        {"config_id": config_id, "model_seed": seed, "state": RunState.QUEUED}
        for config_id, seed in seeded
    ]
    insert_new(connection, Run, queued)


def in_another_sweep() -> ColumnElement[bool]:
    """The condition that the run of a row of `sweep_run` belongs to a second sweep, too."""
    other = aliased(SweepRun)
    # EXISTS throughout: PostgreSQL goes through all of a long NOT IN (SELECT ...) for every row.
    return exists().where(other.run_id == SweepRun.run_id, other.sweep_id != SweepRun.sweep_id)


def requirements_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, tuple[bool, bool]]:
    """Two flags by run id: every epoch's weights are stored, and the exhaustive check is made.

    Each is set if any of the run's sweeps requires it.
    """
    members = (
        select(SweepRun.run_id, Sweep.spec)
        .join(Sweep, Sweep.id == SweepRun.sweep_id)
        .where(one_of(SweepRun.run_id, run_ids))
    )
    rows = connection.execute(members).all()
    # Each specification is parsed once, however many runs it has.
    specs = {text: json.loads(text) for text in {row.spec for row in rows}}
    every = {x for x, text in rows if specs[text].get("checkpoints") == "every_epoch"}
    checked = {x for x, text in rows if specs[text].get("verdict")}
    return {x: (x in every, x in checked) for x, _ in rows}
