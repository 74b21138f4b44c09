# ruff: noqa
# mypy: ignore-errors
"""What an instruction does: a number for the kernel, the rows it works on, and where they stand.

A row is a token of a group of strings: of token 0 first all groups, then of token 1 those that go
on. Which rows an instruction works on, its *span*, is told when the list is played: all of them in
training; of outputs that are written those of one token more. What stands in the rows before is
then what was kept of the tokens before. So one list trains, answers, scores and writes.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.attention import Heads, How, attend, attend_gradient
from seqcls.engines.lanes.delta_memory import (
    NORM_EPS,
    DeltaGradients,
    DeltaLayers,
    DeltaRooms,
    convolve,
    convolve_gradient,
    remember,
    remember_gradient,
)
from seqcls.engines.lanes.elementary import (
    RMS,
    Norm,
    NormStates,
    exp,
    gelu,
    gelu_tanh,
    multiply,
    norm,
    norm_gradient,
    relu,
)
from seqcls.engines.lanes.loss import classify_gradient
from seqcls.engines.lanes.recurrence import Loop, recur, recur_gradient
from seqcls.engines.lanes.selective_memory import (
    SelectiveGradients,
    SelectiveLayers,
    SelectiveRooms,
    fill_rates,
    select,
    select_gradient,
)
from seqcls.engines.lanes.tiles import (
    LinearLayer,
    Matrix,
    Rows,
    apply,
    apply_gradient,
    clear,
    linear,
    parameter_gradient,
    weight_gradient,
)
from seqcls.engines.lanes.transformer_attention import rotate
from seqcls.engines.lanes.transformer_block import copy, scale
from seqcls.engines.lanes.vector import (
    LANES,
    ONE,
    ZERO,
    fma,
    if_less,
    kernel,
    larger,
    load,
    spread,
    store,
)

READ, TOKENS, TARGETS, INPUT, START, STEPS = range(6)
"""Rows: one a group, of what is read of it; all tokens; those at which something is predicted; those
of the other stream; one, where a list is played from the start; those of a memory's steps."""

(
    LINEAR,
    NORM,
    GELU,
    GELU_TANH,
    RELU,
    ELU,
    COPY,
    ADD,
    SCALE,
    EMBED,
    ADD_PLACES,
    ROTATE,
    ATTEND,
    REMEMBER,
    RECUR,
    GATHER,
    MEAN,
    TABLE,
    CONVOLVE,
    UNFOLD,
    FOLD,
    RATES,
    SELECT,
) = range(23)
(D_LINEAR, D_NORM, MULTIPLY, D_EMBED, D_ATTEND, D_REMEMBER, D_RECUR, D_GATHER, D_MEAN, D_TABLE, CLEAR,
 CLEAR_BEFORE, D_CONVOLVE, D_UNFOLD, D_FOLD, D_CLASSIFY, D_SELECT) = range(23, 40)  # fmt: skip
WIDTH = 72
"""Numbers of an instruction: kernel, span, then x, y, z as `Rows`, then what the kernel asks."""


class Reading(NamedTuple):
    """What is known of the strings that a list is played on."""

    spans: np.ndarray
    """(span, 2): its first row and the end."""
    known: np.ndarray
    """(span): tokens of each string that are known, filled up."""
    starts: np.ndarray
    """(token): its first row, and the end of the last."""
    groups: int
    read: np.ndarray
    """(group, lane): the row that is read; -1 for none."""
    added: np.ndarray
    """(token, hidden): what places add to embeddings."""
    eps: float


@kernel
def rows_at(o, at, first):
    """The rows that stand at a column of an instruction, from the first that is played on.

    A negative distance says that there is room for these alone.
    """
    apart = o[at + 1]
    return Rows(o[at], -apart) if apart < 0 else Rows(o[at] + first * apart, apart)


@kernel
def of_group(o, at, first, group, groups):
    """All rows of one group, whichever there is room for."""
    apart = o[at + 1]
    if apart < 0:
        return Rows(o[at] + (first - group) * apart, -groups * apart)
    return Rows(o[at] + group * apart, groups * apart)


