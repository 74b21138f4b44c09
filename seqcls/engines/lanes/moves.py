# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Kernels of rows: gathered, copied, scaled, averaged, convolved, unfolded; tables of layers."""

import math

import numpy as np

from seqcls.engines.lanes.layers import WINDOW, Rows
from seqcls.engines.lanes.tiles import bias_gradient
from seqcls.engines.lanes.vector import (
    LANES,
    ZERO,
    fma,
    inlined,
    kernel,
    load,
    spread,
    spread_at,
    store,
    total,
)


@inlined
def rows_from(start, apart, first):
    """Returns rows from one on; with a negative distance, these alone are stored."""
    return Rows(start, -apart) if apart < 0 else Rows(start + first * apart, apart)


@inlined
def rows_of_group(start, apart, first, group, groups):
    """Returns the rows of one group; with a negative distance, one row is stored."""
    if apart < 0:
        return Rows(start + (first - group) * apart, -groups * apart)
    return Rows(start + group * apart, groups * apart)


@kernel
def gather(width, a, x, read, y):
    """Copies the row that is read in each lane of each group; zero where there is none."""
    for group in range(read.shape[0]):
        for i in range(width):
            for lane in range(LANES):
                row = read[group, lane]
                to = (y.first + group * y.apart + i) * LANES + lane
                a[to] = a[(x.first + row * x.apart + i) * LANES + lane] if row >= 0 else ZERO


@kernel
def scatter(width, a, dy, read, dx):
    """Adds D of the rows copied by `gather` to D of their originals."""
    for group in range(read.shape[0]):
        for i in range(width):
            for lane in range(LANES):
                row = read[group, lane]
                if row >= 0:
                    given = a[(dy.first + group * dy.apart + i) * LANES + lane]
                    a[(dx.first + row * dx.apart + i) * LANES + lane] += given


@kernel
def average(a, mean, groups, tokens, starts):
    """Writes each group's mean over the tokens of each string.

    Args:
        mean: a `Mean`.
        starts: (token): the token's first row; then the end of the last one's rows.
    """
    x, y = mean.x, mean.y
    for group in range(groups):
        for i in range(mean.columns):
            value = spread(ZERO)
            for token in range(tokens):
                row = starts[token] + group
                # A group whose strings have ended has no rows.
                if row < starts[token + 1]:
                    is_token = load(a, mean.is_token + row)
                    value = fma(load(a, x.first + row * x.apart + i), is_token, value)
            store(a, y.first + group * y.apart + i, value * load(a, mean.share + group))


@kernel
def average_gradient(a, mean, tokens, starts):
    """Writes D of all tokens, given D of their means."""
    dx, dy = mean.x, mean.y
    for token in range(tokens):
        for row in range(starts[token], starts[token + 1]):
            group = row - starts[token]
            here = load(a, mean.is_token + row) * load(a, mean.share + group)
            for i in range(mean.columns):
                given = load(a, dy.first + group * dy.apart + i)
                store(a, dx.first + row * dx.apart + i, given * here)


@kernel
def scale(first, rows, o, a):
    """Multiplies rows of a `Scale`, each by a vector."""
    for r in range(rows):
        factor, start = load(a, o.factors + first + r), o.x.first + r * o.x.apart
        for index in range(start, start + o.columns):
            store(a, index, load(a, index) * factor)


@kernel
def scale_heads(first, rows, o, a, w):
    """Writes y of a `ScaleHeads`."""
    width, share = o.heads.head_width, share_of(o.heads)
    for r in range(rows):
        factor = load(a, o.factors + first + r)
        for head in range(o.heads.heads):
            bias = spread(w[o.bias + head] * share)
            by = fma(factor, spread_at(w, o.scale + head), bias)
            for i in range(head * width, (head + 1) * width):
                store(a, o.y.first + r * o.y.apart + i, load(a, o.x.first + r * o.x.apart + i) * by)


@kernel
def scale_heads_gradient(first, rows, to, a, w, gradient):
    """Writes D x of a `ScaleHeadsGradient`, and adds D of the learned numbers."""
    o, dy, dx = to
    width, share = o.heads.head_width, share_of(o.heads)
    for head in range(o.heads.heads):
        d_scale, d_bias = spread(ZERO), spread(ZERO)
        for r in range(rows):
            factor, given = load(a, o.factors + first + r), spread(ZERO)
            by = fma(factor, spread_at(w, o.scale + head), spread(w[o.bias + head] * share))
            for i in range(head * width, (head + 1) * width):
                here = load(a, dy.first + r * dy.apart + i)
                given = fma(here, load(a, o.x.first + r * o.x.apart + i), given)
                store(a, dx.first + r * dx.apart + i, here * by)
            d_scale, d_bias = fma(given, factor, d_scale), d_bias + given
        gradient[o.scale + head] += total(d_scale)
        gradient[o.bias + head] += total(d_bias) * share


@inlined
def share_of(heads):
    """Returns 1 / sqrt(head size)."""
    return np.float32(1 / math.sqrt(max(heads.head_size, 1)))


