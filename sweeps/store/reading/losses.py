"""Losses by epoch of a sweep's models, which a page shows while more are trained."""

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, func, select

from sweeps.store.databases.engine import Store
from sweeps.store.databases.frames import read
from sweeps.store.databases.statements import one_of
from sweeps.store.runs.claiming import dead_workers
from sweeps.store.schema.tables import Epoch, Run, RunState, SweepRun

LOOKED_AT = 1_000
"""Newest models of a sweep among which those that are read are chosen."""

MOST_EPOCHS = 200
"""The most epochs of a model, evenly apart, and its last: no chart shows more of a line."""


def newest_losses(store: Store, sweep_id: int, configs: int, models: int) -> pd.DataFrame:
    """The validation losses of a sweep's newest finished models.

    Args:
        store: where to read.
        sweep_id: the sweep.
        configs: configurations at most, those with the newest models.
        models: models at most, equally many of each configuration at most.

    Returns:
        run_id, config_id, model_seed, epoch, validation_loss (a sum over the strings, in nats), in
        the order of configurations, seeds and epochs.
    """
    newest = (
        _members(sweep_id, Run.state == RunState.DONE)
        .order_by(Run.finished_at.desc(), Run.id.desc())
        .limit(LOOKED_AT)
    )
    with store.begin() as connection:
        losses = _chosen(read(connection, newest), configs, models)
        return _with_losses(connection, losses)


def losses_in_training(store: Store, sweep_id: int, configs: int, models: int) -> pd.DataFrame:
    """The validation losses so far of models in training, those that began first.

    Workers store them every few seconds without raising a revision, so a remembered answer is old.

    Args:
        store: where to read.
        sweep_id: the sweep.
        configs: configurations at most.
        models: models at most, equally many of each configuration at most.

    Returns:
        As `newest_losses`, and is_orphaned, true where the worker is dead: such losses stay as they
        are until another takes the run, and begins anew.
    """
    training = (
        _members(sweep_id, Run.state == RunState.RUNNING, _last_epoch().is_not(None))
        .order_by(Run.started_at, Run.id)
        .limit(LOOKED_AT)
    )
    dead = dead_workers(store)
    with store.begin() as connection:
        runs = _chosen(read(connection, training), configs, models)
        orphaned = select(Run.id).where(Run.worker_id.in_(dead), one_of(Run.id, runs["run_id"]))
        left = set(connection.scalars(orphaned)) if dead else set()
        losses = _with_losses(connection, runs)
    return losses.assign(is_orphaned=losses["run_id"].isin(left))


def _members(sweep_id: int, *conditions: ColumnElement[bool]) -> Select[*tuple[int, int, int]]:
    return (
        select(Run.id.label("run_id"), Run.config_id, Run.model_seed)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .where(SweepRun.sweep_id == sweep_id, *conditions)
    )


def _last_epoch() -> ColumnElement[int | None]:
    """The last epoch of a run: its rows are looked up by their key, and none of them is read but
    the last.
    """
    last = select(func.max(Epoch.epoch)).where(Epoch.run_id == Run.id)
    return last.correlate(Run).scalar_subquery()


def _chosen(runs: pd.DataFrame, configs: int, models: int) -> pd.DataFrame:
    chosen = runs["config_id"].drop_duplicates().head(configs)
    rows = runs[runs["config_id"].isin(chosen)]
    return rows.groupby("config_id").head(max(1, models // max(1, len(chosen))))


def _with_losses(connection: Connection, runs: pd.DataFrame) -> pd.DataFrame:
    mine = one_of(Run.id, runs["run_id"])
    lasts = {last for last in connection.scalars(select(_last_epoch()).where(mine)) if last}
    query = select(Epoch.run_id, Epoch.epoch, Epoch.validation_loss)
    query = query.where(one_of(Epoch.run_id, runs["run_id"]))
    step = -(-max(lasts, default=0) // MOST_EPOCHS)
    if step > 1:
        query = query.where(one_of(Epoch.epoch, {*range(1, max(lasts), step), *lasts}))
    merged = runs.merge(read(connection, query), on="run_id")
    return merged.sort_values(["config_id", "model_seed", "epoch"], ignore_index=True)
