# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Transformers that write or answer at every token, as compiled functions: training, scoring,
greedy decoding.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import TRANSFORMER_OUTPUTS
from seqcls.engines.lanes.delta_memory import DeltaRooms, memory_layers, project, remember
from seqcls.engines.lanes.elementary import Norm, NormStates, norm, norm_gradient
from seqcls.engines.lanes.loss import (
    Taught,
    any_goes_on,
    head_of,
    next_token,
    rows_from,
    teach_tokens,
    write_next,
)
from seqcls.engines.lanes.packing import one_after_another, padded_size
from seqcls.engines.lanes.selective_memory import (
    SelectiveRooms,
    fill_rates,
    select,
    selective_layers,
)
from seqcls.engines.lanes.tiles import Rows, apply
from seqcls.engines.lanes.transformer_attention import (
    MASKED,
    attend,
    fill_turns,
    rotate,
)
from seqcls.engines.lanes.transformer_block import (
    activate,
    backward,
    copy,
    forward,
    is_selective,
    layers_of,
    remembers,
    scale,
)
from seqcls.engines.lanes.transformer_kernel import Group, embed, embed_gradient
from seqcls.engines.lanes.transformer_sizes import (
    ADDED,
    LEARNED,
    ROTARY,
    TransformerSizes,
)
from seqcls.engines.lanes.vector import LANES, ZERO, kernel, spread, store

# Forward, backward and AdamW of a Transformer that is read so, as one compiled function.


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
def run_outputs(model, taught, places, by_lane, factor, losses, missed, missed_inside, said):
    """Trains a model on batches of strings, in place, or only scores; the sum of all losses.

    Args:
        taught: a `TaughtStrings`.
        by_lane: (group, position, lane), places in a learned table; else empty.
        losses: (group, lane), zeros; added to, as are the next two: as in `Taught`, and `said`.
    """
    training, w, gradient, moments, step, update, sizes, parameters, at, a = model
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
    final = NormStates(at.final_units, at.final_scales)
    outputs = Rows(at.outputs, head.layer.outputs + 1)
    total_loss = 0.0
    first = 0
    for batch in range(strings.ends.size):
        for number in range(first, strings.ends[batch]):
            lengths, longest, begin = strings.lengths[number], 1, strings.ids.shape[1]
            for lane in range(LANES):
                longest = max(longest, lengths[lane])
                if lengths[lane] > 0:
                    begin = min(begin, taught.begins[number, lane])
            tokens = (longest + 3) // 4 * 4
            begin = begin // 4 * 4
            here = places.rows[number]
            group = Group(places.numbers[here], places.slopes, places.buckets, read, np.float32(1))
            embed(tokens, number, sizes, parameters, at, a, w, strings, places, factor, order, read)
            if sizes.scheme == LEARNED:
                add_learned(
                    tokens, sizes.width, sizes.hidden, a, at.state, row, w, parameters.table,
                    by_lane[number],
                )  # fmt: skip
            for block in range(sizes.blocks):
                forward(block, False, tokens, training, sizes, parameters, at, w, a, group)
            predicting = tokens - begin
            if sizes.final_norm:
                read_from, to = rows_from(last, begin), rows_from(normed, begin)
                norm(predicting, layer, a, read_from, to, final, w)
            owners[:] = number
            lesson = Taught(
                taught.wanted[number], taught.sets, owners, order, losses, missed, missed_inside,
                said, kept,
            )  # fmt: skip
            share = taught.shares[batch]
            total_loss = teach_tokens(
                training, begin, tokens, head, a, normed, outputs, Rows(at.gradient, row), w,
                gradient, lesson, share, total_loss,
            )  # fmt: skip
            if not training:
                continue
            if sizes.final_norm:
                to = rows_from(Rows(at.gradient, row), begin)
                norm_gradient(predicting, layer, a, to, to, final, at.norm_sums, w, gradient, False)
            for block in range(sizes.blocks - 1, -1, -1):
                backward(block, False, tokens, sizes, parameters, at, w, gradient, a, group)
            embed_gradient(tokens, sizes, parameters, at, a, gradient)
            if sizes.scheme == LEARNED:
                add_learned_gradient(
                    tokens, sizes.width, sizes.hidden, a, at.gradient, row, lengths, gradient,
                    parameters.table, by_lane[number],
                )  # fmt: skip
        first = strings.ends[batch]
        if training:
            step += 1
            adamw(w, gradient, moments, step, update.rates[batch], update)
    return total_loss


