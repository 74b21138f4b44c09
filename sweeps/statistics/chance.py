"""Exact tests of whether the seeds of two configurations differ, with matching intervals.

A test and its interval are one procedure, so that neither contradicts the other: 0 is in the
interval unless the test rules it out (Fay 2010, *R Journal* 2(1): 53).

Mean accuracies are compared by permutation (Fisher 1935): under the null hypothesis, the members of
a pair are exchangeable, or all seeds are. Exchanging a set of seeds increases the difference if the
set's own mean difference is below 0, so the test counts such sets; under a hypothetical shift, the
sets whose mean difference is below the shift. The limits of the interval are therefore two order
statistics of these means (Hartigan 1969, *JASA* 64: 1303). The two-sided p-value is twice the
smaller one-sided p-value, each of which matches one limit. For samples of unequal sizes it is not
the share of exchanges with as great a difference in either direction: there may be fewer in the
other direction, or none. Rank tests, such as Mann and Whitney's, have such an interval only without
ties, and many models are right on every string. Shares are compared by McNemar's exact test of
pairs, else by Fisher's.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from sweeps.statistics.differences import Floats, Outcomes, table_of, values_of
from sweeps.statistics.intervals import (
    FEWEST,
    TAIL,
    ConfidenceInterval,
    PairTable,
    fisher,
    mcnemar,
    newcombe,
    paired_newcombe,
)

Ints = npt.NDArray[np.int64]
Sizes = tuple[int, int]

UNIT = 1e-9
"""The difference of accuracies below which they are equal: rounding errors do not count."""

EXACT = 200_000
"""The number of permutations up to which all are enumerated; beyond, `DRAWS` are drawn."""

DRAWS = 9_999
AT_ONCE = 1_000_000
"""Numbers of drawn permutations in memory at a time."""

POWER = 0.8
"""The share of studies that decide with the planned number of seeds."""

STUDIES = 400
"""The number of studies that are simulated to plan a number of seeds."""

MOST_SEEDS = 1_000
"""The largest planned number of seeds of each configuration."""

DOUBLED = ", two-sided by doubling"
"""The two-sided form of a permutation test, which need not be symmetric, in its name."""

NONE = ConfidenceInterval(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Difference:
    """The difference of two configurations, the first less the second, with its test."""

    method: str
    """The name of the test."""
    paired: bool
    seeds: tuple[int, int]
    """The compared seeds of each; both are the number of pairs in a paired test."""
    values: tuple[float, float]
    """Their mean accuracies, or shares; NaN without seeds."""
    interval: ConfidenceInterval
    """The interval of the difference; limits are NaN with too few seeds, and all is if one of the
    two has no seed."""
    p_value: float | None
    """The two-sided p-value; for means twice the smaller one-sided one, at most 1. None if one of
    the two has no seed."""
    least_p: float
    """The smallest possible p-value with so many seeds."""
    enough: int
    """The smallest number of seeds of each, or pairs, that can decide."""
    is_nothing: bool = False
    """True if nothing that was compared differs."""
    counts: tuple[tuple[int, int], tuple[int, int]] | None = None
    """Count and total of all seeds for each share; None for means."""
    table: PairTable | None = None
    """The table of pairs, where shares are compared."""
    to_decide: int | None = None
    """The number of seeds of each, or pairs, with which `POWER` of studies would decide; None where
    these decide, or more than `MOST_SEEDS` are needed."""

    @property
    def is_decided(self) -> bool:
        """True if the difference is significant."""
        return self.p_value is not None and self.p_value / 2 <= TAIL

    @property
    def can_decide(self) -> bool:
        """True if some outcome of so many seeds would be significant."""
        return self.least_p / 2 <= TAIL


# Accuracies.


def compare_values(a: Outcomes, b: Outcomes, *, paired: bool, plan: bool = True) -> Difference:
    """Compares the mean accuracies of the seeds of two configurations.

    One-sided p-values are the shares of exchanges with a difference that is at least as great, or
    at most as great; the p-value is twice the smaller one.

    Args:
        a, b: the accuracy of each seed; NaN is ignored.
        paired: True if equal seeds make pairs, where both share enough of them.
        plan: True to simulate how many seeds would decide, which takes up to a second.
    """
    first, second, paired = _align(a, b, paired)
    sizes = (len(first), len(second))
    name = "paired permutation test" if paired else "permutation test"
    least, enough = _reach(_least_of_values, paired, sizes)
    found = Difference(name, paired, sizes, (np.nan, np.nan), NONE, None, least, enough)
    if not all(sizes):
        return found
    values = values_of(first), values_of(second)
    apart = (values[0] - values[1], None) if paired else values
    number = _permutations(paired, sizes)
    is_exact = number <= EXACT
    # The sample itself is one of the draws, so that no p-value is 0 (Phipson & Smyth 2010).
    number = number if is_exact else DRAWS + 1
    # In units of UNIT, so that mathematically equal means are equal.
    means = np.sort(np.rint((_every if is_exact else _draw)(*apart) / UNIT))
    # Exchanges of nothing, including the sample itself, count for either side.
    same = number - len(means)
    fewer = min(np.searchsorted(means, 0, "right"), len(means) - np.searchsorted(means, 0, "left"))
    # The limits are the outermost means that the test at this level does not rule out.
    place = math.floor(TAIL * number) - same
    low, high = (means[place], means[-1 - place]) if place >= 0 else (np.nan, np.nan)
    difference = values[0].mean() - values[1].mean()
    # Rounding must not push the difference out of its own interval.
    ends = np.minimum(low * UNIT, difference), np.maximum(high * UNIT, difference)
    found = replace(
        found,
        method=(f"exact {name}" if is_exact else f"{name}, {DRAWS:,} draws") + DOUBLED,
        values=(float(values[0].mean()), float(values[1].mean())),
        interval=ConfidenceInterval(*map(float, (difference, *ends))),
        p_value=min(1.0, 2 * (same + int(fewer)) / number),
        is_nothing=bool((means == 0).all()),
    )
    return _with_seeds_to_decide(found, partial(_p_values_of_values, *apart)) if plan else found


def _permutations(paired: bool, sizes: Sizes) -> int:
    return 2 ** sizes[0] if paired else math.comb(sum(sizes), sizes[0])


def _least_of_values(paired: bool, sizes: Sizes) -> float:
    """The p-value if every seed of the one is above every one of the other."""
    number = _permutations(paired, sizes)
    return min(1.0, 2 / (number if number <= EXACT else DRAWS + 1))


def _sums(values: Floats, most: int) -> tuple[Floats, Ints]:
    """The sums of all subsets of at most `most` values, and their sizes; the empty set first."""
    sums, sizes = np.zeros(1), np.zeros(1, dtype=np.int64)
    for value in values:
        grow = sizes < most
        sums = np.concatenate([sums, sums[grow] + value])
        sizes = np.concatenate([sizes, sizes[grow] + 1])
    return sums, sizes


def _every(a: Floats, b: Floats | None) -> Floats:
    """The mean difference of every set of pairs; for two samples, of every set of seeds of the
    first with a set of equal size of the second.

    Args:
        a: the first sample, or the differences of pairs.
        b: the second sample.
    """
    most = len(a) if b is None else min(len(a), len(b))
    first, sizes = _sums(a, most)
    if b is None:
        # Without the empty set.
        means: Floats = first[1:] / sizes[1:]
        return means
    second, others = _sums(b, most)
    return np.concatenate(
        [
            np.subtract.outer(first[sizes == size], second[others == size]).ravel() / size
            for size in range(1, most + 1)
        ]
    )


def _draw(a: Floats, b: Floats | None) -> Floats:
    """The mean differences of randomly drawn non-empty sets of seeds.

    Args:
        a, b: as in `_every`.
    """
    n, signed = len(a), a if b is None else np.concatenate([a, -b])
    seeds = len(signed)
    # Seeded by the sizes, so that the p-value is reproducible.
    rng = np.random.default_rng(n if b is None else [n, seeds])
    means = []
    step = max(1, AT_ONCE // seeds)
    for start in range(0, DRAWS, step):
        size = (min(step, DRAWS - start), seeds)
        if b is None:
            moved = rng.integers(2, size=size, dtype=np.int8)
        else:
            first = np.zeros(size, dtype=np.int8)
            # The n smallest of random numbers are a random subset, for all draws together.
            chosen = np.argpartition(rng.random(size), n - 1, axis=1)[:, :n]
            np.put_along_axis(first, chosen, 1, axis=1)
            moved = first ^ (np.arange(seeds) < n)
        sizes = moved[:, :n].sum(axis=1, dtype=np.int64)
        means.append(((moved @ signed) / np.maximum(sizes, 1))[sizes > 0])
    return np.concatenate(means)


def _p_values_of_values(
    a: Floats, b: Floats | None, seeds: int, rng: np.random.Generator
) -> Floats:
    """Approximate p-values of simulated studies with so many seeds of each, drawn from these.

    Args:
        a: the first sample, or the differences of pairs.
        b: the second sample.
    """
    from scipy import special

    drawn = [
        rng.multinomial(seeds, np.full(len(own), 1 / len(own)), size=STUDIES)
        for own in (a, b)
        if own is not None
    ]
    apart, spread = drawn[0] @ a, drawn[0] @ a**2
    if b is not None:
        both = apart + drawn[1] @ b
        squares = spread + drawn[1] @ b**2 - both**2 / (2 * seeds)
        apart, spread = apart - drawn[1] @ b, squares * 2 * seeds / (2 * seeds - 1)
    # The normal approximation suffices: it only plans how many seeds to train.
    normal = 2 * special.ndtr(-np.abs(apart) / np.sqrt(np.maximum(spread, UNIT**2)))
    p_values: Floats = np.where(np.abs(apart) < UNIT, 1.0, normal)
    return p_values


# Shares.


def compare_shares(a: Outcomes, b: Outcomes, *, paired: bool, plan: bool = True) -> Difference:
    """Compares the shares of seeds of two configurations with an outcome.

    Args:
        a, b: 0 or 1 for each seed that counts.
        paired: True if equal seeds make pairs, where both share enough of them.
        plan: True to simulate how many seeds would decide, which takes up to a second.
    """
    first, second, paired = _align(a, b, paired)
    counts = _counts(first), _counts(second)
    sizes = (counts[0][1], counts[1][1])
    table = table_of(first, second) if paired else None
    least, enough = _reach(_least_of_shares, paired, sizes)
    shares = _share(counts[0]), _share(counts[1])
    name, every = "exact McNemar" if paired else "Fisher's exact test", (_counts(a), _counts(b))
    found = Difference(name, paired, sizes, shares, NONE, None, least, enough, counts=every)
    if not all(sizes):
        return found
    p_value = mcnemar(table) if table else fisher(*counts)
    interval = paired_newcombe(table) if table else newcombe(*counts)
    unlike = table.only_first + table.only_second if table else abs(interval.value)
    interval = agreeing(interval, p_value)
    found = replace(found, interval=interval, p_value=p_value, is_nothing=unlike == 0, table=table)
    if not plan:
        return found
    return _with_seeds_to_decide(found, partial(_p_values_of_shares, shares, table))


def _counts(outcomes: Outcomes) -> tuple[int, int]:
    return int(sum(outcomes.values())), len(outcomes)


def _share(counts: tuple[int, int]) -> float:
    return counts[0] / counts[1] if counts[1] else np.nan


def agreeing(interval: ConfidenceInterval, p_value: float) -> ConfidenceInterval:
    """An interval of a difference of shares, extended to 0 unless the test rules 0 out.

    Newcombe's may exclude 0 where an exact test of few seeds does not; extended, it covers no less.
    """
    if p_value / 2 <= TAIL:
        return interval
    low, high = min(interval.low, 0.0), max(interval.high, 0.0)
    return ConfidenceInterval(interval.value, low, high)


def _least_of_shares(paired: bool, sizes: Sizes) -> float:
    """The p-value if all seeds of the one have the outcome, and none of the other."""
    n, m = sizes
    return mcnemar(PairTable(0, n, 0, 0)) if paired else fisher((n, n), (0, m))


def _p_values_of_shares(
    shares: tuple[float, float], table: PairTable | None, seeds: int, rng: np.random.Generator
) -> Floats:
    """The p-values of simulated studies with so many seeds of each, drawn from these shares."""
    from scipy import stats

    if table is not None:
        cells = np.array([table.both, table.only_first, table.only_second, table.none])
        drawn = rng.multinomial(seeds, cells / table.pairs, size=STUDIES)[:, 1:3]
        # McNemar's test of all studies together.
        below = stats.binom.cdf(drawn.min(axis=1), drawn.sum(axis=1), 0.5)
    else:
        drawn = np.stack([rng.binomial(seeds, share, size=STUDIES) for share in shares], axis=1)
        # One tail of Fisher's test, doubled below: close enough for planning.
        below = stats.hypergeom.cdf(drawn.min(axis=1), 2 * seeds, drawn.sum(axis=1), seeds)
    p_values: Floats = np.minimum(1.0, 2 * below)
    return p_values


def holm(p_values: Sequence[float]) -> Floats:
    """P-values with Holm's correction for multiple tests (1979): the smallest times their number,
    the next times one less, and so on, monotone and at most 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    times = np.arange(len(p), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * times), 1.0)
    return corrected


