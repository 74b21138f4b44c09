"""Differences of two configurations at every length, and on every string.

Their significance is tested in `sweeps.statistics.chance`.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from sweeps.statistics.intervals import CONFIDENCE, PairTable

Floats = npt.NDArray[np.float64]

Outcomes = Mapping[Any, float]
"""The outcome of each seed of a configuration; NaN where unknown."""


def values_of(outcomes: Outcomes) -> Floats:
    """The outcomes as an array, in their order."""
    return np.array([*outcomes.values()], dtype=np.float64)


def table_of(a: Outcomes, b: Outcomes) -> PairTable:
    """The table of the seeds in which both outcomes are positive, only one, and none.

    Args:
        a, b: the outcomes of the same seeds, in the same order.
    """
    places = 2 * (values_of(a) <= 0) + (values_of(b) <= 0)
    return PairTable(*np.bincount(places, minlength=4).tolist())


SIDES = ("a", "b")

FEWEST_OF_A_MEAN = 3
"""The number of seeds from which on a mean has an interval. Two have one degree of freedom, for
which Student's t reaches nine times their standard deviation: mostly beyond [-1, 1].
"""


def by_length(a: pd.DataFrame, b: pd.DataFrame, *, paired: bool) -> pd.DataFrame:
    """The accuracy of both at every length, and their difference.

    Args:
        a, b: one row a run and length: model_seed, length, tested, wrong (strings).
        paired: True if equal seeds make pairs; then only common seeds count.

    Returns:
        One row a length for which both have strings: length, seeds (the smaller number of both),
        accuracy_a and accuracy_b (means over seeds, in [0, 1]), difference, low and high (the
        interval of the mean difference by Student's t over pairs, else by Welch's, clipped to
        [-1, 1]; missing with fewer than `FEWEST_OF_A_MEAN` seeds).
    """
    first, second = _accuracy_by_length(a).align(_accuracy_by_length(b), join="inner", axis=1)
    if paired:
        pairs = first - second
        first, second = first.where(pairs.notna()), second.where(pairs.notna())
        error, freedom = pairs.sem(), pairs.count() - 1
    else:
        parts = [side.sem() ** 2 for side in (first, second)]
        error = (parts[0] + parts[1]) ** 0.5
        # Welch (1947); undefined where neither varies.
        below = parts[0] ** 2 / (first.count() - 1) + parts[1] ** 2 / (second.count() - 1)
        freedom = (error**4 / below).where(below > 0, 1.0)
    # `scipy.special` loads faster than `scipy.stats`.
    from scipy.special import stdtrit

    seeds = np.minimum(first.count(), second.count())
    # Fewer than one degree of freedom occur only with too few seeds, whose interval goes next.
    reach = stdtrit(np.maximum(freedom, 1), (1 + CONFIDENCE) / 2) * error
    reach = reach.where(seeds >= FEWEST_OF_A_MEAN)
    means = pd.DataFrame({"seeds": seeds, "accuracy_a": first.mean(), "accuracy_b": second.mean()})
    means["difference"] = means["accuracy_a"] - means["accuracy_b"]
    means["low"] = (means["difference"] - reach).clip(lower=-1.0)
    means["high"] = (means["difference"] + reach).clip(upper=1.0)
    return means[seeds > 0].reset_index()


def string_differences(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """The strings that the two do not get wrong equally often.

    Args:
        a, b: one row a run and misclassified string: string, length, label; of the same test.

    Returns:
        string, length, label (and target, where the correct answer is no label), wrong_a and
        wrong_b (runs), the greatest difference first.
    """
    counted = [
        errors.groupby("string").size().rename(f"wrong_{side}")
        for errors, side in zip((a, b), SIDES, strict=True)
    ]
    counts = pd.concat(counted, axis=1).fillna(0).astype(int)
    # Not grouped by labels, which would leave out strings without one.
    strings = pd.concat([a, b]).drop_duplicates("string").set_index("string")
    named = ["length", "label", *strings.columns.intersection(["target"])]
    counts = strings[named].join(counts, how="inner").rename_axis("string").reset_index()
    counts = counts[counts["wrong_a"] != counts["wrong_b"]]
    order = (counts["wrong_a"] - counts["wrong_b"]).abs()
    counts = counts.assign(order=-order).sort_values(["order", "length", "string"])
    return counts.drop(columns="order").reset_index(drop=True)


def _accuracy_by_length(scores: pd.DataFrame) -> pd.DataFrame:
    """A row a seed, a column a length; missing where a seed has no strings of it."""
    counts = scores.groupby(["model_seed", "length"])[["tested", "wrong"]].sum()
    accuracy: pd.DataFrame = ((counts["tested"] - counts["wrong"]) / counts["tested"]).unstack()
    return accuracy