@kernel
def enlarge(rows, o, a):
    """Multiplies rows of an `Enlarge` by the square root of a size."""
    factor = spread(np.float32(math.sqrt(o.size)))
    for r in range(rows):
        start = o.x.first + r * o.x.apart
        for index in range(start, start + o.columns):
            store(a, index, load(a, index) * factor)


@kernel
def copy(rows, o, a):
    """Copies or adds rows of a `Copy`."""
    for r in range(rows):
        for c in range(o.columns):
            to, value = o.y.first + r * o.y.apart + c, load(a, o.x.first + r * o.x.apart + c)
            store(a, to, load(a, to) + value if o.add else value)


@kernel
def convolve(first, rows, o, a, w):
    """Writes each channel's weighted sum over a token and the three before it.

    Args:
        o: a `Convolve`, with the rows of one group.
    """
    for token in range(first, first + rows):
        for channel in range(o.channels):
            value = spread(ZERO)
            for back in range(min(WINDOW, token + 1)):
                before = load(a, o.x.first + (token - back) * o.x.apart + channel)
                weight = spread_at(w, o.weight + channel * WINDOW + WINDOW - 1 - back)
                value = fma(before, weight, value)
            if o.bias >= 0:
                value = value + spread_at(w, o.bias + channel)
            store(a, o.y.first + token * o.y.apart + channel, value)


@kernel
def convolve_gradient(tokens, o, a, w, gradient):
    """Writes D of the input of `convolve`, and adds D of its parameters.

    Args:
        o: a `ConvolveGradient`.
    """
    for channel in range(o.channels):
        for back in range(WINDOW):
            value = spread(ZERO)
            for token in range(back, tokens):
                before = load(a, o.x.first + (token - back) * o.x.apart + channel)
                value = fma(load(a, o.dy.first + token * o.dy.apart + channel), before, value)
            gradient[o.weight + channel * WINDOW + WINDOW - 1 - back] += total(value)
        for token in range(tokens):
            value = spread(ZERO)
            for back in range(min(WINDOW, tokens - token)):
                after = load(a, o.dy.first + (token + back) * o.dy.apart + channel)
                weight = spread_at(w, o.weight + channel * WINDOW + WINDOW - 1 - back)
                value = fma(after, weight, value)
            store(a, o.dx.first + token * o.dx.apart + channel, value)
    if o.bias >= 0:
        bias_gradient(tokens, o.channels, a, o.dy, gradient, o.bias)


@kernel
def unfold(first, rows, groups, a, unfolding):
    """Copies columns to a row for each step; or back, from D of these rows to D of the token's.

    Args:
        unfolding: an `Unfold`.
    """
    x, y = unfolding.x, rows_from(unfolding.y.first, unfolding.y.apart, first * unfolding.steps)
    for number in range(first, first + rows):
        token, group, one = number // groups, number % groups, x.first + (number - first) * x.apart
        for step in range(unfolding.steps):
            row = ((token - first // groups) * unfolding.steps + step) * groups + group
            other = y.first + row * y.apart
            for i in range(unfolding.shared):
                if not unfolding.back:
                    store(a, other + i, load(a, one + i))
                elif step == 0:
                    store(a, one + i, load(a, other + i))
                else:
                    store(a, one + i, load(a, one + i) + load(a, other + i))
            for part in range(unfolding.parts):
                here = one + unfolding.shared + (part * unfolding.steps + step) * unfolding.width
                there = other + unfolding.shared + part * unfolding.width
                for i in range(unfolding.width):
                    if unfolding.back:
                        store(a, here + i, load(a, there + i))
                    else:
                        store(a, there + i, load(a, here + i))


@kernel
def fold(first, rows, groups, a, folding):
    """Copies the row of each token's last step; or D of it back, with zeros for the other steps.

    Args:
        folding: a `Fold`.
    """
    x, y = rows_from(folding.x.first, folding.x.apart, first * folding.steps), folding.y
    for number in range(rows):
        token, group = number // groups, number % groups
        for step in range(folding.steps):
            here = x.first + ((token * folding.steps + step) * groups + group) * x.apart
            there, is_last = y.first + number * y.apart, step == folding.steps - 1
            for i in range(folding.columns):
                if folding.back:
                    store(a, here + i, load(a, there + i) if is_last else spread(ZERO))
                elif is_last:
                    store(a, there + i, load(a, here + i))


@kernel
def make_table(it, w):
    """Writes a layer's outputs for each token type, (output, type); `it` is a `Table`."""
    for output in range(it.outputs):
        for kind in range(it.kinds):
            value = ZERO
            for i in range(it.inputs):
                value += (
                    w[it.weight + output * it.inputs + i] * w[it.embedding + kind * it.inputs + i]
                )
            w[it.table + output * it.kinds + kind] = value


@kernel
def table_gradient(it, w, gradient):
    """Adds D of the layer and of the embedding, given D of the table, which is cleared."""
    for output in range(it.outputs):
        for kind in range(it.kinds):
            d = gradient[it.table + output * it.kinds + kind]
            gradient[it.table + output * it.kinds + kind] = ZERO
            for i in range(it.inputs):
                weight, embedded = it.weight + output * it.inputs, it.embedding + kind * it.inputs
                gradient[weight + i] += d * w[embedded + i]
                gradient[embedded + i] += d * w[weight + i]
