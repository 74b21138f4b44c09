# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Forward, backward and AdamW of a recurrent network, as one compiled function.

The groups of a batch go through the network together, token by token: a weight that is loaded
once serves all of them. Groups whose strings have ended drop out, so the longest come first.

What the first layer's input gives to the gates depends on the token alone: a table of as many
columns as there are token types takes the place of embedding and input weights.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import RECURRENT
from seqcls.engines.lanes.elementary import sigmoid, tanh
from seqcls.engines.lanes.loss import classify, classify_gradient, group_loss, mark_tokens
from seqcls.engines.lanes.recurrent_sizes import GRU, LSTM
from seqcls.engines.lanes.tiles import (
    LinearLayer,
    Matrix,
    Rows,
    apply,
    apply_gradient,
    bias_gradient,
    clear,
    input_gradient,
    linear,
    parameter_gradient,
    weight_gradient,
)
from seqcls.engines.lanes.vector import LANES, ONE, ZERO, fma, kernel, load, spread, store

# The cells of recurrent networks, at one token of some groups, forward and backward.
#
#     RNN     h = tanh(g)
#     GRU     r, z = sigmoid(g + u)    n = tanh(g + r u)    h = (1 - z) n + z h'
#     LSTM    i, f, o = sigmoid(g)    m = tanh(g)    c = f c' + i m    h = o tanh(c)
#
# h' and c' are the state and the cell before, g what the input gives to each gate, and with RNN and
# LSTM what the state before gives as well; with GRU that is u, since r comes between.


@kernel
def rnn(rows, width, a, g0, gates_row, h0, row):
    """Writes the states; the gates become what the gradient needs."""
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
            slope = ONE - state * state
            store(a, dg0 + r * gates_row + i, load(a, dh0 + r * row + i) * slope)


@kernel
def gru(rows, width, a, g0, u0, gates_row, before0, h0, row):
    """Writes the states; the gates become r, z and n."""
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
            store(a, h0 + r * row + i, fma(update, before - candidate, candidate))


@kernel
def gru_gradient(rows, width, a, g0, u0, dg0, du0, gates_row, before0, dh0, row):
    """Writes D g and D u, given D h; what of D h' does not come by u replaces D h."""
    for r in range(rows):
        for i in range(width):
            at = r * gates_row + i
            reset, update = load(a, g0 + at), load(a, g0 + at + width)
            candidate, from_state = load(a, g0 + at + 2 * width), load(a, u0 + at + 2 * width)
            d = load(a, dh0 + r * row + i)
            d_candidate = d * (ONE - update) * (ONE - candidate * candidate)
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
    """Writes states and cells; the gates become i, f, m and o."""
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
    """Writes D g, given D h and D c; D c' replaces D c."""
    for r in range(rows):
        for i in range(width):
            g, at = r * gates_row + i, r * row + i
            take, keep = load(a, g0 + g), load(a, g0 + g + width)
            candidate, give = load(a, g0 + g + 2 * width), load(a, g0 + g + 3 * width)
            shown, d = load(a, tanh0 + at), load(a, dh0 + at)
            d_cell = fma(d * give, ONE - shown * shown, load(a, dc0 + at))
            store(a, dg0 + g, d_cell * candidate * take * (ONE - take))
            store(a, dg0 + g + width, d_cell * load(a, before0 + at) * keep * (ONE - keep))
            store(a, dg0 + g + 2 * width, d_cell * take * (ONE - candidate * candidate))
            store(a, dg0 + g + 3 * width, d * shown * give * (ONE - give))
            store(a, dc0 + at, d_cell * keep)


class BatchRows(NamedTuple):
    """Which rows stand for what in a batch of groups."""

    tokens: int
    """Tokens of its longest string."""
    groups: int
    starts: np.ndarray
    """(token): the first row of each token, and the end of the last."""
    lengths: np.ndarray
    """(group, lane)."""


class GateLayers(NamedTuple):
    """What a layer's gates are made of."""

    input: LinearLayer
    state: LinearLayer


@kernel
def layers_of(layer, sizes, parameters):
    """The linear layers of the recurrent layer of that number."""
    p, width, gates = layer * parameters.layer_size, sizes.width, sizes.gates
    input_bias = p + parameters.input_bias if sizes.biases else -1
    state_bias = p + parameters.state_bias if sizes.biases else -1
    return GateLayers(
        LinearLayer(width, gates, p + parameters.input_weight, input_bias),
        LinearLayer(width, gates, p + parameters.state_weight, state_bias),
    )


@kernel
def make_table(sizes, parameters, w, table):
    """Writes what each token type gives to the first layer's gates: (gate, token type)."""
    for gate in range(sizes.gates):
        weight = parameters.input_weight + gate * sizes.width
        for kind in range(sizes.type_width):
            value = ZERO
            row = parameters.embedding + kind * sizes.width
            for i in range(sizes.width):
                value += w[weight + i] * w[row + i]
            table[gate * sizes.type_width + kind] = value


