# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What stands at a network's ends: tokens to vectors, and states to losses and written tokens."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.elementary import exp
from seqcls.engines.lanes.tiles import clear
from seqcls.engines.lanes.vector import (
    HALF,
    LANES,
    ONE,
    ZERO,
    absolute,
    if_less,
    inlined,
    kernel,
    larger,
    load,
    spread,
    spread_at,
    store,
    total,
)
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD

# Token ids to vectors: of each token type, in which lanes a token is of it.


@kernel
def mark_tokens(tokens, ids, a, types, types0, row, is_token0):
    """Writes 1 or 0 for each of the token types (CLS, then the letters), and whether it is a token.

    A matrix of embeddings times these is a look-up, for as many strings as there are lanes at once.

    Token ids are (position, lane). The vectors stand in `a`: those of the types from `types0` on,
    `row` from token to token, and one for each token, 0 for PAD, else 1, from `is_token0` on.
    """
    for token in range(tokens):
        for lane in range(LANES):
            a[(is_token0 + token) * LANES + lane] = np.float32(ids[token, lane])
        given = load(a, is_token0 + token)
        for kind in range(types):
            number = np.float32(CLS if kind == 0 else kind - 1 + FIRST_LETTER)
            # Ids are whole numbers: closer than 1/2 means equal.
            apart = absolute(given - number)
            here = if_less(apart, spread(HALF), spread(ONE), spread(ZERO))
            store(a, types0 + token * row + kind, here)
        apart = absolute(given - np.float32(PAD))
        store(a, is_token0 + token, if_less(apart, spread(HALF), spread(ZERO), spread(ONE)))


@kernel
def mark_numbers(numbers, a, types, types0):
    """The same for one token in each lane, given by the number of its type."""
    for kind in range(types):
        for lane in range(LANES):
            a[(types0 + kind) * LANES + lane] = ONE if numbers[lane] == kind else ZERO


# From the state that is read to a group's loss, and back; and from every state that predicts.

number = np.float32


@inlined
def sigmoid_of(x):
    small = number(math.exp(-abs(x)))
    return (small if x < ZERO else ONE) / (ONE + small)


@kernel
def group_loss(logits, targets, weights, scaled, slopes):
    """The sum of a group's losses in nats; leaves D logit of each in `slopes`.

    Targets are 1 for positive strings, else 0; weights are what each loss counts for in the
    gradient, 0 where there is no string.
    """
    loss = 0.0
    for lane in range(LANES):
        x, slope = logits[lane], ONE
        if scaled:
            # z <- -z / (1 + sigmoid(z)), twice.
            for _ in range(2):
                share = sigmoid_of(x)
                divisor = ONE / (ONE + share)
                slope *= -divisor * (ONE - x * share * (ONE - share) * divisor)
                x = -x * divisor
        if weights[lane] > ZERO:
            # In PyTorch's order, and so with its rounding.
            log_sigmoid = min(x, ZERO) - number(math.log1p(number(math.exp(-abs(x)))))
            loss += np.float64((ONE - targets[lane]) * x - log_sigmoid)
        slopes[lane] = (sigmoid_of(x) - targets[lane]) * weights[lane] * slope
    return loss


@kernel
def classify_gradient(width, a, read0, dread0, slopes, w, gradient, classifier, bias, has_bias):
    """Writes D of the state that is read; adds to the classifier's gradient."""
    slope = load(slopes, 0)
    for i in range(width):
        gradient[classifier + i] += total(slope * load(a, read0 + i))
        store(a, dread0 + i, slope * spread_at(w, classifier + i))
    if has_bias:
        gradient[bias] += total(slope)


class Head(NamedTuple):
    """A head that is read at every token. One that writes gives of each state numbers for CLS, the
    letters, and PAD, in this order; the last two letters are SEP and END.
    """

    outputs: int
    at_places: bool
    """Whether it answers, so that any number may be the one that is right."""


