# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Playing a list of instructions on strings: one loop that trains, scores and answers, and one that
writes.
"""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.engine import Update
from seqcls.engines.compiled.machine_code import TAPE
from seqcls.engines.lanes.attention import MASKED
from seqcls.engines.lanes.interpreter import Reading, play
from seqcls.engines.lanes.layers import FIRST, INPUT, READ, START, STEPS, TARGETS, TOKENS, Rows
from seqcls.engines.lanes.loss import (
    Head,
    RowTargets,
    any_goes_on,
    group_loss,
    mark_numbers,
    mark_tokens,
    next_token,
    token_losses,
    write_likeliest,
)
from seqcls.engines.lanes.positions import fill_read_turns, fill_turns
from seqcls.engines.lanes.tiles import COLUMNS, clear
from seqcls.engines.lanes.vector import LANES, ONE, ZERO, kernel, load, spread, store


class Network(NamedTuple):
    """What is known of a network beside its instructions."""

    types: int
    """Token types that are read: CLS and the letters."""
    outputs: int
    """Numbers that the head gives of a state."""
    at_tokens: bool
    """Whether something is predicted at tokens, and not of a string as a whole."""
    at_places: bool
    """Whether these are answers, which are read at every token."""
    two_streams: bool
    readout: int
    scaled_loss: bool
    eps: float
    factor: np.float32
    """What scores are multiplied by, whatever a string's length."""
    exact_factor: float
    """The same in double precision."""


class Model(NamedTuple):
    """A model as compiled code takes it, to train it or only to have it answer."""

    training: bool
    w: np.ndarray
    """(parameter), trained in place."""
    gradient: np.ndarray
    """As many zeros, in training."""
    moments: np.ndarray
    """(2, parameter): AdamW's first and second moments."""
    step: int
    """Steps done before."""
    update: Update
    network: Network
    a: np.ndarray
    """Room for all values, zeros at first."""


class Strings(NamedTuple):
    """`LaneStrings`, what is to be predicted of them, and inputs where an encoder reads them."""

    ids: np.ndarray
    times: np.ndarray
    lengths: np.ndarray
    sizes: np.ndarray
    inputs: np.ndarray
    input_lengths: np.ndarray
    ends: np.ndarray
    targets: np.ndarray
    weights: np.ndarray
    token_targets: np.ndarray
    shares: np.ndarray
    sets: np.ndarray


class Tokens(NamedTuple):
    """What is read of some groups of strings."""

    ids: np.ndarray
    """(group, token, lane)"""
    times: np.ndarray
    """(group, token, lane): how often each occurs; of no token where each stands for itself."""
    lengths: np.ndarray
    """(group, lane): how many are written down."""
    sizes: np.ndarray
    """(group, lane): how many there are, as often as they occur."""


class Found(NamedTuple):
    """What came out, in the places of the groups; the last four as in `RowTargets`."""

    logits: np.ndarray
    losses: np.ndarray
    missed: np.ndarray
    missed_inside: np.ndarray
    token_logits: np.ndarray


@kernel
def place_of(first, apart, row, group):
    """Where a row stands, or that of a group where there is room for one token alone."""
    return first + row * apart if apart > 0 else first - group * apart


@kernel
def longest_of(lengths):
    """The greatest length of a group's strings."""
    longest = 0
    for lane in range(LANES):
        longest = max(longest, lengths[lane])
    return longest


@kernel
def read_stream(s, network, positions, number, read, ragged, starts, a):
    """Writes what is read of the tokens of groups, the longest first; how many tokens there are.

    Args:
        s: a `Stream`.
        number: of the first group.
        read: their `Tokens`.
        ragged: whether groups whose strings have ended have no more rows.
        starts: (token), written: each one's first row, and the end of the last.
    """
    ids, times, lengths, sizes = read
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
            types = s.types + row * s.types_apart
            if token < ids.shape[1]:
                here = ids[group, token : token + 1]
                mark_tokens(1, here, a, network.types, types, s.types_apart, s.is_token + row)
                if times.shape[1] > 0:
                    store(a, s.is_token + row, load(times[group, token], 0))
            else:
                clear(a, types, s.types_apart)
                clear(a, s.is_token + row, 1)
            if not ragged:
                place = positions.rows[number + group]
                fill_attention(s, network, positions, place, token, group, row, sizes[group], a)
            row += 1
    starts[tokens] = row
    return tokens


@kernel
def fill_attention(s, network, positions, place, token, group, row, lengths, a):
    """Writes what is added to scores of a token's key, and what its query is multiplied by.

    Args:
        place: the row of the group's positions.
        lengths: (lane): tokens that are read, as often as they occur.
    """
    for lane in range(LANES):
        is_cls = a[place_of(s.types, s.types_apart, row, group) * LANES + lane] > ZERO
        times, mask = a[(s.is_token + row) * LANES + lane], ZERO
        if times == ZERO or (s.hides_cls and is_cls):
            mask = MASKED
        elif times != ONE:
            # As much as so many equal keys are to a softmax.
            mask = np.float32(math.log(times))
        a[(s.mask + group * s.tokens + token) * LANES + lane] = mask
        factor = network.factor
        if s.log_length:
            count = min(lengths[lane], token + 1) if s.causal else lengths[lane]
            factor *= np.float32(math.log(max(count, 1)))
        a[(s.factor + row) * LANES + lane] = factor
    if s.pairs > 0:
        cosines, sines = positions.cosines[place, token], positions.sines[place, token]
        fill_turns(a, s.turns + row * 2 * s.pairs, cosines, sines)


