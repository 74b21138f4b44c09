"""Forward, backward and AdamW of a Transformer that writes, as one compiled function."""

import numpy as np

from seqcls.engines.compiled.adamw import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import TRANSFORMER_OUTPUTS
from seqcls.engines.lanes.transformer.block import backward, forward
from seqcls.engines.lanes.transformer.kernel import (
    Group,
    embed,
    embed_gradient,
    fill_all_turns,
)
from seqcls.engines.lanes.transformer.places import add_places, end_distance_gradient
from seqcls.engines.lanes.transformer.sizes import ADDED, LEARNED, RELATIVE, ROTARY
from seqcls.engines.lanes.vectors.compiling import kernel
from seqcls.engines.lanes.vectors.linear import apply_gradient
from seqcls.engines.lanes.vectors.loss import Taught, head_of, token_losses
from seqcls.engines.lanes.vectors.norm import Kept, Norm, norm, norm_gradient
from seqcls.engines.lanes.vectors.tiles import COLUMNS, Rows, clear
from seqcls.engines.lanes.vectors.vector import LANES


@kernel
def final_norm_of(sizes, parameters):
    """The norm after the last block."""
    return Norm(
        sizes.norm, sizes.hidden, sizes.eps, parameters.final_norm, parameters.final_norm_bias
    )


@kernel
def add_learned(tokens, width, hidden, a, x0, row, w, table, places):
    """Adds to x the row of the learned table for the place of each token of each string."""
    for token in range(tokens):
        for lane in range(LANES):
            start = table + places[token, lane] * width
            index = (x0 + token * row) * LANES + lane
            for i in range(hidden):
                a[index + i * LANES] += w[start + i]


@kernel
def add_learned_gradient(tokens, width, hidden, a, dx0, row, lengths, gradient, table, places):
    """Adds D x to the gradient of these rows."""
    for token in range(tokens):
        for lane in range(LANES):
            if token >= lengths[lane]:
                continue
            start = table + places[token, lane] * width
            index = (dx0 + token * row) * LANES + lane
            for i in range(hidden):
                gradient[start + i] += a[index + i * LANES]


@entry(TRANSFORMER_OUTPUTS)
def run_outputs(
    training, w, gradient, moments, step, update, sizes, parameters, at, a, taught, places, by_lane,
    factor, losses, missed, missed_inside,
):  # fmt: skip
    """Trains a model on batches of strings, in place, or only scores; the sum of all losses.

    Args:
        training: whether to train.
        w: the parameters, one after another.
        gradient: as many zeros.
        moments: (2, parameter) AdamW's first and second moments.
        step: steps done before.
        update: an `Update`.
        sizes: a `Sizes`.
        parameters: a `Parameters`.
        at: a `States`.
        a: scratch for the states, zeros at first.
        taught: a `TaughtStrings`.
        places: a `Places`.
        by_lane: (group, position, lane), places in a learned table; else empty.
        factor: what scores are multiplied by, whatever a string's length.
        losses: (group, lane), zeros; added to, as are the next two: as in `Taught`.
        missed: likewise.
        missed_inside: likewise.
    """
    row = sizes.width + 1
    strings = taught.strings
    order = np.arange(strings.ids.shape[1])
    owners = np.zeros(strings.ids.shape[1] + 4, np.int64)
    read = np.zeros(LANES, np.int64)
    kept = np.zeros(4 * LANES, np.float32)
    head = head_of(sizes, parameters)
    layer = final_norm_of(sizes, parameters)
    last = Rows(at.last_state, row)
    normed = Rows(at.final_normed, row) if sizes.final_norm else last
    final = Kept(at.final_units, at.final_scales)
    outputs = Rows(at.outputs, head.layer.outputs + 1)
    total_loss = 0.0
    first = 0
    for batch in range(strings.ends.size):
        for number in range(first, strings.ends[batch]):
            ids, lengths = strings.ids[number], strings.lengths[number]
            longest, begin = 1, strings.ids.shape[1]
            for lane in range(LANES):
                longest = max(longest, lengths[lane])
                if lengths[lane] > 0:
                    begin = min(begin, taught.begins[number, lane])
            tokens = (longest + 3) // 4 * 4
            begin = begin // 4 * 4
            here = places.rows[number]
            group = Group(places.numbers[here], places.slopes, places.buckets, read, np.float32(1))
            embed(tokens, sizes, parameters, at, a, ids, lengths, factor, w)
            if sizes.scheme == ADDED:
                add_places(
                    tokens, sizes.width, sizes.hidden, a, at.state, row,
                    places.added[here].reshape(-1), 0, order,
                )  # fmt: skip
            elif sizes.scheme == LEARNED:
                add_learned(
                    tokens, sizes.width, sizes.hidden, a, at.state, row, w, parameters.table,
                    by_lane[number],
                )  # fmt: skip
            elif sizes.scheme == ROTARY:
                cosines, sines = places.cosines[here], places.sines[here]
                fill_all_turns(tokens, sizes, at, a, cosines, sines, read)
            for block in range(sizes.blocks):
                forward(block, False, tokens, training, sizes, parameters, at, w, a, group)
            predicting = tokens - begin
            from_last, from_normed = (
                Rows(last.first + begin * row, row),
                Rows(normed.first + begin * row, row),
            )
            if sizes.final_norm:
                norm(predicting, layer, a, from_last, from_normed, final, w)
            owners[:] = number
            lesson = Taught(taught.wanted[number], owners, losses, missed, missed_inside, kept)
            share = taught.shares[batch]
            if not training:
                for start in range(begin, tokens, COLUMNS):
                    states = Rows(normed.first + start * row, row)
                    total_loss += token_losses(
                        COLUMNS, start, head, a, states, outputs, w, lesson, share, False
                    )
                continue
            total_loss += token_losses(
                predicting, begin, head, a, from_normed, outputs, w, lesson, share, True
            )
            clear(a, at.gradient, begin * row)
            to = Rows(at.gradient + begin * row, row)
            apply_gradient(predicting, head.layer, a, from_normed, outputs, to, w, gradient, False)
            if sizes.final_norm:
                norm_gradient(predicting, layer, a, to, to, final, at.norm_sums, w, gradient, False)
            for block in range(sizes.blocks - 1, -1, -1):
                backward(block, False, tokens, sizes, parameters, at, w, gradient, a, group)
            embed_gradient(tokens, sizes, parameters, at, a, gradient)
            if sizes.scheme == LEARNED:
                add_learned_gradient(
                    tokens, sizes.width, sizes.hidden, a, at.gradient, row, lengths, gradient,
                    parameters.table, by_lane[number],
                )  # fmt: skip
            elif sizes.scheme == RELATIVE:
                end_distance_gradient(
                    sizes.heads, a, at.distance_gradient, gradient, parameters.table
                )
        first = strings.ends[batch]
        if training:
            step += 1
            adamw(w, gradient, moments, step, update)
    return total_loss
