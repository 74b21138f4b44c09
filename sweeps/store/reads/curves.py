"""Accuracy and rates of errors against string length: over all seeds, read from few rows.

What a configuration's runs are tested on is known from its sums; a run that errs at some lengths is
read at those lengths, and one that makes no error is hardly read at all.
"""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64
from sqlalchemy import BigInteger, ColumnElement, Connection, Select, case, cast, func, select

from sweeps.statistics.intervals import intervals_of
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import fetch, one_of, read
from sweeps.store.reads import overview
from sweeps.store.reads.selection import View
from sweeps.store.reads.workers import dead_workers
from sweeps.store.tables import Epoch, LengthScore, LengthSum, Run, RunState, SweepRun

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


@dataclass(frozen=True)
class _Tested:
    """What every run of a configuration is tested on, at lengths that make one point each."""

    first_lengths: Int64[np.ndarray, " point"]
    strings: Int64[np.ndarray, " point"]
    """Those that the measure is a share of; of the token error rate the tokens of their targets."""


def median_curves(
    store: Store, view: View, config_ids: tuple[int, ...], width: int, measure: Measure
) -> pd.DataFrame:
    """The median over the seeds of each configuration, at strings of similar length.

    Args:
        view: which runs; all finished ones count, with whatever result.
        width: lengths that make one point: with 10, the lengths 0 to 10, 11 to 20, and so on.

    Returns:
        config_id, first_length, last_length, n (seeds), median, and low and high of its interval
        (missing where there is none); no row where there is no string to take a share of.
    """
    models = overview.models(store, replace(view, config_ids=config_ids))
    tested = _tested_counts(store, config_ids, width, measure)
    wrong = _wrong(store, models, width, measure)
    parts = [
        _curve(models[models["config_id"] == config_id], tested[config_id], wrong, measure).assign(
            config_id=config_id
        )
        for config_id in sorted(set(models["config_id"]) & set(tested))
    ]
    columns = ["config_id", "first_length", "last_length", "n", "median", "low", "high"]
    if not parts:
        return pd.DataFrame(columns=columns)
    curves = pd.concat(parts, ignore_index=True)
    return curves.assign(last_length=overview.last_lengths(curves["first_length"], width))[columns]


def _tested_counts(
    store: Store, config_ids: tuple[int, ...], width: int, measure: Measure
) -> dict[int, _Tested]:
    first = overview.first_length(LengthSum.length, width)
    counted: dict[Measure, ColumnElement[Any]] = {
        "accuracy": LengthSum.tested.expression,
        "false positives": LengthSum.tn + LengthSum.fp,
        "false negatives": LengthSum.fn + LengthSum.tp,
        "accuracy with the length given": case(
            (LengthSum.right_length_given.is_not(None), LengthSum.tested)
        ),
        "token error rate": LengthSum.target_tokens.expression,
    }
    # Every run has the same test strings, so that its share is exact.
    strings = cast(func.sum(counted[measure] // LengthSum.runs), BigInteger)
    query = (
        select(LengthSum.config_id, first, strings)
        .where(one_of(LengthSum.config_id, config_ids), LengthSum.runs > 0)
        # Of tasks of other kinds there is no such count.
        .where(counted[measure].is_not(None))
        .group_by(LengthSum.config_id, first)
        .order_by(LengthSum.config_id, first)
    )
    with store.begin() as connection:
        _, rows = fetch(connection, query)
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return {
        int(config_id): _Tested(*table[table[:, 0] == config_id, 1:].T)
        for config_id in np.unique(table[:, 0])
    }


def _wrong(
    store: Store, models: pd.DataFrame, width: int, measure: Measure
) -> Int64[np.ndarray, "row column"]:
    """run_id, first length and errors of the measure's kind, where there are any."""
    # With its length given, what is right at the length that the model chose may be wrong.
    may_be_wrong = (models["errors"] > 0) | (measure == "accuracy with the length given")
    first = overview.first_length(LengthScore.length, width)
    counted: dict[Measure, ColumnElement[Any]] = {
        "accuracy": LengthScore.wrong.expression,
        "false positives": LengthScore.fp.expression,
        "false negatives": LengthScore.fn.expression,
        "accuracy with the length given": LengthScore.tested - LengthScore.right_length_given,
        "token error rate": LengthScore.edits.expression,
    }
    errors = counted[measure]
    query = (
        select(LengthScore.run_id, first, cast(func.sum(errors), BigInteger))
        .where(one_of(LengthScore.run_id, models.loc[may_be_wrong, "run_id"]), errors > 0)
        .group_by(LengthScore.run_id, first)
    )
    with store.begin() as connection:
        _, rows = fetch(connection, query)
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def _curve(
    models: pd.DataFrame,
    tested: _Tested,
    wrong: Int64[np.ndarray, "row column"],
    measure: Measure,
) -> pd.DataFrame:
    """The medians of one configuration: first_length, n, median, low, high."""
    run_ids = np.sort(models["run_id"].to_numpy())
    rows = wrong[np.isin(wrong[:, 0], run_ids) & np.isin(wrong[:, 1], tested.first_lengths)]
    runs = np.searchsorted(run_ids, rows[:, 0])
    points = np.searchsorted(tested.first_lengths, rows[:, 1])
    strings = tested.strings
    counted = np.zeros((len(strings), len(run_ids)))
    counted[points, runs] = rows[:, 2]
    if measure in ("accuracy", "accuracy with the length given"):
        counted = strings[:, None] - counted
    some = strings > 0
    values: Float64[np.ndarray, "point run"] = np.sort(counted[some] / strings[some, None], axis=1)
    low, high = intervals_of(values).T
    return pd.DataFrame(
        {
            "first_length": tested.first_lengths[some],
            "n": len(run_ids),
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
    with store.begin() as connection:
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
        _members(sweep_id, Run.state == RunState.RUNNING, _last_epoch().is_not(None))
        .order_by(Run.started_at, Run.id)
        .limit(LOOKED_AT)
    )
    dead = dead_workers(store)
    with store.begin() as connection:
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


def _last_epoch() -> ColumnElement[int | None]:
    """The last epoch of a run: its rows are looked up by their key, and none of them is read but
    the last.
    """
    last = select(func.max(Epoch.epoch)).where(Epoch.run_id == Run.id)
    return last.correlate(Run).scalar_subquery()


def _first_models(runs: pd.DataFrame, configs: int, models: int) -> pd.DataFrame:
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