@kernel
def memory_of(o, first, group, groups):
    """Layers and states of a gated memory."""
    layers, heads, keep = LinearLayer(0, 0, 0, -1), Heads(o[42], o[43], o[44], o[45]), o[46] == 1
    by = (first, group, groups)
    states = DeltaRooms(
        of_group(o, 2, *by), of_group(o, 4, *by), of_group(o, 6, *by), of_group(o, 8, *by), of_group(o, 10, *by),
        of_group(o, 12, *by), of_group(o, 14, *by), of_group(o, 16, *by), of_group(o, 18, *by), of_group(o, 20, *by),
        of_group(o, 22, *by), of_group(o, 24, *by).first, o[26] if keep else o[26] - first // groups,
        of_group(o, 28, *by), Rows(o[30], o[31]), Rows(o[32], o[33]), Rows(o[34], o[35]),
    )  # fmt: skip
    memory = DeltaLayers(
        layers, o[36], layers, layers, o[38], o[39], layers,
        Norm(RMS, heads.head_size, NORM_EPS, o[37], -1), o[40] == 1, o[41] == 1,
    )  # fmt: skip
    return memory, states, heads


class Channels(NamedTuple):
    """Of a selective memory; what each keeps, and what the sizes of steps are made of."""

    channels: int
    numbers: int
    ranks: int


@kernel
def selective_of(o, first, group, groups):
    """Layers and states of a selective memory."""
    sizes, by = Channels(o[35], o[36], o[37]), (first, group, groups)
    size = sizes.channels * sizes.numbers
    layers = SelectiveLayers(
        LinearLayer(0, 0, 0, -1), o[22], o[23], LinearLayer(o[24], o[25], o[26], o[27]),
        LinearLayer(o[28], o[29], o[30], o[31]), o[32], o[33], o[34] == 1,
    )  # fmt: skip
    memory = Rows(o[18], size) if o[38] == 1 else Rows(o[18] + group * size, 0)
    states = SelectiveRooms(
        of_group(o, 2, *by), of_group(o, 4, *by), of_group(o, 6, *by), of_group(o, 8, *by), of_group(o, 10, *by),
        of_group(o, 12, *by), memory, of_group(o, 14, *by), of_group(o, 16, *by), o[20],
    )  # fmt: skip
    return layers, states, sizes


@kernel
def loop_of(o, first):
    """A cell and its states."""
    return Loop(
        o[8], o[9], o[10], o[11], o[12], of_group(o, 2, first, 0, 1), of_group(o, 13, first, 0, 1), Rows(o[4], o[5]),
        of_group(o, 6, first, 0, 1), o[15], o[17], o[18], of_group(o, 20, first, 0, 1),
        LinearLayer(o[22], o[23], o[24], o[25]),
    )  # fmt: skip


@kernel
def gather(width, a, x, read, y):
    """Writes of each group the row that is read in each lane, zero where there is none."""
    for group in range(read.shape[0]):
        for i in range(width):
            for lane in range(LANES):
                row = read[group, lane]
                to = (y.first + group * y.apart + i) * LANES + lane
                a[to] = a[(x.first + row * x.apart + i) * LANES + lane] if row >= 0 else ZERO


@kernel
def scatter(width, a, dy, read, dx):
    """Adds D of what is read to D of its row."""
    for group in range(read.shape[0]):
        for i in range(width):
            for lane in range(LANES):
                row = read[group, lane]
                if row >= 0:
                    given = a[(dy.first + group * dy.apart + i) * LANES + lane]
                    a[(dx.first + row * dx.apart + i) * LANES + lane] += given


@kernel
def mean(width, a, x, is_token, share, it, y):
    """Writes each group's mean over the tokens of each string."""
    for group in range(it.groups):
        for i in range(width):
            value = spread(ZERO)
            for token in range(it.known[TOKENS]):
                row = it.starts[token] + group
                if row < it.starts[token + 1]:
                    value = fma(
                        load(a, x.first + row * x.apart + i), load(a, is_token + row), value
                    )
            store(a, y.first + group * y.apart + i, value * load(a, share + group))


