# ruff: noqa
# mypy: ignore-errors
"""Playing a program on strings: one loop that trains, scores and answers, and one that writes."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import TAPE
from seqcls.engines.lanes.interpreter import (
    INPUT,
    READ,
    START,
    STEPS,
    TARGETS,
    TOKENS,
    Reading,
    play,
)
from seqcls.engines.lanes.loss import (
    Head,
    Taught,
    any_goes_on,
    group_loss,
    mark_numbers,
    mark_tokens,
    next_token,
    token_losses,
    write_likeliest,
)
from seqcls.engines.lanes.tiles import COLUMNS, LinearLayer, Rows, clear
from seqcls.engines.lanes.transformer_attention import MASKED
from seqcls.engines.lanes.transformer_sizes import FIRST
from seqcls.engines.lanes.vector import LANES, ZERO, kernel, load, spread, store


class Network(NamedTuple):
    types: int
    outputs: int
    at_tokens: bool
    at_places: bool
    two_streams: bool
    readout: int
    scaled_loss: bool
    eps: float
    factor: np.float32
    """What scores are multiplied by, whatever a string's length."""
    added: np.ndarray
    """(token, hidden): what places add to embeddings."""
    cosines: np.ndarray
    """(token, pair): of what places turn queries and keys by."""
    sines: np.ndarray


class Model(NamedTuple):
    training: bool
    w: np.ndarray
    gradient: np.ndarray
    moments: np.ndarray
    step: int
    update: tuple
    network: Network
    a: np.ndarray


class Strings(NamedTuple):
    """`LaneStrings` and `TaughtStrings`, with the inputs where an encoder reads them."""

    ids: np.ndarray
    lengths: np.ndarray
    inputs: np.ndarray
    input_lengths: np.ndarray
    ends: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    wanted: np.ndarray
    shares: np.ndarray
    sets: np.ndarray


class Found(NamedTuple):
    """What came out, in the places of the groups."""

    logits: np.ndarray
    losses: np.ndarray
    missed: np.ndarray
    missed_inside: np.ndarray
    said: np.ndarray


@kernel
def place_of(first, apart, row, group):
    """Where a row stands, or that of a group where there is room for one token alone."""
    return first + row * apart if apart > 0 else first - group * apart


@kernel
def longest_of(lengths):
    longest = 0
    for lane in range(LANES):
        longest = max(longest, lengths[lane])
    return longest


@kernel
def read_stream(s, network, ids, lengths, ragged, starts, a):
    """Writes what is read of the tokens of groups, the longest first; how many tokens there are.

    Where it is `ragged`, groups whose strings have ended have no more rows.
    """
    groups, row, tokens = lengths.shape[0], 0, 1
    for group in range(groups):
        tokens = max(tokens, longest_of(lengths[group]))
    if not ragged:
        tokens = (tokens + 3) // 4 * 4
    for token in range(tokens):
        starts[token] = row
        for group in range(groups):
            if ragged and longest_of(lengths[group]) <= token:
                break
            if token < ids.shape[1]:
                mark_tokens(
                    1, ids[group, token : token + 1], a, network.types, s.types + row * s.types_apart, s.types_apart,
                    s.is_token + row,
                )  # fmt: skip
            else:
                clear(a, s.types + row * s.types_apart, s.types_apart)
                clear(a, s.is_token + row, 1)
            if not ragged:
                tell_attention(s, network, token, group, row, lengths[group], a)
            row += 1
    starts[tokens] = row
    return tokens


@kernel
def tell_attention(s, network, token, group, row, lengths, a):
    """What is added to scores of a token's key, and what its query is multiplied by."""
    for lane in range(LANES):
        is_cls = a[place_of(s.types, s.types_apart, row, group) * LANES + lane] > ZERO
        hidden = a[(s.is_token + row) * LANES + lane] == ZERO or (s.hides_cls and is_cls)
        a[(s.mask + group * s.tokens + token) * LANES + lane] = MASKED if hidden else ZERO
        factor = network.factor
        if s.log_length:
            count = min(lengths[lane], token + 1) if s.causal else lengths[lane]
            factor *= np.float32(math.log(max(count, 1)))
        a[(s.factor + row) * LANES + lane] = factor
    for pair in range(network.cosines.shape[1]):
        at = s.turns + (row * network.cosines.shape[1] + pair) * 2
        store(a, at, spread(network.cosines[token, pair]))
        store(a, at + 1, spread(network.sines[token, pair]))


