# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The biases that FIRE adds to scores: a small network of two tokens' relative distance.

    share = psi(d) / psi(m),  psi(x) = log(1 + c x),  m = max(L, n)
    f_h = sum_k V_hk max(0, u_k share + b_k) + v_h

d is the distance of two tokens. With a causal mask n is the number of tokens up to the query: all
strings have the same biases, so lanes hold distances. Otherwise n is the length of the string, and
each lane has the biases of its own string. Li et al. (2024).

    D psi(d) = D share / psi(m)       D psi(m) = -D share share / psi(m)
    D c = D psi(x) x / (1 + c x)      D L = D psi(L) c / (1 + c L) where L > n
"""

import math

import numpy as np

from seqcls.engines.lanes.layers import FIRE_UNITS
from seqcls.engines.lanes.tiles import clear
from seqcls.engines.lanes.vector import (
    LANES,
    ZERO,
    fma,
    if_less,
    kernel,
    larger,
    load,
    spread,
    spread_at,
    store,
    total,
)


@kernel
def vectors_of(row, o):
    """Returns the number of vectors in a row: of all distances, or of those to earlier tokens."""
    return row // LANES + 1 if o.causal else o.tokens


@kernel
def fill_shares(o, begin, end, known, lengths, a, w):
    """Writes the relative distances: rows of the tokens from `begin` to `end`, or one for all.

    Args:
        o: a `Fire`.
        known: the number of tokens of each string, filled up.
        lengths: (lane).
    """
    scale = math.exp(np.float64(w[o.log_scale]))
    threshold = math.exp(np.float64(w[o.log_threshold]))
    if o.causal:
        for row in range(begin, end):
            whole = math.log1p(scale * max(threshold, row + 1.0))
            share0 = (o.shares + (row - begin) * o.tokens) * LANES
            for distance in range(vectors_of(row, o) * LANES):
                a[share0 + distance] = np.float32(math.log1p(scale * distance) / whole)
        return
    for lane in range(LANES):
        whole = math.log1p(scale * max(threshold, max(lengths[lane], 1.0)))
        for distance in range(known):
            share = math.log1p(scale * distance) / whole
            a[(o.shares + distance) * LANES + lane] = np.float32(share)


@kernel
def fire(o, begin, end, known, lengths, a, w):
    """Writes the biases, head by head, in rows like those of the relative distances."""
    fill_shares(o, begin, end, known, lengths, a, w)
    for row in range(begin, end if o.causal else begin + 1):
        count = vectors_of(row, o) if o.causal else known
        moved = (row - begin) * o.tokens
        for head in range(o.heads):
            number0 = o.numbers + head * o.rows * o.tokens + moved
            for index in range(count):
                share = load(a, o.shares + moved + index)
                value = spread_at(w, o.output_bias + head)
                for unit in range(FIRE_UNITS):
                    inner = fma(
                        share, spread_at(w, o.input + unit), spread_at(w, o.input_bias + unit)
                    )
                    weight = spread_at(w, o.output + head * FIRE_UNITS + unit)
                    value = fma(larger(inner, spread(ZERO)), weight, value)
                store(a, number0 + index, value)


@kernel
def fire_gradient(o, sums, count, known, lengths, a, w, gradient):
    """Adds D of the network's parameters, given D of the biases, which is cleared.

    Args:
        o: a `Fire`; D of the biases begins at `o.gradient`.
        sums: the start of scratch: two vectors for each unit, and for each head one more than
            there are units.
        count: the number of tokens.
    """
    units, heads = FIRE_UNITS, o.heads
    clear(a, sums, 2 * units + heads * (units + 1))
    out0 = sums + 2 * units
    scale = math.exp(np.float64(w[o.log_scale]))
    threshold = math.exp(np.float64(w[o.log_threshold]))
    d_scale = d_threshold = 0.0
    for row in range(count if o.causal else 1):
        moved = row * o.tokens
        for index in range(vectors_of(row, o) if o.causal else known):
            share, d_share = load(a, o.shares + moved + index), spread(ZERO)
            for unit in range(units):
                weight = spread_at(w, o.input + unit)
                inner = fma(share, weight, spread_at(w, o.input_bias + unit))
                value, d_inner = larger(inner, spread(ZERO)), spread(ZERO)
                for head in range(heads):
                    at = o.gradient + head * o.rows * o.tokens + moved + index
                    given, to = load(a, at), out0 + head * (units + 1) + unit
                    store(a, to, fma(given, value, load(a, to)))
                    d_inner = fma(given, spread_at(w, o.output + head * units + unit), d_inner)
                d_inner = if_less(spread(ZERO), inner, d_inner, spread(ZERO))
                store(a, sums + unit, fma(d_inner, share, load(a, sums + unit)))
                store(a, sums + units + unit, load(a, sums + units + unit) + d_inner)
                d_share = fma(d_inner, weight, d_share)
            for head in range(heads):
                at = o.gradient + head * o.rows * o.tokens + moved + index
                to = out0 + head * (units + 1) + units
                store(a, to, load(a, to) + load(a, at))
                store(a, at, spread(ZERO))
            store(a, o.shares + moved + index, d_share)
            for lane in range(LANES):
                distance = np.float64(index * LANES + lane if o.causal else index)
                read = row + 1.0 if o.causal else max(lengths[lane], 1.0)
                longest = max(threshold, read)
                whole, part = math.log1p(scale * longest), math.log1p(scale * distance)
                here = np.float64(a[(o.shares + moved + index) * LANES + lane]) / whole
                d_whole = -here * part / whole
                d_scale += here * distance / (1 + scale * distance)
                d_scale += d_whole * longest / (1 + scale * longest)
                if threshold > read:
                    d_threshold += d_whole * scale / (1 + scale * threshold)
    # The parameters are logarithms: D log x = x D x.
    gradient[o.log_scale] += np.float32(d_scale * scale)
    gradient[o.log_threshold] += np.float32(d_threshold * threshold)
    for unit in range(units):
        gradient[o.input + unit] += total(load(a, sums + unit))
        gradient[o.input_bias + unit] += total(load(a, sums + units + unit))
    for head in range(heads):
        for unit in range(units):
            given = total(load(a, out0 + head * (units + 1) + unit))
            gradient[o.output + head * units + unit] += given
        gradient[o.output_bias + head] += total(load(a, out0 + head * (units + 1) + units))


@kernel
def add_fire(queries, first, keys, a, scores0, row, causal, tokens, number0):
    """Adds the biases to the scores of one head; queries are the tokens from `first` on.

    Args:
        number0: the start of the head's biases, with a causal mask of those of the first query.
        tokens: the distance between rows of biases.
    """
    for query in range(queries):
        for key in range(keys):
            distance, index = abs(first + query - key), scores0 + query * row + key
            if causal:
                at = (number0 + query * tokens) * LANES + distance
                added = spread_at(a, at) if key <= first + query else spread(ZERO)
            else:
                added = load(a, number0 + distance)
            store(a, index, load(a, index) + added)


@kernel
def add_fire_gradient(queries, first, keys, a, dscores0, row, causal, tokens, d0):
    """Adds D of the scores of one head to D of the biases."""
    for query in range(queries):
        for key in range(keys):
            distance, given = abs(first + query - key), load(a, dscores0 + query * row + key)
            if not causal:
                store(a, d0 + distance, load(a, d0 + distance) + given)
            elif key <= first + query:
                a[(d0 + query * tokens) * LANES + distance] += total(given)