@kernel
def mean_gradient(width, a, dy, is_token, share, it, dx):
    """Writes D of all tokens."""
    for token in range(it.known[TOKENS]):
        for row in range(it.starts[token], it.starts[token + 1]):
            group = row - it.starts[token]
            here = load(a, is_token + row) * load(a, share + group)
            for i in range(width):
                store(
                    a,
                    dx.first + row * dx.apart + i,
                    load(a, dy.first + group * dy.apart + i) * here,
                )


@kernel
def elu(rows, columns, width, size, a, x, slopes):
    """Replaces x by elu(x) + 1, but what heads are filled up with; leaves the slopes."""
    for r in range(rows):
        for index in range(columns):
            value, slope = load(a, x.first + r * x.apart + index), spread(ZERO)
            if index % width < size:
                small = exp(ZERO - larger(ZERO - value, spread(ZERO)))
                slope = if_less(spread(ZERO), value, spread(ONE), small)
                value = if_less(spread(ZERO), value, value + ONE, small)
            store(a, x.first + r * x.apart + index, value)
            store(a, slopes.first + r * slopes.apart + index, slope)


@kernel
def add(rows, columns, a, x, y):
    """Adds x to y."""
    for r in range(rows):
        for c in range(columns):
            to = y.first + r * y.apart + c
            store(a, to, load(a, to) + load(a, x.first + r * x.apart + c))


