"""Whether seeds of two configurations differ by more than chance: exact tests and their intervals.

A test and the interval beside it are one procedure, so that neither contradicts the other: 0 is in
the interval unless the test rules it out (Fay 2010, *R Journal* 2(1): 53).

Mean accuracies are compared by permutation (Fisher 1935): where nothing differs, each pair could as
well be the other way around, or each seed be of either. Exchanging a set of seeds makes the
difference greater where the set's own mean difference is below 0, so the test counts the sets whose
is; moved by a shift, those whose mean difference is below the shift. The interval therefore ends at
two of these means in their order (Hartigan 1969, *JASA* 64: 1303). The two-sided p-value is twice
the smaller of both one-sided ones, which each bound of the interval goes with. Of samples of
unequal sizes that is not the share of exchanges that give as great a difference in either
direction: those of the other direction may be fewer, or none. Ranks, as Mann and Whitney's,
have such an interval only where no values are equal, and many models are right on every string.
Shares are compared by McNemar's exact test of pairs, else by Fisher's.
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
"""Accuracies that differ by less are equal: what double precision leaves of fractions is no
difference."""

EXACT = 200_000
"""So many permutations are all looked at; of more, `DRAWS`."""

DRAWS = 9_999
AT_ONCE = 1_000_000
"""Numbers of drawn permutations in memory at a time."""

POWER = 0.8
"""In this share of studies so many seeds decide."""

STUDIES = 400
"""How many are drawn to see how many seeds would decide."""

MOST_SEEDS = 1_000
"""More seeds of each are not thought of."""

DOUBLED = ", two-sided by doubling"
"""How a permutation test, which need not be symmetric, is made two-sided."""

NONE = ConfidenceInterval(np.nan, np.nan, np.nan)


@dataclass(frozen=True)
class Difference:
    """What the seeds of two configurations say about one question, the first less the second."""

    method: str
    """The test."""
    paired: bool
    seeds: tuple[int, int]
    """Seeds of each that are compared; of pairs both are their number."""
    values: tuple[float, float]
    """Mean accuracies, or shares, of these; NaN of none."""
    interval: ConfidenceInterval
    """Their difference; without limits where so few seeds have none, and NaN where one of the two
    has no seed."""
    p_value: float | None
    """Two-sided; of means twice the smaller of the two one-sided ones, at most 1. None where one of
    the two has no seed."""
    least_p: float
    """No outcome of so many seeds has a smaller one."""
    enough: int
    """So many seeds of each, or pairs, can have one that decides."""
    is_nothing: bool = False
    """Whether nothing that was compared differs."""
    counts: tuple[tuple[int, int], tuple[int, int]] | None = None
    """How many of its own seeds each share counts, and of how many; None of means."""
    table: PairTable | None = None
    """The pairs, where shares are compared."""
    to_decide: int | None = None
    """Seeds of each, or pairs, with which `POWER` of studies decide that draw theirs from these;
    None where these do, or more than `MOST_SEEDS` are needed."""

    @property
    def is_decided(self) -> bool:
        """Whether there is more than chance alone explains."""
        return self.p_value is not None and self.p_value / 2 <= TAIL

    @property
    def can_decide(self) -> bool:
        """Whether so many seeds can show anything at all."""
        return self.least_p / 2 <= TAIL


# Accuracies.


def compare_values(a: Outcomes, b: Outcomes, *, paired: bool, plan: bool = True) -> Difference:
    """Compares the mean accuracies of the seeds of two configurations.

    One-sided p-values are the shares of exchanges with a difference that is at least as great, or
    at most as great; the p-value is twice the smaller one.

    Args:
        a: of each seed of the first, its accuracy; one that is NaN does not count.
        paired: whether the same seed makes a pair, where both have enough of the same.
        plan: whether to simulate how many seeds would decide, which takes up to a second.
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
    # In units of UNIT, so that means that are equal on paper are equal here.
    means = np.sort(np.rint((_every if is_exact else _draw)(*apart) / UNIT))
    # Those that exchange nothing, the sample's own among them, speak for either side.
    same = number - len(means)
    fewer = min(np.searchsorted(means, 0, "right"), len(means) - np.searchsorted(means, 0, "left"))
    # The interval ends at the outermost mean that the test at this level does not rule out.
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
    """The p-value where every seed of the one is above every one of the other."""
    number = _permutations(paired, sizes)
    return min(1.0, 2 / (number if number <= EXACT else DRAWS + 1))


def _sums(values: Floats, most: int) -> tuple[Floats, Ints]:
    """The sums of all subsets of at most so many values, and their sizes; first that of none."""
    sums, sizes = np.zeros(1), np.zeros(1, dtype=np.int64)
    for value in values:
        grow = sizes < most
        sums = np.concatenate([sums, sums[grow] + value])
        sizes = np.concatenate([sizes, sizes[grow] + 1])
    return sums, sizes