# Greedy decoding of a Transformer that keeps keys and values, as one compiled function.
#
# All strings of a few groups are read and written together, place by place: at each, a lane reads a
# token of its input or the one that it has written last. So tokens of a place are as far from each
# other in all lanes, and a weight that is loaded once serves all groups.


class WrittenStates(NamedTuple):
    """Where the states of a place stand, counted in vectors, and what is kept of those before.

    Rows are groups; those of what is kept are `apart`, and in them the places.
    """

    groups: int
    state: int
    normed: int
    scales: int
    mixed: int
    after_attention: int
    inner: int
    slopes: int
    turns: int
    factor: int
    mask: int
    scores: int
    outputs: int
    gate: int
    """From here on what a memory needs of one place: what each is, `DeltaRooms` says."""
    convolved: int
    lengths: int
    fading_slopes: int
    recalled: int
    units: int
    head_scales: int
    pairs: int
    since: int
    channels_convolved: int
    """From here on what a selective memory needs, as `SelectiveRooms` says."""
    channels: int
    selected: int
    steps: int
    step_slopes: int
    answered: int
    rates: int
    """Those of all blocks."""
    heads: int
    """Keys and values of every place; in the row of the first, the queries of the last. Where a
    block remembers, all of every place, and after them what else is kept of it.
    """
    apart: int
    given: int
    """How far from a group's first row the projections of a memory stand; so of what follows."""
    written: int
    strengths: int
    log_kept: int
    sums: int
    channels_given: int
    memory: int
    block_size: int
    size: int