@kernel
def unfold(first, rows, groups, steps, shared, parts, width, a, x, y, back):
    """Copies columns to a row for each step, or of D of these rows back to D of a token's."""
    for number in range(first, first + rows):
        token, group, one = number // groups, number % groups, x.first + (number - first) * x.apart
        for step in range(steps):
            row = ((token - first // groups) * steps + step) * groups + group
            other = y.first + row * y.apart
            for i in range(shared):
                if not back:
                    store(a, other + i, load(a, one + i))
                elif step == 0:
                    store(a, one + i, load(a, other + i))
                else:
                    store(a, one + i, load(a, one + i) + load(a, other + i))
            for part in range(parts):
                for i in range(width):
                    here, there = (
                        one + shared + (part * steps + step) * width + i,
                        other + shared + part * width + i,
                    )
                    if back:
                        store(a, here, load(a, there))
                    else:
                        store(a, there, load(a, here))


@kernel
def fold(first, rows, groups, steps, width, a, x, y, back):
    """Copies the row of each token's last step, or D of it back, with zeros for the other steps."""
    for number in range(rows):
        token, group = number // groups, number % groups
        for step in range(steps):
            here, there = (
                x.first + ((token * steps + step) * groups + group) * x.apart,
                y.first + number * y.apart,
            )
            for i in range(width):
                if not back and step == steps - 1:
                    store(a, there + i, load(a, here + i))
                elif back:
                    store(a, here + i, load(a, there + i) if step == steps - 1 else spread(ZERO))


@kernel
def make_table(outputs, inputs, types, w, matrix, embedding, table):
    """Writes what each token type gives to a layer: (output, type)."""
    for output in range(outputs):
        for kind in range(types):
            value = ZERO
            for i in range(inputs):
                value += w[matrix + output * inputs + i] * w[embedding + kind * inputs + i]
            w[table + output * types + kind] = value


@kernel
def table_gradient(outputs, inputs, types, w, gradient, matrix, embedding, table):
    """From D of the table to those of the layer and of the embedding; clears it."""
    for output in range(outputs):
        for kind in range(types):
            d = gradient[table + output * types + kind]
            gradient[table + output * types + kind] = ZERO
            for i in range(inputs):
                gradient[matrix + output * inputs + i] += d * w[embedding + kind * inputs + i]
                gradient[embedding + kind * inputs + i] += d * w[matrix + output * inputs + i]


@kernel
def play(ops, it, a, w, gradient):
    """Runs instructions on the spans that are told."""
    for n in range(ops.shape[0]):
        o = ops[n]
        code, first = o[0], it.spans[o[1], 0]
        rows = it.spans[o[1], 1] - first
        if rows == 0:
            continue
        x, y, z = rows_at(o, 2, first), rows_at(o, 4, first), rows_at(o, 6, first)
        if code == LINEAR:
            apply(rows, LinearLayer(o[8], o[9], o[10], o[11]), a, x, y, w, o[12] == 1)
        elif code == D_LINEAR:  # x its input, y D of its output, z D of its input
            layer = LinearLayer(o[8], o[9], o[10], o[11])
            if o[7] > 0:
                apply_gradient(rows, layer, a, x, y, z, w, gradient, o[12] == 1)
            else:
                parameter_gradient(rows, layer, a, x, y, gradient)
        elif code == NORM:
            kept = NormStates(rows_at(o, 12, first).first, rows_at(o, 14, first).first)
            norm(rows, Norm(o[8], o[9], it.eps, o[10], o[11]), a, x, y, kept, w)
        elif code == D_NORM:  # x D of its output, y D of its input
            kept = NormStates(rows_at(o, 12, first).first, rows_at(o, 14, first).first)
            layer = Norm(o[8], o[9], it.eps, o[10], o[11])
            if o[18] == 1:  # Told by a constant, as today: else the compiler rounds a product more.
                norm_gradient(rows, layer, a, x, y, kept, o[16], w, gradient, True)
            else:
                norm_gradient(rows, layer, a, x, y, kept, o[16], w, gradient, False)
        elif code == GELU:
            gelu(rows, o[8], a, x, y)
        elif code == GELU_TANH:
            gelu_tanh(rows, o[8], a, x, y)
        elif code == RELU:
            relu(rows, o[8], a, x, y)
        elif code == ELU:
            elu(rows, o[8], o[9], o[10], a, x, y)
        elif code == MULTIPLY:
            multiply(rows, o[8], a, x, y)
        elif code == COPY:
            copy(rows, o[8], a, x, y)
        elif code == ADD:
            add(rows, o[8], a, x, y)
        elif code == SCALE:
            scale(rows, o[8], a, x, o[9] + first)
        elif code == EMBED:
            weight = Matrix(o[10], 1, o[8])
            linear(rows, o[8], o[9], a, x, w, weight, y, w, -1, False)
        elif code == D_EMBED:
            weight_gradient(rows, o[11], o[8], a, x, y, gradient, o[10], o[8])
        elif code == ADD_PLACES:
            for row in range(rows):
                place = (first + row) // it.groups
                for i in range(o[8]):
                    index = x.first + row * x.apart + i
                    store(a, index, load(a, index) + spread(it.added[place, i]))
        elif code == ROTATE:
            rotate(
                rows,
                o[8],
                o[9],
                o[10],
                a,
                x.first,
                x.apart,
                o[11] + first * 2 * o[10],
                np.float32(o[12]),
            )
        elif code == ATTEND:  # x queries, y keys and values, z what is mixed
            heads, how = Heads(o[8], o[9], o[10], o[11]), How(o[12], o[13] == 1, o[14])
            for group in range(it.groups):
                attend(
                    first // it.groups, rows // it.groups, it.known[o[15]], how, heads, a,
                    of_group(o, 2, first, group, it.groups), of_group(o, 4, first, group, it.groups), Rows(o[16], o[21] + 1), o[18],
                    of_group(o, 6, first, group, it.groups), o[20] + group * o[21],
                )  # fmt: skip
        elif code == D_ATTEND:
            heads, how = Heads(o[8], o[9], o[10], o[11]), How(o[12], o[13] == 1, o[14])
            attend_gradient(
                rows, it.known[o[15]], how, heads, a, x, Rows(o[4], o[5]), Rows(o[16], o[21] + 1), o[18], z,
                Rows(o[22], o[23]), Rows(o[24], o[25]), o[26],
            )  # fmt: skip
        elif code == REMEMBER:
            for group in range(it.groups):
                layers, states, heads = memory_of(o, first, group, it.groups)
                some, keep = rows // it.groups, o[46] == 1
                remember(
                    first // it.groups, some, keep, some if keep else 0, heads, layers, a, states, w
                )
        elif code == D_REMEMBER:
            layers, states, heads = memory_of(o, 0, 0, 1)
            to = DeltaGradients(
                Rows(o[47], o[48]), Rows(o[49], o[50]), Rows(o[51], o[52]), Rows(o[53], o[54]), Rows(o[55], o[56]),
                Rows(o[57], o[58]), Rows(o[59], o[60]), Rows(o[61], o[62]), o[63],
            )  # fmt: skip
            remember_gradient(rows, heads, layers, a, states, to, w, gradient)
        elif code == RATES:
            layers, states, sizes = selective_of(o, 0, 0, 1)
            fill_rates(sizes, layers, a, states.rates, w)
        elif code == SELECT:
            for group in range(it.groups):
                layers, states, sizes = selective_of(o, first, group, it.groups)
                select(first // it.groups, rows // it.groups, sizes, layers, a, states, w)
        elif code == D_SELECT:
            layers, states, sizes = selective_of(o, 0, 0, 1)
            to = SelectiveGradients(
                Rows(o[39], o[40]), Rows(o[41], o[42]), Rows(o[43], o[44]), Rows(o[45], o[46]), Rows(o[47], o[48]),
                o[49], o[51],
            )  # fmt: skip
            select_gradient(rows, sizes, layers, a, states, to, w, gradient)
        elif code == RECUR:
            recur(first // it.groups, it.known[TOKENS], it.starts, loop_of(o, first), a, w)
        elif code == D_RECUR:
            dout, dgates, du = Rows(o[26], o[27]), Rows(o[28], o[29]), Rows(o[30], o[31])
            recur_gradient(
                it.known[TOKENS], it.starts, loop_of(o, 0), a, w, gradient, dout, dgates, du, o[32]
            )
        elif code == GATHER:
            gather(o[8], a, Rows(o[2], o[3]), it.read[: it.groups], y)
        elif code == D_GATHER:
            scatter(o[8], a, x, it.read[: it.groups], Rows(o[4], o[5]))
        elif code == MEAN:
            mean(o[8], a, Rows(o[2], o[3]), o[9], o[10], it, y)
        elif code == D_MEAN:
            mean_gradient(o[8], a, x, o[9], o[10], it, Rows(o[4], o[5]))
        elif code == TABLE:
            make_table(o[8], o[9], o[10], w, o[11], o[12], o[13])
        elif code == D_TABLE:
            table_gradient(o[8], o[9], o[10], w, gradient, o[11], o[12], o[13])
        elif code == D_CLASSIFY:
            for row in range(rows):
                slopes = a[
                    (y.first + row * y.apart) * LANES : (y.first + row * y.apart + 1) * LANES
                ]
                from_to = x.first + row * x.apart, z.first + row * z.apart
                classify_gradient(
                    o[8], a, *from_to, slopes, w, gradient, o[9], max(o[10], 0), o[10] >= 0
                )
        elif code == CONVOLVE:
            for group in range(it.groups):
                given, to = (
                    of_group(o, 2, first, group, it.groups),
                    of_group(o, 4, first, group, it.groups),
                )
                convolve(first // it.groups, rows // it.groups, o[8], o[9], a, given, to, w)
        elif code == D_CONVOLVE:
            convolve_gradient(rows, o[8], o[9], a, x, y, z, w, gradient)
        elif code == UNFOLD:
            unfold(
                first,
                rows,
                it.groups,
                o[8],
                o[9],
                o[10],
                o[11],
                a,
                x,
                rows_at(o, 4, first * o[8]),
                False,
            )
        elif code == D_UNFOLD:
            unfold(
                first,
                rows,
                it.groups,
                o[8],
                o[9],
                o[10],
                o[11],
                a,
                y,
                rows_at(o, 2, first * o[8]),
                True,
            )
        elif code == FOLD:
            fold(first, rows, it.groups, o[8], o[9], a, rows_at(o, 2, first * o[8]), y, False)
        elif code == D_FOLD:
            fold(first, rows, it.groups, o[8], o[9], a, rows_at(o, 4, first * o[8]), x, True)
        elif code == CLEAR:
            clear(a, x.first, rows * x.apart)
        elif code == CLEAR_BEFORE:  # rows of all tokens before the span's first
            clear(a, o[2], first * o[3])
