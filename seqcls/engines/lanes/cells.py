# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The cells of recurrent networks, at one token of some groups, forward and backward.

    RNN     h = tanh(g)
    GRU     r, z = sigmoid(g + u)    n = tanh(g + r u)    h = (1 - z) n + z h'
    LSTM    i, f, o = sigmoid(g)    m = tanh(g)    c = f c' + i m    h = o tanh(c)
    sLSTM   i, f, z, o = g    m = max(log sigmoid(f) + m', i)
            t = exp(i - m)    k = exp(log sigmoid(f) + m' - m)
            c = k c' + t tanh(z)    n = k n' + t    h = sigmoid(o) c / n

h', c', m' and n' are those of the token before; g is the sum of the input's and the state's shares
of each gate, but in a GRU, where r comes between, g is the input's and u the state's. Backward, the
h of an sLSTM does not depend on m, and

    D o = D h c / n    D c += D h o / n    D n -= D h h / n
    D t = D c z + D n  D k = D c c' + D n n'

Rows of states are `row` apart, those of gates `gates_row`.
"""

import numpy as np

from seqcls.engines.lanes.elementary import exp, sigmoid, softplus, tanh
from seqcls.engines.lanes.vector import ONE, ZERO, fma, fnma, kernel, larger, load, spread, store

LOWEST = np.float32(-1e30)
"""The stabilizer before the first token, in place of minus infinity."""


@kernel
def rnn(rows, width, a, g0, gates_row, h0, row):
    """Writes the states, and also to the gates, for the gradient."""
    for r in range(rows):
        for i in range(width):
            state = tanh(load(a, g0 + r * gates_row + i))
            store(a, g0 + r * gates_row + i, state)
            store(a, h0 + r * row + i, state)


@kernel
def rnn_gradient(rows, width, a, g0, dg0, gates_row, dh0, row):
    """Writes D g, given D h of each row."""
    for r in range(rows):
        for i in range(width):
            state = load(a, g0 + r * gates_row + i)
            slope = fnma(state, state, spread(ONE))
            store(a, dg0 + r * gates_row + i, load(a, dh0 + r * row + i) * slope)


@kernel
def gru(rows, width, a, g0, u0, gates_row, before0, h0, row):
    """Writes the states; replaces the gates by r, z and n."""
    for r in range(rows):
        for i in range(width):
            g, u = g0 + r * gates_row + i, u0 + r * gates_row + i
            reset = sigmoid(load(a, g) + load(a, u))
            update = sigmoid(load(a, g + width) + load(a, u + width))
            candidate = tanh(fma(reset, load(a, u + 2 * width), load(a, g + 2 * width)))
            before = load(a, before0 + r * row + i)
            store(a, g, reset)
            store(a, g + width, update)
            store(a, g + 2 * width, candidate)
            # (1 - z) n + z h' = n + z (h' - n): one multiply-add.
            store(a, h0 + r * row + i, fma(update, before - candidate, candidate))


@kernel
def gru_gradient(rows, width, a, g0, u0, dg0, du0, gates_row, before0, dh0, row):
    """Writes D g and D u, given D h; replaces D h by the part of D h' that is not through u."""
    for r in range(rows):
        for i in range(width):
            at = r * gates_row + i
            reset, update = load(a, g0 + at), load(a, g0 + at + width)
            candidate, from_state = load(a, g0 + at + 2 * width), load(a, u0 + at + 2 * width)
            d = load(a, dh0 + r * row + i)
            d_candidate = d * (ONE - update) * fnma(candidate, candidate, spread(ONE))
            d_reset = d_candidate * from_state * reset * (ONE - reset)
            before = load(a, before0 + r * row + i)
            d_update = d * (before - candidate) * update * (ONE - update)
            store(a, dg0 + at, d_reset)
            store(a, dg0 + at + width, d_update)
            store(a, dg0 + at + 2 * width, d_candidate)
            store(a, du0 + at, d_reset)
            store(a, du0 + at + width, d_update)
            store(a, du0 + at + 2 * width, d_candidate * reset)
            store(a, dh0 + r * row + i, d * update)


@kernel
def lstm(rows, width, a, g0, gates_row, before0, c0, tanh0, h0, row):
    """Writes states and cells; replaces the gates by i, f, m and o."""
    for r in range(rows):
        for i in range(width):
            g, at = g0 + r * gates_row + i, r * row + i
            take, keep = sigmoid(load(a, g)), sigmoid(load(a, g + width))
            candidate, give = tanh(load(a, g + 2 * width)), sigmoid(load(a, g + 3 * width))
            cell = fma(keep, load(a, before0 + at), take * candidate)
            shown = tanh(cell)
            store(a, g, take)
            store(a, g + width, keep)
            store(a, g + 2 * width, candidate)
            store(a, g + 3 * width, give)
            store(a, c0 + at, cell)
            store(a, tanh0 + at, shown)
            store(a, h0 + at, give * shown)


@kernel
def lstm_gradient(rows, width, a, g0, dg0, gates_row, before0, tanh0, dh0, dc0, row):
    """Writes D g, given D h and D c; replaces D c by D c'."""
    for r in range(rows):
        for i in range(width):
            g, at = r * gates_row + i, r * row + i
            take, keep = load(a, g0 + g), load(a, g0 + g + width)
            candidate, give = load(a, g0 + g + 2 * width), load(a, g0 + g + 3 * width)
            shown, d = load(a, tanh0 + at), load(a, dh0 + at)
            d_cell = fma(d * give, fnma(shown, shown, spread(ONE)), load(a, dc0 + at))
            store(a, dg0 + g, d_cell * candidate * take * (ONE - take))
            store(a, dg0 + g + width, d_cell * load(a, before0 + at) * keep * (ONE - keep))
            store(a, dg0 + g + 2 * width, d_cell * take * fnma(candidate, candidate, spread(ONE)))
            store(a, dg0 + g + 3 * width, d * shown * give * (ONE - give))
            store(a, dc0 + at, d_cell * keep)


@kernel
def slstm(rows, heads, width, size, a, g0, gates_row, before0, c0, h0, row, is_first):
    """Writes the states; replaces the gates by t, k, tanh(z) and sigmoid(o).

    The gates of a head are contiguous. Cells begin at `c0`, followed at distances of `size` by
    normalizers, stabilizers and the slopes of log sigmoid(f); those of the token before begin at
    `before0`.
    """
    n, m, slopes = size, 2 * size, 3 * size
    for r in range(rows):
        for head in range(heads):
            for i in range(width):
                g, at = g0 + r * gates_row + head * 4 * width + i, r * row + head * width + i
                given, forget = load(a, g), load(a, g + width)
                before = spread(LOWEST) if is_first else load(a, before0 + m + at)
                # log sigmoid(f) = -softplus(-f), which does not overflow.
                keep = before - softplus(ZERO - forget)
                stabilizer = larger(keep, given)
                take, keep = exp(given - stabilizer), exp(keep - stabilizer)
                candidate, give = tanh(load(a, g + 2 * width)), sigmoid(load(a, g + 3 * width))
                cell, normalizer = take * candidate, take
                if not is_first:
                    cell = fma(keep, load(a, before0 + at), cell)
                    normalizer = fma(keep, load(a, before0 + n + at), normalizer)
                store(a, c0 + slopes + at, ONE - sigmoid(forget))
                store(a, g, take)
                store(a, g + width, keep)
                store(a, g + 2 * width, candidate)
                store(a, g + 3 * width, give)
                store(a, c0 + at, cell)
                store(a, c0 + n + at, normalizer)
                store(a, c0 + m + at, stabilizer)
                store(a, h0 + at, give * cell / normalizer)


@kernel
def slstm_gradient(
    rows, heads, width, size, a, g0, dg0, gates_row, before0, c0, dh0, dc0, dn0, row, is_first
):  # fmt: skip
    """Writes D g, given D h, D c and D n; replaces D c and D n by D c' and D n'."""
    n, slopes = size, 3 * size
    for r in range(rows):
        for head in range(heads):
            for i in range(width):
                moved, at = r * gates_row + head * 4 * width + i, r * row + head * width + i
                g, dg = g0 + moved, dg0 + moved
                take, keep = load(a, g), load(a, g + width)
                candidate, give = load(a, g + 2 * width), load(a, g + 3 * width)
                share = ONE / load(a, c0 + n + at)
                d, shown = load(a, dh0 + at), load(a, c0 + at) * share
                dc = fma(d * give, share, load(a, dc0 + at))
                dn = fnma(d * give * shown, share, load(a, dn0 + at))
                dkeep = spread(ZERO)
                if not is_first:
                    dkeep = fma(dc, load(a, before0 + at), dn * load(a, before0 + n + at))
                store(a, dg, fma(dc, candidate, dn) * take)
                store(a, dg + width, dkeep * keep * load(a, c0 + slopes + at))
                store(a, dg + 2 * width, dc * take * fnma(candidate, candidate, spread(ONE)))
                store(a, dg + 3 * width, d * shown * give * (ONE - give))
                store(a, dc0 + at, dc * keep)
                store(a, dn0 + at, dn * keep)
