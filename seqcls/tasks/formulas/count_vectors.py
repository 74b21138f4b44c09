"""All strings of a length by their letter counts: how many strings each stands for, and draws."""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float64, Int64, UInt8

MAX_VECTORS = 300_000
"""Count vectors of one length that are listed at most."""

Vectors = Int64[np.ndarray, "vector class"]


def number_of_vectors(length: int, classes: int) -> int:
    """How many ways there are to share a length out among classes of letters."""
    return math.comb(length + classes - 1, classes - 1)


def vectors(length: int, classes: int) -> Vectors:
    """Every way to share a length out among classes of letters."""
    columns: list[np.ndarray] = []
    left = np.array([length])
    for _ in range(classes - 1):
        sizes = left + 1
        rows = np.repeat(np.arange(len(left)), sizes)
        starts = np.cumsum(sizes) - sizes
        values = np.arange(len(rows)) - starts[rows]
        columns = [column[rows] for column in columns]
        columns.append(values)
        left = left[rows] - values
    return np.stack([*columns, left], axis=1).astype(np.int64)


def running_weights(counts: Vectors, sizes: tuple[int, ...]) -> Float64[np.ndarray, " vector"]:
    """Running sums of how many strings have these counts of letters, up to one common factor.

    `sizes` are the numbers of letters in the classes. Only products, quotients and powers of two:
    the same on every machine.
    """
    length = int(counts[0].sum())
    mantissas, exponents = _factorials(1 << length.bit_length())
    strings, powers = np.ones(len(counts)), np.zeros(len(counts), dtype=np.int64)
    for column, size in zip(counts.T, sizes, strict=True):
        power, exponent = _powers(size, length)
        strings, shift = np.frexp(strings / mantissas[column] * power[column])
        powers += shift - exponents[column] + exponent[column]
    sums: np.ndarray = np.cumsum(np.ldexp(strings, powers - powers.max()))
    return sums


def shuffled(
    rng: np.random.Generator, counts: Vectors, classes: list[list[int]]
) -> UInt8[np.ndarray, "string position"]:
    """A uniform string of each count vector; all vectors have one sum."""
    length = int(counts[0].sum())
    ends = counts.cumsum(axis=1)
    which = (np.arange(length) >= ends[:, :, None]).sum(axis=1)
    letters = np.array([members[0] for members in classes], dtype=np.uint8)[which]
    for number, members in enumerate(classes):
        if len(members) > 1:
            in_class = which == number
            letters[in_class] = rng.choice(
                np.array(members, dtype=np.uint8), size=int(in_class.sum())
            )
    return rng.permuted(letters, axis=1)


@lru_cache(maxsize=8)
def _factorials(limit: int) -> tuple[np.ndarray, np.ndarray]:
    return _products(np.maximum(np.arange(limit + 1), 1))


@lru_cache(maxsize=256)
def _powers(base: int, limit: int) -> tuple[np.ndarray, np.ndarray]:
    return _products(np.array([1, *[base] * limit]))


def _products(factors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Products of the first factors as mantissas and exponents of two."""
    mantissas = np.empty(len(factors))
    exponents = np.empty(len(factors), dtype=np.int64)
    mantissa, exponent = 1.0, 0
    for place, factor in enumerate(factors.tolist()):
        mantissa, shift = math.frexp(mantissa * factor)
        exponent += shift
        mantissas[place], exponents[place] = mantissa, exponent
    return mantissas, exponents
