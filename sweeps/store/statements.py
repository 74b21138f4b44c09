"""Statements that several reads and writes share, many rows at once, and frames of rows."""

import importlib
import json
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    Insert,
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


def one_of(column: Any, values: Iterable[int]) -> ColumnElement[bool]:
    """Whether a column has one of these values, of which there may be more than a database takes
    as parameters: they stand in the statement itself.
    """
    chosen: BindParameter[Any] = bindparam(
        "chosen", [int(x) for x in values], unique=True, expanding=True, literal_execute=True
    )
    condition: ColumnElement[bool] = column.in_(chosen)
    return condition


def upsert(connection: Connection, table: type[Base]) -> Any:
    """An INSERT with the `ON CONFLICT` that the database has."""
    # Only that of this database: to load PostgreSQL's takes a file's processes 20 ms each.
    dialect = importlib.import_module(f"sqlalchemy.dialects.{connection.dialect.name}")
    return dialect.insert(table)


def insert_new(connection: Connection, table: type[Base], rows: Sequence[dict[str, Any]]) -> None:
    """Inserts those rows that break no unique constraint, and leaves out the others."""
    if rows:
        connection.execute(upsert(connection, table).on_conflict_do_nothing(), list(rows))


class ConfigText(NamedTuple):
    """A configuration as it is stored."""

    key: str
    json: str
    test_set: str | None
    """The key of its test set."""


def put_configs(
    connection: Connection, test_sets: Mapping[str, str], configs: Iterable[ConfigText]
) -> dict[str, int]:
    """Adds those of these test sets and configurations that are not there yet.

    Args:
        test_sets: fields as JSON by key; strings are stored later.

    Returns:
        The configurations' ids by their keys, in the order in which they are given.
    """
    insert_new(connection, TestSetRow, [{"key": x, "json": y} for x, y in test_sets.items()])
    ids = _ids_of(connection, TestSetRow, test_sets)
    rows = {
        key: {"key": key, "json": text, "test_set_id": None if test_set is None else ids[test_set]}
        for key, text, test_set in configs
    }
    insert_new(connection, Config, list(rows.values()))
    config_ids = _ids_of(connection, Config, rows)
    return {key: config_ids[key] for key in rows}


def _ids_of(
    connection: Connection, table: type[Config | TestSetRow], keys: Iterable[str]
) -> dict[str, int]:
    """The ids of the rows that have these keys."""
    ids: dict[str, int] = {}
    for some in chunks(keys):
        query = select(table.key, table.id).where(table.key.in_(some))
        ids |= dict(connection.execute(query).all())
    return ids


def inserted_id(connection: Connection, statement: Insert) -> int:
    """Inserts one row; its id."""
    key = connection.execute(statement).inserted_primary_key
    assert key is not None
    return int(key[0])


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
    return inserted_id(
        connection, insert(Sweep).values(**values, created_at=now(), launch_token=token)
    )


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


def wanted_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, tuple[bool, bool]]:
    """Whether the sweeps of each run want every epoch's weights, and whether the exhaustive check.

    A run gets what any of its sweeps wants.
    """
    members = (
        select(SweepRun.run_id, Sweep.spec)
        .join(Sweep, Sweep.id == SweepRun.sweep_id)
        .where(SweepRun.run_id.in_(run_ids))
    )
    rows = connection.execute(members).all()
    wants = {spec: json.loads(spec) for spec in {row.spec for row in rows}}
    states: dict[int, tuple[bool, bool]] = {}
    for run_id, spec in rows:
        every, verdict = states.get(run_id, (False, False))
        every = every or wants[spec].get("checkpoints") == "every_epoch"
        states[run_id] = (every, verdict or bool(wants[spec].get("verdict", False)))
    return states


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
