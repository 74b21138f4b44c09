# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The buffers of a model's states, and its logits for a tile of strings.

The formulas are in `fused.kernel`.
"""

import math
from typing import Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from seqcls.engines.compiled.arithmetic import exp_row, normal_rows
from seqcls.engines.compiled.compiling import allocating, inlined

TILE = 64
"""Strings in a tile: enough to fill vectors, few enough to stay in the fastest cache."""

# The parameters, and the buffers of states.


class Parameters(NamedTuple):
    """A model's parameters, or their gradients, as views of one array."""

    embedding: Annotated[np.ndarray, "K H"]  # CLS, then the letters
    norm_a: Annotated[np.ndarray, "2 H"]  # weight and bias
    query: Annotated[np.ndarray, "J H"]
    key: Annotated[np.ndarray, "J H"]
    value: Annotated[np.ndarray, "J H"]
    output: Annotated[np.ndarray, "H J"]
    norm_f: Annotated[np.ndarray, "2 H"]
    inner: Annotated[np.ndarray, "F H"]
    outer: Annotated[np.ndarray, "H F"]
    classifier: Annotated[np.ndarray, "1 H"]
    # Of size 0 where the network has no biases.
    query_bias: Annotated[np.ndarray, "J"]
    key_bias: Annotated[np.ndarray, "J"]
    value_bias: Annotated[np.ndarray, "J"]
    output_bias: Annotated[np.ndarray, "H"]
    inner_bias: Annotated[np.ndarray, "F"]
    outer_bias: Annotated[np.ndarray, "H"]
    classifier_bias: Annotated[np.ndarray, "1"]


class TokenTypes(NamedTuple):
    """The buffers of the token types' states, computed once a step."""

    state: Annotated[np.ndarray, "H K"]  # x
    unit: Annotated[np.ndarray, "H K"]
    normed: Annotated[np.ndarray, "H K"]  # x^
    scale: Annotated[np.ndarray, "K"]
    query: Annotated[np.ndarray, "J"]
    key: Annotated[np.ndarray, "J K"]
    value: Annotated[np.ndarray, "J K"]
    score: Annotated[np.ndarray, "h K"]
    effect: Annotated[np.ndarray, "F"]  # e
    d_score: Annotated[np.ndarray, "h K"]
    d_value: Annotated[np.ndarray, "J K"]
    d_effect: Annotated[np.ndarray, "F"]
    d_read: Annotated[np.ndarray, "H"]  # sum of D y
    d_normed: Annotated[np.ndarray, "H K"]
    row: Annotated[np.ndarray, "K"]
    other: Annotated[np.ndarray, "K"]


class Tile(NamedTuple):
    """The buffers of a tile's states, overwritten by every tile."""

    attention: Annotated[np.ndarray, "h K T"]
    mixed: Annotated[np.ndarray, "J T"]  # u
    state: Annotated[np.ndarray, "H T"]  # y
    unit: Annotated[np.ndarray, "H T"]  # r (y - mean)
    normed: Annotated[np.ndarray, "H T"]  # y^
    scale: Annotated[np.ndarray, "T"]  # r
    inner: Annotated[np.ndarray, "F T"]  # z
    below: Annotated[np.ndarray, "F T"]  # Phi(z)
    density: Annotated[np.ndarray, "F T"]  # phi(z)
    logit: Annotated[np.ndarray, "T"]
    loss: Annotated[np.ndarray, "T"]
    slope: Annotated[np.ndarray, "T"]  # D logit
    row: Annotated[np.ndarray, "T"]
    other: Annotated[np.ndarray, "T"]
    d_mixed: Annotated[np.ndarray, "J T"]
    d_state: Annotated[np.ndarray, "H T"]
    powers: Annotated[np.ndarray, "T"]  # scratch of exp_row


def arrange_arrays(kind: Any, *, is_new: bool) -> Any:
    """Compiles a function that returns a tuple's arrays, as consecutive views of a flat array.

    Args:
        is_new: whether they are new arrays of that array's type instead.
    """
    lines = ["K, H, F, h = shape.token_types, shape.hidden, shape.feed_forward, shape.heads"]
    lines += ["J = h * shape.head_size", "end0 = 0"]
    parts = []
    for number, hint in enumerate(get_type_hints(kind, include_extras=True).values()):
        axes = hint.__metadata__[0].split()
        lines.append(f"end{number + 1} = end{number} + {' * '.join(axes)}")
        sizes = ", ".join(axes)
        view = f"flat[end{number}:end{number + 1}]" + f".reshape({sizes})" * (len(axes) > 1)
        # As views of one array, buffers would be summed up in another order.
        parts.append(f"np.zeros(({sizes},), flat.dtype)" if is_new else view)
    lines.append(f"return kind({', '.join(parts)})")
    scope = {"kind": kind, "np": np, "T": TILE}
    exec(compile("def arrange(flat, shape):\n    " + "\n    ".join(lines), __file__, "exec"), scope)
    return allocating(scope["arrange"])


views = arrange_arrays(Parameters, is_new=False)
new_token_types, new_tile = (arrange_arrays(kind, is_new=True) for kind in (TokenTypes, Tile))


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
        exp_row(weights, tile.powers)
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
            normal_rows(tile.inner[f], tile.below[f], tile.density[f], tile.powers)
        for s in range(TILE):
            tile.logit[s] += types.effect[f] * tile.inner[f, s] * tile.below[f, s]
