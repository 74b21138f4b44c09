"""Accuracy and rates of errors against string length: over all seeds; losses by epoch."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64
from sqlalchemy import ColumnElement, Connection, Select, select

from sweeps.records import LENGTH_FIELDS, read_rows
from sweeps.statistics.intervals import intervals_of
from sweeps.store.database import Store
from sweeps.store.reads import frames, overview
from sweeps.store.reads.selection import Selection
from sweeps.store.reads.stored import length_rows, tested_lengths, texts_of
from sweeps.store.reads.workers import dead_workers
from sweeps.store.statements import one_of, read
from sweeps.store.tables import Run, RunState, SweepRun

Measure = Literal[
    "accuracy",
    "false positives",
    "false negatives",
    "accuracy with the length given",
    "token error rate",
]
"""The share of strings classified rightly, of negative ones taken for positive, or the reverse.

Of transductions: the share whose output is the target where its length is imposed, and edits over
tokens of the targets.
"""


_COUNTED: dict[Measure, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "accuracy": (("wrong",), ("tested",)),
    "false positives": (("fp",), ("tn", "fp")),
    "false negatives": (("fn",), ("fn", "tp")),
    "accuracy with the length given": (("right_length_given",), ("tested",)),
    "token error rate": (("edits",), ("target_tokens",)),
}
"""What is counted, and what that is a share of."""


def median_curves(
    store: Store, selection: Selection, config_ids: tuple[int, ...], width: int, measure: Measure
) -> pd.DataFrame:
    """The median over the seeds of each configuration, at strings of similar length.

    Args:
        selection: which runs; all finished ones count, with whatever result.
        width: lengths that make one point: with 10, the lengths 0 to 10, 11 to 20, and so on.

    Returns:
        config_id, first_length, last_length, n (seeds), median, and low and high of its interval
        (missing where there is none); no row where there is no string to take a share of.
    """
    with store.read() as connection:
        runs = frames.runs(connection, replace(selection, config_ids=config_ids))
        models = runs[runs["state"] == RunState.DONE]
        tested = tested_lengths(connection, config_ids)
        parts = [
            _curve(connection, models[models["config_id"] == x], tested[x], width, measure).assign(
                config_id=x
            )
            for x in sorted(set(models["config_id"].tolist()) & tested.keys())
        ]
    columns = ["config_id", "first_length", "last_length", "n", "median", "low", "high"]
    parts = [part for part in parts if len(part)]
    if not parts:
        return pd.DataFrame(columns=columns)
    curves = pd.concat(parts, ignore_index=True)
    return curves.assign(last_length=overview.last_lengths(curves["first_length"], width))[columns]


def _curve(
    connection: Connection,
    models: pd.DataFrame,
    tested: Int64[np.ndarray, "length field"],
    width: int,
    measure: Measure,
) -> pd.DataFrame:
    """The medians of one configuration: first_length, n, median, low, high.

    Runs without an error are not read.

    Args:
        tested: the rows of `length_rows` of any of its runs.
    """
    counted, strings = (
        [LENGTH_FIELDS.index(name) for name in names] for names in _COUNTED[measure]
    )
    if not len(tested) or (tested[:, [*counted, *strings]] < 0).any():
        # Of tasks of other kinds there is no such count.
        return pd.DataFrame()
    first = overview.first_lengths(tested[:, 0], width)
    points, starts = np.unique(first, return_index=True)
    of = np.add.reduceat(tested[:, strings].sum(axis=1), starts)
    # With its length given, what is right at the length that the model chose may be wrong.
    every = measure == "accuracy with the length given"
    read = models["run_id"] if every else models.loc[models["wrong"] > 0, "run_id"]
    counts = np.zeros((len(points), len(models)), dtype=np.int64)
    for place, (_, text) in enumerate(texts_of(connection, read, "lengths")):
        rows = length_rows(text)[:, counted].sum(axis=1)
        counts[:, place] = np.add.reduceat(rows, starts)
    if measure == "accuracy":
        counts = of[:, None] - counts
    some = of > 0
    values: Float64[np.ndarray, "point run"] = np.sort(counts[some] / of[some, None], axis=1)
    low, high = intervals_of(values).T
    return pd.DataFrame(
        {
            "first_length": points[some],
            "n": len(models),
            "median": np.median(values, axis=1),
            "low": low,
            "high": high,
        }
    )


# Losses by epoch of a sweep's models, which a page shows while more are trained.

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