class RowTargets(NamedTuple):
    """What is to be predicted of some rows of states, and where it is told how that went."""

    targets: np.ndarray
    """(row, lane): the number of the token to be predicted, or of the right answer; that of one
    which is predicted and not written, plus how many there are; -1 where there is none."""
    sets: np.ndarray
    """(set, output): the bits of the sets that are right answers; empty where these are no sets."""
    strings: np.ndarray
    """(row): the number of its group."""
    tokens: np.ndarray
    """(row): its place in its strings."""
    losses: np.ndarray
    """(group, lane): of each string, in nats."""
    missed: np.ndarray
    """(group, lane): tokens of its output that are not the likeliest."""
    missed_inside: np.ndarray
    """(group, lane): those of them before the end that are not the likeliest letter."""
    token_logits: np.ndarray
    """(group, position, lane, output): filled in with the head's numbers; empty where nobody needs
    them."""
    scratch: np.ndarray
    """Scratch of `SCRATCH_VECTORS` vectors."""


SCRATCH_VECTORS = 4


@kernel
def likeliest(head, a, first, scratch):
    """Writes which letter has the highest output, and which of those and END, the first of equals.

    CLS, SEP and PAD are never written; of a head that answers, any may be likeliest.
    """
    begin, stop = (0, head.outputs) if head.at_places else (1, head.outputs - 3)
    best, number = load(a, first + begin), spread(np.float32(begin))
    for token in range(begin + 1, stop):
        value = load(a, first + token)
        number = if_less(best, value, spread(np.float32(token)), number)
        best = larger(best, value)
    store(scratch, 0, number)
    end = head.outputs - 1 if head.at_places else head.outputs - 2
    store(scratch, 1, if_less(best, load(a, first + end), spread(np.float32(end)), number))


@kernel
def token_losses(rows, first, head, a, outputs, row_targets, share, training):
    """Adds up the losses of what is to be predicted at rows; their sum in nats.

    Args:
        first: the first one's number in `row_targets`.
        outputs: `Rows` of the head's numbers; D of these is left in them.
        row_targets: a `RowTargets`.
        share: what each loss counts for in the gradient.
        training: whether gradients are needed, or which tokens are missed.
    """
    scratch, loss = row_targets.scratch, 0.0
    for r in range(rows):
        number, row = outputs.first + r * outputs.apart, first + r
        group = row_targets.strings[row]
        has_target = False
        for lane in range(LANES):
            has_target = has_target or row_targets.targets[row, lane] >= 0
        if not has_target:
            clear(a, number, outputs.apart)
            continue
        if row_targets.token_logits.size > 0:
            for token in range(head.outputs):
                for lane in range(LANES):
                    logit = a[(number + token) * LANES + lane]
                    row_targets.token_logits[group, row_targets.tokens[row], lane, token] = logit
        if row_targets.sets.size > 0:
            loss += set_losses(row, number, head, a, row_targets, share, training)
            continue
        if not training:
            likeliest(head, a, number, scratch)
            for lane in range(LANES):
                target = row_targets.targets[row, lane]
                if 0 <= target < head.outputs:
                    row_targets.missed[group, lane] += scratch[LANES + lane] != target
                    is_inside = target != head.outputs - 2
                    row_targets.missed_inside[group, lane] += is_inside and scratch[lane] != target
        highest = load(a, number)
        for token in range(1, head.outputs):
            highest = larger(highest, load(a, number + token))
        store(scratch, 2, highest)
        for lane in range(LANES):
            target = max(row_targets.targets[row, lane], 0) % head.outputs
            scratch[2 * LANES + lane] -= a[(number + target) * LANES + lane]
        sum_of = spread(ZERO)
        for token in range(head.outputs):
            weight = exp(load(a, number + token) - highest)
            store(a, number + token, weight)
            sum_of = sum_of + weight
        store(scratch, 3, sum_of)
        for lane in range(LANES):
            here = row_targets.targets[row, lane] >= 0
            if here:
                log_sum = math.log(np.float64(scratch[3 * LANES + lane]))
                token_loss = log_sum + scratch[2 * LANES + lane]
                row_targets.losses[group, lane] += token_loss
                loss += token_loss
            scratch[lane] = share / scratch[3 * LANES + lane] if here else ZERO
        if not training:
            continue
        factor = load(scratch, 0)
        for token in range(head.outputs):
            store(a, number + token, load(a, number + token) * factor)
        for lane in range(LANES):
            target = row_targets.targets[row, lane]
            if target >= 0:
                # D of a softmax's cross entropy: its weights, minus one at the target.
                a[(number + target % head.outputs) * LANES + lane] -= share
    return loss


