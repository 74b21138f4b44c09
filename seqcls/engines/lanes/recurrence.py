# ruff: noqa
# mypy: ignore-errors
"""The loop over tokens: a cell at each, whose gates are told what the state before says.

Cells are those of `lanes.recurrent_kernel`, and sLSTM:

    i, f, z, o = g    m = max(log sigmoid(f) + m', i)    t = exp(i - m)    k = exp(log sigmoid(f) + m' - m)
    c = k c' + t tanh(z)    n = k n' + t    h = sigmoid(o) c / n

    D o = D h c / n    D c += D h o / n    D n -= D h h / n    D t = D c z + D n    D k = D c c' + D n n'

and h does not depend on m. The state before may reach the gates head by head.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.elementary import exp, sigmoid, softplus, tanh
from seqcls.engines.lanes.recurrent_kernel import (
    gru,
    gru_gradient,
    lstm,
    lstm_gradient,
    rnn,
    rnn_gradient,
)
from seqcls.engines.lanes.tiles import (
    LinearLayer,
    Rows,
    apply,
    clear,
    input_gradient,
    parameter_gradient,
)
from seqcls.engines.lanes.vector import (
    ONE,
    ZERO,
    fma,
    kernel,
    larger,
    load,
    spread,
    store,
)

RNN, GRU, LSTM, SLSTM = range(4)
GATES = {"rnn": 1, "gru": 3, "lstm": 4, "slstm": 4}
LOWEST = np.float32(-1e30)


class Loop(NamedTuple):
    """A cell and where its states stand, all in rows as those of `state`."""

    cell: int
    heads: int
    width: int
    """Of a head."""
    weight: int
    """Where the matrices of the heads begin, one after another, and the bias of all, or -1."""
    bias: int
    gates: Rows
    from_state: Rows
    """What the state before gives to the gates: `gates` themselves but of a GRU."""
    state: Rows
    previous: Rows
    kept: int
    """Cell, and its tanh or the normalizer; then the stabilizer, and the slopes of log sigmoid(f)."""
    size: int
    """How far each of these is from the next."""
    zero: int
    """A row of zeros for each group."""
    input: Rows
    input_layer: LinearLayer
    """What the input gives to the gates."""


@kernel
def head_layer(it, head):
    """What the state before gives to a head's gates."""
    gates = it.from_state.apart // (it.heads * it.width) * it.width
    return LinearLayer(it.width, gates, it.weight + head * gates * it.width, it.bias)


@kernel
def slstm(rows, it, a, g0, c0, before0, h0, is_first):
    """Writes states; the gates become t, k, tanh(z) and sigmoid(o)."""
    n, m, slopes, row, width = it.size, 2 * it.size, 3 * it.size, it.state.apart, it.width
    for r in range(rows):
        for head in range(it.heads):
            for i in range(width):
                g, at = g0 + r * it.gates.apart + head * 4 * width + i, r * row + head * width + i
                given, forget = load(a, g), load(a, g + width)
                before = spread(LOWEST) if is_first else load(a, before0 + m + at)
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
def slstm_gradient(rows, it, a, g0, dg0, c0, before0, dh0, dc0, dn0, is_first):
    """Writes D g, given D h, D c and D n; D c' and D n' replace D c and D n."""
    n, slopes, row, width = it.size, 3 * it.size, it.state.apart, it.width
    for r in range(rows):
        for head in range(it.heads):
            for i in range(width):
                moved, at = r * it.gates.apart + head * 4 * width + i, r * row + head * width + i
                g, dg = g0 + moved, dg0 + moved
                take, keep = load(a, g), load(a, g + width)
                candidate, give = load(a, g + 2 * width), load(a, g + 3 * width)
                share = ONE / load(a, c0 + n + at)
                d, shown = load(a, dh0 + at), load(a, c0 + at) * share
                dc = fma(d * give, share, load(a, dc0 + at))
                dn = load(a, dn0 + at) - d * give * shown * share
                dkeep = spread(ZERO)
                if not is_first:
                    dkeep = fma(dc, load(a, before0 + at), dn * load(a, before0 + n + at))
                store(a, dg, fma(dc, candidate, dn) * take)
                store(a, dg + width, dkeep * keep * load(a, c0 + slopes + at))
                store(a, dg + 2 * width, dc * take * (ONE - candidate * candidate))
                store(a, dg + 3 * width, d * shown * give * (ONE - give))
                store(a, dc0 + at, dc * keep)
                store(a, dn0 + at, dn * keep)


