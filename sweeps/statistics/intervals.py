"""Intervals of shares, of their differences, and of medians over seeds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pandas as pd

CONFIDENCE = 0.95

TAIL = (1 - CONFIDENCE) / 2
"""The probability on either side of an interval."""

_Z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


@dataclass(frozen=True)
class ConfidenceInterval:
    """An estimate and the interval that holds the truth at `CONFIDENCE`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PairTable:
    """Counts of pairs of binary outcomes, such as failures of the same seed in two configurations.

    Cells are fractional if several tables are pooled with equal weight.
    """

    both: float
    only_first: float
    only_second: float
    none: float

    @property
    def pairs(self) -> float:
        return self.both + self.only_first + self.only_second + self.none


def wilson(count: float, n: float) -> ConfidenceInterval:
    """A share and its score interval (Wilson 1927); [0, 1] without observations."""
    if n == 0:
        return ConfidenceInterval(math.nan, 0.0, 1.0)
    share, z = count / n, _Z
    # The center is shrunk towards one half, so that the limits stay within 0 and 1.
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # At the ends rounding may put the share itself just outside.
    return ConfidenceInterval(
        share, max(0.0, min(middle - reach, share)), min(1.0, max(middle + reach, share))
    )


def clustered_wilson(counts: npt.ArrayLike, sizes: npt.ArrayLike) -> ConfidenceInterval:
    """The mean of clusters' shares and its score interval, for randomly drawn clusters.

    Members of a cluster may be correlated. The interval is Wilson's for the effective sample size,
    which follows from the variance of the clusters' shares, with one degree of freedom less than
    clusters (Korn & Graubard 1998): no less than the number of clusters, as if all members of each
    were one, and no more than the number of members.

    Args:
        counts: positive members of each cluster.
        sizes: members of each cluster; at least one.
    """
    counts, sizes = np.asarray(counts, dtype=np.float64), np.asarray(sizes, dtype=np.float64)
    clusters = len(sizes)
    if not clusters:
        return wilson(0, 0)
    shares = counts / sizes
    share, effective = float(shares.mean()), float(clusters)
    if clusters > 1 and 0 < share < 1:
        # `scipy.special` loads faster than `scipy.stats`, and a page waits for it.
        from scipy.special import stdtrit

        student = float(stdtrit(clusters - 1, (1 + CONFIDENCE) / 2))
        spread = float(shares.var(ddof=1)) / clusters * (student / _Z) ** 2
        # If no cluster differs from another, members count as independent.
        effective = max(share * (1 - share) / spread, effective) if spread else math.inf
    size = min(effective, float(sizes.sum()))
    return wilson(share * size, size)


def newcombe(first: tuple[float, float], second: tuple[float, float]) -> ConfidenceInterval:
    """The first share less the second, of independent samples (Newcombe 1998a, method 10).

    Args:
        first, second: count and total.
    """
    return _hybrid(wilson(*first), wilson(*second), 0.0)


def paired_newcombe(table: PairTable) -> ConfidenceInterval:
    """The first share less the second, of pairs (Newcombe 1998b, method 10)."""
    n = table.pairs
    first = wilson(table.both + table.only_first, n)
    second = wilson(table.both + table.only_second, n)
    return _hybrid(first, second, _correlation(table))


def mcnemar(table: PairTable) -> float:
    """The exact two-sided p-value of no difference, from the pairs that disagree."""
    # `scipy.stats` would take a second to load, for which no page should wait.
    from scipy.special import bdtr

    # Under the null hypothesis, pairs that disagree are tosses of a fair coin.
    first, second = int(table.only_first), int(table.only_second)
    return min(1.0, 2 * float(bdtr(min(first, second), first + second, 0.5)))


def fisher(first: tuple[int, int], second: tuple[int, int]) -> float:
    """Fisher's exact two-sided p-value of no difference between two samples: the probability of
    all tables with these margins that are no likelier than this one.

    Args:
        first, second: count and total.
    """
    from scipy.special import gammaln

    (count, n), (other, m) = first, second
    both = count + other
    counts = np.arange(max(0, both - m), min(n, both) + 1)
    cells = (counts, n - counts, both - counts, m - both + counts)
    # Probabilities up to a constant, as logarithms: factorials would overflow.
    logs = -sum(gammaln(cell + 1) for cell in cells)
    chances = np.exp(logs - logs.max())
    # Equally likely tables may differ by rounding errors.
    rarer = logs <= logs[count - counts[0]] + 1e-9
    return min(1.0, float(chances[rarer].sum() / chances.sum()))


