# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The loops over strings: one that trains, scores and evaluates, and one that decodes."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import TAPE
from seqcls.engines.lanes.attention import MASKED
from seqcls.engines.lanes.interpreter import Reading, play
from seqcls.engines.lanes.layers import COLUMNS, FIRST, INPUT, READ, START, STEPS, TARGETS, TOKENS
from seqcls.engines.lanes.loss import (
    SCRATCH_VECTORS,
    group_loss,
    mark_tokens,
    set_losses,
    token_losses,
    write_likeliest,
)
from seqcls.engines.lanes.positions import fill_read_turns, fill_turns
from seqcls.engines.lanes.tiles import clear
from seqcls.engines.lanes.vector import LANES, ONE, ZERO, kernel, load, spread, store


class Network(NamedTuple):
    """The settings of a network that are not part of its instructions."""

    types: int
    """Number of token types that are read: CLS and the letters."""
    outputs: int
    """Number of outputs of the head; those of one that writes are CLS, the letters, of which the
    last two are SEP and END, and PAD."""
    at_tokens: bool
    """True if predictions are made at tokens, and not for the whole string."""
    at_places: bool
    """True if these are answers at every token, so that any output may be the target."""
    two_streams: bool
    readout: int
    scaled_loss: bool
    eps: float
    factor: float
    """The factor of scores that does not depend on a string's length."""


class Strings(NamedTuple):
    """Strings in groups, with their targets; and inputs, if an encoder reads them."""

    ids: np.ndarray
    """(group, token, lane): numbers of tokens, as in `token_numbers`."""
    times: np.ndarray
    """(group, token, lane): number of each token's repetitions; empty if each occurs once."""
    lengths: np.ndarray
    """(group, lane): number of tokens without repetitions; 0 for padding."""
    sizes: np.ndarray
    """(group, lane): number of tokens that are read, repetitions included."""
    inputs: np.ndarray
    """(group, token, lane): those of the encoder's inputs, else empty."""
    input_lengths: np.ndarray
    """(group, lane)"""
    targets: np.ndarray
    """(group, lane): 1 for positive strings, else 0."""
    weights: np.ndarray
    """(group, lane): the weight of each loss in the gradient, one over the size of the batch; 0 for
    padding."""
    token_targets: np.ndarray
    """(group, token, lane): the index of the target token or answer; plus the number of outputs if
    it is predicted and not written; -1 if there is none."""
    sets: np.ndarray
    """(set, output): the bits of sets that are targets; empty if targets are no sets."""
    shares: np.ndarray
    """(batch): the weight of each token's loss in the gradient, one over the number of targets."""
    ends: np.ndarray
    """(batch): the end of each batch's groups, exclusive."""


class Found(NamedTuple):
    """The results of strings, (group, lane)."""

    logits: np.ndarray
    losses: np.ndarray
    """The loss of each string, in nats."""
    missed: np.ndarray
    """Number of target tokens that are not the likeliest."""
    missed_inside: np.ndarray
    """Number of those before the end that are not the likeliest letter."""
    token_logits: np.ndarray
    """(group, token, lane, output): the head's outputs; empty if they are not needed."""


@kernel
def place_of(first, apart, row, group):
    """Returns the start of a row, or of its group's row if one token is stored."""
    return first + row * apart if apart > 0 else first - group * apart


@kernel
def longest_of(lengths):
    """Returns the largest length of a group's strings."""
    longest = 0
    for lane in range(LANES):
        longest = max(longest, lengths[lane])
    return longest


