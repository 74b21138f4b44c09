# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Forward, backward and AdamW of a Transformer, as one compiled function."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import adamw
from seqcls.engines.compiled.compiling import entry
from seqcls.engines.compiled.machine_code import TRANSFORMER
from seqcls.engines.lanes.loss import classify, classify_gradient, group_loss, mark_tokens
from seqcls.engines.lanes.tiles import Matrix, Rows, linear, weight_gradient
from seqcls.engines.lanes.transformer_attention import (
    MASKED,
    add_positions,
    add_positions_gradient,
    end_distance_gradient,
    fill_read_turns,
    fill_turns,
)
from seqcls.engines.lanes.transformer_block import backward, forward
from seqcls.engines.lanes.transformer_sizes import ADDED, FIRST, LEARNED, MEAN, RELATIVE, ROTARY
from seqcls.engines.lanes.vector import LANES, ZERO, fma, kernel, load, spread, store
from seqcls.strings.tokenizer import CLS


class Group(NamedTuple):
    """What a block is told of a group of strings."""

    places: np.ndarray
    """(token)."""
    slopes: np.ndarray
    """(head)."""
    buckets: np.ndarray
    """(distance), from minus half of their number on."""
    read: np.ndarray
    """(lane): the token that is read."""
    forward: np.float32
    """1: how rotary positions turn."""


class PositionArrays(NamedTuple):
    """What the places of tokens mean; the arrays that a scheme does not need are empty."""

    rows: np.ndarray
    """(group): the row of what follows."""
    numbers: np.ndarray
    """(row, position): the places."""
    added: np.ndarray
    """(row, position, hidden, filled up): what is added at each."""
    cosines: np.ndarray
    """(row, position, pair)."""
    sines: np.ndarray
    buckets: np.ndarray
    """(distance), from minus half of their number on."""
    slopes: np.ndarray
    """(head)."""


@kernel
def fill_masks(tokens, sizes, at, a, ids, lengths, factor):
    """Writes what is added to scores of each key, and what each query is multiplied with."""
    for token in range(tokens):
        for lane in range(LANES):
            number = ids[token, lane]
            hidden = a[(at.is_token + token) * LANES + lane] == ZERO
            hidden = hidden or (sizes.no_attend_cls and number == CLS)
            a[(at.mask + token) * LANES + lane] = MASKED if hidden else ZERO
    for token in range(at.tokens + 1):
        if tokens <= token < at.tokens:
            continue
        for lane in range(LANES):
            scale = factor
            if sizes.log_length:
                count = lengths[lane]
                if sizes.causal and token < at.tokens:
                    count = min(count, token + 1)
                scale *= np.float32(math.log(max(count, 1)))
            a[(at.factor + token) * LANES + lane] = scale


@kernel
def read_states(tokens, sizes, at, a, lengths):
    """Writes the state that the classifier reads: the one of the last block, or the mean."""
    if sizes.readout != MEAN:
        for i in range(sizes.width):
            store(a, at.read + i, load(a, at.last_state + i))
        return
    for lane in range(LANES):
        a[at.read_state * LANES + lane] = np.float32(1) / np.float32(max(lengths[lane], 1))
    share = load(a, at.read_state)
    for i in range(sizes.width):
        value = spread(ZERO)
        for token in range(tokens):
            state = load(a, at.last_state + token * (sizes.width + 1) + i)
            value = fma(state, load(a, at.is_token + token), value)
        store(a, at.read + i, value * share)


@kernel
def read_states_gradient(tokens, sizes, at, a):
    """From D of the state that the classifier reads to D of the last block's output."""
    if sizes.readout != MEAN:
        for i in range(sizes.width):
            store(a, at.gradient + i, load(a, at.read_gradient + i))
        return
    share = load(a, at.read_state)
    for i in range(sizes.width):
        value = load(a, at.read_gradient + i) * share
        for token in range(tokens):
            here = load(a, at.is_token + token)
            store(a, at.gradient + token * (sizes.width + 1) + i, value * here)


