"""Reads of how far sweeps are: runs in each state, those that ended lately, those left alone."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import func, select

from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import one_of
from sweeps.store.results.stored import config_of
from sweeps.store.runs.claiming import dead_workers
from sweeps.store.schema.tables import Config, Epoch, Run, RunState, Sweep, SweepRun, now


@dataclass(frozen=True)
class Recent:
    """What happened to a sweep's runs lately."""

    ended: int
    """Runs that finished."""
    trained: tuple[tuple[str, str | None], ...]
    """When runs began and ended (None: they go on), in ISO 8601."""


def states(
    store: Store, sweep_ids: Sequence[int] | None = None
) -> list[tuple[int, str, str, dict[str, int]]]:
    """Id, name and state of these sweeps, or of all, and their runs in each state; oldest first."""
    query = (
        select(
            SweepRun.sweep_id,
            *(func.count().filter(Run.state == state).label(state) for state in RunState),
        )
        .join(Run, Run.id == SweepRun.run_id)
        .group_by(SweepRun.sweep_id)
    )
    sweeps = select(Sweep.id, Sweep.name, Sweep.state).order_by(Sweep.id)
    if sweep_ids is not None:
        query = query.where(one_of(SweepRun.sweep_id, sweep_ids))
        sweeps = sweeps.where(one_of(Sweep.id, sweep_ids))
    with store.begin() as connection:
        named = connection.execute(sweeps).all()
        counted = {row.sweep_id: row._asdict() for row in connection.execute(query)}
    return [
        (*sweep, {state: int(counted.get(sweep.id, {}).get(state, 0)) for state in RunState})
        for sweep in named
    ]


def recent(store: Store, seconds: float) -> dict[int, Recent]:
    """What happened in the last seconds, by sweep, of sweeps with runs in training."""
    lately = Run.finished_at >= now(seconds)
    by_sweep = select(SweepRun.sweep_id, func.count()).join(Run, Run.id == SweepRun.run_id)
    ended = by_sweep.where(lately).group_by(SweepRun.sweep_id)
    times = (
        select(SweepRun.sweep_id, Run.started_at, Run.finished_at)
        .join(Run, Run.id == SweepRun.run_id)
        .where(lately | (Run.state == RunState.RUNNING), Run.started_at.is_not(None))
        .distinct()
    )
    trained: dict[int, list[tuple[str, str | None]]] = {}
    with store.begin() as connection:
        counted = dict(connection.execute(ended).all())
        for sweep_id, started, finished in connection.execute(times):
            trained.setdefault(sweep_id, []).append((str(started), finished))
    return {
        sweep_id: Recent(int(counted.get(sweep_id, 0)), tuple(spans))
        for sweep_id, spans in trained.items()
    }


def epochs_in_training(store: Store) -> list[tuple[int, int, int]]:
    """Each run in training whose first epoch has ended: its sweep, its epochs, the most of them.

    Workers store epochs every second without raising a revision, so a remembered answer is old.
    """
    query = (
        select(SweepRun.sweep_id, func.max(Epoch.epoch).label("epoch"), Config.id, Config.json)
        .join(Run, Run.id == SweepRun.run_id)
        .join(Epoch, Epoch.run_id == Run.id)
        .join(Config, Config.id == Run.config_id)
        .where(Run.state == RunState.RUNNING)
        .group_by(SweepRun.sweep_id, Run.id, Config.id, Config.json)
    )
    with store.begin() as connection:
        return [
            (row.sweep_id, int(row.epoch), config_of(row.id, row.json).max_num_epochs)
            for row in connection.execute(query)
        ]


def orphaned(store: Store) -> dict[int, int]:
    """How many runs in training have a dead worker, by sweep."""
    dead = dead_workers(store)
    if not dead:
        return {}
    query = (
        select(SweepRun.sweep_id, func.count())
        .join(Run, Run.id == SweepRun.run_id)
        .where(Run.state == RunState.RUNNING, Run.worker_id.in_(dead))
        .group_by(SweepRun.sweep_id)
    )
    with store.begin() as connection:
        return dict(connection.execute(query).all())