@kernel
def table_gradient(sizes, parameters, w, gradient, d_table):
    """From D of the table to those of the input weights and of the embedding; clears it."""
    for gate in range(sizes.gates):
        weight = parameters.input_weight + gate * sizes.width
        for kind in range(sizes.type_width):
            d = d_table[gate * sizes.type_width + kind]
            d_table[gate * sizes.type_width + kind] = ZERO
            row = parameters.embedding + kind * sizes.width
            for i in range(sizes.width):
                gradient[weight + i] += d * w[row + i]
                gradient[row + i] += d * w[weight + i]


@kernel
def run_layer(layer, sizes, parameters, at, w, table, a, batch, state, cell):
    """Computes a layer's states, token by token; before the first are those at `state`, `cell`."""
    row, gates_row = sizes.width + 1, sizes.gates + 1
    types_row, moved = sizes.type_width + 1, layer * at.layer_size
    layers = layers_of(layer, sizes, parameters)
    h, c, shown = at.state + moved, at.cell + moved, at.cell_tanh + moved
    for token in range(batch.tokens):
        first = batch.starts[token]
        rows = batch.starts[token + 1] - first
        g = Rows(at.gates + moved + first * gates_row, gates_row)
        if layer == 0:
            types = Rows(at.types + first * types_row, types_row)
            columns = Matrix(0, sizes.type_width, 1)
            bias = layers.input.bias
            linear(rows, sizes.gates, sizes.types, a, types, table, columns, g, w, bias, False)
        else:
            below = Rows(h - at.layer_size + first * row, row)
            apply(rows, layers.input, a, below, g, w, False)
        # The groups that go on are the first of those at the token before.
        before, cell_before = state, cell
        if token > 0:
            before = h + batch.starts[token - 1] * row
            cell_before = c + batch.starts[token - 1] * row
        u = Rows(at.from_state + moved + first * gates_row, gates_row) if sizes.cell == GRU else g
        apply(rows, layers.state, a, Rows(before, row), u, w, sizes.cell != GRU)
        kept = at.previous + moved + first * row
        for index in range(rows * row):
            store(a, kept + index, load(a, before + index))
        here = h + first * row
        if sizes.cell == LSTM:
            lstm(
                rows, sizes.width, a, g.first, gates_row, cell_before, c + first * row,
                shown + first * row, here, row,
            )  # fmt: skip
        elif sizes.cell == GRU:
            gru(rows, sizes.width, a, g.first, u.first, gates_row, before, here, row)
        else:
            rnn(rows, sizes.width, a, g.first, gates_row, here, row)


@kernel
def run_layer_gradient(layer, sizes, parameters, at, w, gradient, d_table, a, batch):
    """From D of a layer's states to those of its parameters and of the states of the one below."""
    row, gates_row, width = sizes.width + 1, sizes.gates + 1, sizes.width
    moved, layers = layer * at.layer_size, layers_of(layer, sizes, parameters)
    dh, dc = at.state_gradient, at.cell_gradient
    clear(a, dh, batch.groups * row)
    clear(a, dc, batch.groups * row)
    for token in range(batch.tokens - 1, -1, -1):
        first = batch.starts[token]
        rows = batch.starts[token + 1] - first
        for index in range(rows * row):
            given = load(a, at.output_gradient + first * row + index)
            store(a, dh + index, load(a, dh + index) + given)
        g = at.gates + moved + first * gates_row
        dg = at.input_gates_gradient + first * gates_row
        du = at.state_gates_gradient + first * gates_row
        if sizes.cell == LSTM:
            cell_before = at.zero
            if token > 0:
                cell_before = at.cell + moved + batch.starts[token - 1] * row
            shown = at.cell_tanh + moved + first * row
            lstm_gradient(rows, width, a, g, dg, gates_row, cell_before, shown, dh, dc, row)
        elif sizes.cell == GRU:
            u = at.from_state + moved + first * gates_row
            before = at.previous + moved + first * row
            gru_gradient(rows, width, a, g, u, dg, du, gates_row, before, dh, row)
        else:
            rnn_gradient(rows, width, a, g, dg, gates_row, dh, row)
        to = Rows(dh, row)
        input_gradient(rows, layers.state, a, Rows(du, gates_row), to, w, sizes.cell == GRU)
    rows = batch.starts[batch.tokens]
    dg, du = Rows(at.input_gates_gradient, gates_row), Rows(at.state_gates_gradient, gates_row)
    before = Rows(at.previous + moved, row)
    parameter_gradient(rows, layers.state, a, before, du, gradient)
    if layer > 0:
        below, to = Rows(at.state + moved - at.layer_size, row), Rows(at.output_gradient, row)
        apply_gradient(rows, layers.input, a, below, dg, to, w, gradient, False)
        return
    types, size = Rows(at.types, sizes.type_width + 1), sizes.type_width
    weight_gradient(rows, sizes.gates, size, a, dg, types, d_table, 0, size)
    if layers.input.bias >= 0:
        bias_gradient(rows, sizes.gates, a, dg, gradient, layers.input.bias)


