"""Accuracy by string length: every seed of configurations, their medians, and their shortcuts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from seqcls.problem import obstacle_of, resolve
from sweeps.records import LENGTH_FIELDS
from sweeps.store.database import Store
from sweeps.store.reads import frames, queries
from sweeps.store.reads.overview import first_lengths, last_lengths
from sweeps.store.reads.selection import Selection
from sweeps.store.reads.stored import length_rows, tested_lengths, texts_of
from sweeps.store.shortcuts import best_shortcut, shortcut_scores
from sweeps.store.tables import RunState

WIDTHS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of lengths that may be merged into one point of a line."""

MOST_POINTS = 30
"""Approximate maximum number of points of a line."""

MOST_LINES = 40
"""Maximum number of lines of a configuration: seeds evenly spaced in their order by accuracy."""

_TESTED, _WRONG = (LENGTH_FIELDS.index(name) for name in ("tested", "wrong"))


@dataclass(frozen=True, eq=False)
class Curves:
    """Accuracies of configurations at strings of similar length, in [0, 1]."""

    runs: pd.DataFrame
    """Runs with a line: run_id, config_id, model_seed, outcome, accuracy_beyond; within each
    configuration the least accurate on longer strings first."""
    points: pd.DataFrame
    """run_id, first_length, last_length, tested (strings), accuracy."""
    medians: pd.DataFrame
    """config_id, first_length, last_length, n, median: over the seeds that learned, all of them."""
    shortcuts: pd.DataFrame
    """config_id, first_length, last_length, reader, accuracy: of the best shortcut reader."""
    trained: dict[int, range]
    """The trained lengths by configuration, where they are known."""


def curves(store: Store, selection: Selection, config_ids: Collection[int]) -> Curves:
    """Computes the accuracies of configurations by length.

    Args:
        selection: picks the seeds that have a line. The medians are over all in its scope.
    """
    with store.read():
        found = frames.runs(store, selection)
        found = found[found["config_id"].isin(config_ids) & (found["state"] == RunState.DONE)]
        tested = tested_lengths(store, set(found["config_id"].tolist()))
        longest = max((int(x[-1, 0]) for x in tested.values() if len(x)), default=1)
        # One width for all configurations, so that points of different lines are comparable.
        width = next((x for x in WIDTHS if longest <= MOST_POINTS * x), WIDTHS[-1])
        lines = _choose_lines(found[found["picked"]])
        learned = found[found["learned"].fillna(False).astype(bool)]
        counting = {*learned["run_id"].tolist()}
        # Errors are read only of runs that are drawn or enter a median.
        needed = {*lines["run_id"].tolist(), *counting}
        # A run without errors need not be read: all its counts of wrong strings are zero.
        erring = found.loc[found["run_id"].isin(needed) & (found["wrong"] > 0), "run_id"]
        texts = texts_of(store, erring, "lengths")
        wrong = {x: _sum_up(length_rows(text), width)[2] for x, text in texts}
    points, medians = [], []
    for config_id, own in found.groupby("config_id", sort=False):
        first, counts, _ = _sum_up(tested[int(str(config_id))], width)
        ids = [x for x in own["run_id"].tolist() if x in needed]
        errors = np.array([wrong.get(x, np.zeros_like(counts)) for x in ids]).reshape(
            -1, len(counts)
        )
        right = 1 - errors[:, counts > 0] / counts[counts > 0]
        rows = {x: place for place, x in enumerate(ids)}
        drawn = lines.loc[lines["config_id"] == config_id, "run_id"].tolist()
        length = first[counts > 0]
        points += [(x, length, counts[counts > 0], right[rows[x]]) for x in drawn]
        knows = [rows[x] for x in ids if x in counting]
        if knows:
            medians.append((config_id, length, len(knows), np.median(right[knows], axis=0)))
    return Curves(
        runs=lines[["run_id", "config_id", "model_seed", "outcome", "accuracy_beyond"]],
        points=_frame(["run_id", "first_length", "tested", "accuracy"], points, width),
        medians=_frame(["config_id", "first_length", "n", "median"], medians, width),
        shortcuts=_shortcuts(store, config_ids, width),
        trained=trained_lengths(store, config_ids),
    )


def _choose_lines(runs: pd.DataFrame) -> pd.DataFrame:
    """Chooses the runs that have a line, the least accurate on longer strings first."""
    ordered = runs.sort_values(["config_id", "accuracy_beyond", "accuracy", "model_seed"])
    place = ordered.groupby("config_id").cumcount()
    size = ordered.groupby("config_id")["run_id"].transform("size")
    # Up to MOST_LINES runs the step is 1, and every run is chosen.
    step = np.maximum(1.0, (size - 1) / (MOST_LINES - 1))
    # Those nearest to places evenly apart, the first and the last among them.
    chosen = np.rint(np.rint(place / step) * step) == place
    lines: pd.DataFrame = ordered.loc[chosen]
    return lines


def _sum_up(rows: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums rows to points: their first lengths, and the numbers of strings tested and wrong."""
    if not len(rows):
        return (np.empty(0, dtype=np.int64),) * 3
    first, starts = np.unique(first_lengths(rows[:, 0], width), return_index=True)
    # Rows are sorted by length, so that each point is one contiguous stretch of them.
    sums = np.add.reduceat(rows[:, [_TESTED, _WRONG]], starts)
    return first, sums[:, 0], sums[:, 1]


def _frame(columns: list[str], parts: Sequence[tuple[Any, ...]], width: int) -> pd.DataFrame:
    """Makes a frame of parts with arrays over points; their second item is the first lengths."""
    if not parts:
        return pd.DataFrame(columns=[*columns, "last_length"])
    sizes = [len(part[1]) for part in parts]
    table = pd.DataFrame(
        {
            name: np.repeat(values, sizes) if np.ndim(values[0]) == 0 else np.concatenate(values)
            for name, values in zip(columns, zip(*parts, strict=True), strict=True)
        }
    )
    return table.assign(last_length=last_lengths(table["first_length"], width))


def _shortcuts(store: Store, config_ids: Collection[int], width: int) -> pd.DataFrame:
    best = best_shortcut(shortcut_scores(store, config_ids))
    first = first_lengths(best["length"].to_numpy(dtype=np.int64), width)
    keys = ["config_id", "reader", "first_length"]
    sums = best.assign(first_length=first).groupby(keys)[["right", "tested"]].sum().reset_index()
    sums = sums[sums["tested"] > 0]
    sums = sums.assign(accuracy=sums["right"] / sums["tested"])
    sums["last_length"] = last_lengths(sums["first_length"], width)
    return sums[["config_id", "first_length", "last_length", "reader", "accuracy"]]


def trained_lengths(store: Store, config_ids: Collection[int]) -> dict[int, range]:
    """Returns the trained lengths of each of these configurations, where they are known here."""
    known = queries.configs(store, list(config_ids)).items()
    problems = {x: resolve(y) for x, y in known if obstacle_of(y) is None}
    return {x: y.trained_lengths for x, y in problems.items() if y.config.knows_trained_lengths}
