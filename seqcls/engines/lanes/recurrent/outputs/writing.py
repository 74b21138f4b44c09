"""Greedy decoding of a recurrent network that keeps its states, as one compiled function.

All strings of a few groups are read and written together, token by token: at each, a lane reads a
token of its input or the one that it has written last.
"""

import numpy as np

from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import RECURRENT_OUTPUTS
from seqcls.engines.lanes.recurrent.kernel import Batch, make_table, run_layer
from seqcls.engines.lanes.recurrent.sizes import LSTM
from seqcls.engines.lanes.vectors.linear import apply
from seqcls.engines.lanes.vectors.loss import head_of
from seqcls.engines.lanes.vectors.tiles import Rows, clear
from seqcls.engines.lanes.vectors.tokens import mark_numbers
from seqcls.engines.lanes.vectors.vector import LANES, load, store
from seqcls.engines.lanes.writing import any_goes_on, next_token, write_next


@entry(RECURRENT_OUTPUTS)
def write(w, sizes, parameters, at, before, groups, a, outputs, table):
    """Writes an output for each input.

    Args:
        w: the parameters, one after another.
        sizes: a `Sizes`.
        parameters: a `Parameters`.
        at: a `States` of so many rows and groups as are written together.
        before: where there is room for states and cells of each layer.
        groups: how many are written together.
        a: scratch for the states, zeros at first.
        outputs: an `Outputs`.
        table: scratch of (gate, token type) numbers.
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
        batch = Batch(1, some, starts, outputs.begins)
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
            apply(some, head.layer, a, Rows(last, row), after, w, False)
            for group in range(some):
                write_next(
                    outputs, head, a, after.first + group * after.apart, first + group, place
                )
            place += 1
