"""Accuracy and rates of errors against string length, over all seeds."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pandas as pd
from jaxtyping import Float64, Int64
from sqlalchemy import Connection

from sweeps.records import LENGTH_FIELDS
from sweeps.statistics.intervals import intervals_of
from sweeps.store.database import Store
from sweeps.store.reads import frames, overview
from sweeps.store.reads.selection import Selection
from sweeps.store.reads.stored import length_rows, tested_lengths, texts_of
from sweeps.store.tables import RunState

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
