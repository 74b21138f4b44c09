"""Reads of how long finished runs took, and of which runs are finished."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from sqlalchemy import select

from seqcls.config import RunConfig
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import chunks
from sweeps.store.results.stored import config_of
from sweeps.store.schema.tables import Config, Run, RunState, Worker


@dataclass(frozen=True)
class Timing:
    """How long a finished run took."""

    key: str
    """The key of its configuration."""
    train_seconds: float
    epochs: int
    worker_id: int | None
    started_at: str
    finished_at: str
    host: str | None


def finished(store: Store, keys: Collection[str]) -> set[tuple[str, int]]:
    """Finished runs of these configurations, by the configuration's key and the model seed."""
    known: set[tuple[str, int]] = set()
    query = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    with store.begin() as connection:
        for some in chunks(sorted(keys)):
            done = query.where(Config.key.in_(some), Run.state == RunState.DONE)
            known |= {(key, seed) for key, seed in connection.execute(done)}
    return known


NEWEST = 10_000
"""Finished runs of other configurations that are read: more tell nothing new."""


def timings(store: Store, keys: Collection[str] = ()) -> tuple[list[Timing], dict[str, RunConfig]]:
    """What finished runs took, and their configurations by key.

    Args:
        store: where to read.
        keys: of configurations of which all runs are read; of others the newest.
    """
    query = (
        select(
            Config.key,
            Run.train_seconds,
            Run.epochs,
            Run.worker_id,
            Run.started_at,
            Run.finished_at,
            Worker.host,
            Config.id,
            Config.json,
            Run.id.label("run_id"),
        )
        .join(Run, Run.config_id == Config.id)
        .outerjoin(Worker, Worker.id == Run.worker_id)
        .where(Run.state == RunState.DONE, Run.train_seconds.is_not(None))
        .where(Run.epochs.is_not(None))
        .where(Run.started_at.is_not(None), Run.finished_at.is_not(None))
    )
    with store.begin() as connection:
        rows: list[Any] = list(connection.execute(query.order_by(Run.id.desc()).limit(NEWEST)))
        if len(rows) == NEWEST:
            oldest = rows[-1].run_id
            for some in chunks(sorted(keys)):
                rows += connection.execute(query.where(Config.key.in_(some), Run.id < oldest))
        one_each = {row.key: row for row in rows}
        configs = {key: config_of(row.id, row.json) for key, row in one_each.items()}
    return [Timing(*row[:-3]) for row in rows], configs
