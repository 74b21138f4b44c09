# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The buffers of a model's states, and its logits for a tile of strings.

The formulas are in `fused.kernel`.
"""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import exp_row, normal_rows
from seqcls.engines.compiled.compiling import allocating, inlined

TILE = 64
"""Strings in a tile: enough to fill vectors, few enough to stay in the fastest cache."""

# The parameters, and the buffers of states.


class Parameters(NamedTuple):
    """A model's parameters, or their gradients, as views of one array."""

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


class TokenTypes(NamedTuple):
    """The buffers of the token types' states, computed once a step."""

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
    """The buffers of a tile's states, overwritten by every tile."""

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
    """Returns the parameters as views of one array."""
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
    )


@allocating
def new_token_types(dtype_of, shape):
    """Allocates the buffers of the token types, of an array's type."""
    t = dtype_of.dtype
    j, h, f, k = shape.heads * shape.head_size, shape.hidden, shape.feed_forward, shape.token_types
    return TokenTypes(
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
    """Allocates the buffers of a tile, of an array's type."""
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


# From counts to logits.


@inlined
def dot(x, y):
    """Returns the dot product of two rows."""
    total = x.dtype.type(0)
    for s in range(x.size):
        total += x[s] * y[s]
    return total


@inlined
def add(out, factor, x):
    """Adds a multiple of one row to another."""
    for s in range(x.size):
        out[s] += factor * x[s]


@inlined
def lift(out, constant):
    """Adds a constant to a row."""
    for s in range(out.size):
        out[s] += constant


@inlined
def copy(out, x):
    """Copies one row to another of the same size.

    For an assignment of slices Numba would also compile an error message about shapes, which takes
    half as long as all of `forward`.
    """
    for s in range(x.size):
        out[s] = x[s]


@inlined
def norm_forward(x, parameters, shape, unit, out, scale, mean):
    """Normalizes every column of x (H, N) into `out`; writes the states of the gradient."""
    number = x.dtype.type
    if shape.norm == 0:
        for i in range(shape.hidden):
            copy(out[i], x[i])
        return
    share = number(1) / number(shape.hidden)
    mean[:] = number(0)
    if shape.norm == 2:
        for i in range(shape.hidden):
            add(mean, share, x[i])
    scale[:] = number(shape.eps)
    for i in range(shape.hidden):
        for s in range(scale.size):
            unit[i, s] = x[i, s] - mean[s]
            scale[s] += share * unit[i, s] * unit[i, s]
    for s in range(scale.size):
        scale[s] = number(1) / math.sqrt(scale[s])
    for i in range(shape.hidden):
        weight, bias = parameters[0, i], parameters[1, i]
        for s in range(scale.size):
            unit[i, s] *= scale[s]
            out[i, s] = weight * unit[i, s] + bias


@inlined
def types_forward(p, shape, types):
    """Computes the states that all strings share: keys, values and scores of token types, and e."""
    for k in range(shape.token_types):
        for i in range(shape.hidden):
            types.state[i, k] = p.embedding[k, i]
    number = p.embedding.dtype.type
    per_root = number(1 / math.sqrt(shape.head_size))
    norm_forward(types.state, p.norm_a, shape, types.unit, types.normed, types.scale, types.row)
    types.key[:] = number(0)
    types.value[:] = number(0)
    types.score[:] = number(0)
    for j in range(types.query.size):
        types.query[j] = dot(p.query[j], types.normed[:, 0])
        for i in range(shape.hidden):
            add(types.key[j], p.key[j, i], types.normed[i])
            add(types.value[j], p.value[j, i], types.normed[i])
        if shape.biases:
            types.query[j] += p.query_bias[j]
            lift(types.key[j], p.key_bias[j])
            lift(types.value[j], p.value_bias[j])
        add(types.score[j // shape.head_size], types.query[j] * per_root, types.key[j])
    types.effect[:] = number(0)
    for i in range(shape.hidden):
        add(types.effect, p.classifier[0, i], p.outer[i])


@inlined
def steps(x, below, density):
    """Writes the step function and its slope in place of Phi and phi, for ReLU."""
    number = x.dtype.type
    for s in range(TILE):
        below[s] = number(1) if x[s] > number(0) else number(0)
        density[s] = number(0)


@inlined
def below_greatest(counts, factor, score, shape, attention, greatest):
    """Computes each token type's score (K) minus the greatest of a string's token types.

    Scores are multiplied by a factor of the string (T) with `log_length`.
    """
    number = counts.dtype.type
    zero, one = number(0), number(1)
    greatest[:] = number(-np.inf)
    for k in range(shape.first_type, shape.token_types):
        for s in range(TILE):
            here = score[k] * (factor[s] if shape.log_length else one)
            greatest[s] = max(greatest[s], here if counts[k, s] > zero else number(-np.inf))
    for k in range(shape.first_type, shape.token_types):
        for s in range(TILE):
            here = score[k] * (factor[s] if shape.log_length else one)
            # A token type that is absent may score higher than all others; it weighs nothing.
            attention[k, s] = min(here - greatest[s], zero)


@inlined
def attend(counts, factor, score, shape, attention, tile):
    """Computes the attention weights (K, T) of one head; all zero where no token is attended to."""
    number = counts.dtype.type
    zero, one = number(0), number(1)
    total = tile.other
    below_greatest(counts, factor, score, shape, attention, tile.row)
    total[:] = zero
    for k in range(shape.first_type, shape.token_types):
        weights = attention[k]
        exp_row(weights, tile.powers, tile.exponents)
        for s in range(TILE):
            weights[s] *= counts[k, s]
            total[s] += weights[s]
    for s in range(TILE):
        total[s] = one / total[s] if total[s] > zero else zero
    for k in range(shape.first_type, shape.token_types):
        for s in range(TILE):
            attention[k, s] *= total[s]


@inlined
def forward(counts, factor, p, shape, types, tile):
    """Computes the logits of a tile of strings, given counts (K, T) and factors of scores (T)."""
    number = counts.dtype.type
    tile.mixed[:] = number(0)
    for head in range(shape.heads):
        attend(counts, factor, types.score[head], shape, tile.attention[head], tile)
        for j in range(head * shape.head_size, (head + 1) * shape.head_size):
            for k in range(shape.first_type, shape.token_types):
                add(tile.mixed[j], types.value[j, k], tile.attention[head, k])
    for i in range(shape.hidden):
        tile.state[i] = types.state[i, 0]
        if shape.biases:
            lift(tile.state[i], p.output_bias[i])
        for j in range(tile.mixed.shape[0]):
            add(tile.state[i], p.output[i, j], tile.mixed[j])
    norm_forward(tile.state, p.norm_f, shape, tile.unit, tile.normed, tile.scale, tile.row)
    tile.logit[:] = number(0)
    if shape.biases:
        tile.logit[:] = p.classifier_bias[0] + dot(p.classifier[0], p.outer_bias)
    for i in range(shape.hidden):
        add(tile.logit, p.classifier[0, i], tile.state[i])
    tile.inner[:] = number(0)
    for f in range(shape.feed_forward):
        if shape.biases:
            tile.inner[f] = p.inner_bias[f]
        for i in range(shape.hidden):
            add(tile.inner[f], p.inner[f, i], tile.normed[i])
        if shape.relu:
            steps(tile.inner[f], tile.below[f], tile.density[f])
        else:
            normal_rows(tile.inner[f], tile.below[f], tile.density[f], tile.powers, tile.exponents)
        for s in range(TILE):
            tile.logit[s] += types.effect[f] * tile.inner[f, s] * tile.below[f, s]
