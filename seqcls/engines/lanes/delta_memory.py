# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The memory of DeltaNet and Gated DeltaNet over a group of strings, forward and backward.

What is read of a token is x; q, k and v are linear in it, go through a convolution over four tokens
and SiLU, and q and k are of length 1 in each head. b is the logistic function of a linear layer,
twice that where factors are signed, and a = exp(-A softplus(w x + c)) where the memory fades, else
1. With c_t the sum of log a up to t, and D_ts = exp(c_t - c_s),

    r_t = v_t - sum_{s<t} N_ts u_s      N_ts = D_ts k_t . k_s      u_t = b_t r_t
    o_t = sum_{s<=t} P_ts u_s           P_ts = D_ts q_t . k_s

and o, its RMS norm a head, times SiLU(g x) where the memory fades, is what is mixed. Backward, from
the last token on,

    D u_t = sum_{t'>=t} P_t't D o_t' - sum_{t'>t} N_t't D r_t'
    D v_t = D r_t = b_t D u_t           D b_t = D u_t . r_t
    D P_ts = D o_t . u_s                D N_ts = -D r_t . u_s
    D c_t = sum_s (D N N + D P P)_ts - sum_t' (D N N + D P P)_t't

and D log a_t is the sum of D c from t on.
"""

import math

import numpy as np

from seqcls.engines.lanes.elementary import (
    TWO,
    Norm,
    NormStates,
    exp,
    norm,
    norm_gradient,
    sigmoid,
    silu,
    silu_slope,
    softplus,
)
from seqcls.engines.lanes.layers import QUERIES, RMS, WINDOW, Rows
from seqcls.engines.lanes.tiles import Matrix, clear, product
from seqcls.engines.lanes.vector import (
    HALF,
    ONE,
    ZERO,
    fma,
    if_less,
    kernel,
    load,
    root,
    spread,
    spread_at,
    store,
    total,
)

NORM_EPS = 1e-5
SHORTEST = np.float32(1e-12)
"""By at least so much queries and keys are divided, as PyTorch does."""


@kernel
def convolve(first, rows, channels, start, a, given, to, w):
    """Each channel's mean over a token and the three before it, with learned weights."""
    for token in range(first, first + rows):
        for channel in range(channels):
            value = spread(ZERO)
            for back in range(min(WINDOW, token + 1)):
                before = load(a, given.first + (token - back) * given.apart + channel)
                weight = spread_at(w, start + channel * WINDOW + WINDOW - 1 - back)
                value = fma(before, weight, value)
            store(a, to.first + token * to.apart + channel, value)


@kernel
def convolve_gradient(tokens, channels, start, a, given, dto, dgiven, w, gradient):
    """Writes D of what is given to it."""
    for channel in range(channels):
        for back in range(WINDOW):
            value = spread(ZERO)
            for token in range(back, tokens):
                before = load(a, given.first + (token - back) * given.apart + channel)
                value = fma(load(a, dto.first + token * dto.apart + channel), before, value)
            gradient[start + channel * WINDOW + WINDOW - 1 - back] += total(value)
        for token in range(tokens):
            value = spread(ZERO)
            for back in range(min(WINDOW, tokens - token)):
                after = load(a, dto.first + (token + back) * dto.apart + channel)
                weight = spread_at(w, start + channel * WINDOW + WINDOW - 1 - back)
                value = fma(after, weight, value)
            store(a, dgiven.first + token * dgiven.apart + channel, value)


@kernel
def norm_of(its):
    """The norm of what each head recalls."""
    return Norm(RMS, its.sizes.head_size, NORM_EPS, its.norm, -1)


