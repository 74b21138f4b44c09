# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The memory of Mamba over a group of strings, forward and backward.

Given are channels u, which have passed a convolution over four tokens and SiLU; r, B and C, which
are linear in u, and D = softplus(W r + b). Each channel has states s = 1..n with A_s > 0:

    e_ts = exp(-D_t A_s)    a_ts = e_ts, or 2 e_ts - 1 where factors are signed
    h_ts = a_ts h_(t-1)s + D_t u_t B_ts      y_t = sum_s C_ts h_ts + skip u_t

and the output is y. Backward, from the last token on,

    D h_ts = D y_t C_ts + a_(t+1)s D h_(t+1)s
    D B_ts = sum over channels of D h_ts D_t u_t         D C_ts = that of D y_t h_ts
    D e_ts = D h_ts h_(t-1)s, twice that where factors are signed
    D D_t = u_t sum_s D h_ts B_ts - sum_s A_s e_ts D e_ts
    D u_t = D_t sum_s D h_ts B_ts + skip D y_t           D log A_s = -sum_t D_t A_s e_ts D e_ts
"""

import math

import numpy as np

from seqcls.engines.lanes.elementary import TWO, exp
from seqcls.engines.lanes.layers import Rows
from seqcls.engines.lanes.tiles import clear
from seqcls.engines.lanes.vector import (
    ONE,
    ZERO,
    fma,
    fnma,
    kernel,
    load,
    spread,
    spread_at,
    store,
    total,
)


@kernel
def memory_of(mamba, group):
    """Returns the rows of a group's h; one row for all tokens unless each is stored."""
    size = mamba.sizes.channels * mamba.sizes.numbers
    return Rows(mamba.memory, size) if mamba.keep else Rows(mamba.memory + group * size, 0)


@kernel
def select(first, rows, group, a, mamba, w):
    """Writes the outputs of some tokens, given the projections of them and of all tokens before.

    Args:
        mamba: a `Select`, with the rows of that group.
    """
    memories = memory_of(mamba, group)
    channels, numbers = mamba.sizes.channels, mamba.sizes.numbers
    # The rates are the same for all tokens and groups.
    for index in range(channels * numbers if first == group == 0 else 0):
        store(a, mamba.rates + index, spread(np.float32(math.exp(w[mamba.log_rate + index]))))
    for token in range(first, first + rows):
        write = mamba.selected.first + token * mamba.selected.apart + mamba.sizes.ranks
        read = write + numbers
        for c in range(channels):
            step = load(a, mamba.steps.first + token * mamba.steps.apart + c)
            u = load(a, mamba.channels.first + token * mamba.channels.apart + c)
            y, written = u * spread_at(w, mamba.skip + c), step * u
            for s in range(numbers):
                memory = memories.first + token * memories.apart + c * numbers + s
                factor = exp(ZERO - step * load(a, mamba.rates + c * numbers + s))
                if mamba.signed:
                    factor = factor * TWO - ONE
                before = load(a, memory - memories.apart) if token > 0 else spread(ZERO)
                h = fma(factor, before, written * load(a, write + s))
                store(a, memory, h)
                y = fma(load(a, read + s), h, y)
            store(a, mamba.answered.first + token * mamba.answered.apart + c, y)


@kernel
def select_gradient(tokens, a, to, w, gradient):
    """Writes D of the projections, given D of the outputs; `to` is a `SelectGradient`."""
    mamba = to.forward
    memories = memory_of(mamba, 0)
    channels, numbers = mamba.sizes.channels, mamba.sizes.numbers
    clear(a, to.memory, channels * numbers)
    clear(a, to.rates, channels * numbers)
    for token in range(tokens - 1, -1, -1):
        write = mamba.selected.first + token * mamba.selected.apart + mamba.sizes.ranks
        dwrite = to.selected.first + token * to.selected.apart + mamba.sizes.ranks
        read, dread = write + numbers, dwrite + numbers
        # All channels share a token's B and C, so their gradients are sums over channels.
        clear(a, dwrite, 2 * numbers)
        for c in range(channels):
            dy = load(a, to.answered.first + token * to.answered.apart + c)
            u = load(a, mamba.channels.first + token * mamba.channels.apart + c)
            step = load(a, mamba.steps.first + token * mamba.steps.apart + c)
            gradient[mamba.skip + c] += total(dy * u)
            dwritten, dstep, written = spread(ZERO), spread(ZERO), step * u
            for s in range(numbers):
                index = c * numbers + s
                memory = memories.first + token * memories.apart + index
                h, rate = load(a, memory), load(a, mamba.rates + index)
                before = load(a, memory - memories.apart) if token > 0 else spread(ZERO)
                dh = fma(dy, load(a, read + s), load(a, to.memory + index))
                store(a, dread + s, fma(dy, h, load(a, dread + s)))
                store(a, dwrite + s, fma(dh, written, load(a, dwrite + s)))
                dwritten = fma(dh, load(a, write + s), dwritten)
                e = exp(ZERO - step * rate)
                de = dh * before
                factor = e
                if mamba.signed:
                    factor, de = e * TWO - ONE, de * TWO
                along = de * e * rate
                dstep = dstep - along
                store(a, to.rates + index, fnma(along, step, load(a, to.rates + index)))
                store(a, to.memory + index, factor * dh)
            dstep = fma(dwritten, u, dstep)
            store(a, to.steps.first + token * to.steps.apart + c, dstep)
            du = fma(dwritten, step, dy * spread_at(w, mamba.skip + c))
            store(a, to.channels.first + token * to.channels.apart + c, du)
    for index in range(channels * numbers):
        gradient[mamba.log_rate + index] += total(load(a, to.rates + index))
