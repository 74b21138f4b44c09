# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Recurrent networks that write or answer at every token, as compiled functions: training, scoring,
greedy decoding.
"""

import numpy as np

from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import RECURRENT_OUTPUTS
from seqcls.engines.lanes.loss import (
    Taught,
    any_goes_on,
    head_of,
    mark_numbers,
    next_token,
    teach_tokens,
    write_next,
)
from seqcls.engines.lanes.recurrent_kernel import (
    BatchRows,
    learn,
    make_table,
    read_tokens,
    run_layer,
)
from seqcls.engines.lanes.recurrent_sizes import LSTM
from seqcls.engines.lanes.tiles import COLUMNS, Rows, clear
from seqcls.engines.lanes.vector import LANES, load, store

# Forward, backward and AdamW of a recurrent network that is read so, as one compiled function.
#
# As `seqcls.engines.lanes.recurrent_kernel`, but the last layer's states are read at every token.


@entry(RECURRENT_OUTPUTS)
def run_outputs(model, taught, table, d_table, losses, missed, missed_inside, said):
    """Trains a model on batches of strings, in place, or only scores; the sum of all losses.

    Args:
        taught: a `TaughtStrings`.
        losses: (group, lane), zeros; added to, as are the next two: as in `Taught`, and `said`.
    """
    training, w, gradient, moments, step, update, sizes, parameters, at, a = model
    row, strings = sizes.width + 1, taught.strings
    starts = np.zeros(strings.ids.shape[1] + 1, np.int64)
    wanted = np.zeros((at.rows + COLUMNS, LANES), np.int16)
    owners, places = np.zeros(at.rows + COLUMNS, np.int64), np.zeros(at.rows + COLUMNS, np.int64)
    kept = np.zeros(4 * LANES, np.float32)
    head = head_of(sizes, parameters)
    states = Rows(at.state + (sizes.layers - 1) * at.layer_size, row)
    outputs = Rows(at.outputs, head.layer.outputs + 1)
    total_loss = 0.0
    first = 0
    make_table(sizes, parameters, w, table)
    for number in range(strings.ends.size):
        end = strings.ends[number]
        lengths = strings.lengths[first:end]
        tokens = read_tokens(sizes, at, a, strings.ids[first:end], lengths, starts)
        batch = BatchRows(tokens, end - first, starts, lengths)
        rows, begin = starts[tokens], starts[tokens]
        for token in range(tokens):
            for index in range(starts[token], starts[token + 1]):
                group = first + index - starts[token]
                owners[index], places[index] = group, token
                for lane in range(LANES):
                    wanted[index, lane] = taught.wanted[group, token, lane]
                    if wanted[index, lane] >= 0:
                        begin = min(begin, index)
        for layer in range(sizes.layers):
            run_layer(layer, sizes, parameters, at, w, table, a, batch, at.zero, at.zero)
        lesson = Taught(
            wanted, taught.sets, owners, places, losses, missed, missed_inside, said, kept
        )
        share = taught.shares[number]
        first = end
        total_loss = teach_tokens(
            training, begin, rows, head, a, states, outputs, Rows(at.output_gradient, row), w,
            gradient, lesson, share, total_loss,
        )  # fmt: skip
        if not training:
            continue
        learn(
            step + number + 1, update.rates[number], update, sizes, parameters, at, w, gradient,
            moments, table, d_table, a, batch,
        )  # fmt: skip
    return total_loss


# Greedy decoding of a recurrent network that keeps its states, as one compiled function.
#
# All strings of a few groups are read and written together, token by token: at each, a lane reads a
# token of its input or the one that it has written last.


@entry(RECURRENT_OUTPUTS)
def write(w, sizes, parameters, at, before, groups, a, outputs, table):
    """Writes an output for each input.

    Args:
        sizes: a `RecurrentSizes`.
        parameters: a `RecurrentParameters`.
        at: a `RecurrentStates` of so many rows and groups as are written together.
        before: where there is room for states and cells of each layer.
        groups: how many are written together.
        outputs: an `OutputBuffers`.
    """
    row, types_row = sizes.width + 1, sizes.type_width + 1
    size = groups * row
    head = head_of(sizes, parameters)
    after = Rows(at.outputs, head.layer.outputs + 1)
    last = at.state + (sizes.layers - 1) * at.layer_size
    numbers = np.zeros(LANES, np.int64)
    starts = np.zeros(2, np.int64)
    make_table(sizes, parameters, w, table)
    for first in range(0, outputs.begins.shape[0], groups):
        some = min(groups, outputs.begins.shape[0] - first)
        starts[1] = some
        batch = BatchRows(1, some, starts, outputs.begins)
        clear(a, before, 2 * sizes.layers * size)
        place = 0
        while any_goes_on(outputs, first, first + some):
            for group in range(some):
                for lane in range(LANES):
                    numbers[lane] = next_token(outputs, first + group, lane, place)
                mark_numbers(numbers, a, sizes.types, at.types + group * types_row)
            for layer in range(sizes.layers):
                state = before + 2 * layer * size
                run_layer(layer, sizes, parameters, at, w, table, a, batch, state, state + size)
                moved = layer * at.layer_size
                for index in range(some * row):
                    store(a, state + index, load(a, at.state + moved + index))
                    if sizes.cell == LSTM:
                        store(a, state + size + index, load(a, at.cell + moved + index))
            write_next(outputs, head, a, Rows(last, row), after, w, first, some, place)
            place += 1