@kernel
def tell_readout(program, network, lengths, starts, read, a):
    """Which row of each string is read, or its share of a mean."""
    for group in range(lengths.shape[0]):
        for lane in range(LANES):
            length = lengths[group, lane]
            read[group, lane] = -1
            if length > 0:
                read[group, lane] = starts[0 if network.readout == FIRST else length - 1] + group
            factor = network.factor
            if program.own.log_length:
                factor *= np.float32(math.log(max(length, 1)))
            a[(program.read_factor + group) * LANES + lane] = factor
            a[(program.share + group) * LANES + lane] = np.float32(1) / np.float32(max(length, 1))
            place = 0 if network.readout == FIRST else max(length - 1, 0)
            for pair in range(network.cosines.shape[1]):
                at = (
                    program.read_turns + (group * network.cosines.shape[1] + pair) * 2
                ) * LANES + lane
                a[at], a[at + LANES] = network.cosines[place, pair], network.sines[place, pair]


@kernel
def string_losses(program, network, first, groups, strings, found, slopes, a):
    """The sum of losses of one answer a string; leaves D in the place of the outputs."""
    loss = 0.0
    for group in range(groups):
        number, at = first + group, program.outputs + group * program.outputs_apart
        store(found.logits[number], 0, load(a, at))
        loss += group_loss(
            found.logits[number], strings.targets[number], strings.weights[number], network.scaled_loss, slopes,
        )  # fmt: skip
        clear(a, at, program.outputs_apart)
        store(a, at, load(slopes, 0))
    return loss


@entry(TAPE)
def run(model, program, strings, found):
    """Trains on batches of strings, in place, or only answers or scores; the sum of all losses."""
    training, w, gradient, moments, step, update, network, a = model
    tokens_most = max(strings.ids.shape[1], strings.inputs.shape[1]) + 5
    starts, input_starts = np.zeros(tokens_most, np.int64), np.zeros(tokens_most, np.int64)
    spans, known = np.zeros((6, 2), np.int64), np.zeros(6, np.int64)
    read, slopes, kept = (
        np.zeros((strings.ids.shape[0], LANES), np.int64),
        np.zeros(LANES, np.float32),
        np.zeros(4 * LANES, np.float32),
    )
    rows_most = program.rows + 4
    wanted, owners, places = (
        np.zeros((rows_most, LANES), np.int16),
        np.zeros(rows_most, np.int64),
        np.zeros(rows_most, np.int64),
    )
    head = Head(LinearLayer(0, 0, 0, -1), network.outputs, network.at_places)
    losses = Taught(
        wanted,
        strings.sets,
        owners,
        places,
        found.losses,
        found.missed,
        found.missed_inside,
        found.said,
        kept,
    )
    spans[START, 1] = 1
    total, first = 0.0, 0
    for batch in range(strings.ends.size):
        while first < strings.ends[batch]:
            last = strings.ends[batch] if program.together else first + 1
            groups, lengths = last - first, strings.lengths[first:last]
            tokens = read_stream(
                program.own, network, strings.ids[first:last], lengths, program.together, starts, a
            )
            rows = starts[tokens]
            spans[READ, 1], spans[TOKENS, 1], spans[STEPS, 1], known[TOKENS] = (
                groups,
                rows,
                rows * program.steps,
                tokens,
            )
            if network.two_streams:
                known[INPUT] = read_stream(
                    program.inputs, network, strings.inputs[first:last], strings.input_lengths[first:last], False, input_starts, a,
                )  # fmt: skip
                spans[INPUT, 1] = input_starts[known[INPUT]]
            begin = rows
            if network.at_tokens:
                for token in range(tokens):
                    for row in range(starts[token], starts[token + 1]):
                        group = first + row - starts[token]
                        owners[row], places[row] = group, token
                        for lane in range(LANES):
                            wanted[row, lane] = (
                                strings.wanted[group, token, lane]
                                if token < strings.wanted.shape[1]
                                else -1
                            )
                            if wanted[row, lane] >= 0:
                                begin = min(begin, row)
                begin = begin if program.together else begin // 4 * 4
            else:
                tell_readout(program, network, lengths, starts, read, a)
            spans[TARGETS, 0], spans[TARGETS, 1] = begin, rows
            it = Reading(spans, known, starts, groups, read, network.added, network.eps)
            play(program.forward, it, a, w, gradient)
            if network.at_tokens:
                # Where nothing is trained losses are summed by four rows.
                some = max(rows - begin, 1) if training else COLUMNS
                for row in range(begin, rows, some):
                    outputs = Rows(
                        program.outputs + row * program.outputs_apart, program.outputs_apart
                    )
                    total += token_losses(
                        min(some, rows - row), row, head, a, Rows(0, 0), outputs, w, losses, strings.shares[batch], training,
                    )  # fmt: skip
            else:
                total += string_losses(program, network, first, groups, strings, found, slopes, a)
            if training:
                play(program.backward, it, a, w, gradient)
            first = last
        if training:
            step += 1
            adamw(w, gradient, moments, step, update.rates[batch], update)
    return total


