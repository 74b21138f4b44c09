# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The shapes of a network and the memory that its states are written to."""

from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.compiling import allocating

TILE = 64
"""Strings computed at once: enough to fill vectors, few enough to stay in the fastest cache."""

NORMS = {"none": 0, "rms": 1, "nn": 2}


class Shape(NamedTuple):
    """The sizes and switches of a network, as the compiled code takes them."""

    token_types: int
    hidden: int
    heads: int
    head_size: int
    feed_forward: int
    first_type: int
    """0 where CLS attends to itself, else 1."""
    norm: int
    """A value of `NORMS`."""
    eps: float
    scaled_loss: bool
    log_length: bool
    relu: bool
    biases: bool
    places: int
    """Rows of a table of places that is learned; 0 where there is none."""
    per_place: int
    """Numbers in each of its rows."""


class Parameters(NamedTuple):
    """A model's parameters, or their gradients: views of one flat array."""

    embedding: np.ndarray  # (K, H): CLS, then the letters
    norm_a: np.ndarray  # (2, H): weight and bias
    query: np.ndarray  # (J, H)
    key: np.ndarray  # (J, H)
    value: np.ndarray  # (J, H)
    output: np.ndarray  # (H, J)
    norm_f: np.ndarray  # (2, H)
    inner: np.ndarray  # (F, H)
    outer: np.ndarray  # (H, F)
    classifier: np.ndarray  # (1, H)
    # Of size 0 where the network has no biases.
    query_bias: np.ndarray  # (J)
    key_bias: np.ndarray  # (J)
    value_bias: np.ndarray  # (J)
    output_bias: np.ndarray  # (H)
    inner_bias: np.ndarray  # (F)
    outer_bias: np.ndarray  # (H)
    classifier_bias: np.ndarray  # (1)
    places: np.ndarray  # (R, H) or (R, h): what is learned of each place or distance


class TokenTypes(NamedTuple):
    """Room for the states of the token types, computed once a step."""

    reader: int
    """The token type whose state is read."""
    state: np.ndarray  # (H, K): x
    unit: np.ndarray  # (H, K)
    normed: np.ndarray  # (H, K): x^
    scale: np.ndarray  # (K)
    query: np.ndarray  # (J)
    key: np.ndarray  # (J, K)
    value: np.ndarray  # (J, K)
    score: np.ndarray  # (h, K)
    effect: np.ndarray  # (F): e
    d_score: np.ndarray  # (h, K)
    d_value: np.ndarray  # (J, K)
    d_effect: np.ndarray  # (F)
    d_read: np.ndarray  # (H): sum of D y
    d_normed: np.ndarray  # (H, K)
    row: np.ndarray  # (K)
    other: np.ndarray  # (K)


class Tile(NamedTuple):
    """Room for the states of a tile of strings, overwritten by every tile."""

    attention: np.ndarray  # (h, K, T)
    mixed: np.ndarray  # (J, T): u
    state: np.ndarray  # (H, T): y
    unit: np.ndarray  # (H, T): r (y - mean)
    normed: np.ndarray  # (H, T): y^
    scale: np.ndarray  # (T): r
    inner: np.ndarray  # (F, T): z
    below: np.ndarray  # (F, T): Phi(z)
    density: np.ndarray  # (F, T): phi(z)
    logit: np.ndarray  # (T)
    loss: np.ndarray  # (T)
    slope: np.ndarray  # (T): D logit
    row: np.ndarray  # (T)
    other: np.ndarray  # (T)
    d_mixed: np.ndarray  # (J, T)
    d_state: np.ndarray  # (H, T)
    powers: np.ndarray  # (T) scratch of exp_row
    exponents: np.ndarray  # the same memory as integers


@allocating
def views(flat, shape):
    """The parameters that stand one after another in a flat array."""
    h, j, f = shape.hidden, shape.heads * shape.head_size, shape.feed_forward
    a = shape.token_types * h
    b = a + 2 * h
    c = b + 4 * j * h
    d = c + 2 * h
    e = d + 2 * f * h
    b0 = e + h
    b1 = b0 + 3 * j
    b2 = b1 + h
    b3 = b2 + f
    b4 = b3 + h
    return Parameters(
        flat[:a].reshape(shape.token_types, h),
        flat[a:b].reshape(2, h),
        flat[b : b + j * h].reshape(j, h),
        flat[b + j * h : b + 2 * j * h].reshape(j, h),
        flat[b + 2 * j * h : b + 3 * j * h].reshape(j, h),
        flat[b + 3 * j * h : c].reshape(h, j),
        flat[c:d].reshape(2, h),
        flat[d : d + f * h].reshape(f, h),
        flat[d + f * h : e].reshape(h, f),
        flat[e:b0].reshape(1, h),
        flat[b0 : b0 + j],
        flat[b0 + j : b0 + 2 * j],
        flat[b0 + 2 * j : b1],
        flat[b1:b2],
        flat[b2:b3],
        flat[b3:b4],
        flat[b4 : b4 + 1],
        flat[flat.size - shape.places * shape.per_place :].reshape(shape.places, shape.per_place),
    )


@allocating
def new_token_types(dtype_of, shape):
    """Room for the token types, of the type of an array."""
    t = dtype_of.dtype
    j, h, f, k = shape.heads * shape.head_size, shape.hidden, shape.feed_forward, shape.token_types
    return TokenTypes(
        0,
        np.zeros((h, k), t),
        np.zeros((h, k), t),
        np.zeros((h, k), t),
        np.zeros(k, t),
        np.zeros(j, t),
        np.zeros((j, k), t),
        np.zeros((j, k), t),
        np.zeros((shape.heads, k), t),
        np.zeros(f, t),
        np.zeros((shape.heads, k), t),
        np.zeros((j, k), t),
        np.zeros(f, t),
        np.zeros(h, t),
        np.zeros((h, k), t),
        np.zeros(k, t),
        np.zeros(k, t),
    )


@allocating
def new_tile(dtype_of, exponents, shape):
    """Room for one tile, of the type of an array."""
    t = dtype_of.dtype
    j, h, f = shape.heads * shape.head_size, shape.hidden, shape.feed_forward
    powers = exponents.view(t)
    return Tile(
        np.zeros((shape.heads, shape.token_types, TILE), t),
        np.zeros((j, TILE), t),
        np.zeros((h, TILE), t),
        np.zeros((h, TILE), t),
        np.zeros((h, TILE), t),
        np.zeros(TILE, t),
        np.zeros((f, TILE), t),
        np.zeros((f, TILE), t),
        np.zeros((f, TILE), t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
        np.zeros(TILE, t),
        np.zeros((j, TILE), t),
        np.zeros((h, TILE), t),
        powers,
        exponents,
    )
