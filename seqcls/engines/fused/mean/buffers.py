"""The memory that the states of all readers are written to."""

from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.compiling import allocating
from seqcls.engines.fused.buffers import TILE, TokenTypes


class Mean(NamedTuple):
    """Room for every letter as a reader, and for what a tile's strings make of them."""

    memory: np.ndarray  # (V, numbers): each reader's states, as `reader` shows them
    shares: np.ndarray  # (V, T)
    empty: np.ndarray  # (T): 1 for the empty string
    logit: np.ndarray  # (T)
    slope: np.ndarray  # (T)


@allocating
def new_mean(dtype_of, shape):
    """Room for all letters, of the type of an array."""
    t = dtype_of.dtype
    j, h, f, k = shape.heads * shape.head_size, shape.hidden, shape.feed_forward, shape.token_types
    numbers = (4 * h + 3 * j + 2 * shape.heads + 3) * k + j + 2 * f + h
    return Mean(
        np.zeros((k - 1, numbers), t),
        np.zeros((k - 1, TILE), t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
    )


@allocating
def reader(memory, token_type, shape):
    """The states of the token types as one of them reads them: views of its memory."""
    j, h, f, k = shape.heads * shape.head_size, shape.hidden, shape.feed_forward, shape.token_types
    wide, heads = h * k, shape.heads * k
    a = 4 * wide
    b = a + 3 * j * k
    c = b + 2 * heads
    e = c + 3 * k
    return TokenTypes(
        token_type,
        memory[:wide].reshape(h, k),
        memory[wide : 2 * wide].reshape(h, k),
        memory[2 * wide : 3 * wide].reshape(h, k),
        memory[c : c + k],
        memory[e : e + j],
        memory[a : a + j * k].reshape(j, k),
        memory[a + j * k : a + 2 * j * k].reshape(j, k),
        memory[b : b + heads].reshape(shape.heads, k),
        memory[e + j : e + j + f],
        memory[b + heads : c].reshape(shape.heads, k),
        memory[a + 2 * j * k : b].reshape(j, k),
        memory[e + j + f : e + j + 2 * f],
        memory[e + j + 2 * f : e + j + 2 * f + h],
        memory[3 * wide : a].reshape(h, k),
        memory[c + k : c + 2 * k],
        memory[c + 2 * k : e],
    )