@kernel
def shape_heads(first, rows, a, its):
    """Queries and keys of length 1, and values, of what is convolved."""
    for token in range(first, first + rows):
        x0 = its.given.first + token * its.given.apart
        y0 = its.heads.first + token * its.heads.apart
        for i in range(3 * its.sizes.joined):
            value = load(a, x0 + i)
            store(a, y0 + i, silu(value))
        for head in range(2 * its.sizes.heads):
            part, squares = y0 + head * its.sizes.head_width, spread(ZERO)
            for i in range(part, part + its.sizes.head_size):
                squares = fma(load(a, i), load(a, i), squares)
            length = root(squares)
            share = if_less(length, spread(SHORTEST), spread(ONE / SHORTEST), ONE / length)
            store(a, its.lengths.first + token * its.lengths.apart + head, share)
            for i in range(part, part + its.sizes.head_size):
                store(a, i, load(a, i) * share)


@kernel
def shape_heads_gradient(tokens, a, its, dheads):
    """Replaces D of queries, keys and values by D of what is convolved."""
    for token in range(tokens):
        x0 = its.given.first + token * its.given.apart
        y0 = its.heads.first + token * its.heads.apart
        d0 = dheads.first + token * dheads.apart
        for head in range(2 * its.sizes.heads):
            moved, along = head * its.sizes.head_width, spread(ZERO)
            for i in range(moved, moved + its.sizes.head_size):
                along = fma(load(a, y0 + i), load(a, d0 + i), along)
            share = load(a, its.lengths.first + token * its.lengths.apart + head)
            # Below the shortest length, by which they are divided then, it is no part of it.
            along = if_less(share, spread(ONE / SHORTEST), along, spread(ZERO))
            for i in range(moved, moved + its.sizes.head_size):
                store(a, d0 + i, (load(a, d0 + i) - load(a, y0 + i) * along) * share)
        for i in range(3 * its.sizes.joined):
            store(a, d0 + i, load(a, d0 + i) * silu_slope(load(a, x0 + i)))


@kernel
def fade(first, rows, a, its, w):
    """Replaces w x by log a, and writes its slopes and sums."""
    for head in range(its.sizes.heads):
        rate, offset = np.float32(math.exp(w[its.log_rate + head])), w[its.offset + head]
        for token in range(first, first + rows):
            index = its.log_kept.first + token * its.log_kept.apart + head
            given = load(a, index) + offset
            slope = its.slopes.first + token * its.slopes.apart + head
            store(a, slope, sigmoid(given) * (-rate))
            store(a, index, softplus(given) * (-rate))
            here = its.sums.first + token * its.sums.apart + head
            before = load(a, here - its.sums.apart) if token > 0 else spread(ZERO)
            store(a, here, before + load(a, index))


@kernel
def remember(first, rows, a, its, w):
    """Writes what is mixed of some tokens, given what is projected of them and of all before.

    Args:
        its: a `Remember`, with the rows of one group.
    """
    count = rows if its.keep else 0
    scales = its.scales if its.keep else its.scales - first
    shape_heads(first, rows, a, its)
    most = TWO if its.signed else ONE
    for token in range(first, first + rows):
        for head in range(its.sizes.heads):
            index = its.strengths.first + token * its.strengths.apart + head
            store(a, index, sigmoid(load(a, index)) * most)
    if its.fades:
        fade(first, rows, a, its, w)
    for head in range(its.sizes.heads):
        moved = head * its.sizes.head_width
        for begin in range(first, first + rows, QUERIES):
            some = min(QUERIES, first + rows - begin)
            recall(begin, some, head, count, a, its)
        x = Rows(its.recalled.first + first * its.recalled.apart + moved, its.recalled.apart)
        units = its.units.first + first * its.recalled.apart + moved
        norm(rows, norm_of(its), a, x, x, NormStates(units, scales + head * count + first), w)
    for token in range(first, first + rows):
        for i in range(its.sizes.joined):
            value = load(a, its.recalled.first + token * its.recalled.apart + i)
            if its.fades:
                gate = load(a, its.gate.first + token * its.gate.apart + i)
                value = value * silu(gate)
            store(a, its.mixed.first + token * its.mixed.apart + i, value)


