"""How sure a median over seeds is: percentile bootstrap intervals, many at once."""

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from sweeps.statistics.intervals import CONFIDENCE

RESAMPLES = 2000
"""How often the members of each group are drawn."""

FEWEST = 6
"""Values that a median needs for an interval of 95%. Between the least and the greatest of n lies
the median of what they are drawn from with probability 1 - 2^(1 - n) (David & Nagaraja 2003, 7.1):
of five in 93.75% of all cases, and no bootstrap reaches beyond them."""

MOST_AT_ONCE = 500_000
"""Numbers drawn in memory at a time."""

CHUNK = 256
"""Groups whose resampled medians are in memory at the same time."""


def median_intervals(frame: pd.DataFrame, value: str, by: Sequence[str]) -> pd.DataFrame:
    """The median of each group, with its percentile bootstrap interval (Efron 1979).

    The members of each group are drawn with replacement, as many as there are; the interval holds
    the middle 95% of the medians of those draws. The same values give the same interval.

    Args:
        frame: one row a value; rows without one count in no group.
        value: the column that is summed up.
        by: the columns that make the groups.

    Returns:
        One row a group, sorted: the columns of `by`, n (values), median, low, high. A group of
        fewer than `FEWEST` values has no interval.
    """
    by = list(by)
    known = frame[[*by, value]].dropna().sort_values([*by, value])
    groups = known.groupby(by, observed=True, sort=True)[value]
    summary = groups.agg(["size", "median"]).rename(columns={"size": "n"})
    sizes = summary["n"].to_numpy()
    starts = np.cumsum(sizes) - sizes
    values = known[value].to_numpy(dtype=np.float64)
    interval = np.full((len(summary), 2), np.nan)
    for size in np.unique(sizes[sizes >= FEWEST]):
        alike = np.flatnonzero(sizes == size)
        members = values[starts[alike, None] + np.arange(size)]
        interval[alike] = intervals_of(members)
    summary["low"], summary["high"] = interval.T
    return summary.reset_index()


def intervals_of(members: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Computes `median_intervals` for each row of sorted members: low and high, of shape (row,
    2).
    """
    ends = np.full((len(members), 2), np.nan)
    if members.shape[1] >= FEWEST:
        for start in range(0, len(members), CHUNK):
            chosen = slice(start, start + CHUNK)
            ends[chosen] = _intervals(members[chosen])
    return ends


def _intervals(members: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Low and high of each row of sorted members, of shape (row, 2)."""
    drawn = members[:, _middle_ranks(members.shape[1])].mean(axis=2)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(drawn, [outside, 1 - outside], axis=1)
    return np.stack([low, high], axis=1)


@lru_cache(maxsize=64)
def _middle_ranks(size: int) -> npt.NDArray[np.int64]:
    """The ranks of the two middle members of each draw, of shape (resample, 2).

    Drawn values are as sorted as their ranks, so nothing but these two has to be looked up.
    """
    generator = np.random.default_rng(0)
    middle, parts = [(size - 1) // 2, size // 2], []
    at_once = max(1, MOST_AT_ONCE // size)
    for start in range(0, RESAMPLES, at_once):
        # However they are divided, the same are drawn.
        some = (min(at_once, RESAMPLES - start), size)
        parts.append(np.partition(generator.integers(size, size=some), middle, axis=1)[:, middle])
    return np.concatenate(parts)
