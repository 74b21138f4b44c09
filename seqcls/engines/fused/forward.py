# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Counts to logits, a tile of strings at a time; the formulas stand in `fused.kernel`."""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from seqcls.engines.compiled.arithmetic import ERFC_DOUBLE, ERFC_SINGLE
from seqcls.engines.compiled.compiling import inlined
from seqcls.engines.fused.buffers import TILE

# exp, log and the normal distribution over whole rows, so that the processor can use vectors.
#
# A compiler makes vector code of loops of plain arithmetic, not of loops that call a library. All
# functions are therefore polynomials, with as many terms as the precision needs:
#
#     exp(x) = 2^k exp(r),  k = round(x / log 2),  |r| <= log(2) / 2,  exp(r) by its Taylor series
#
#     erfc(z) = exp(-z^2) t P(t),  t = 2 / (2 + z),  z >= 0
#
#     log(1 + x) = 2 artanh(x / (2 + x)) by its Taylor series,  0 <= x <= 1
#
# The coefficients of P are those of `seqcls.engines.compiled.arithmetic`. A test holds both
# precisions against `math`.


# The exponent's bias, the bits of the mantissa, the terms of exp and of artanh, the coefficients of
# P, the lowest power first. LOG_2 is in two parts, so that k log 2 loses nothing.
FORMATS: dict[Any, tuple[Any, Any, int, int, int, int, tuple[float, ...]]] = {
    types.float32: (np.float32, np.int32, 127, 23, 8, 8, ERFC_SINGLE),
    types.float64: (np.float64, np.int64, 1023, 52, 14, 17, ERFC_DOUBLE),
}
LOG_2 = (0.693359375, -2.1219444005469057e-4)
# No `fastmath` here: regrouped, the two parts of log 2 would be of no use.
JIT_OPTIONS: Any = {"error_model": "numpy", "forceinline": True, "_nrt": False}


def exp_row(x: Any, powers: Any, exponents: Any) -> None:
    """Replaces every x <= 0 by exp(x), in compiled code; below the least normal number it is 0.

    Args:
        x: one-dimensional and contiguous.
        powers: scratch of at least that length, of the same type.
        exponents: the memory of `powers`, seen as integers of the same size.
    """
    raise NotImplementedError


@overload(exp_row, jit_options=JIT_OPTIONS)
def _exp_row(x: Any, powers: Any, exponents: Any) -> Any:  # noqa: ARG001
    number, integer, bias, mantissa, terms, _, _ = FORMATS[x.dtype]
    coefficients = tuple(number(1 / math.factorial(k)) for k in range(terms))
    high, low = map(number, LOG_2)
    per_log_2, half, least = number(1 / math.log(2)), number(0.5), number(-bias)
    offset, shift = integer(bias), integer(mantissa)

    def compute(x: Any, powers: Any, exponents: Any) -> None:
        for s in range(x.size):
            # With k = -bias the bits of 2^k are those of zero.
            k = max(math.floor(x[s] * per_log_2 + half), least)
            exponents[s] = (integer(k) + offset) << shift
            x[s] = max(x[s], least) - k * high - k * low
        for s in range(x.size):
            value = coefficients[terms - 1]
            for term in range(2, terms + 1):
                value = value * x[s] + coefficients[terms - term]
            x[s] = value * powers[s]

    return compute


def cross_entropy_row(logit: Any, small: Any, target: Any, out: Any) -> None:
    """Writes the binary cross entropy of a row of logits to `out`, in compiled code.

    The order of the operations is that of PyTorch, (1 - target) logit - log sigmoid(logit), and so
    is the rounding: the loss of a negative string far below 0 has few digits in single precision.

    Args:
        logit: one-dimensional and contiguous.
        small: exp(-|logit|).
        target: 0 or 1.
        out: receives the losses, in nats.
    """
    raise NotImplementedError


@overload(cross_entropy_row, jit_options=JIT_OPTIONS)
def _cross_entropy_row(
    logit: Any,
    small: Any,  # noqa: ARG001
    target: Any,  # noqa: ARG001
    out: Any,  # noqa: ARG001
) -> Any:
    number, terms = FORMATS[logit.dtype][0], FORMATS[logit.dtype][5]
    coefficients = tuple(number(2 / (2 * k + 1)) for k in range(terms))
    zero, one, two = map(number, (0, 1, 2))

    def compute(logit: Any, small: Any, target: Any, out: Any) -> None:
        for s in range(logit.size):
            ratio = small[s] / (two + small[s])
            square = ratio * ratio
            value = coefficients[terms - 1]
            for term in range(2, terms + 1):
                value = value * square + coefficients[terms - term]
            out[s] = value * ratio
        for s in range(logit.size):
            log_sigmoid = min(logit[s], zero) - out[s]
            out[s] = (one - target[s]) * logit[s] - log_sigmoid

    return compute


def normal_rows(x: Any, below: Any, density: Any, powers: Any, exponents: Any) -> None:
    """The standard normal distribution at every x, in compiled code.

    Args:
        x: one-dimensional and contiguous.
        below: receives the probability of a value below x.
        density: receives the density at x.
    """
    raise NotImplementedError


