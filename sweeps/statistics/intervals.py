"""How sure shares and their differences are: Wilson, Newcombe, exact McNemar."""

import math
from dataclasses import dataclass
from statistics import NormalDist

CONFIDENCE = 0.95


@dataclass(frozen=True)
class Interval:
    """An estimate and the interval that holds the truth at `CONFIDENCE`."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Table:
    """Pairs of outcomes, such as whether the same seed fails in two configurations.

    Cells are counts, or sums over several tables of equal weight.
    """

    both: float
    only_first: float
    only_second: float
    none: float

    @property
    def pairs(self) -> float:
        return self.both + self.only_first + self.only_second + self.none


def wilson(count: float, n: float) -> Interval:
    """A share and its score interval (Wilson 1927); of no observations anything is possible."""
    if n == 0:
        return Interval(math.nan, 0.0, 1.0)
    share = count / n
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # At the ends rounding may leave the share itself just outside.
    return Interval(
        share, max(0.0, min(middle - reach, share)), min(1.0, max(middle + reach, share))
    )


def newcombe(first: tuple[float, float], second: tuple[float, float]) -> Interval:
    """The first share less the second, of independent samples (Newcombe 1998a, method 10).

    Args:
        first: how many, of how many.
        second: likewise.
    """
    return _hybrid(wilson(*first), wilson(*second), 0.0)


def paired_newcombe(table: Table) -> Interval:
    """The first share less the second, of pairs (Newcombe 1998b, method 10)."""
    n = table.pairs
    first = wilson(table.both + table.only_first, n)
    second = wilson(table.both + table.only_second, n)
    return _hybrid(first, second, _correlation(table))


def mcnemar(table: Table) -> float:
    """The exact two-sided p-value of no difference, from the pairs that disagree."""
    unlike = table.only_first + table.only_second
    if unlike == 0:
        return 1.0
    # Imported where it is used: it takes a second that no page should wait for.
    from scipy import stats

    return float(stats.binomtest(int(table.only_first), int(unlike), 0.5).pvalue)


def _correlation(table: Table) -> float:
    """Phi, moved towards zero by half the pairs where it is positive."""
    a, b, c, d = table.both, table.only_first, table.only_second, table.none
    margins = (a + b) * (c + d) * (a + c) * (b + d)
    if margins == 0:
        return 0.0
    product = float(a * d - b * c)
    if product > 0:
        product = max(product - table.pairs / 2, 0)
    return product / math.sqrt(margins)


def _hybrid(first: Interval, second: Interval, phi: float) -> Interval:
    """Square-and-add of the two shares' own limits."""
    difference = first.value - second.value
    below = _added(first.value - first.low, second.high - second.value, phi)
    above = _added(first.high - first.value, second.value - second.low, phi)
    return Interval(difference, difference - below, difference + above)


def _added(first: float, second: float, phi: float) -> float:
    return math.sqrt(max(first**2 - 2 * phi * first * second + second**2, 0.0))
