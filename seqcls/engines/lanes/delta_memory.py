# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The memory of DeltaNet and Gated DeltaNet over a group of strings, forward and backward.

The input at a token is x; q, k and v are linear in it, and have passed a convolution over four
tokens and SiLU; q and k are normalized to length 1 in each head. b is the logistic function of a
linear layer, doubled where factors are signed, and a = exp(-A softplus(w x + c)) where the memory
fades, else 1. With c_t the sum of log a up to t, and D_ts = exp(c_t - c_s),

    r_t = v_t - sum_{s<t} N_ts u_s      N_ts = D_ts k_t . k_s      u_t = b_t r_t
    o_t = sum_{s<=t} P_ts u_s           P_ts = D_ts q_t . k_s

and the output is the RMS norm of o in each head. Backward, from the last token on,

    D u_t = sum_{t'>=t} P_t't D o_t' - sum_{t'>t} N_t't D r_t'
    D v_t = D r_t = b_t D u_t           D b_t = D u_t . r_t
    D P_ts = D o_t . u_s                D N_ts = -D r_t . u_s
    D c_t = sum_s (D N N + D P P)_ts - sum_t' (D N N + D P P)_t't

and D log a_t is the sum of D c from t on.
"""

import math

import numpy as np

from seqcls.engines.lanes.elementary import TWO, exp, norm, norm_gradient, sigmoid, softplus
from seqcls.engines.lanes.layers import QUERIES, RMS, NormLayer, Rows
from seqcls.engines.lanes.tiles import Matrix, clear, product
from seqcls.engines.lanes.vector import (
    HALF,
    ONE,
    ZERO,
    fma,
    fnma,
    if_less,
    kernel,
    load,
    root,
    spread,
    store,
    total,
)

NORM_EPS = 1e-5
SHORTEST = np.float32(1e-12)
"""The least length that queries and keys are divided by, as in PyTorch."""


@kernel
def shape_heads(first, rows, a, memory):
    """Divides queries and keys by their lengths."""
    for token in range(first, first + rows):
        x0 = memory.given.first + token * memory.given.apart
        for head in range(2 * memory.sizes.heads):
            part, squares = x0 + head * memory.sizes.head_width, spread(ZERO)
            for i in range(part, part + memory.sizes.head_size):
                squares = fma(load(a, i), load(a, i), squares)
            length = root(squares)
            share = if_less(length, spread(SHORTEST), spread(ONE / SHORTEST), ONE / length)
            store(a, memory.lengths.first + token * memory.lengths.apart + head, share)
            for i in range(part, part + memory.sizes.head_size):
                store(a, i, load(a, i) * share)


@kernel
def shape_heads_gradient(tokens, a, memory, dheads):
    """Replaces D of queries and keys by D of those before their division."""
    for token in range(tokens):
        y0 = memory.given.first + token * memory.given.apart
        d0 = dheads.first + token * dheads.apart
        for head in range(2 * memory.sizes.heads):
            moved, along = head * memory.sizes.head_width, spread(ZERO)
            for i in range(moved, moved + memory.sizes.head_size):
                along = fma(load(a, y0 + i), load(a, d0 + i), along)
            share = load(a, memory.lengths.first + token * memory.lengths.apart + head)
            # Vectors below the shortest length are divided by a constant.
            along = if_less(share, spread(ONE / SHORTEST), along, spread(ZERO))
            for i in range(moved, moved + memory.sizes.head_size):
                store(a, d0 + i, fnma(load(a, y0 + i), along, load(a, d0 + i)) * share)


@kernel
def fade(first, rows, a, memory, w):
    """Replaces w x by log a, and writes its slopes and sums."""
    for head in range(memory.sizes.heads):
        rate, offset = np.float32(math.exp(w[memory.log_rate + head])), w[memory.offset + head]
        for token in range(first, first + rows):
            index = memory.log_decay.first + token * memory.log_decay.apart + head
            given = load(a, index) + offset
            slope = memory.slopes.first + token * memory.slopes.apart + head
            store(a, slope, sigmoid(given) * (-rate))
            store(a, index, softplus(given) * (-rate))
            here = memory.sums.first + token * memory.sums.apart + head
            before = load(a, here - memory.sums.apart) if token > 0 else spread(ZERO)
            store(a, here, before + load(a, index))


@kernel
def remember(first, rows, a, memory, w):
    """Writes the outputs of some tokens, given the projections of them and of all tokens before.

    Args:
        memory: a `Remember`, with the rows of one group.
    """
    # Only training stores every head's rows; otherwise all heads share the same ones.
    count = rows if memory.keep else 0
    scales = memory.scales if memory.keep else memory.scales - first
    shape_heads(first, rows, a, memory)
    most = TWO if memory.signed else ONE
    for token in range(first, first + rows):
        for head in range(memory.sizes.heads):
            index = memory.strengths.first + token * memory.strengths.apart + head
            store(a, index, sigmoid(load(a, index)) * most)
    if memory.fades:
        fade(first, rows, a, memory, w)
    for head in range(memory.sizes.heads):
        moved = head * memory.sizes.head_width
        for begin in range(first, first + rows, QUERIES):
            some = min(QUERIES, first + rows - begin)
            recall(begin, some, head, count, a, memory)
        row = memory.recalled.apart
        x = Rows(memory.recalled.first + first * row + moved, row)
        units = memory.units.first + first * row + moved
        scale = scales + head * count + first
        layer = NormLayer(RMS, memory.sizes.head_size, memory.norm, -1)
        norm(rows, layer, NORM_EPS, a, x, x, units, scale, w)


@kernel
def recall(first, some, head, count, a, memory):
    """Writes one head's o and u of some tokens.

    Args:
        count: the number of tokens whose rows are stored.
    """
    query, row = memory.given.first + head * memory.sizes.head_width, memory.given.apart
    key, value = query + memory.sizes.joined, query + 2 * memory.sizes.joined
    written = Rows(memory.written.first + head * memory.sizes.head_width, memory.written.apart)
    o = memory.recalled.first + head * memory.sizes.head_width
    at = (head * count + first) * memory.pairs.apart if memory.keep else 0
    pairs, reads = memory.pairs.first + at, memory.reads.first + at
    since, apart = memory.since.first + at, memory.pairs.apart
    # Up to a whole block of columns.
    known = (first + some + 3) // 4 * 4
    end = count if memory.keep else known
    keys = Matrix(key, row, 1)
    before = Matrix(key + first * row, row, 1)
    product(some, known, memory.sizes.head_size, a, before, keys, Rows(pairs, apart), False)
    before = Matrix(query + first * row, row, 1)
    product(some, known, memory.sizes.head_size, a, before, keys, Rows(reads, apart), False)
    for number in range(some):
        token, moved = first + number, number * apart
        if memory.fades:
            now = load(a, memory.sums.first + token * memory.sums.apart + head)
            for other in range(token):
                then = load(a, memory.sums.first + other * memory.sums.apart + head)
                decay = exp(now - then)
                store(a, since + moved + other, decay)
                store(a, pairs + moved + other, load(a, pairs + moved + other) * decay)
                store(a, reads + moved + other, load(a, reads + moved + other) * decay)
        # N lies strictly below the diagonal, P includes it.
        clear(a, pairs + moved + token, end - token)
        clear(a, reads + moved + token + 1, end - token - 1)
        u = written.first + token * written.apart
        left, right = Matrix(pairs + moved, apart, 1), Matrix(written.first, 1, written.apart)
        product(1, memory.sizes.head_width, token, a, left, right, Rows(u, 0), False)
        strength = load(a, memory.strengths.first + token * memory.strengths.apart + head)
        for i in range(memory.sizes.head_width):
            rest = load(a, value + token * row + i) - load(a, u + i)
            store(a, value + token * row + i, rest)
            store(a, u + i, rest * strength)
    left, right = Matrix(reads, apart, 1), Matrix(written.first, 1, written.apart)
    to = Rows(o + first * memory.recalled.apart, memory.recalled.apart)
    product(some, memory.sizes.head_width, first + some, a, left, right, to, False)


@kernel
def remember_gradient(tokens, a, to, w, gradient):
    """Writes D of the projections, given D of the outputs; `to` is a `RememberGradient`."""
    memory = to.forward
    layer = NormLayer(RMS, memory.sizes.head_size, memory.norm, -1)
    for head in range(memory.sizes.heads):
        moved = head * memory.sizes.head_width
        d = Rows(to.recalled.first + moved, to.recalled.apart)
        units, scales = memory.units.first + moved, memory.scales + head * tokens
        norm_gradient(tokens, layer, a, d, d, units, scales, to.sums, w, gradient, False)
        recall_gradient(tokens, head, a, memory, to)
    shape_heads_gradient(tokens, a, memory, to.given)
    # The slope of b = c sigmoid(x) is b (1 - b / c), with c = 2 where factors are signed.
    most = HALF if memory.signed else ONE
    for head in range(memory.sizes.heads):
        rate, offset = spread(ZERO), spread(ZERO)
        for token in range(tokens):
            index = to.strengths.first + token * to.strengths.apart + head
            strength = load(a, memory.strengths.first + token * memory.strengths.apart + head)
            store(a, index, load(a, index) * strength * fnma(strength, spread(most), spread(ONE)))
            if memory.fades:
                index = to.log_decay.first + token * to.log_decay.apart + head
                moved = token * memory.log_decay.apart + head
                d = load(a, index)
                rate = fma(d, load(a, memory.log_decay.first + moved), rate)
                d = d * load(a, memory.slopes.first + moved)
                offset = offset + d
                store(a, index, d)
        if memory.fades:
            gradient[memory.log_rate + head] += total(rate)
            gradient[memory.offset + head] += total(offset)


@kernel
def recall_gradient(tokens, head, a, memory, to):
    """Writes D of one head's queries, keys, values, strengths and log decay, given D o."""
    moved, row, apart = head * memory.sizes.head_width, memory.given.apart, memory.pairs.apart
    query, dquery = memory.given.first + moved, to.given.first + moved
    key, dkey = query + memory.sizes.joined, dquery + memory.sizes.joined
    rest, dvalue = query + 2 * memory.sizes.joined, dquery + 2 * memory.sizes.joined
    o, u = to.recalled.first + moved, memory.written.first + moved
    at = head * tokens * apart
    pairs, reads, since = memory.pairs.first + at, memory.reads.first + at, memory.since.first + at
    dpairs, dreads = to.pairs.first, to.reads.first
    width = memory.sizes.head_width
    left, right = Matrix(reads, 1, apart), Matrix(o, 1, to.recalled.apart)
    product(tokens, width, tokens, a, left, right, Rows(dvalue, row), False)
    for token in range(tokens - 1, -1, -1):
        later, scratch = token + 1, to.sums
        left = Matrix(pairs + later * apart + token, 0, apart)
        right = Matrix(dvalue + later * row, 1, row)
        product(1, width, tokens - later, a, left, right, Rows(scratch, 0), False)
        strength = load(a, memory.strengths.first + token * memory.strengths.apart + head)
        along = spread(ZERO)
        for i in range(width):
            du = load(a, dvalue + token * row + i) - load(a, scratch + i)
            along = fma(du, load(a, rest + token * row + i), along)
            store(a, dvalue + token * row + i, du * strength)
        store(a, to.strengths.first + token * to.strengths.apart + head, along)

    given, right = Matrix(o, to.recalled.apart, 1), Matrix(u, memory.written.apart, 1)
    product(tokens, tokens, width, a, given, right, Rows(dreads, apart), False)
    given = Matrix(dvalue, row, 1)
    product(tokens, tokens, width, a, given, right, Rows(dpairs, apart), False)
    for token in range(tokens):
        moved = token * apart
        sums = spread(ZERO)
        for other in range(token):
            index = moved + other
            dread, dpair = load(a, dreads + index), ZERO - load(a, dpairs + index)
            if memory.fades:
                log_term = fma(dread, load(a, reads + index), dpair * load(a, pairs + index))
                sums = sums + log_term
                there = to.log_decay.first + other * to.log_decay.apart + head
                store(a, there, load(a, there) - log_term)
                decay = load(a, since + index)
                dread, dpair = dread * decay, dpair * decay
            store(a, dreads + index, dread)
            store(a, dpairs + index, dpair)
        # Terms of later tokens are added afterwards; a token has no term with itself.
        store(a, to.log_decay.first + token * to.log_decay.apart + head, sums)
        clear(a, dpairs + moved + token, tokens - token)
        clear(a, dreads + moved + token + 1, tokens - token - 1)
    if memory.fades:
        for token in range(tokens - 2, -1, -1):
            here = to.log_decay.first + token * to.log_decay.apart + head
            store(a, here, load(a, here) + load(a, here + to.log_decay.apart))

    by_key = Matrix(key, 1, row)
    left = Matrix(dreads, apart, 1)
    product(tokens, width, tokens, a, left, by_key, Rows(dquery, row), False)
    left = Matrix(dpairs, apart, 1)
    product(tokens, width, tokens, a, left, by_key, Rows(dkey, row), False)
    left = Matrix(dpairs, 1, apart)
    product(tokens, width, tokens, a, left, by_key, Rows(dkey, row), True)
    left = Matrix(dreads, 1, apart)
    product(tokens, width, tokens, a, left, Matrix(query, 1, row), Rows(dkey, row), True)