# Shared by both comparisons.


def number_of_pairs(a: Set[Any], b: Set[Any]) -> int:
    """Number of pairs of two sets of seeds: 0 if few are common, and pairing would drop others."""
    common = len(a & b)
    return common if a == b or common >= FEWEST else 0


def _align(a: Outcomes, b: Outcomes, paired: bool) -> tuple[Outcomes, Outcomes, bool]:
    """The outcomes of both that are compared, and True if they are pairs."""
    # NaN does not equal itself.
    first, second = ({x: y for x, y in outcomes.items() if y == y} for outcomes in (a, b))
    if not (paired and number_of_pairs(first.keys(), second.keys())):
        return first, second, False
    both = [x for x in first if x in second]
    return {x: first[x] for x in both}, {x: second[x] for x in both}, True


@lru_cache(maxsize=1024)
def _reach(least: Callable[[bool, Sizes], float], paired: bool, sizes: Sizes) -> tuple[float, int]:
    """The least p-value with so many seeds, and the number with which it is significant."""
    return least(paired, sizes), next(n for n in count(1) if least(paired, (n, n)) / 2 <= TAIL)


def _with_seeds_to_decide(
    found: Difference, p_values: Callable[[int, np.random.Generator], Floats]
) -> Difference:
    if found.is_decided or found.is_nothing:
        return found

    def decides(seeds: int) -> bool:
        drawn = p_values(seeds, np.random.default_rng(seeds))
        return bool((drawn / 2 <= TAIL).mean() >= POWER)

    few = many = max(found.enough, min(found.seeds) + 1)
    # Doubled first, then bisected, since each step simulates `STUDIES` studies.
    while many <= MOST_SEEDS and not decides(many):
        few, many = many + 1, 2 * many
    if many > MOST_SEEDS:
        return found
    sizes = range(few, many)
    return replace(found, to_decide=few + bisect_left(sizes, True, key=decides))