@kernel
def recur(begin, end, starts, it, a, w):
    """Computes the states of tokens, a row for each group that goes on, those before being known."""
    row, gates_row, joined = it.state.apart, it.gates.apart, it.heads * it.width
    for token in range(begin, end):
        first = starts[token]
        rows = starts[token + 1] - first
        before, cell_before = it.zero, it.zero
        if token > 0:
            before = it.state.first + starts[token - 1] * row
            cell_before = it.kept + starts[token - 1] * row
        g, u = it.gates.first + first * gates_row, it.from_state.first + first * gates_row
        given = Rows(it.input.first + first * it.input.apart, it.input.apart)
        apply(rows, it.input_layer, a, given, Rows(g, gates_row), w, False)
        for head in range(it.heads):
            layer = head_layer(it, head)
            to = Rows(u + head * layer.outputs, gates_row)
            apply(rows, layer, a, Rows(before + head * it.width, row), to, w, it.cell != GRU)
        for index in range(rows * row):
            store(a, it.previous.first + first * row + index, load(a, before + index))
        h, c = it.state.first + first * row, it.kept + first * row
        if it.cell == LSTM:
            lstm(rows, joined, a, g, gates_row, cell_before, c, c + it.size, h, row)
        elif it.cell == GRU:
            gru(rows, joined, a, g, u, gates_row, before, h, row)
        elif it.cell == SLSTM:
            slstm(rows, it, a, g, c, cell_before, h, token == 0)
        else:
            rnn(rows, joined, a, g, gates_row, h, row)


@kernel
def recur_gradient(tokens, starts, it, a, w, gradient, dout, dgates, dfrom_state, dh):
    """From D of all states to D of what the input gives to the gates, and of the matrices."""
    row, gates_row, joined = it.state.apart, it.gates.apart, it.heads * it.width
    groups = starts[1]
    dc, dn = dh + groups * row, dh + 2 * groups * row
    clear(a, dh, 3 * groups * row)
    for token in range(tokens - 1, -1, -1):
        first = starts[token]
        rows = starts[token + 1] - first
        for index in range(rows * row):
            store(a, dh + index, load(a, dh + index) + load(a, dout.first + first * row + index))
        g, dg = it.gates.first + first * gates_row, dgates.first + first * gates_row
        u, du = it.from_state.first + first * gates_row, dfrom_state.first + first * gates_row
        before, c = it.zero, it.kept + first * row
        if token > 0:
            before = it.kept + starts[token - 1] * row
        if it.cell == LSTM:
            lstm_gradient(rows, joined, a, g, dg, gates_row, before, c + it.size, dh, dc, row)
        elif it.cell == GRU:
            previous = it.previous.first + first * row
            gru_gradient(rows, joined, a, g, u, dg, du, gates_row, previous, dh, row)
        elif it.cell == SLSTM:
            slstm_gradient(rows, it, a, g, dg, c, before, dh, dc, dn, token == 0)
        else:
            rnn_gradient(rows, joined, a, g, dg, gates_row, dh, row)
        for head in range(it.heads):
            layer = head_layer(it, head)
            to, given = Rows(dh + head * it.width, row), Rows(du + head * layer.outputs, gates_row)
            input_gradient(rows, layer, a, given, to, w, it.cell == GRU)
    for head in range(it.heads):
        layer = head_layer(it, head)
        before = Rows(it.previous.first + head * it.width, row)
        given = Rows(dfrom_state.first + head * layer.outputs, gates_row)
        parameter_gradient(starts[tokens], layer, a, before, given, gradient)