@overload(normal_rows, jit_options=JIT_OPTIONS)
def _normal_rows(
    x: Any,
    below: Any,  # noqa: ARG001
    density: Any,  # noqa: ARG001
    powers: Any,  # noqa: ARG001
    exponents: Any,  # noqa: ARG001
) -> Any:
    number = FORMATS[x.dtype][0]
    p = tuple(map(number, FORMATS[x.dtype][-1]))
    terms = len(p)
    zero, half, one, two = map(number, (0, 0.5, 1, 2))
    per_root_2, per_root_2_pi = number(math.sqrt(0.5)), number(1 / math.sqrt(2 * math.pi))

    def compute(x: Any, below: Any, density: Any, powers: Any, exponents: Any) -> None:
        for s in range(x.size):
            density[s] = -half * x[s] * x[s]
        exp_row(density, powers, exponents)
        for s in range(x.size):
            t = two / (two + abs(x[s]) * per_root_2)
            value = p[terms - 1]
            for term in range(2, terms + 1):
                value = value * t + p[terms - term]
            tail = half * density[s] * t * value
            below[s] = tail if x[s] < zero else one - tail
            density[s] *= per_root_2_pi

    return compute


@inlined
def dot(x, y):
    """The sum of the products of two rows."""
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
    """Writes one row to another of the same size.

    For an assignment of slices Numba would also compile the wording of an error about shapes, which
    takes half as long as all of `forward`.
    """
    for s in range(x.size):
        out[s] = x[s]


@inlined
def norm_forward(x, parameters, shape, unit, out, scale, mean):
    """Normalizes every column of x (H, N) into `out`; keeps what `norm_backward` needs."""
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
    """What all strings share: the token types' keys, values and scores, and e."""
    for k in range(shape.token_types):
        for i in range(shape.hidden):
            types.state[i, k] = p.embedding[k, i]
    project(p, shape, types)


@inlined
def project(p, shape, types):
    """From the states of the token types to their keys, values and scores, and e."""
    number = p.embedding.dtype.type
    per_root = number(1 / math.sqrt(shape.head_size))
    norm_forward(types.state, p.norm_a, shape, types.unit, types.normed, types.scale, types.row)
    types.key[:] = number(0)
    types.value[:] = number(0)
    types.score[:] = number(0)
    for j in range(types.query.size):
        types.query[j] = dot(p.query[j], types.normed[:, types.reader])
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
    """What stands for the normal distribution where x Phi(x) is to be max(x, 0)."""
    number = x.dtype.type
    for s in range(TILE):
        below[s] = number(1) if x[s] > number(0) else number(0)
        density[s] = number(0)


@inlined
def below_greatest(counts, score, shape, attention, greatest):
    """How far each token type's score (K) lies below the greatest of those that a string holds."""
    number = counts.dtype.type
    zero = number(0)
    greatest[:] = number(-np.inf)
    for k in range(shape.first_type, shape.token_types):
        for s in range(TILE):
            here = score[k] if counts[k, s] > zero else number(-np.inf)
            greatest[s] = max(greatest[s], here)
    for k in range(shape.first_type, shape.token_types):
        for s in range(TILE):
            # One that is absent may score higher than all that are there; it weighs nothing.
            attention[k, s] = min(score[k] - greatest[s], zero)


@inlined
def scaled_below_greatest(counts, factor, score, shape, attention, greatest):
    """The same with every score times the string's own factor (T)."""
    number = counts.dtype.type
    zero = number(0)
    greatest[:] = number(-np.inf)
    for k in range(shape.first_type, shape.token_types):
        for s in range(TILE):
            here = score[k] * factor[s] if counts[k, s] > zero else number(-np.inf)
            greatest[s] = max(greatest[s], here)
    for k in range(shape.first_type, shape.token_types):
        for s in range(TILE):
            attention[k, s] = min(score[k] * factor[s] - greatest[s], zero)


@inlined
def attend(counts, factor, score, shape, attention, tile):
    """The attention weights (K, T) of one head; all zero where nothing can be attended to."""
    number = counts.dtype.type
    zero, one = number(0), number(1)
    total = tile.other
    if shape.log_length:
        scaled_below_greatest(counts, factor, score, shape, attention, tile.row)
    else:
        below_greatest(counts, score, shape, attention, tile.row)
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
    """The logits of a tile of strings, given as counts (K, T) and the factors of their scores."""
    number = counts.dtype.type
    tile.mixed[:] = number(0)
    for head in range(shape.heads):
        attend(counts, factor, types.score[head], shape, tile.attention[head], tile)
        for j in range(head * shape.head_size, (head + 1) * shape.head_size):
            for k in range(shape.first_type, shape.token_types):
                add(tile.mixed[j], types.value[j, k], tile.attention[head, k])
    read(p, shape, types, tile)


@inlined
def read(p, shape, types, tile):
    """From the mixed values of a tile of strings and the reader's own state to the logits."""
    number = tile.logit.dtype.type
    for i in range(shape.hidden):
        tile.state[i] = types.state[i, types.reader]
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