@entry(TAPE)
def write(w, program, network, together, outputs, inputs, input_lengths, a):
    """Writes an output for each input, the likeliest token at every place, so many groups together.

    The program is played on one token more of all groups; what stands in the rows before is the cache.
    """
    most = max(program.rows, program.inputs.tokens) + 5
    starts, input_starts = np.zeros(most, np.int64), np.zeros(most, np.int64)
    spans, known, read = (
        np.zeros((6, 2), np.int64),
        np.zeros(6, np.int64),
        np.zeros((together, LANES), np.int64),
    )
    numbers, nothing = np.zeros(LANES, np.int64), np.zeros(0, np.float32)
    head = Head(LinearLayer(0, 0, 0, -1), network.outputs, network.at_places)
    own = program.own
    for first in range(0, outputs.begins.shape[0], together):
        groups = min(together, outputs.begins.shape[0] - first)
        it = Reading(spans, known, starts, groups, read, network.added, network.eps)
        spans[:] = 0
        spans[START, 1] = 1
        if network.two_streams:
            known[INPUT] = read_stream(
                program.inputs, network, inputs[first : first + groups], input_lengths[first : first + groups], False, input_starts, a,
            )  # fmt: skip
            spans[INPUT, 1] = input_starts[known[INPUT]]
        place = 0
        while any_goes_on(outputs, first, first + groups):
            starts[place], starts[place + 1] = place * groups, (place + 1) * groups
            for group in range(groups):
                row = starts[place] + group
                for lane in range(LANES):
                    numbers[lane] = next_token(outputs, first + group, lane, place)
                    read[group, lane] = place + 1
                mark_numbers(
                    numbers, a, network.types, place_of(own.types, own.types_apart, row, group)
                )
                if not program.together:
                    store(a, own.is_token + row, spread(np.float32(1)))
                    tell_attention(own, network, place, group, row, read[group], a)
            for span in (TOKENS, TARGETS):
                spans[span, 0], spans[span, 1] = starts[place], starts[place + 1]
            spans[STEPS, 0], spans[STEPS, 1] = (
                starts[place] * program.steps,
                starts[place + 1] * program.steps,
            )
            known[TOKENS] = place + 1
            play(program.forward, it, a, w, nothing)
            spans[INPUT, 1] = spans[START, 1] = 0
            for group in range(groups):
                at = place_of(program.outputs, program.outputs_apart, starts[place] + group, group)
                write_likeliest(outputs, head, a, at, first + group, place)
            place += 1
