"""Statements that several reads and writes share, many rows at once, and frames of rows."""

import importlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    bindparam,
    case,
    exists,
    func,
    insert,
    select,
)
from sqlalchemy.orm import aliased

from sweeps.store.database import Store
from sweeps.store.tables import (
    Base,
    Config,
    Run,
    RunState,
    Sweep,
    SweepRun,
    SweepState,
    TestSetRow,
    now,
)

if TYPE_CHECKING:
    import pandas as pd


def insert_rows(db: Connection, table: type[Base], rows: Sequence[Sequence[Any]]) -> None:
    """Inserts rows whose values stand in the order of the table's columns."""
    if rows:
        names = table.__table__.columns.keys()
        db.execute(insert(table), [dict(zip(names, row, strict=True)) for row in rows])


def fetch(
    connection: Connection, query: Select[*tuple[Any, ...]]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of a query's columns, and its rows as the driver's own tuples.

    A frame of them is made in a sixth of the time that one of SQLAlchemy's rows takes.
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

    A column of whole numbers stays one where some are missing.
    """
    import pandas as pd

    # Not pandas.read_sql_query, whose own error would hide that of the database.
    names, rows = fetch(connection, query)
    frame = pd.DataFrame(rows, columns=names)
    for place, name in enumerate(names):
        # Pandas makes fractions of them; rounded ones, of great numbers.
        if frame[name].dtype == float and not any(isinstance(row[place], float) for row in rows):
            frame[name] = pd.array([row[place] for row in rows], dtype="Int64")
    return frame


# Statements that several writes share.

CHUNK = 500
"""How many values one statement names, which databases limit, and of how many runs results are held
in memory at a time."""

Value = TypeVar("Value")


def chunks(values: Iterable[Value]) -> Iterator[list[Value]]:
    """The values in lists of `CHUNK`."""
    listed = list(values)
    for start in range(0, len(listed), CHUNK):
        yield listed[start : start + CHUNK]


def one_of(column: Any, values: Iterable[int | str]) -> ColumnElement[bool]:
    """Whether a column has one of these values, of which there may be more than a database takes
    as parameters: they stand in the statement itself.
    """
    some = [x if isinstance(x, str) else int(x) for x in values]
    chosen: Any = bindparam("chosen", some, unique=True, expanding=True, literal_execute=True)
    condition: ColumnElement[bool] = column.in_(chosen)
    return condition


def insert_new(connection: Connection, table: type[Base], rows: Sequence[dict[str, Any]]) -> None:
    """Inserts those rows that break no unique constraint, and leaves out the others."""
    if rows:
        # Only that of this database: to load PostgreSQL's takes a file's processes 20 ms each.
        dialect = importlib.import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
        connection.execute(dialect.insert(table).on_conflict_do_nothing(), list(rows))


def put_configs(
    connection: Connection,
    test_sets: Mapping[str, str],
    configs: Mapping[str, Mapping[str, Any]],
) -> dict[str, int]:
    """Adds those of these test sets and configurations that are not there yet.

    Args:
        test_sets: fields as JSON by key; strings are stored later.
        configs: other columns by key, with the key of its test set in place of that one's id.

    Returns:
        The configurations' ids by their keys, in the order in which they are given.
    """

    def put(table: type[Config | TestSetRow], rows: Mapping[str, dict[str, Any]]) -> dict[str, int]:
        insert_new(connection, table, [{"key": key, **row} for key, row in rows.items()])
        # Read back, since an insert returns nothing of rows that were there already.
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
    """Adds a sweep without runs; its id.

    Args:
        others: more of its columns.
    """
    token = launch_token or uuid.uuid4().hex
    values = {"name": name, "description": description, "spec": spec, **others}
    new = insert(Sweep).values(**values, created_at=now(), launch_token=token)
    return connection.execute(new.returning(Sweep.id)).scalar_one()


def queue_runs(connection: Connection, seeded: Iterable[tuple[int, int]]) -> None:
    """Queues runs, by configuration and model seed, that are not there yet."""
    queued = [
        {"config_id": config_id, "model_seed": seed, "state": RunState.QUEUED}
        for config_id, seed in seeded
    ]
    insert_new(connection, Run, queued)


def in_another_sweep() -> ColumnElement[bool]:
    """Whether the run of a row of `sweep_run` belongs to a second sweep, too."""
    other = aliased(SweepRun)
    # EXISTS throughout: PostgreSQL goes through all of a long NOT IN (SELECT ...) for every row.
    return exists().where(other.run_id == SweepRun.run_id, other.sweep_id != SweepRun.sweep_id)


def requirements_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, tuple[bool, bool]]:
    """Whether the sweeps of each run want every epoch's weights, and whether the exhaustive check.

    A run gets what any of its sweeps wants.
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


HAS_UNTIL = Sweep.spec.contains('"until":"')
"""Sweeps that get as many seeds as it takes: quotes within texts of JSON have a backslash."""


def state_of_sweep() -> ColumnElement[str]:
    """What became of the sweep of a row of `sweep`, one of `SweepState`, by its runs."""
    ended = ~_has_run(RunState.RUNNING) & ~_has_run(RunState.QUEUED)
    stopped = Sweep.stopped_at.is_not(None)
    # One that would get more seeds is stopped even where all that it has are done.
    return case(
        (ended & ~(HAS_UNTIL & stopped), SweepState.DONE.value),
        (stopped, SweepState.STOPPED.value),
        (_has_run(RunState.RUNNING), SweepState.RUNNING.value),
        else_=SweepState.QUEUED.value,
    )


def _has_run(state: RunState) -> ColumnElement[bool]:
    """Whether the sweep of a row of `sweep` has a run in this state.

    From the few runs of a state to their sweeps, so that what is done long ago costs nothing; and
    only from runs as old as its own, so that what waits in other sweeps costs nothing either.
    """
    member = aliased(SweepRun)
    first, last = (
        select(end(member.run_id)).where(member.sweep_id == Sweep.id).scalar_subquery()
        for end in (func.min, func.max)
    )
    belongs = exists().where(SweepRun.sweep_id == Sweep.id, SweepRun.run_id == Run.id)
    return exists().where(
        Run.state == state,
        Run.id >= first.correlate(Sweep),
        Run.id <= last.correlate(Sweep),
        belongs.correlate(Run, Sweep),
    )
