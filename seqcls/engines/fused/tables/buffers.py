"""The memory that the states of (token, place) rows and of their strings are written to."""

from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.compiling import allocating
from seqcls.engines.fused.buffers import TILE


class Table(NamedTuple):
    """Room for what a batch's strings share of their places, and for a tile's attention.

    Scores are those of P places of V letters, a place's letters together, and before them that of
    the reader for itself: a row is 1 + place V + letter. N = 1 + P V.
    """

    letters: int
    """V."""
    columns: int
    """N."""
    score: np.ndarray  # (h, N)
    d_score: np.ndarray  # (h, N)
    bias: np.ndarray  # (h, 1 + P): added to scores by distance
    d_bias: np.ndarray  # (h, 1 + P)
    turned: np.ndarray  # (J, 1 + P): the query as a key at that place meets it
    attention: np.ndarray  # (h, 1 + P, T)
    mass: np.ndarray  # (h, 1 + V, T): attention by letter
    d_mass: np.ndarray  # (1 + V, T)
    masked: np.ndarray  # (T)
    common: np.ndarray  # (T)


@allocating
def new_table(dtype_of, shape, places):
    """Room for P places, of the type of an array."""
    t = dtype_of.dtype
    v, h, j = shape.token_types - 1, shape.heads, shape.heads * shape.head_size
    n = 1 + places * v
    return Table(
        v,
        n,
        np.zeros((h, n), t),
        np.zeros((h, n), t),
        np.zeros((h, places + 1), t),
        np.zeros((h, places + 1), t),
        np.zeros((j, places + 1), t),
        np.zeros((h, places + 1, TILE), t),
        np.zeros((h, v + 1, TILE), t),
        np.zeros((v + 1, TILE), t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
    )
