"""Reads of what is left to train."""

from collections.abc import Sequence

from sqlalchemy import Select, select

from sweeps.grid.grouping import PlannedRun
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import chunks, wanted_of
from sweeps.store.results.stored import config_with_key
from sweeps.store.schema.tables import Config, Run, RunState, Sweep, SweepRun, SweepState


def queued_runs(store: Store, sweep_ids: Sequence[int] | None = None) -> list[PlannedRun]:
    """The runs of these sweeps, or of all, that no worker trains yet and no stop holds back."""
    wanted = _members_that_go_on()
    if sweep_ids is not None:
        wanted = wanted.where(SweepRun.sweep_id.in_(sweep_ids))
    query = (
        select(Run.id, Run.model_seed, Run.failures, Run.config_id, Config.key, Config.json)
        .join(Config, Config.id == Run.config_id)
        .where(Run.state == RunState.QUEUED, Run.id.in_(wanted))
        .order_by(Run.id)
    )
    wants: dict[int, tuple[bool, bool]] = {}
    with store.begin() as connection:
        rows = connection.execute(query).all()
        for ids in chunks(row.id for row in rows):
            wants |= wanted_of(connection, ids)
        configs = {
            config_id: config_with_key(config_id, key, text)
            for config_id, key, text in {(row.config_id, row.key, row.json) for row in rows}
        }
    return [
        PlannedRun(row.id, configs[row.config_id], row.model_seed, *wants[row.id], row.failures)
        for row in rows
    ]


def runs_that_go_on(store: Store, run_ids: Sequence[int]) -> set[int]:
    """Those of these runs that belong to a sweep that is not stopped."""
    with store.begin() as connection:
        members = _members_that_go_on().where(SweepRun.run_id.in_(run_ids))
        return set(connection.scalars(members))


def _members_that_go_on() -> Select[int]:
    return (
        select(SweepRun.run_id)
        .join(Sweep, Sweep.id == SweepRun.sweep_id)
        .where(Sweep.state != SweepState.STOPPED)
    )
