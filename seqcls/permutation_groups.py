"""Finite groups of permutations: their elements as tokens, and products of them."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import permutations
from typing import Literal

import numpy as np
from jaxtyping import Int64

GroupName = Literal["Z2", "Z5", "S3", "A4", "S4", "A5", "S5"]


@lru_cache(maxsize=8)
def group_tokens(group: GroupName) -> Sequence[str]:
    """A token for each element, the identity first.

    An element of Z2 or Z5 is a number; one of another group lists the images of 1, 2, …: 213
    exchanges the first two.
    """
    if group.startswith("Z"):
        return "01234"[: int(group[1:])]
    return tuple("".join(str(place + 1) for place in element) for element in _elements(group))


@lru_cache(maxsize=8)
def products(group: GroupName) -> Int64[np.ndarray, "first second"]:
    """The number of the product of each two elements, the first of them applied first."""
    elements = _elements(group)
    numbers = {element: number for number, element in enumerate(elements)}
    return np.array(
        [
            # The first maps each place, and the second maps the result.
            [numbers[tuple(second[place] for place in first)] for second in elements]
            for first in elements
        ]
    )


def _elements(group: GroupName) -> list[tuple[int, ...]]:
    size = int(group[1:])
    if group.startswith("Z"):
        return [tuple((place + turn) % size for place in range(size)) for turn in range(size)]
    every = list(permutations(range(size)))
    return [x for x in every if group.startswith("S") or _is_even(x)]


def _is_even(element: Sequence[int]) -> bool:
    # A permutation is even if it has an even number of inversions.
    inverted = sum(x > y for place, y in enumerate(element) for x in element[:place])
    return inverted % 2 == 0