def _correlation(table: PairTable) -> float:
    """The phi coefficient, with Newcombe's correction where it is positive."""
    a, b, c, d = table.both, table.only_first, table.only_second, table.none
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    product = float(a * d - b * c)
    if product > 0:
        # Newcombe's continuity correction (1998b, method 10).
        product = max(product - table.pairs / 2, 0)
    return product / math.sqrt(margins)


def _hybrid(
    first: ConfidenceInterval, second: ConfidenceInterval, phi: float
) -> ConfidenceInterval:
    """The interval of a difference by square-and-add of the two shares' limits."""
    difference = first.value - second.value
    below = _combine(first.value - first.low, second.high - second.value, phi)
    above = _combine(first.high - first.value, second.value - second.low, phi)
    return ConfidenceInterval(difference, difference - below, difference + above)


def _combine(first: float, second: float, phi: float) -> float:
    # Rounding may put the square just below zero.
    return math.sqrt(max(first**2 - 2 * phi * first * second + second**2, 0.0))


# Medians over seeds: percentile bootstrap intervals, vectorized over groups.

RESAMPLES = 2000
"""The number of bootstrap resamples."""

FEWEST = 6
"""The number of values from which on a median has an interval of 95%. The population's median is
between the least and the greatest of n values with probability 1 - 2^(1 - n) (David & Nagaraja
2003, 7.1): with five in 93.75% of all cases, and no bootstrap reaches beyond them."""

MOST_AT_ONCE = 500_000
"""Drawn numbers in memory at a time."""

CHUNK = 256
"""Groups whose resampled medians are in memory at a time."""


def median_intervals(frame: pd.DataFrame, value: str, by: Sequence[str]) -> pd.DataFrame:
    """The median of each group, with its percentile bootstrap interval (Efron 1979).

    The members of each group are resampled with replacement; the interval holds the middle 95% of
    the resamples' medians, and is reproducible.

    Args:
        frame: one row a value; missing values are ignored.
        value: the column of values.
        by: the grouping columns.

    Returns:
        One row a group, sorted: the columns of `by`, n (values), median, low, high. Groups of fewer
        than `FEWEST` values have no interval.
    """
    by = list(by)
    known = frame[[*by, value]].dropna().sort_values([*by, value])
    groups = known.groupby(by, observed=True, sort=True)[value]
    summary = groups.agg(["size", "median"]).rename(columns={"size": "n"})
    sizes = summary["n"].to_numpy()
    starts = np.cumsum(sizes) - sizes
    values = known[value].to_numpy(dtype=np.float64)
    interval = np.full((len(summary), 2), np.nan)
    # Groups of one size share their ranks, and are computed together.
    for size in np.unique(sizes[sizes >= FEWEST]):
        alike = np.flatnonzero(sizes == size)
        for start in range(0, len(alike), CHUNK):
            some = alike[start : start + CHUNK]
            members = values[starts[some, None] + np.arange(size)]
            drawn = members[:, _middle_ranks(int(size))].mean(axis=2)
            interval[some] = np.quantile(drawn, [TAIL, 1 - TAIL], axis=1).T
    summary["low"], summary["high"] = interval.T
    return summary.reset_index()


def selection_effect(values: npt.NDArray[np.float64]) -> ConfidenceInterval:
    """The excess of the best seed over the mean, which is the gain of selecting it, with its
    percentile bootstrap interval (Efron 1979).

    No resample has a better seed than these, so the upper limit is rather too low. With fewer than
    `FEWEST` values the limits are NaN.
    """
    gap = float(values.max() - values.mean())
    if len(values) < FEWEST:
        return ConfidenceInterval(gap, math.nan, math.nan)
    # A fixed seed makes the interval reproducible.
    ranks = np.random.default_rng(0).integers(len(values), size=(RESAMPLES, len(values)))
    drawn = values[ranks]
    low, high = np.quantile(drawn.max(axis=1) - drawn.mean(axis=1), [TAIL, 1 - TAIL])
    return ConfidenceInterval(gap, float(low), float(high))


@lru_cache(maxsize=64)
def _middle_ranks(size: int) -> npt.NDArray[np.int64]:
    """The ranks of the two middle members of each resample, of shape (resample, 2).

    Values are in the order of their ranks, so that the median is determined by these two.
    """
    generator = np.random.default_rng(0)
    middle, parts = [(size - 1) // 2, size // 2], []
    at_once = max(1, MOST_AT_ONCE // size)
    for start in range(0, RESAMPLES, at_once):
        # The draws do not depend on the size of the chunks.
        some = (min(at_once, RESAMPLES - start), size)
        parts.append(np.partition(generator.integers(size, size=some), middle, axis=1)[:, middle])
    return np.concatenate(parts)