@kernel
def set_losses(row, number, head, a, row_targets, share, training):
    """The same of one row where sets of bits are right: the mean over the bits of each set. The
    head's numbers stand from `number` on, and D of them is left there.
    """
    group, scratch, loss = row_targets.strings[row], row_targets.scratch, 0.0
    for lane in range(LANES):
        here = row_targets.targets[row, lane] >= 0
        scratch[2 * LANES + lane] = share / np.float32(head.outputs) if here else ZERO
        scratch[3 * LANES + lane] = ZERO
    for token in range(head.outputs):
        for lane in range(LANES):
            scratch[lane] = row_targets.sets[max(row_targets.targets[row, lane], 0), token]
        value, bit = load(a, number + token), load(scratch, 0)
        small = exp(ZERO - absolute(value))
        likely = if_less(value, spread(ZERO), small, spread(ONE)) / (ONE + small)
        predicted = if_less(spread(ZERO), value, spread(ONE), spread(ZERO))
        store(a, number + token, (likely - bit) * load(scratch, 2))
        store(scratch, 0, small)
        store(scratch, 1, larger(value, spread(ZERO)) - value * bit)
        store(scratch, 3, load(scratch, 3) + absolute(predicted - bit))
        for lane in range(LANES):
            if row_targets.targets[row, lane] >= 0:
                log_rest = math.log1p(np.float64(scratch[lane]))
                token_loss = np.float64(scratch[LANES + lane]) + log_rest
                row_targets.losses[group, lane] += token_loss / head.outputs
                loss += token_loss / head.outputs
    if not training:
        for lane in range(LANES):
            is_wrong = row_targets.targets[row, lane] >= 0 and scratch[3 * LANES + lane] > ZERO
            row_targets.missed[group, lane] += is_wrong
    return loss


# What is written so far: which token comes next in each lane, and when an output ends.


class OutputBuffers(NamedTuple):
    """Inputs in groups, and the outputs that are written for them."""

    given: np.ndarray
    """(group, position, lane): numbers of the tokens that are read first, as a `Head` counts."""
    begins: np.ndarray
    """(group, lane): how many; 0 where there is no string."""
    limits: np.ndarray
    """(group, lane): tokens of an output at most."""
    written: np.ndarray
    """(group, position, lane): those written, filled in from -1."""
    counts: np.ndarray
    """(group, lane): how many, counted up from 0."""
    is_ended: np.ndarray
    """(group, lane): whether END came."""
    scores: np.ndarray
    """(group, lane): the log-probability of each output, in nats, added up from 0."""
    scratch: np.ndarray
    """Scratch of vectors."""


@kernel
def next_token(outputs, group, lane, place):
    """The number of the token to be read at a place."""
    begin = outputs.begins[group, lane]
    if place < begin:
        return outputs.given[group, place, lane]
    written = place - begin
    if written < outputs.counts[group, lane]:
        return outputs.written[group, written, lane]
    return 0


@kernel
def goes_on(outputs, group, lane):
    """Whether a string's output is not yet written to its end."""
    if outputs.begins[group, lane] == 0 or outputs.is_ended[group, lane]:
        return False
    return outputs.counts[group, lane] < outputs.limits[group, lane]


@kernel
def any_goes_on(outputs, first, end):
    """Whether that is so in any of some groups."""
    for group in range(first, end):
        for lane in range(LANES):
            if goes_on(outputs, group, lane):
                return True
    return False


@kernel
def write_likeliest(outputs, head, a, number, group, place):
    """The same for one group, given the numbers of the head."""
    scratch = outputs.scratch
    likeliest(head, a, number, scratch)
    highest = load(a, number)
    for token in range(1, head.outputs):
        highest = larger(highest, load(a, number + token))
    sum_of = spread(ZERO)
    for token in range(head.outputs):
        sum_of = sum_of + exp(load(a, number + token) - highest)
    store(scratch, 2, highest)
    store(scratch, 3, sum_of)
    for lane in range(LANES):
        if place + 1 < outputs.begins[group, lane] or not goes_on(outputs, group, lane):
            continue
        best = int(scratch[LANES + lane])
        outputs.scores[group, lane] += (
            a[(number + best) * LANES + lane]
            - scratch[2 * LANES + lane]
            - math.log(np.float64(scratch[3 * LANES + lane]))
        )
        if best == head.outputs - 2:
            outputs.is_ended[group, lane] = True
        else:
            outputs.written[group, outputs.counts[group, lane], lane] = best
            outputs.counts[group, lane] += 1
