"""Losses by epoch of a sweep's models, which a page shows while more are trained."""

import pandas as pd
from sqlalchemy import ColumnElement, Connection, Select, select

from sweeps.records import read_rows
from sweeps.store.database import Store
from sweeps.store.reads.stored import texts_of
from sweeps.store.reads.workers import dead_workers
from sweeps.store.statements import one_of, read
from sweeps.store.tables import Run, RunState, SweepRun

LOOKED_AT = 1_000
"""Newest models of a sweep among which those that are read are chosen."""

MOST_EPOCHS = 200
"""The most epochs of a model, evenly apart, and its last: no chart shows more of a line."""


def newest_losses(store: Store, sweep_id: int, configs: int, models: int) -> pd.DataFrame:
    """The validation losses of a sweep's newest finished models.

    Args:
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
    with store.read() as connection:
        losses = _first_models(read(connection, newest), configs, models)
        return _with_losses(connection, losses)


def losses_in_training(store: Store, sweep_id: int, configs: int, models: int) -> pd.DataFrame:
    """The validation losses so far of models in training, those that began first.

    Workers store them every few seconds without raising a revision, so a remembered answer is old.

    Args:
        models: models at most, equally many of each configuration at most.

    Returns:
        As `newest_losses`, and is_orphaned, true where the worker is dead: such losses stay as they
        are until another takes the run, and begins anew.
    """
    training = (
        _members(sweep_id, Run.state == RunState.RUNNING, Run.losses.is_not(None))
        .order_by(Run.started_at, Run.id)
        .limit(LOOKED_AT)
    )
    dead = dead_workers(store)
    with store.read() as connection:
        runs = _first_models(read(connection, training), configs, models)
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


def _first_models(runs: pd.DataFrame, configs: int, models: int) -> pd.DataFrame:
    chosen = runs["config_id"].drop_duplicates().head(configs)
    rows = runs[runs["config_id"].isin(chosen)]
    return rows.groupby("config_id").head(max(1, models // max(1, len(chosen))))


def _with_losses(connection: Connection, runs: pd.DataFrame) -> pd.DataFrame:
    losses = {
        run_id: read_rows(text) for run_id, text in texts_of(connection, runs["run_id"], "losses")
    }
    lasts = {rows[-1][0] for rows in losses.values() if rows}
    step = max(1, -(-max(lasts, default=0) // MOST_EPOCHS))
    shown = {*range(1, max(lasts, default=0) + 1, step), *lasts}
    rows = [
        (run_id, epoch, validation)
        for run_id, epochs in losses.items()
        for epoch, _, validation in epochs
        if epoch in shown
    ]
    table = pd.DataFrame(rows, columns=["run_id", "epoch", "validation_loss"])
    merged = runs.merge(table.astype({"validation_loss": float}), on="run_id")
    return merged.sort_values(["config_id", "model_seed", "epoch"], ignore_index=True)