@kernel
def fill_crossing(program, network, lengths, first, rows, a):
    """Writes what the queries of some rows are multiplied with that attend to the other stream.

    Args:
        lengths: (group, lane): tokens of that.
    """
    for row in range(first, first + rows):
        for lane in range(LANES):
            factor = network.factor
            if program.inputs.log_length:
                length = lengths[row % lengths.shape[0], lane]
                factor *= np.float32(math.log(max(length, 1)))
            a[(program.crossing + row) * LANES + lane] = factor


@kernel
def fill_readout(program, network, positions, number, lengths, sizes, starts, read, a):
    """Writes which row of each string is read, and what its query is told; its share of a mean.

    Args:
        number: of the first group.
        sizes: (group, lane): tokens, as often as they occur; `lengths` those written down.
        read: (group, lane), written: the row; -1 where there is no string.
    """
    for group in range(lengths.shape[0]):
        for lane in range(LANES):
            length, size = lengths[group, lane], max(sizes[group, lane], 1)
            read[group, lane] = -1
            if length > 0:
                read[group, lane] = starts[0 if network.readout == FIRST else length - 1] + group
            factor = network.factor
            if program.own.log_length:
                factor *= np.float32(math.log(size))
            a[(program.read_factor + group) * LANES + lane] = factor
            a[(program.share + group) * LANES + lane] = np.float32(1) / np.float32(size)
        if program.own.pairs > 0:  # Then one group is read at a time, and a row is a token.
            place, turns = positions.rows[number + group], program.read_turns
            fill_read_turns(a, turns, positions.cosines[place], positions.sines[place], read[group])


@kernel
def fill_targets(strings, first, tokens, starts, targets, owners, places):
    """Writes what is to be predicted at each row; the first row at which anything is."""
    begin = starts[tokens]
    for token in range(tokens):
        for row in range(starts[token], starts[token + 1]):
            group = first + row - starts[token]
            owners[row], places[row] = group, token
            for lane in range(LANES):
                is_there = token < strings.token_targets.shape[1]
                targets[row, lane] = strings.token_targets[group, token, lane] if is_there else -1
                if targets[row, lane] >= 0:
                    begin = min(begin, row)
    return begin


@kernel
def string_losses(program, network, first, groups, strings, found, slopes, a):
    """The sum of losses of one answer a string; leaves D in the place of the outputs."""
    loss = 0.0
    for group in range(groups):
        number, at = first + group, program.outputs + group * program.outputs_apart
        store(found.logits[number], 0, load(a, at))
        loss += group_loss(
            found.logits[number], strings.targets[number], strings.weights[number],
            network.scaled_loss, slopes,
        )  # fmt: skip
        clear(a, at, program.outputs_apart)
        store(a, at, load(slopes, 0))
    return loss


