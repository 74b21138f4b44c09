# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""A recurrent layer: a cell at each token, whose gates read the previous state.

All groups are computed together, token by token, so that each weight is loaded once for all of
them. Groups whose strings have ended drop out, so the longest come first. The input's share of the
gates is computed inside the loop, while it fits in the cache. The previous state may reach the
gates head by head, as in sLSTM.
"""

from seqcls.engines.lanes.cells import (
    gru,
    gru_gradient,
    lstm,
    lstm_gradient,
    rnn,
    rnn_gradient,
    slstm,
    slstm_gradient,
)
from seqcls.engines.lanes.layers import GRU, LSTM, SLSTM, LinearLayer, Rows
from seqcls.engines.lanes.tiles import apply, clear, input_gradient, parameter_gradient
from seqcls.engines.lanes.vector import kernel, load, store


@kernel
def head_layer(loop, head):
    """Returns the layer of the previous state's share of a head's gates."""
    gates = loop.from_state.apart // (loop.heads * loop.width) * loop.width
    return LinearLayer(loop.width, gates, loop.weight + head * gates * loop.width, loop.bias)


@kernel
def recur(begin, end, starts, loop, a, w):
    """Writes the states of tokens, given those of earlier tokens.

    Args:
        begin: the first token; `end` is the one after the last.
        loop: a `Recur`.
        starts: (token): the token's first row; then the end of the last one's rows.
    """
    row, gates_row, joined = loop.state.apart, loop.gates.apart, loop.heads * loop.width
    for token in range(begin, end):
        first = starts[token]
        rows = starts[token + 1] - first
        # The groups with this token are the first of those with the token before.
        before, cell_before = loop.zero, loop.zero
        if token > 0:
            before = loop.state.first + starts[token - 1] * row
            cell_before = loop.cells + starts[token - 1] * row
        g, u = loop.gates.first + first * gates_row, loop.from_state.first + first * gates_row
        given = Rows(loop.input.first + first * loop.input.apart, loop.input.apart)
        apply(rows, loop.input_layer, a, given, Rows(g, gates_row), w, False)
        for head in range(loop.heads):
            layer = head_layer(loop, head)
            to = Rows(u + head * layer.outputs, gates_row)
            from_head = Rows(before + head * loop.width, row)
            apply(rows, layer, a, from_head, to, w, loop.cell != GRU)
        for index in range(rows * row):
            store(a, loop.previous.first + first * row + index, load(a, before + index))
        h, c = loop.state.first + first * row, loop.cells + first * row
        if loop.cell == LSTM:
            lstm(rows, joined, a, g, gates_row, cell_before, c, c + loop.size, h, row)
        elif loop.cell == GRU:
            gru(rows, joined, a, g, u, gates_row, before, h, row)
        elif loop.cell == SLSTM:
            slstm(
                rows, loop.heads, loop.width, loop.size, a, g, gates_row, cell_before, c, h, row,
                token == 0,
            )  # fmt: skip
        else:
            rnn(rows, joined, a, g, gates_row, h, row)


@kernel
def recur_gradient(tokens, starts, to, a, w, gradient):
    """Writes D of the input's share of the gates, and adds D of the matrices, given D h.

    Args:
        to: a `RecurGradient`.
    """
    loop, dh = to.forward, to.scratch
    row, gates_row, joined = loop.state.apart, loop.gates.apart, loop.heads * loop.width
    # Every group has a row at the first token.
    groups = starts[1]
    dc, dn = dh + groups * row, dh + 2 * groups * row
    clear(a, dh, 3 * groups * row)
    for token in range(tokens - 1, -1, -1):
        first = starts[token]
        rows = starts[token + 1] - first
        for index in range(rows * row):
            store(
                a, dh + index, load(a, dh + index) + load(a, to.state.first + first * row + index)
            )
        g, dg = loop.gates.first + first * gates_row, to.gates.first + first * gates_row
        u, du = loop.from_state.first + first * gates_row, to.from_state.first + first * gates_row
        before, c = loop.zero, loop.cells + first * row
        if token > 0:
            before = loop.cells + starts[token - 1] * row
        if loop.cell == LSTM:
            lstm_gradient(rows, joined, a, g, dg, gates_row, before, c + loop.size, dh, dc, row)
        elif loop.cell == GRU:
            previous = loop.previous.first + first * row
            gru_gradient(rows, joined, a, g, u, dg, du, gates_row, previous, dh, row)
        elif loop.cell == SLSTM:
            slstm_gradient(
                rows, loop.heads, loop.width, loop.size, a, g, dg, gates_row, before, c, dh, dc,
                dn, row, token == 0,
            )  # fmt: skip
        else:
            rnn_gradient(rows, joined, a, g, dg, gates_row, dh, row)
        for head in range(loop.heads):
            layer = head_layer(loop, head)
            given = Rows(du + head * layer.outputs, gates_row)
            dbefore = Rows(dh + head * loop.width, row)
            input_gradient(rows, layer, a, given, dbefore, w, loop.cell == GRU)
    for head in range(loop.heads):
        layer = head_layer(loop, head)
        before = Rows(loop.previous.first + head * loop.width, row)
        given = Rows(to.from_state.first + head * layer.outputs, gates_row)
        parameter_gradient(starts[tokens], layer, a, before, given, gradient)
