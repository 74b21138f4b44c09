"""Losses by epoch of a sweep's newest models, which a page shows while more are trained."""

import pandas as pd
from sqlalchemy import select

from sweeps.store.engine import Store
from sweeps.store.statements import one_of
from sweeps.store.tables import Epoch, Run, RunState, SweepRun

LOOKED_AT = 1_000
"""Newest models of a sweep among which those that are read are chosen."""


def newest_losses(store: Store, sweep_id: int, configs: int, models: int) -> pd.DataFrame:
    """The validation losses of a sweep's newest models.

    Losses are written with a model's results, so a model in training has none yet.

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
        select(Run.id, Run.config_id, Run.model_seed)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .where(SweepRun.sweep_id == sweep_id, Run.state == RunState.DONE)
        .order_by(Run.finished_at.desc(), Run.id.desc())
        .limit(LOOKED_AT)
    )
    with store.begin() as connection:
        found = connection.execute(newest).all()
        runs = pd.DataFrame(found, columns=["run_id", "config_id", "model_seed"])
        chosen = runs["config_id"].drop_duplicates().head(configs)
        runs = runs[runs["config_id"].isin(chosen)]
        runs = runs.groupby("config_id").head(max(1, models // max(1, len(chosen))))
        query = select(Epoch.run_id, Epoch.epoch, Epoch.validation_loss)
        rows = connection.execute(query.where(one_of(Epoch.run_id, runs["run_id"]))).all()
    losses = pd.DataFrame(rows, columns=["run_id", "epoch", "validation_loss"])
    merged = runs.merge(losses, on="run_id")
    return merged.sort_values(["config_id", "model_seed", "epoch"], ignore_index=True)