@kernel
def read_states(sizes, at, a, batch):
    """Writes of each group the state that the classifier reads: the last one, or the mean."""
    row = sizes.width + 1
    h = at.state + (sizes.layers - 1) * at.layer_size
    for group in range(batch.groups):
        read = at.read + group * row
        for lane in range(LANES):
            length = batch.lengths[group, lane]
            a[(at.share + group) * LANES + lane] = ONE / np.float32(max(length, 1))
            for i in range(sizes.width):
                index = (h + (batch.starts[max(length - 1, 0)] + group) * row + i) * LANES + lane
                a[(read + i) * LANES + lane] = a[index] if length > 0 else ZERO
        if sizes.mean:
            for i in range(sizes.width):
                value = spread(ZERO)
                for token in range(batch.tokens):
                    at_token = batch.starts[token] + group
                    if at_token < batch.starts[token + 1]:
                        here = load(a, at.is_token + at_token)
                        value = fma(load(a, h + at_token * row + i), here, value)
                store(a, read + i, value * load(a, at.share + group))


@kernel
def read_states_gradient(sizes, at, a, batch):
    """From D of what the classifier reads to D of the last layer's states."""
    row = sizes.width + 1
    clear(a, at.output_gradient, batch.starts[batch.tokens] * row)
    for group in range(batch.groups):
        read = at.read_gradient + group * row
        if not sizes.mean:
            for lane in range(LANES):
                length = batch.lengths[group, lane]
                if length == 0:
                    continue
                to = at.output_gradient + (batch.starts[length - 1] + group) * row
                for i in range(sizes.width):
                    a[(to + i) * LANES + lane] = a[(read + i) * LANES + lane]
            continue
        share = load(a, at.share + group)
        for token in range(batch.tokens):
            at_token = batch.starts[token] + group
            if at_token < batch.starts[token + 1]:
                here = load(a, at.is_token + at_token) * share
                for i in range(sizes.width):
                    to = at.output_gradient + at_token * row + i
                    store(a, to, load(a, read + i) * here)


@kernel
def read_tokens(sizes, at, a, ids, lengths, starts):
    """Writes which token types a batch's rows are, and where each token's rows start; how many
    tokens there are.
    """
    tokens, rows, row = 0, 0, sizes.type_width + 1
    for lane in range(LANES):
        tokens = max(tokens, lengths[0, lane])
    for token in range(tokens):
        starts[token] = rows
        for group in range(lengths.shape[0]):
            longest = 0
            for lane in range(LANES):
                longest = max(longest, lengths[group, lane])
            if longest <= token:
                break
            mark_tokens(
                1, ids[group, token : token + 1], a, sizes.types, at.types + rows * row, row,
                at.is_token + rows,
            )  # fmt: skip
            rows += 1
    starts[tokens] = rows
    return tokens


@kernel
def learn(
    step, rate, update, sizes, parameters, at, w, gradient, moments, table, d_table, a, batch
):  # fmt: skip
    """From D of the last layer's states to parameters of the next step, and their table."""
    for layer in range(sizes.layers - 1, -1, -1):
        run_layer_gradient(layer, sizes, parameters, at, w, gradient, d_table, a, batch)
    table_gradient(sizes, parameters, w, gradient, d_table)
    adamw(w, gradient, moments, step, rate, update)
    make_table(sizes, parameters, w, table)


@entry(RECURRENT)
def run(model, strings, table, d_table, logits):
    """Trains a model on batches of strings, in place, or only answers; the sum of all losses.

    Args:
        model: a `Model`.
        strings: a `LaneStrings`.
        table: scratch of (gate, token type) numbers.
        d_table: likewise, zeros at first.
        logits: (group, lane), written.
    """
    training, w, gradient, moments, step, update, sizes, parameters, at, a = model
    row = sizes.width + 1
    slopes = np.zeros(LANES, np.float32)
    starts = np.zeros(strings.ids.shape[1] + 1, np.int64)
    total_loss = 0.0
    first = 0
    make_table(sizes, parameters, w, table)
    for number in range(strings.ends.size):
        end = strings.ends[number]
        groups = end - first
        lengths = strings.lengths[first:end]
        tokens = read_tokens(sizes, at, a, strings.ids[first:end], lengths, starts)
        batch = BatchRows(tokens, groups, starts, lengths)
        for layer in range(sizes.layers):
            run_layer(layer, sizes, parameters, at, w, table, a, batch, at.zero, at.zero)
        read_states(sizes, at, a, batch)
        for group in range(groups):
            given = first + group
            classify(
                sizes.width, a, at.read + group * row, w, parameters.classifier,
                parameters.classifier_bias, logits[given],
            )  # fmt: skip
            total_loss += group_loss(
                logits[given], strings.targets[given], strings.weights[given], sizes.scaled_loss,
                slopes,
            )  # fmt: skip
            if training:
                classify_gradient(
                    sizes.width, a, at.read + group * row, at.read_gradient + group * row, slopes,
                    w, gradient, parameters.classifier, parameters.classifier_bias, sizes.biases,
                )  # fmt: skip
        first = end
        if training:
            read_states_gradient(sizes, at, a, batch)
            learn(
                step + number + 1, update.rates[number], update, sizes, parameters, at, w,
                gradient, moments, table, d_table, a, batch,
            )  # fmt: skip
    return total_loss
