"""Two configurations compared seed by seed: who fails, by how much, at which lengths."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from sweeps.statistics.differences import Outcomes, failing_difference, median_difference, table_of
from sweeps.statistics.intervals import CONFIDENCE, Interval, Table, mcnemar, wilson

SIDES = ("a", "b")

FEWEST_OF_A_MEAN = 3
"""Seeds that a mean needs for an interval. Two have one degree of freedom, with which Student's t
reaches nine times their standard deviation: mostly beyond all that a difference of shares can be.
"""


@dataclass(frozen=True)
class Comparison:
    """What the finished runs of two configurations say about their difference, a less b."""

    table: Table
    """Counts of the seeds that both have: in how many both fail, only a, only b, and none."""
    failing: tuple[Interval, Interval]
    """Each one's share of failing seeds, over all of its own."""
    runs: tuple[int, int]
    difference: Interval
    """The difference of the failing shares: over pairs where there are any, else of independent
    samples."""
    p_value: float | None
    """Exact McNemar; None without pairs."""
    medians: tuple[float, float]
    """Medians of the accuracy over the seeds that are compared, in [0, 1]."""
    median_difference: Interval
    """NaN as limits where too few seeds are compared for an interval."""
    paired: bool

    @property
    def is_same(self) -> bool:
        """Whether nothing that was measured differs."""
        one_sided = self.table.only_first + self.table.only_second
        return self.paired and one_sided == 0 and self.median_difference.value == 0


def compare(a: pd.DataFrame, b: pd.DataFrame) -> Comparison:
    """Compares the finished runs of two configurations.

    Args:
        a: one row a finished run of the first: model_seed, accuracy in [0, 1], errors.
        b: likewise of the second. Each has at least one row.
    """
    common = set(a["model_seed"]) & set(b["model_seed"])
    paired = bool(common)
    failing = [runs.assign(failing=runs["errors"] > 0) for runs in (a, b)]
    kept = [runs[runs["model_seed"].isin(common)] if paired else runs for runs in failing]
    fails = [Outcomes.of(runs, "failing") for runs in kept]
    accuracies = [Outcomes.of(runs, "accuracy") for runs in kept]
    table = table_of(*fails) if paired else Table(0, 0, 0, 0)
    shares = [wilson(int(runs["failing"].sum()), len(runs)) for runs in failing]
    return Comparison(
        table=table,
        failing=(shares[0], shares[1]),
        runs=(len(a), len(b)),
        difference=failing_difference([fails[0]], [fails[1]], paired=paired),
        p_value=mcnemar(table) if paired else None,
        medians=(accuracies[0].median, accuracies[1].median),
        median_difference=median_difference([accuracies[0]], [accuracies[1]]),
        paired=paired,
    )


def by_length(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """The accuracy of both at every length, and their difference over the seeds that both have.

    Args:
        a: one row a run and length of the first: model_seed, length, tested, wrong (strings).
        b: likewise of the second.

    Returns:
        One row a length of which both have strings: length, seeds,
        accuracy_a and accuracy_b (means over seeds, in [0, 1]), difference, low and high (the
        interval of the mean difference by Student's t over seeds, within [-1, 1] as a difference
        of shares is; missing with fewer than `FEWEST_OF_A_MEAN` seeds).
    """
    pairs = _accuracy_by_length(a).merge(
        _accuracy_by_length(b), on=["model_seed", "length"], suffixes=("_a", "_b")
    )
    pairs["difference"] = pairs["accuracy_a"] - pairs["accuracy_b"]
    groups = pairs.groupby("length", sort=True)
    means = groups[["accuracy_a", "accuracy_b", "difference"]].mean()
    means.insert(0, "seeds", groups.size())
    from scipy import stats

    spread = groups["difference"].std() / np.sqrt(means["seeds"])
    reach = stats.t.ppf((1 + CONFIDENCE) / 2, np.maximum(means["seeds"] - 1, 1)) * spread
    reach = reach.where(means["seeds"] >= FEWEST_OF_A_MEAN)
    return means.assign(
        low=(means["difference"] - reach).clip(lower=-1.0),
        high=(means["difference"] + reach).clip(upper=1.0),
    ).reset_index()


def string_differences(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    """The strings that the two do not get wrong equally often.

    Args:
        a: one row a run and misclassified string of the first: string, length, label.
        b: likewise of the second, tested on the same strings.

    Returns:
        string, length, label (and target, where what is right is no label), wrong_a and wrong_b
        (runs), the greatest difference first.
    """
    counted = [
        errors.groupby("string").size().rename(f"wrong_{side}")
        for errors, side in zip((a, b), SIDES, strict=True)
    ]
    counts = pd.concat(counted, axis=1).fillna(0).astype(int)
    # A group by labels would leave out the strings that have none.
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
