"""Numbers of position schemes that compiled code needs too, without loading PyTorch."""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float, Int64

BUCKETS = 32
"""Number of buckets of `relative`: ranges of distances, each with a row of its table."""

FARTHEST = 128
"""The distance of `relative` from which all are in one bucket."""

TRAINING, TESTING = 1, 2
"""Streams of random positions, separate from each other and from those that draw strings from the
same seeds."""


def training_generator(seed: int) -> np.random.Generator:
    """Makes the generator that draws the positions of a run's batches."""
    return np.random.default_rng((seed, TRAINING))


def draw_positions(
    rng: np.random.Generator, position_range: int, tokens: int
) -> Int64[np.ndarray, " token"]:
    """Draws the positions of so many tokens in training: a sorted sample without replacement."""
    return np.sort(rng.choice(position_range, tokens, replace=False))


def tested_positions(position_range: int, seed: int, tokens: int) -> Int64[np.ndarray, " token"]:
    """Returns the positions of strings of so many tokens outside training."""
    # The first n of one fixed order: a uniform sample, and a longer string's contains a shorter's.
    return np.sort(_order(position_range, seed)[:tokens])


@lru_cache(maxsize=16)
def _order(places: int, seed: int) -> Int64[np.ndarray, " place"]:
    """Draws the order in which longer and longer strings take positions."""
    return np.random.default_rng((seed, TESTING)).permutation(places)


def angles(
    places: Int64[np.ndarray, "*row token"], size: int
) -> Float[np.ndarray, "*row token pair"]:
    """Each position times 10000^(-2k / size), for k < size / 2 (Vaswani et al. 2017)."""
    return places[..., None] * 10_000.0 ** (-np.arange(0, size, 2) / max(size, 1))


def waves(
    places: Int64[np.ndarray, "*row token"], size: int
) -> Float[np.ndarray, "*row token size"]:
    """Sines, then cosines, of the angles; if the size is odd, the last cosine is left out."""
    turned = angles(places, size)
    return np.concatenate([np.sin(turned), np.cos(turned)], axis=-1)[..., :size]


def slopes(heads: int) -> list[float]:
    """2^(-8(h+1)/H) for each head h of H, a power of two (Press et al. 2022).

    If H is no power of two, those of the power below come first, then every other one of twice that
    power, as in the authors' program.
    """
    if heads == 0:
        return []
    below = 2 ** int(math.log2(heads))
    first = [2 ** (-8 * (head + 1) / below) for head in range(below)]
    # Every other one, since `first` already has the rest.
    between = [2 ** (-8 * (head + 1) / (2 * below)) for head in range(0, 2 * below, 2)]
    return first + between[: heads - below]


def buckets(distances: np.ndarray, *, both_directions: bool) -> np.ndarray:
    """Returns the bucket of each distance, the attended position minus the attending one.

    There are 16 buckets in each of both directions, or 32 in one (backwards): half of them for
    single distances, half by the logarithm up to 128.
    """
    size, after = BUCKETS, np.zeros_like(distances)
    if both_directions:
        size //= 2
        after = (distances > 0) * size
        distances = np.abs(distances)
    else:
        distances = np.maximum(-distances, 0)
    single = size // 2
    # Without the bound, distances that `np.where` ignores below would have the logarithm of 0.
    share = np.log(np.maximum(distances, single) / single) / math.log(FARTHEST / single)
    far = np.minimum(single + (share * (size - single)).astype(np.int64), size - 1)
    buckets: np.ndarray = after + np.where(distances < single, distances, far)
    return buckets
