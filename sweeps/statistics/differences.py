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
    first, second = values_of(a) > 0, values_of(b) > 0
    return PairTable(
        both=int((first & second).sum()),
        only_first=int((first & ~second).sum()),
        only_second=int((~first & second).sum()),
        none=int((~first & ~second).sum()),
    )


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
    sides = [_accuracy_by_length(scores) for scores in (a, b)]
    if paired:
        pairs = sides[0].merge(sides[1], on=["model_seed", "length"], suffixes=("_a", "_b"))
        pairs["difference"] = pairs["accuracy_a"] - pairs["accuracy_b"]
        groups = pairs.groupby("length", sort=True)
        means = groups[["accuracy_a", "accuracy_b", "difference"]].mean()
        means.insert(0, "seeds", groups.size())
        error = groups["difference"].std() / np.sqrt(means["seeds"])
        freedom = means["seeds"] - 1
    else:
        first, second = (
            side.groupby("length", sort=True)["accuracy"].agg(["size", "mean", "var"])
            for side in sides
        )
        both = first.merge(second, left_index=True, right_index=True, suffixes=("_a", "_b"))
        means = pd.DataFrame(
            {
                "seeds": both[["size_a", "size_b"]].min(axis=1),
                "accuracy_a": both["mean_a"],
                "accuracy_b": both["mean_b"],
                "difference": both["mean_a"] - both["mean_b"],
            }
        )
        a_part, b_part = (both[f"var_{x}"] / both[f"size_{x}"] for x in SIDES)
        error = np.sqrt(a_part + b_part)
        # Welch (1947); undefined where neither varies.
        parts = a_part**2 / (both["size_a"] - 1) + b_part**2 / (both["size_b"] - 1)
        freedom = (error**4 / parts).where(parts > 0, 1.0)
    # Imported where it is used: it takes a second to load.
    from scipy import stats

    # Fewer than one degree of freedom occur only with too few seeds, whose interval goes next.
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(freedom, 1)) * error
    reach = reach.where(means["seeds"] >= FEWEST_OF_A_MEAN)
    return means.assign(
        low=(means["difference"] - reach).clip(lower=-1.0),
        high=(means["difference"] + reach).clip(upper=1.0),
    ).reset_index()


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
    counts = scores.groupby(["model_seed", "length"])[["tested", "wrong"]].sum()
    right = (counts["tested"] - counts["wrong"]) / counts["tested"]
    return right.rename("accuracy").reset_index()
