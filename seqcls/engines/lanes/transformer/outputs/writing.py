"""Greedy decoding of a Transformer that keeps keys and values, as one compiled function.

All strings of a few groups are read and written together, place by place: at each, a lane reads a
token of its input or the one that it has written last. So tokens of a place are as far from each
other in all lanes, and a weight that is loaded once serves all groups.
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import TRANSFORMER_OUTPUTS
from seqcls.engines.lanes.packing import filled, one_after_another
from seqcls.engines.lanes.transformer.attention import MASKED, attend
from seqcls.engines.lanes.transformer.block import activate, copy, layers_of, scale
from seqcls.engines.lanes.transformer.kernel import Group
from seqcls.engines.lanes.transformer.outputs.teaching import final_norm_of
from seqcls.engines.lanes.transformer.places import fill_turns, rotate
from seqcls.engines.lanes.transformer.sizes import ADDED, LEARNED, ROTARY, Sizes
from seqcls.engines.lanes.vectors.compiling import kernel
from seqcls.engines.lanes.vectors.linear import apply
from seqcls.engines.lanes.vectors.loss import head_of
from seqcls.engines.lanes.vectors.norm import Kept, norm
from seqcls.engines.lanes.vectors.tiles import Rows
from seqcls.engines.lanes.vectors.vector import (
    LANES,
    ZERO,
    spread,
    store,
)
from seqcls.engines.lanes.writing import any_goes_on, next_token, write_next


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
    heads: int
    """Keys and values of every place; in the row of the first, the queries of the last."""
    apart: int
    block_size: int
    size: int


def written_states_of(sizes: Sizes, tokens: int, groups: int) -> WrittenStates:
    """Where the states of so many groups stand, of which so many places are kept."""
    # One vector more in every row: rows that are a power of two apart share lines of the cache.
    width, inner = sizes.width + 1, sizes.inner + 1
    apart = tokens * (3 * sizes.joined + 1)
    parts = {
        "state": groups * width,
        "normed": groups * width,
        "scales": groups,
        "mixed": groups * (sizes.joined + 1),
        # And units of norms, which only gradients need.
        "after_attention": 2 * groups * width,
        "inner": groups * inner,
        "slopes": groups * inner,
        "turns": groups * 2 * (sizes.head_size // 2),
        "factor": groups,
        "mask": tokens,
        "scores": tokens + 1,
        "outputs": groups * (filled(sizes.outputs) + 1),
        "heads": sizes.blocks * groups * apart,
    }
    return WrittenStates(
        groups=groups,
        apart=apart,
        block_size=groups * apart,
        size=sum(parts.values()),
        **one_after_another(parts),
    )


@kernel
def read_place(place, first, groups, sizes, parameters, at, a, w, outputs, added, by_lane):
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
def attend_to_places(place, groups, sizes, parameters, at, a, w, layers, heads, x, group):
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
            Rows(at.mixed + number * (sizes.joined + 1), sizes.joined + 1), at.mask, group, w,
            parameters.table,
        )  # fmt: skip


@entry(TRANSFORMER_OUTPUTS)
def write(w, sizes, parameters, at, a, outputs, places, by_lane, factors):
    """Writes an output for each input.

    Args:
        w: the parameters, one after another.
        sizes: a `Sizes`.
        parameters: a `Parameters`.
        at: a `WrittenStates`.
        a: scratch for the states, zeros at first.
        outputs: an `Outputs`.
        places: a `Places`, of which all strings have the first.
        by_lane: (group, position, lane), places in a learned table; else empty.
        factors: (position), what queries are multiplied by.
    """
    width, row = sizes.width, sizes.width + 1
    head, final = head_of(sizes, parameters), final_norm_of(sizes, parameters)
    read = np.zeros(LANES, np.int64)
    group = Group(places.numbers[0], places.slopes, places.buckets, read, np.float32(1))
    added = places.added[0]
    x, y = Rows(at.state, row), Rows(at.after_attention, row)
    normed, mixed = Rows(at.normed, row), Rows(at.mixed, sizes.joined + 1)
    inner, slopes = Rows(at.inner, sizes.inner + 1), Rows(at.slopes, sizes.inner + 1)
    kept = Kept(at.after_attention + at.groups * row, at.scales)
    after = Rows(at.outputs, head.layer.outputs + 1)
    pairs = sizes.head_size // 2
    for first in range(0, outputs.begins.shape[0], at.groups):
        groups = min(at.groups, outputs.begins.shape[0] - first)
        for place in range(factors.size):
            store(a, at.mask + place, spread(MASKED))
        place = 0
        while any_goes_on(outputs, first, first + groups):
            hidden = sizes.no_attend_cls and place == 0
            store(a, at.mask + place, spread(MASKED if hidden else ZERO))
            read[:] = place
            read_place(place, first, groups, sizes, parameters, at, a, w, outputs, added, by_lane)
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
                attend_to_places(
                    place, groups, sizes, parameters, at, a, w, layers, heads,
                    normed if layers.before else x, group,
                )  # fmt: skip
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
            apply(groups, head.layer, a, x, after, w, False)
            for number in range(groups):
                write_next(
                    outputs, head, a, after.first + number * after.apart, first + number, place
                )
            place += 1