def _every(a: Floats, b: Floats | None) -> Floats:
    """The mean difference of every set of pairs; of samples of every set of seeds of the first with
    one of as many of the second.

    Args:
        a: the first sample, or the differences of pairs.
        b: the second sample.
    """
    most = len(a) if b is None else min(len(a), len(b))
    first, sizes = _sums(a, most)
    if b is None:
        # Without the empty set, which exchanges nothing.
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
    """The mean differences of sets of seeds that are drawn to be exchanged, without those of none.

    Args:
        a: as in `_every`.
    """
    n, signed = len(a), a if b is None else np.concatenate([a, -b])
    seeds = len(signed)
    # Seeded by the sizes, so that the same seeds have the same p-value each time.
    rng = np.random.default_rng(n if b is None else [n, seeds])
    means = []
    step = max(1, AT_ONCE // seeds)
    for start in range(0, DRAWS, step):
        size = (min(step, DRAWS - start), seeds)
        if b is None:
            moved = rng.integers(2, size=size, dtype=np.int8)
        else:
            first = np.zeros(size, dtype=np.int8)
            # The n smallest of random numbers are a random subset, of all draws at once.
            chosen = np.argpartition(rng.random(size), n - 1, axis=1)[:, :n]
            np.put_along_axis(first, chosen, 1, axis=1)
            moved = first ^ (np.arange(seeds) < n)
        sizes = moved[:, :n].sum(axis=1, dtype=np.int64)
        means.append(((moved @ signed) / np.maximum(sizes, 1))[sizes > 0])
    return np.concatenate(means)


def _p_values_of_values(
    a: Floats, b: Floats | None, seeds: int, rng: np.random.Generator
) -> Floats:
    """The p-values, about, of studies of so many seeds of each drawn from these.

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
    """Compares which seeds of two configurations have come to something.

    Args:
        a: of each seed of the first that counts, whether it has (0 or 1).
        paired: whether the same seed makes a pair, where both have enough of the same.
        plan: whether to simulate how many seeds would decide, which takes up to a second.
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
    """An interval of a difference of shares, which 0 is in unless the test rules it out.

    Newcombe's may do so where an exact test of as few does not; holding more, it covers no less.
    """
    if p_value / 2 <= TAIL:
        return interval
    low, high = min(interval.low, 0.0), max(interval.high, 0.0)
    return ConfidenceInterval(interval.value, low, high)


def _least_of_shares(paired: bool, sizes: Sizes) -> float:
    """The p-value where all of the one have, and none of the other."""
    if not all(sizes):
        return 1.0
    n, m = sizes
    return mcnemar(PairTable(0, n, 0, 0)) if paired else fisher((n, n), (0, m))


def _p_values_of_shares(
    shares: tuple[float, float], table: PairTable | None, seeds: int, rng: np.random.Generator
) -> Floats:
    """The p-values of studies of so many seeds of each, drawn from these."""
    from scipy import stats

    if table is not None:
        cells = np.array([table.both, table.only_first, table.only_second, table.none])
        drawn = rng.multinomial(seeds, cells / table.pairs, size=STUDIES)[:, 1:3]
        # McNemar's test of all studies at once.
        below = stats.binom.cdf(drawn.min(axis=1), drawn.sum(axis=1), 0.5)
    else:
        drawn = np.stack([rng.binomial(seeds, share, size=STUDIES) for share in shares], axis=1)
        # One tail of Fisher's test, doubled below: near enough to plan by.
        below = stats.hypergeom.cdf(drawn.min(axis=1), 2 * seeds, drawn.sum(axis=1), seeds)
    p_values: Floats = np.minimum(1.0, 2 * below)
    return p_values


def holm(p_values: Sequence[float]) -> Floats:
    """Holm's correction (1979) for all that is tested: the smallest times their number, the next
    times one less, none below a smaller one's, and none above 1.
    """
    p = np.asarray(p_values, dtype=np.float64)
    order = np.argsort(p, kind="stable")
    corrected = np.empty_like(p)
    times = np.arange(len(p), 0, -1)
    corrected[order] = np.minimum(np.maximum.accumulate(p[order] * times), 1.0)
    return corrected


# What both have.


def number_of_pairs(a: Set[Any], b: Set[Any]) -> int:
    """How many pairs two sets of seeds make: none where few are in both, and others would be left
    out for them.
    """
    common = len(a & b)
    return common if a == b or common >= FEWEST else 0


def _align(a: Outcomes, b: Outcomes, paired: bool) -> tuple[Outcomes, Outcomes, bool]:
    """The seeds of both that are compared, and whether they are pairs."""
    # NaN does not equal itself.
    first, second = ({x: y for x, y in outcomes.items() if y == y} for outcomes in (a, b))
    if not (paired and number_of_pairs(first.keys(), second.keys())):
        return first, second, False
    both = [x for x in first if x in second]
    return {x: first[x] for x in both}, {x: second[x] for x in both}, True


@lru_cache(maxsize=1024)
def _reach(least: Callable[[bool, Sizes], float], paired: bool, sizes: Sizes) -> tuple[float, int]:
    """The least p-value of so many seeds, and of how many it is small enough."""
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
    # Doubled first, then bisected, since each look simulates `STUDIES` studies.
    while many <= MOST_SEEDS and not decides(many):
        few, many = many + 1, 2 * many
    if many > MOST_SEEDS:
        return found
    sizes = range(few, many)
    return replace(found, to_decide=few + bisect_left(sizes, True, key=decides))