def written_states_of(sizes: TransformerSizes, tokens: int, groups: int) -> WrittenStates:
    """Where the states of so many groups stand, of which so many places are kept."""
    # One vector more in every row: rows that are a power of two apart share lines of the cache.
    width, inner = sizes.width + 1, sizes.inner + 1
    heads, joined, gates = 3 * sizes.joined + 1, sizes.joined + 1, sizes.gates + 1
    remembering, fading = sizes.gates > 0, sizes.fading > 0
    channels, memory = sizes.channels + 1, sizes.channels * sizes.numbers
    kept = {
        "heads": tokens * heads,
        "given": tokens * heads * remembering,
        "written": tokens * joined * remembering,
        "strengths": tokens * gates * remembering,
        "log_kept": tokens * gates * fading,
        "sums": tokens * gates * fading,
        "channels_given": tokens * (2 * sizes.channels + 1),
        "memory": memory,
    }
    apart = sum(kept.values())
    parts = {
        "state": groups * width,
        "normed": groups * width,
        "scales": groups,
        "mixed": groups * (sizes.mixed + 1),
        # And units of norms, which only gradients need.
        "after_attention": 2 * groups * width,
        "inner": groups * inner,
        "slopes": groups * inner,
        "turns": groups * 2 * (sizes.head_size // 2),
        "factor": groups,
        "mask": tokens,
        "scores": tokens + 1,
        "outputs": groups * (padded_size(sizes.outputs) + 1),
        "gate": groups * joined * fading,
        "convolved": heads * remembering,
        "lengths": 2 * sizes.heads * remembering,
        "fading_slopes": gates * fading,
        "recalled": joined * remembering,
        "units": joined * remembering,
        "head_scales": int(remembering),
        "pairs": (tokens + 1) * remembering,
        "since": (tokens + 1) * fading,
        "channels_convolved": channels,
        "channels": channels,
        "selected": sizes.ranks + 2 * sizes.numbers + 1,
        "steps": channels,
        "step_slopes": channels,
        "answered": channels,
        "rates": sizes.blocks * memory,
        "heads": sizes.blocks * groups * apart,
    }
    inside = one_after_another(kept)
    del inside["heads"]
    return WrittenStates(
        groups=groups,
        apart=apart,
        block_size=groups * apart,
        size=sum(parts.values()),
        **one_after_another(parts),
        **inside,
    )


@kernel
def read_position(place, first, groups, sizes, parameters, at, a, w, outputs, added, by_lane):
    """Writes the embeddings of the tokens at a place, and what is added there."""
    width = sizes.width
    for group in range(groups):
        for lane in range(LANES):
            token = next_token(outputs, first + group, lane, place)
            start = parameters.embedding + token * width
            index = (at.state + group * (width + 1)) * LANES + lane
            row = 0
            if sizes.scheme == LEARNED:
                row = parameters.table + by_lane[first + group, place, lane] * width
            for i in range(width):
                value = w[start + i]
                if sizes.scheme == LEARNED:
                    value += w[row + i]
                elif sizes.scheme == ADDED:
                    value += added[place, i]
                a[index + i * LANES] = value


@kernel
def attend_to_positions(place, groups, sizes, parameters, at, a, w, layers, heads, x, group):
    """Writes what the heads of a block mix of the values up to a place, `x` being what is read."""
    row = 3 * sizes.joined + 1
    keys = Rows(heads.first + place * row + sizes.joined, at.apart)
    apply(groups, layers.query, a, x, heads, w, False)
    apply(groups, layers.key_value, a, x, keys, w, False)
    if sizes.scheme == ROTARY:
        pairs = sizes.head_size // 2
        for start in (heads.first, keys.first):
            rotate(
                groups, sizes.heads, sizes.head_width, pairs, a, start, at.apart, at.turns,
                group.forward,
            )  # fmt: skip
    scale(groups, sizes.joined, a, heads, at.factor)
    tokens = (place + 4) // 4 * 4
    for number in range(groups):
        attend(
            tokens, True, False, sizes, a, Rows(heads.first + number * at.apart, row),
            Rows(at.scores, tokens + 1),
            Rows(at.mixed + number * (sizes.mixed + 1), sizes.mixed + 1), at.mask, group, w,
            parameters.table,
        )  # fmt: skip


@kernel
def remember_positions(place, groups, block, sizes, parameters, at, a, w, heads, x):
    """Writes what the memory of a block mixes at a place, `x` being what is read."""
    layers = memory_layers(block, sizes, parameters)
    row, joined, gates = 3 * sizes.joined + 1, sizes.joined + 1, sizes.gates + 1
    given, strengths = heads.first + at.given, heads.first + at.strengths
    project(
        groups, layers, a, x, Rows(given + place * row, at.apart),
        Rows(strengths + place * gates, at.apart),
        Rows(heads.first + at.log_kept + place * gates, at.apart), Rows(at.gate, joined), w,
    )  # fmt: skip
    for number in range(groups):
        first = heads.first + number * at.apart
        of_group = Rows(first + at.given, row)
        # What is of one place alone has one row.
        rooms = DeltaRooms(
            of_group,
            Rows(at.convolved, 0) if sizes.convolved else of_group,
            Rows(first, row),
            Rows(at.lengths, 0),
            Rows(first + at.strengths, gates),
            Rows(first + at.log_kept, gates),
            Rows(at.fading_slopes, 0),
            Rows(first + at.sums, gates),
            Rows(first + at.written, joined),
            Rows(at.gate + number * joined, 0),
            Rows(at.recalled, 0),
            at.units,
            at.head_scales - place,
            Rows(at.mixed + number * (sizes.mixed + 1), 0),
            Rows(at.pairs, 0),
            Rows(at.scores, 0),
            Rows(at.since, 0),
        )
        remember(place, 1, False, 0, sizes, layers, a, rooms, w)


@kernel
def select_positions(place, groups, block, sizes, parameters, at, a, w, heads, x):
    """The same of a selective memory."""
    layers = selective_layers(block, sizes, parameters)
    given, row = heads.first + at.channels_given, 2 * sizes.channels + 1
    apply(groups, layers.input, a, x, Rows(given + place * row, at.apart), w, False)
    for number in range(groups):
        rooms = SelectiveRooms(
            Rows(given + number * at.apart, row),
            Rows(at.channels_convolved, 0),
            Rows(at.channels, 0),
            Rows(at.selected, 0),
            Rows(at.steps, 0),
            Rows(at.step_slopes, 0),
            Rows(heads.first + number * at.apart + at.memory, 0),
            Rows(at.answered, 0),
            Rows(at.mixed + number * (sizes.mixed + 1), 0),
            at.rates + block * sizes.channels * sizes.numbers,
        )
        select(place, 1, sizes, layers, a, rooms, w)


@entry(TRANSFORMER_OUTPUTS)
def write(w, sizes, parameters, at, a, outputs, places, by_lane, factors):
    """Writes an output for each input.

    Args:
        sizes: a `TransformerSizes`.
        parameters: a `TransformerParameters`.
        at: a `WrittenStates`.
        outputs: an `OutputBuffers`.
        places: `PositionArrays`, of which all strings have the first.
        by_lane: (group, position, lane), places in a learned table; else empty.
        factors: (position), what queries are multiplied by.
    """
    width, row = sizes.width, sizes.width + 1
    head, final = head_of(sizes, parameters), final_norm_of(sizes, parameters)
    read = np.zeros(LANES, np.int64)
    group = Group(places.numbers[0], places.slopes, places.buckets, read, np.float32(1))
    added = places.added[0]
    x, y = Rows(at.state, row), Rows(at.after_attention, row)
    normed, mixed = Rows(at.normed, row), Rows(at.mixed, sizes.mixed + 1)
    inner, slopes = Rows(at.inner, sizes.inner + 1), Rows(at.slopes, sizes.inner + 1)
    kept = NormStates(at.after_attention + at.groups * row, at.scales)
    after = Rows(at.outputs, head.layer.outputs + 1)
    pairs = sizes.head_size // 2
    for block in range(sizes.blocks):
        if is_selective(block, sizes):
            rates = at.rates + block * sizes.channels * sizes.numbers
            fill_rates(sizes, selective_layers(block, sizes, parameters), a, rates, w)
    for first in range(0, outputs.begins.shape[0], at.groups):
        groups = min(at.groups, outputs.begins.shape[0] - first)
        for place in range(factors.size):
            store(a, at.mask + place, spread(MASKED))
        place = 0
        while any_goes_on(outputs, first, first + groups):
            hidden = sizes.no_attend_cls and place == 0
            store(a, at.mask + place, spread(MASKED if hidden else ZERO))
            read[:] = place
            read_position(
                place, first, groups, sizes, parameters, at, a, w, outputs, added, by_lane
            )
            for number in range(groups):
                store(a, at.factor + number, spread(factors[place]))
                if sizes.scheme == ROTARY:
                    fill_turns(
                        1, pairs, a, at.turns + number * 2 * pairs,
                        places.cosines[0, place : place + 1], places.sines[0, place : place + 1],
                    )  # fmt: skip
            for block in range(sizes.blocks):
                layers = layers_of(block, sizes, parameters)
                heads = Rows(at.heads + block * at.block_size, at.apart)
                if layers.before:
                    norm(groups, layers.attention_norm, a, x, normed, kept, w)
                read_from = normed if layers.before else x
                if is_selective(block, sizes):
                    select_positions(
                        place, groups, block, sizes, parameters, at, a, w, heads, read_from
                    )
                elif remembers(block, sizes):
                    remember_positions(
                        place, groups, block, sizes, parameters, at, a, w, heads, read_from
                    )
                else:
                    attend_to_positions(
                        place, groups, sizes, parameters, at, a, w, layers, heads, read_from, group
                    )
                copy(groups, width, a, x, y)
                apply(groups, layers.output, a, mixed, y, w, True)
                if layers.after:
                    norm(groups, layers.attention_norm, a, y, y, kept, w)
                if layers.before:
                    norm(groups, layers.feed_forward_norm, a, y, normed, kept, w)
                apply(groups, layers.inner, a, normed if layers.before else y, inner, w, False)
                activate(groups, sizes, a, inner, slopes)
                copy(groups, width, a, y, x)
                apply(groups, layers.outer, a, inner, x, w, True)
                if layers.after:
                    norm(groups, layers.feed_forward_norm, a, x, x, kept, w)
            if sizes.final_norm:
                norm(groups, final, a, x, x, kept, w)
            write_next(outputs, head, a, x, after, w, first, groups, place)
            place += 1