@kernel
def embed(tokens, number, sizes, parameters, at, a, w, strings, places, factor, order, read):
    """Writes the embeddings of a group's tokens, with what a scheme adds to all strings alike, and
    what attention is told of the tokens.
    """
    ids, lengths, here = strings.ids[number], strings.lengths[number], places.rows[number]
    types = Rows(at.types, sizes.type_width + 1)
    mark_tokens(tokens, ids, a, sizes.types, types.first, types.apart, at.is_token)
    fill_masks(tokens, sizes, at, a, ids, lengths, factor)
    linear(
        tokens, sizes.width, sizes.types, a, types, w,
        Matrix(parameters.embedding, 1, sizes.width), Rows(at.state, sizes.width + 1), w, -1, False,
    )  # fmt: skip
    if sizes.scheme == ADDED:
        add_positions(
            tokens, sizes.width, sizes.hidden, a, at.state, sizes.width + 1,
            places.added[here].reshape(-1), 0, order,
        )  # fmt: skip
    elif sizes.scheme == ROTARY:
        pairs, cosines, sines = sizes.head_size // 2, places.cosines[here], places.sines[here]
        fill_turns(tokens, pairs, a, at.turns, cosines, sines)
        fill_read_turns(pairs, a, at.turns + at.tokens * 2 * pairs, cosines, sines, read)


@kernel
def embed_gradient(tokens, sizes, parameters, at, a, gradient):
    """Adds D of the embeddings to the gradient, and that of a table of distances."""
    weight_gradient(
        tokens, sizes.type_width, sizes.width, a, Rows(at.types, sizes.type_width + 1),
        Rows(at.gradient, sizes.width + 1), gradient, parameters.embedding, sizes.width,
    )  # fmt: skip
    if sizes.scheme == RELATIVE:
        end_distance_gradient(sizes.heads, a, at.distance_gradient, gradient, parameters.table)


@entry(TRANSFORMER)
def run(model, strings, places, factor, logits):
    """Trains a model on batches of strings, in place, or only answers; the sum of all losses.

    Args:
        model: a `Model`.
        strings: a `LaneStrings`.
        places: `PositionArrays`.
        factor: what scores are multiplied by, whatever a string's length.
        logits: (group, lane), written.
    """
    training, w, gradient, moments, step, update, sizes, parameters, at, a = model
    row = sizes.width + 1
    single = sizes.readout != MEAN
    read = np.zeros(LANES, np.int64)
    slopes = np.zeros(LANES, np.float32)
    order = np.arange(strings.ids.shape[1])
    total_loss = 0.0
    first = 0
    for batch in range(strings.ends.size):
        for number in range(first, strings.ends[batch]):
            lengths, longest = strings.lengths[number], 1
            for lane in range(LANES):
                longest = max(longest, lengths[lane])
                read[lane] = 0 if sizes.readout == FIRST else max(lengths[lane] - 1, 0)
            tokens = (longest + 3) // 4 * 4
            here = places.rows[number]
            group = Group(places.numbers[here], places.slopes, places.buckets, read, np.float32(1))
            embed(tokens, number, sizes, parameters, at, a, w, strings, places, factor, order, read)
            if sizes.scheme == LEARNED:
                add_positions(
                    tokens, sizes.width, sizes.hidden, a, at.state, row, w, parameters.table,
                    group.places,
                )  # fmt: skip
            for block in range(sizes.blocks):
                last = single and block == sizes.blocks - 1
                forward(block, last, tokens, training, sizes, parameters, at, w, a, group)
            read_states(tokens, sizes, at, a, lengths)
            classify(
                sizes.width, a, at.read, w, parameters.classifier, parameters.classifier_bias,
                logits[number],
            )  # fmt: skip
            total_loss += group_loss(
                logits[number], strings.targets[number], strings.weights[number],
                sizes.scaled_loss, slopes,
            )  # fmt: skip
            if not training:
                continue
            classify_gradient(
                sizes.width, a, at.read, at.read_gradient, slopes, w, gradient,
                parameters.classifier, parameters.classifier_bias, sizes.biases,
            )  # fmt: skip
            read_states_gradient(tokens, sizes, at, a)
            for block in range(sizes.blocks - 1, -1, -1):
                last = single and block == sizes.blocks - 1
                backward(block, last, tokens, sizes, parameters, at, w, gradient, a, group)
            embed_gradient(tokens, sizes, parameters, at, a, gradient)
            if sizes.scheme == LEARNED:
                add_positions_gradient(
                    tokens, sizes.width, sizes.hidden, a, at.gradient, row, at.is_token, gradient,
                    parameters.table, group.places,
                )  # fmt: skip
        first = strings.ends[batch]
        if training:
            step += 1
            adamw(w, gradient, moments, step, update.rates[batch], update)
    return total_loss
