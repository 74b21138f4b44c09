"""Sums by configuration and length over finished runs, kept in step with the results."""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import BigInteger, Connection, Select, case, cast, delete, func, select, update

from sweeps.store.databases.statements import chunks, one_of, upsert
from sweeps.store.schema.tables import LENGTH_COUNTS, LengthScore, LengthSum, Run, RunState

KEYS = [column.name for column in LengthSum.__table__.primary_key]
SUMMED = [column.name for column in LengthSum.__table__.columns if not column.primary_key]


def raise_sums(connection: Connection, run_ids: Iterable[int]) -> None:
    """Adds finished runs whose results were just stored, in the same transaction."""
    for ids in chunks(run_ids):
        adding = upsert(connection, LengthSum).from_select([*KEYS, *SUMMED], _sums_of(ids))
        raised = {name: getattr(LengthSum, name) + adding.excluded[name] for name in SUMMED}
        connection.execute(adding.on_conflict_do_update(index_elements=KEYS, set_=raised))


def lower_sums(connection: Connection, run_ids: Iterable[int]) -> None:
    """Takes runs out that are about to be deleted, before their results are."""
    for ids in chunks(run_ids):
        gone = _sums_of(ids).subquery()
        matching = (LengthSum.config_id == gone.c.config_id) & (LengthSum.length == gone.c.length)
        # Damaged sums must not prevent deleting: none falls below zero.
        lowered = {}
        for name in SUMMED:
            before = getattr(LengthSum, name)
            lowered[name] = case((before <= gone.c[name], 0), else_=before - gone.c[name])
        connection.execute(update(LengthSum).where(matching).values(lowered))
    connection.execute(delete(LengthSum).where(LengthSum.runs <= 0))


def wrong_sums(connection: Connection) -> Iterator[int]:
    """The configurations whose sums are not those of their runs."""
    stored = select(LengthSum.__table__).order_by(LengthSum.config_id, LengthSum.length)
    kept, summed = (
        {tuple(row) for row in connection.execute(query)} for query in (stored, _sums_of(None))
    )
    yield from sorted({config_id for config_id, *_ in kept ^ summed})


def _sums_of(run_ids: Iterable[int] | None) -> Select[*tuple[Any, ...]]:
    """The sums over these finished runs, or over all: `KEYS`, `SUMMED`."""
    query = (
        select(
            Run.config_id,
            LengthScore.length,
            func.count().label("runs"),
            func.count().filter(LengthScore.wrong > 0).label("failing"),
            # A sum of great whole numbers is a decimal one in PostgreSQL.
            *(
                cast(func.sum(getattr(LengthScore, name)), BigInteger).label(name)
                for name in LENGTH_COUNTS
            ),
        )
        .join(Run, Run.id == LengthScore.run_id)
        .where(Run.state == RunState.DONE)
        .group_by(Run.config_id, LengthScore.length)
        # In one order, so that two workers that end at once do not wait for each other for ever.
        .order_by(Run.config_id, LengthScore.length)
    )
    if run_ids is None:
        return query
    ids = list(run_ids)
    # Of both tables: PostgreSQL would go through all runs to join those of a few rows.
    return query.where(one_of(LengthScore.run_id, ids), one_of(Run.id, ids))