@kernel
def recall(first, some, head, count, a, its):
    """Writes what one head recalls at some tokens, and what it writes there to its memory.

    Args:
        count: of tokens whose rows are kept.
    """
    query, row = its.heads.first + head * its.sizes.head_width, its.heads.apart
    key, value = query + its.sizes.joined, query + 2 * its.sizes.joined
    written = Rows(its.written.first + head * its.sizes.head_width, its.written.apart)
    o = its.recalled.first + head * its.sizes.head_width
    at = (head * count + first) * its.pairs.apart if its.keep else 0
    pairs, reads = its.pairs.first + at, its.reads.first + at
    since, apart = its.since.first + at, its.pairs.apart
    known = (first + some + 3) // 4 * 4
    end = count if its.keep else known
    keys = Matrix(key, row, 1)
    before = Matrix(key + first * row, row, 1)
    product(some, known, its.sizes.head_size, a, before, keys, Rows(pairs, apart), False)
    before = Matrix(query + first * row, row, 1)
    product(some, known, its.sizes.head_size, a, before, keys, Rows(reads, apart), False)
    for number in range(some):
        token, moved = first + number, number * apart
        if its.fades:
            now = load(a, its.sums.first + token * its.sums.apart + head)
            for other in range(token):
                then = load(a, its.sums.first + other * its.sums.apart + head)
                kept = exp(now - then)
                store(a, since + moved + other, kept)
                store(a, pairs + moved + other, load(a, pairs + moved + other) * kept)
                store(a, reads + moved + other, load(a, reads + moved + other) * kept)
        clear(a, pairs + moved + token, end - token)
        clear(a, reads + moved + token + 1, end - token - 1)
        u = written.first + token * written.apart
        left, right = Matrix(pairs + moved, apart, 1), Matrix(written.first, 1, written.apart)
        product(1, its.sizes.head_width, token, a, left, right, Rows(u, 0), False)
        strength = load(a, its.strengths.first + token * its.strengths.apart + head)
        for i in range(its.sizes.head_width):
            rest = load(a, value + token * row + i) - load(a, u + i)
            store(a, value + token * row + i, rest)
            store(a, u + i, rest * strength)
    left, right = Matrix(reads, apart, 1), Matrix(written.first, 1, written.apart)
    to = Rows(o + first * its.recalled.apart, its.recalled.apart)
    product(some, its.sizes.head_width, first + some, a, left, right, to, False)


@kernel
def remember_gradient(tokens, a, to, w, gradient):
    """From D of what is mixed to D of what is projected, in rows of `to`, a `RememberGradient`."""
    its = to.forward
    for token in range(tokens if its.fades else 0):
        for i in range(its.sizes.joined):
            index = to.mixed.first + token * to.mixed.apart + i
            gate = load(a, its.gate.first + token * its.gate.apart + i)
            normed, d = load(a, its.recalled.first + token * its.recalled.apart + i), load(a, index)
            store(a, to.gate.first + token * to.gate.apart + i, d * normed * silu_slope(gate))
            store(a, index, d * silu(gate))
    for head in range(its.sizes.heads):
        moved = head * its.sizes.head_width
        d = Rows(to.mixed.first + moved, to.mixed.apart)
        kept = NormStates(its.units.first + moved, its.scales + head * tokens)
        norm_gradient(tokens, norm_of(its), a, d, d, kept, to.sums, w, gradient, False)
        recall_gradient(tokens, head, a, its, to)
    shape_heads_gradient(tokens, a, its, to.given)
    most = HALF if its.signed else ONE
    for head in range(its.sizes.heads):
        rate, offset = spread(ZERO), spread(ZERO)
        for token in range(tokens):
            index = to.strengths.first + token * to.strengths.apart + head
            strength = load(a, its.strengths.first + token * its.strengths.apart + head)
            store(a, index, load(a, index) * strength * (ONE - strength * most))
            if its.fades:
                index = to.log_kept.first + token * to.log_kept.apart + head
                moved = token * its.log_kept.apart + head
                d = load(a, index)
                rate = fma(d, load(a, its.log_kept.first + moved), rate)
                d = d * load(a, its.slopes.first + moved)
                offset = offset + d
                store(a, index, d)
        if its.fades:
            gradient[its.log_rate + head] += total(rate)
            gradient[its.offset + head] += total(offset)