@entry(TAPE)
def run(model, program, strings, positions, found):
    """Trains on batches of strings, in place, or only answers or scores; the sum of all losses.

    Args:
        model: a `Model`.
        program: a `Program`.
        strings: `Strings`.
        positions: `PositionArrays`.
        found: a `Found`, written.
    """
    training, w, gradient, moments, step, update, network, a = model
    # Tokens may be filled up to a multiple of 4, and one number more ends the last one's rows.
    most = max(strings.ids.shape[1], strings.inputs.shape[1]) + 5
    starts, input_starts = np.zeros(most, np.int64), np.zeros(most, np.int64)
    spans, known = np.zeros((6, 2), np.int64), np.zeros(6, np.int64)
    read, slopes = np.zeros((strings.ids.shape[0], LANES), np.int64), np.zeros(LANES, np.float32)
    rows_most, scratch = program.rows + 4, np.zeros(4 * LANES, np.float32)
    targets = np.zeros((rows_most, LANES), np.int16)
    owners, places = np.zeros(rows_most, np.int64), np.zeros(rows_most, np.int64)
    head = Head(network.outputs, network.at_places)
    row_targets = RowTargets(
        targets, strings.sets, owners, places, found.losses, found.missed, found.missed_inside,
        found.token_logits, scratch,
    )  # fmt: skip
    uncounted = np.zeros((0, 0, LANES), np.float32)
    spans[START, 1] = 1
    total, first = 0.0, 0
    for batch in range(strings.ends.size):
        while first < strings.ends[batch]:
            last = strings.ends[batch] if program.together else first + 1
            groups, lengths = last - first, strings.lengths[first:last]
            sizes = strings.sizes[first:last]
            tokens = read_stream(
                program.own, network, positions, first,
                Tokens(strings.ids[first:last], strings.times[first:last], lengths, sizes),
                program.together, starts, a,
            )  # fmt: skip
            rows = starts[tokens]
            spans[READ, 1], spans[TOKENS, 1] = groups, rows
            spans[STEPS, 1], known[TOKENS] = rows * program.steps, tokens
            if network.two_streams:
                input_lengths = strings.input_lengths[first:last]
                known[INPUT] = read_stream(
                    program.inputs, network, positions, first,
                    Tokens(strings.inputs[first:last], uncounted, input_lengths, input_lengths),
                    False, input_starts, a,
                )  # fmt: skip
                spans[INPUT, 1] = input_starts[known[INPUT]]
                fill_crossing(program, network, strings.input_lengths[first:last], 0, rows, a)
            begin = rows
            if network.at_tokens:
                begin = fill_targets(strings, first, tokens, starts, targets, owners, places)
                begin = begin if program.together else begin // 4 * 4
            else:
                fill_readout(program, network, positions, first, lengths, sizes, starts, read, a)
            spans[TARGETS, 0], spans[TARGETS, 1] = begin, rows
            it = Reading(spans, known, starts, groups, first, lengths, read, positions, network.eps)
            play(program.forward, it, a, w, gradient)
            if network.at_tokens:
                # Where nothing is trained losses are summed by four rows.
                some = max(rows - begin, 1) if training else COLUMNS
                for row in range(begin, rows, some):
                    at = program.outputs + row * program.outputs_apart
                    total += token_losses(
                        min(some, rows - row), row, head, a, Rows(at, program.outputs_apart),
                        row_targets, strings.shares[batch], training,
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
def write(w, program, network, positions, together, outputs, inputs, input_lengths, a):
    """Writes an output for each input, the likeliest token at every place.

    The list is played on one token more of so many groups at once; what stands in the rows before
    is what is remembered of the tokens before.

    Args:
        together: how many groups are written together.
        outputs: an `OutputBuffers`.
        inputs: (group, position, lane): what an encoder reads, else nothing; so `input_lengths`.
    """
    most = max(program.rows, program.inputs.tokens) + 5
    starts, input_starts = np.zeros(most, np.int64), np.zeros(most, np.int64)
    spans, known = np.zeros((6, 2), np.int64), np.zeros(6, np.int64)
    read, numbers = np.zeros((together, LANES), np.int64), np.zeros(LANES, np.int64)
    lengths, nothing = np.zeros(LANES, np.int64), np.zeros(0, np.float32)
    uncounted = np.zeros((0, 0, LANES), np.float32)
    head = Head(network.outputs, network.at_places)
    own = program.own
    for first in range(0, outputs.begins.shape[0], together):
        groups = min(together, outputs.begins.shape[0] - first)
        # How long outputs become, nothing asks.
        it = Reading(spans, known, starts, groups, first, read, read, positions, network.eps)
        spans[:] = 0
        spans[START, 1] = 1
        if network.two_streams:
            lengths_read = input_lengths[first : first + groups]
            known[INPUT] = read_stream(
                program.inputs, network, positions, first,
                Tokens(inputs[first : first + groups], uncounted, lengths_read, lengths_read),
                False, input_starts, a,
            )  # fmt: skip
            spans[INPUT, 1] = input_starts[known[INPUT]]
        place = 0
        while any_goes_on(outputs, first, first + groups):
            starts[place], starts[place + 1] = place * groups, (place + 1) * groups
            lengths[:] = place + 1
            for group in range(groups):
                row = starts[place] + group
                for lane in range(LANES):
                    numbers[lane] = next_token(outputs, first + group, lane, place)
                types = place_of(own.types, own.types_apart, row, group)
                mark_numbers(numbers, a, network.types, types)
                if not program.together:
                    store(a, own.is_token + row, spread(np.float32(1)))
                    here = positions.rows[first + group]
                    fill_attention(own, network, positions, here, place, group, row, lengths, a)
                    if own.log_length:  # Rounded once here, and twice where strings are read.
                        factor = network.exact_factor * math.log(place + 1)
                        store(a, own.factor + row, spread(np.float32(factor)))
            if network.two_streams:
                lengths_read = input_lengths[first : first + groups]
                fill_crossing(program, network, lengths_read, starts[place], groups, a)
            for span in (TOKENS, TARGETS):
                spans[span, 0], spans[span, 1] = starts[place], starts[place + 1]
            steps = program.steps
            spans[STEPS, 0], spans[STEPS, 1] = starts[place] * steps, starts[place + 1] * steps
            known[TOKENS] = place + 1
            play(program.forward, it, a, w, nothing)
            spans[INPUT, 1] = spans[START, 1] = 0
            for group in range(groups):
                at = place_of(program.outputs, program.outputs_apart, starts[place] + group, group)
                write_likeliest(outputs, head, a, at, first + group, place)
            place += 1
