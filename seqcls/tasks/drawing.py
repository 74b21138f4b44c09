"""Exact draws from large whole numbers, the same on every machine."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

import numpy as np


def below(rng: np.random.Generator, limit: int) -> int:
    """A uniform whole number from 0 to `limit - 1`, however large."""
    bits = (limit - 1).bit_length()
    size = (bits + 7) // 8
    while True:
        number = int.from_bytes(rng.bytes(size), "little") >> (8 * size - bits)
        if number < limit:
            return number


def choose(rng: np.random.Generator, weights: Sequence[int]) -> int:
    """A place among whole-numbered weights, each with a probability proportional to its own."""
    sums = list(accumulate(weights))
    return bisect_right(sums, below(rng, sums[-1]))


def bits_of(number: int, length: int) -> list[int]:
    """The lowest bits of a number, the least first."""
    return [int(bit) for bit in reversed(f"{number:0{length}b}"[-length:])]
