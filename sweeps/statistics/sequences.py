"""Intervals that hold however often they are looked at, so that seeds are trained as needed.

An interval of a fixed number of seeds is wrong more often than it says if one looks after every
seed and stops when it pleases. A *confidence sequence* holds the truth at all times at once:
whatever the reason to stop was, its interval covers with at least `CONFIDENCE`. These are of
Robbins' mixture (1970, *Ann. Math. Statist.* 41: 1397), of a share under Jeffreys' prior. With k of
n seeds, the mean of the likelihoods of all shares, weighed by the prior, divided by that of the
true share is a martingale, which ever exceeds 20 in at most 1 of 20 studies (Ville 1939). The
interval is all shares for which it does not. For the difference of two shares the martingales of
both are multiplied, and a difference is in it if any two shares so far apart are.
"""

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from sweeps.statistics.intervals import CONFIDENCE, ConfidenceInterval

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

STEPS = 50
"""Bisections, after which nothing is left to divide."""


def _log_likelihood(count: Floats, n: Floats, share: Floats) -> Floats:
    from scipy import special

    found: Floats = special.xlogy(count, share) + special.xlog1py(n - count, -share)
    return found


def _least_likely(count: Floats, n: Floats) -> Floats:
    """The logarithm of the mixture's likelihood."""
    from scipy import special

    found: Floats = special.betaln(count + 0.5, n - count + 0.5) - special.betaln(0.5, 0.5)
    return found


def _bisect(inside: Floats, outside: Floats, is_inside: Callable[[Floats], Bools]) -> Floats:
    """Where intervals end, of values inside of them and others outside or at their ends."""
    for _ in range(STEPS):
        middle = (inside + outside) / 2
        kept = is_inside(middle)
        inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
    return outside


def share_limits(count: npt.ArrayLike, n: npt.ArrayLike) -> tuple[Floats, Floats]:
    """The limits of shares, of arrays of how many, and of how many.

    Of no observations anything is possible.
    """
    counts, of = np.broadcast_arrays(np.asarray(count, float), np.asarray(n, float))
    bound = _least_likely(counts, of) + math.log(1 - CONFIDENCE)
    share = np.divide(counts, of, out=np.full(counts.shape, 0.5), where=of > 0)
    low, high = (
        _bisect(share, np.full(counts.shape, end), lambda x: _log_likelihood(counts, of, x) > bound)
        for end in (0.0, 1.0)
    )
    return low, high


def share_sequence(count: int, n: int) -> ConfidenceInterval:
    """A share, and the interval that holds it at all times."""
    low, high = share_limits(count, n)
    return ConfidenceInterval(count / n if n else math.nan, float(low), float(high))


def difference_sequence(first: tuple[int, int], second: tuple[int, int]) -> ConfidenceInterval:
    """The first share less the second, of independent seeds, and the interval that holds it at all
    times.

    Args:
        first: how many, of how many; at any time as many of either as one likes.
    """
    (count, n), (other, m) = ((np.asarray(x, float) for x in side) for side in (first, second))
    bound = _least_likely(count, n) + _least_likely(other, m) + math.log(1 - CONFIDENCE)

    def is_inside(apart: Floats) -> Bools:
        # Of two shares so far apart the likeliest; the logarithm is concave in them.
        low, high = np.maximum(0.0, -apart), np.minimum(1.0, 1.0 - apart)
        for _ in range(STEPS):
            near, far = low + (high - low) / 3, high - (high - low) / 3
            left, right = (
                _log_likelihood(count, n, x + apart) + _log_likelihood(other, m, x)
                for x in (near, far)
            )
            low, high = np.where(left < right, near, low), np.where(left < right, high, far)
        middle = (low + high) / 2
        found = _log_likelihood(count, n, middle + apart) + _log_likelihood(other, m, middle)
        return np.asarray(found > bound)

    value = np.asarray(
        (first[0] / first[1] if first[1] else 0.5) - (second[0] / second[1] if second[1] else 0.5)
    )
    low, high = (float(_bisect(value, np.asarray(end), is_inside)) for end in (-1.0, 1.0))
    known = bool(first[1] and second[1])
    return ConfidenceInterval(float(value) if known else math.nan, low, high)