@kernel
def read_stream(
    s, network, positions, number, ids, times, lengths, sizes, ragged, starts, a
):  # fmt: skip
    """Writes the inputs of a stream for groups, the longest first; returns the number of tokens.

    Args:
        s: a `Stream`.
        number: the index of the first group.
        ids, times, lengths, sizes: their tokens, as in `Strings`.
        ragged: whether groups have no rows after their longest string.
        starts: (token), written: the token's first row; then the end of the last one's rows.
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
            types = s.types + row * s.types_apart
            mark_tokens(ids[group, token], a, network.types, types, s.is_token + row)
            if times.shape[1] > 0:
                store(a, s.is_token + row, load(times[group, token], 0))
            if not ragged:
                place = positions.rows[number + group]
                fill_attention(s, network, positions, place, token, group, row, sizes[group], a)
            row += 1
    starts[tokens] = row
    return tokens


@kernel
def factor_of(network, log_length, count):
    """Returns the factor of scores of a query that reads so many tokens."""
    factor = np.float32(network.factor)
    if log_length:
        factor *= np.float32(math.log(max(count, 1)))
    return factor


@kernel
def fill_attention(s, network, positions, place, token, group, row, lengths, a):
    """Writes the mask of a token's key, the factor of its query, and its rotations.

    Args:
        place: the row of the group's positions.
        lengths: (lane): number of tokens that are read, repetitions included.
    """
    for lane in range(LANES):
        is_cls = a[place_of(s.types, s.types_apart, row, group) * LANES + lane] > ZERO
        times, mask = a[(s.is_token + row) * LANES + lane], ZERO
        if times == ZERO or (s.hides_cls and is_cls):
            mask = MASKED
        elif times != ONE:
            # In a softmax, log n has the effect of n equal keys.
            mask = np.float32(math.log(times))
        a[(s.mask + group * s.tokens + token) * LANES + lane] = mask
        count = min(lengths[lane], token + 1) if s.causal else lengths[lane]
        a[(s.factor + row) * LANES + lane] = factor_of(network, s.log_length, count)
    if s.pairs > 0:
        cosines, sines = positions.cosines[place, token], positions.sines[place, token]
        fill_turns(a, s.turns + row * 2 * s.pairs, cosines, sines)


@kernel
def fill_crossing(program, network, lengths, first, rows, a):
    """Writes the factors of queries that attend to the other stream, for some rows.

    Args:
        lengths: (group, lane): number of that stream's tokens.
    """
    for row in range(first, first + rows):
        for lane in range(LANES):
            length = lengths[row % lengths.shape[0], lane]
            factor = factor_of(network, program.inputs.log_length, length)
            a[(program.crossing + row) * LANES + lane] = factor


@kernel
def fill_readout(program, network, positions, number, lengths, sizes, starts, read, a):
    """Writes the row of each string that is read, its query's factor, and weights of means.

    Args:
        number: the index of the first group.
        sizes: (group, lane): number of tokens, repetitions included; `lengths` without these.
        read: (group, lane), written: the row; -1 for padding.
    """
    for group in range(lengths.shape[0]):
        for lane in range(LANES):
            length, size = lengths[group, lane], max(sizes[group, lane], 1)
            read[group, lane] = -1
            if length > 0:
                read[group, lane] = starts[0 if network.readout == FIRST else length - 1] + group
            factor = factor_of(network, program.own.log_length, size)
            a[(program.read_factor + group) * LANES + lane] = factor
            a[(program.share + group) * LANES + lane] = np.float32(1) / np.float32(size)
        if program.own.pairs > 0:  # Then one group is read at a time, and a row is a token.
            place, turns = positions.rows[number + group], program.read_turns
            fill_read_turns(a, turns, positions.cosines[place], positions.sines[place], read[group])


@kernel
def has_target(targets):
    """Returns True if a string of a group has a target, (lane)."""
    found = False
    for lane in range(LANES):
        found = found or targets[lane] >= 0
    return found


@kernel
def first_target(targets, tokens, starts):
    """Returns the first row with a target, (group, token, lane); without any, the end of all."""
    for token in range(tokens):
        for row in range(starts[token], starts[token + 1]):
            if has_target(targets[row - starts[token], token]):
                return row
    return starts[tokens]


@kernel
def losses_at_tokens(
    total, program, network, first, tokens, starts, begin, strings, share, found, scratch, a,
    training,
):  # fmt: skip
    """Adds the losses of rows from `begin` on to a sum, and replaces the outputs by gradients."""
    loss = 0.0
    for token in range(tokens):
        for row in range(max(begin, starts[token]), starts[token + 1]):
            if not training and (row - begin) % COLUMNS == 0:
                # Without training, losses are summed by four rows.
                total, loss = total + loss, 0.0
            group, at = first + row - starts[token], program.outputs + row * program.outputs_apart
            targets = strings.token_targets[group, token]
            if not has_target(targets):
                clear(a, at, program.outputs_apart)
                continue
            for output in range(found.token_logits.shape[3]):
                for lane in range(LANES):
                    logit = a[(at + output) * LANES + lane]
                    found.token_logits[group, token, lane, output] = logit
            if strings.sets.size > 0:
                loss += set_losses(
                    targets, strings.sets, group, at, network, a, share, found, scratch, training
                )
            else:
                loss = token_losses(
                    loss, targets, group, at, network, a, share, found, scratch, training
                )
    return total + loss


@kernel
def string_losses(program, network, first, groups, strings, found, slopes, a):
    """Returns the sum of the losses of strings; replaces the outputs by their gradients."""
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
def run(w, moments, step, update, program, network, strings, positions, found, a):
    """Trains on batches of strings, in place, or only evaluates them; returns the sum of losses.

    Args:
        w: (parameter).
        moments: (2, parameter) AdamW's first and second moments; empty if strings are evaluated.
        step: the number of steps made before; `update` is an `Update`.
        program: a `Program`.
        network: a `Network`.
        strings: `Strings`.
        positions: `PositionArrays`.
        found: a `Found`, written.
        a: the array of all values, zeros at first.
    """
    training, gradient = moments.size > 0, np.zeros_like(w)
    # Tokens may be filled up to a multiple of 4, and one number more is the end of the last row.
    most = max(strings.ids.shape[1], strings.inputs.shape[1]) + 5
    starts, input_starts = np.zeros(most, np.int64), np.zeros(most, np.int64)
    spans, known = np.zeros((6, 2), np.int64), np.zeros(6, np.int64)
    read, slopes = np.zeros((strings.ids.shape[0], LANES), np.int64), np.zeros(LANES, np.float32)
    scratch = np.zeros(SCRATCH_VECTORS * LANES, np.float32)
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
                strings.ids[first:last], strings.times[first:last], lengths, sizes,
                program.together, starts, a,
            )  # fmt: skip
            rows = starts[tokens]
            spans[READ, 1], spans[TOKENS, 1] = groups, rows
            spans[STEPS, 1], known[TOKENS] = rows * program.steps, tokens
            if network.two_streams:
                input_lengths = strings.input_lengths[first:last]
                known[INPUT] = read_stream(
                    program.inputs, network, positions, first,
                    strings.inputs[first:last], uncounted, input_lengths, input_lengths, False,
                    input_starts, a,
                )  # fmt: skip
                spans[INPUT, 1] = input_starts[known[INPUT]]
                fill_crossing(program, network, strings.input_lengths[first:last], 0, rows, a)
            begin = rows
            if network.at_tokens:
                begin = first_target(strings.token_targets[first:last], tokens, starts)
                begin = begin if program.together else begin // 4 * 4
            else:
                fill_readout(program, network, positions, first, lengths, sizes, starts, read, a)
            spans[TARGETS, 0], spans[TARGETS, 1] = begin, rows
            it = Reading(spans, known, starts, groups, first, lengths, read, positions, network.eps)
            play(program.forward, it, a, w, gradient)
            if network.at_tokens:
                total = losses_at_tokens(
                    total, program, network, first, tokens, starts, begin, strings,
                    strings.shares[batch], found, scratch, a, training,
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
    """Decodes an output for each input greedily.

    The list is played on one more token of some groups at a time; the rows before are the memory of
    earlier tokens.

    Args:
        together: the number of groups that are decoded together.
        outputs: an `OutputBuffers`.
        inputs: (group, position, lane): those of the encoder, else empty; so `input_lengths`.
    """
    most = max(program.rows, program.inputs.tokens) + 5
    starts, input_starts = np.zeros(most, np.int64), np.zeros(most, np.int64)
    spans, known = np.zeros((6, 2), np.int64), np.zeros(6, np.int64)
    read, lengths = np.zeros((together, LANES), np.int64), np.zeros(LANES, np.int64)
    nothing, scratch = np.zeros(0, np.float32), np.zeros(SCRATCH_VECTORS * LANES, np.float32)
    uncounted = np.zeros((0, 0, LANES), np.float32)
    own = program.own
    for first in range(0, outputs.begins.shape[0], together):
        groups = min(together, outputs.begins.shape[0] - first)
        # No instruction of decoding uses the lengths of outputs.
        it = Reading(spans, known, starts, groups, first, read, read, positions, network.eps)
        spans[:] = 0
        spans[START, 1] = 1
        if network.two_streams:
            lengths_read = input_lengths[first : first + groups]
            known[INPUT] = read_stream(
                program.inputs, network, positions, first,
                inputs[first : first + groups], uncounted, lengths_read, lengths_read, False,
                input_starts, a,
            )  # fmt: skip
            spans[INPUT, 1] = input_starts[known[INPUT]]
        place = 0
        while outputs.left[first : first + groups].max() > 0:
            starts[place], starts[place + 1] = place * groups, (place + 1) * groups
            lengths[:] = place + 1
            for group in range(groups):
                row = starts[place] + group
                types = place_of(own.types, own.types_apart, row, group)
                tokens = outputs.tokens[first + group, place]
                mark_tokens(tokens, a, network.types, types, own.is_token + row)
                if not program.together:
                    here = positions.rows[first + group]
                    fill_attention(own, network, positions, here, place, group, row, lengths, a)
                    if own.log_length:  # Rounded once here, and twice where strings are read.
                        factor = network.factor * math.log(place + 1)
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
                write_likeliest(outputs, network, a, at, first + group, place, scratch)
            place += 1
