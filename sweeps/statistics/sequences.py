"""Confidence sequences: intervals that are valid at any stopping time.

An interval for a fixed number of seeds errs more often than stated if one looks after every seed
and stops at will. A *confidence sequence* covers the truth at all times simultaneously: whatever
the reason to stop was, its interval covers with at least `CONFIDENCE`. These are based on Robbins'
mixture (1970, *Ann. Math. Statist.* 41: 1397), for a share under Jeffreys' prior. With k of n
seeds, the likelihood averaged over the prior, divided by that of the true share, is a martingale,
which ever exceeds 20 in at most 1 of 20 studies (Ville 1939). The interval consists of all shares
for which it does not. For the difference of two shares of independent seeds the martingales of both
are multiplied, and the interval contains every difference of two shares that are not excluded. For
pairs this is invalid: dependent outcomes would make the product exceed 20 more often. There the
likelihood is that of a pair's outcomes: only the first, only the second, or both alike.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from sweeps.statistics.intervals import CONFIDENCE, ConfidenceInterval, PairTable

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

STEPS = 50
"""Bisections, which exhaust double precision."""


def _log_likelihood(count: Floats, n: Floats, share: Floats) -> Floats:
    found: Floats = special.xlogy(count, share) + special.xlog1py(n - count, -share)
    return found


def _least_likely(count: Floats, n: Floats) -> Floats:
    """The logarithm of the mixture's likelihood."""
    # A beta-binomial without its coefficient, under Jeffreys' prior Beta(1/2, 1/2).
    found: Floats = special.betaln(count + 0.5, n - count + 0.5) - special.betaln(0.5, 0.5)
    return found


def _bisect(inside: Floats, outside: Floats, is_inside: Callable[[Floats], Bools]) -> Floats:
    """Bisects for the ends of intervals, between values inside and others outside or at an end."""
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        holds = is_inside(middle)
        inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
    # The outer end, so that rounding can only widen an interval.
    return outside


def share_limits(count: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The limits of shares, for arrays of counts and totals; [0, 1] without observations."""
    counts, totals = np.broadcast_arrays(np.asarray(count, float), np.asarray(n, float))
    # Ville's inequality: shares less likely than this bound are ruled out at all times.
    bound = _least_likely(counts, totals) + math.log(1 - CONFIDENCE)
    # Without observations any inner point will do, since nothing is ruled out.
    share = np.divide(counts, totals, out=np.full(counts.shape, 0.5), where=totals > 0)
    low, high = (
        _bisect(
            share, np.full(counts.shape, end), lambda x: _log_likelihood(counts, totals, x) > bound
        )
        for end in (0.0, 1.0)
    )
    return low, high


def share_sequence(count: int, n: int) -> ConfidenceInterval:
    """A share, and the interval that covers it at all times."""
    low, high = share_limits(count, n)
    return ConfidenceInterval(count / n if n else math.nan, float(low), float(high))


def difference_sequence(first: tuple[int, int], second: tuple[int, int]) -> ConfidenceInterval:
    """The first share less the second, of independent seeds, and the interval that covers it at all
    times.

    Args:
        first, second: count and total; the totals may differ at any time.
    """
    (count, n), (other, m) = ((np.asarray(x, float) for x in side) for side in (first, second))
    shares = (first[0] / first[1] if first[1] else 0.5, second[0] / second[1] if second[1] else 0.5)
    return _difference(
        shares[0] - shares[1],
        bool(first[1] and second[1]),
        _least_likely(count, n) + _least_likely(other, m),
        lambda apart, share: (
            _log_likelihood(count, n, share + apart) + _log_likelihood(other, m, share)
        ),
        lambda apart: np.minimum(1.0, 1.0 - apart),
    )


def paired_difference_sequence(table: PairTable) -> ConfidenceInterval:
    """The first share less the second, of pairs, and the interval that covers it at all times.

    It is valid for any dependence within pairs.

    Args:
        table: the counts of pairs.
    """
    first, second = (np.asarray(x, float) for x in (table.only_first, table.only_second))
    alike = np.asarray(table.both + table.none, float)
    # Three outcomes under Jeffreys' prior, Dirichlet(1/2, 1/2, 1/2).
    mixture = (
        sum(special.gammaln(x + 0.5) - special.gammaln(0.5) for x in (first, second, alike))
        + special.gammaln(1.5)
        - special.gammaln(table.pairs + 1.5)
    )

    def log_likelihood(apart: Floats, share: Floats) -> Floats:
        rest = np.maximum(0.0, 1.0 - apart - 2 * share)
        of_first, of_second = special.xlogy(first, share + apart), special.xlogy(second, share)
        found: Floats = of_first + of_second + special.xlogy(alike, rest)
        return found

    pairs = table.pairs
    value = float((first - second) / pairs) if pairs else 0.0
    return _difference(value, bool(pairs), mixture, log_likelihood, lambda x: (1.0 - x) / 2)


def _difference(
    value: float,
    is_known: bool,
    mixture: Floats,
    log_likelihood: Callable[[Floats, Floats], Floats],
    highest: Callable[[Floats], Floats],
) -> ConfidenceInterval:
    """The interval of a difference.

    Args:
        value: the difference.
        is_known: False without observations, where the value is NaN.
        mixture: the logarithm of the mixture's likelihood.
        log_likelihood: a function of the difference and the second share, concave in the latter.
        highest: the greatest second share that allows a difference.
    """
    bound = mixture + math.log(1 - CONFIDENCE)

    def is_inside(apart: Floats) -> Bools:
        # Maximizes the likelihood with this difference.
        low, high = np.maximum(0.0, -apart), highest(apart)
        for _ in range(STEPS):
            # A ternary search, as the likelihood is concave in the second share.
            near, far = low + (high - low) / 3, high - (high - low) / 3
            is_left = log_likelihood(apart, near) < log_likelihood(apart, far)
            low, high = np.where(is_left, near, low), np.where(is_left, high, far)
        return np.asarray(log_likelihood(apart, (low + high) / 2) > bound)

    low, high = (
        float(_bisect(np.asarray(value), np.asarray(end), is_inside)) for end in (-1.0, 1.0)
    )
    return ConfidenceInterval(value if is_known else math.nan, low, high)