@kernel
def recall_gradient(tokens, head, a, its, to):
    """From D of what one head recalls to D of its queries, keys and values, of strengths and of the
    logarithm of what is kept.
    """
    moved, row, apart = head * its.sizes.head_width, its.heads.apart, its.pairs.apart
    query, dquery = its.heads.first + moved, to.given.first + moved
    key, dkey = query + its.sizes.joined, dquery + its.sizes.joined
    rest, dvalue = query + 2 * its.sizes.joined, dquery + 2 * its.sizes.joined
    o, u = to.mixed.first + moved, its.written.first + moved
    at = head * tokens * apart
    pairs, reads, since = its.pairs.first + at, its.reads.first + at, its.since.first + at
    dpairs, dreads = to.pairs.first, to.reads.first
    width = its.sizes.head_width
    left, right = Matrix(reads, 1, apart), Matrix(o, 1, to.mixed.apart)
    product(tokens, width, tokens, a, left, right, Rows(dvalue, row), False)
    for token in range(tokens - 1, -1, -1):
        later, scratch = token + 1, to.sums
        left = Matrix(pairs + later * apart + token, 0, apart)
        right = Matrix(dvalue + later * row, 1, row)
        product(1, width, tokens - later, a, left, right, Rows(scratch, 0), False)
        strength = load(a, its.strengths.first + token * its.strengths.apart + head)
        along = spread(ZERO)
        for i in range(width):
            du = load(a, dvalue + token * row + i) - load(a, scratch + i)
            along = fma(du, load(a, rest + token * row + i), along)
            store(a, dvalue + token * row + i, du * strength)
        store(a, to.strengths.first + token * to.strengths.apart + head, along)

    given, right = Matrix(o, to.mixed.apart, 1), Matrix(u, its.written.apart, 1)
    product(tokens, tokens, width, a, given, right, Rows(dreads, apart), False)
    given = Matrix(dvalue, row, 1)
    product(tokens, tokens, width, a, given, right, Rows(dpairs, apart), False)
    for token in range(tokens):
        moved = token * apart
        sums = spread(ZERO)
        for other in range(token):
            index = moved + other
            dread, dpair = load(a, dreads + index), ZERO - load(a, dpairs + index)
            if its.fades:
                of_log = fma(dread, load(a, reads + index), dpair * load(a, pairs + index))
                sums = sums + of_log
                there = to.log_kept.first + other * to.log_kept.apart + head
                store(a, there, load(a, there) - of_log)
                kept = load(a, since + index)
                dread, dpair = dread * kept, dpair * kept
            store(a, dreads + index, dread)
            store(a, dpairs + index, dpair)
        # What stands here so far is of later tokens, which come later; of itself it is nothing.
        store(a, to.log_kept.first + token * to.log_kept.apart + head, sums)
        clear(a, dpairs + moved + token, tokens - token)
        clear(a, dreads + moved + token + 1, tokens - token - 1)
    if its.fades:
        for token in range(tokens - 2, -1, -1):
            here = to.log_kept.first + token * to.log_kept.apart + head
            store(a, here, load(a, here) + load(a, here + to.log_kept.apart))

    by_key = Matrix(key, 1, row)
    left = Matrix(dreads, apart, 1)
    product(tokens, width, tokens, a, left, by_key, Rows(dquery, row), False)
    left = Matrix(dpairs, apart, 1)
    product(tokens, width, tokens, a, left, by_key, Rows(dkey, row), False)
    left = Matrix(dpairs, 1, apart)
    product(tokens, width, tokens, a, left, by_key, Rows(dkey, row), True)
    left = Matrix(dreads, 1, apart)
    product(tokens, width, tokens, a, left, Matrix(query, 1, row), Rows(dkey, row), True)
