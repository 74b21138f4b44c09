# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""The ends of a network: token ids to vectors, and head outputs to losses and written tokens."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.elementary import exp
from seqcls.engines.lanes.vector import (
    HALF,
    LANES,
    ONE,
    ZERO,
    absolute,
    fnma,
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

# Token ids to one-hot vectors over the token types, in each lane.


@kernel
def mark_tokens(numbers, a, types, types0, is_token):
    """Writes the one-hot vector of a token in each lane; and the padding mask, 0 for PAD, else 1.

    The product of the embeddings with these is a look-up, for all lanes at the same time.

    Args:
        numbers: (lane), as in `token_numbers`.
        types: the number of token types that are read.
        types0: the start of the vectors of types; `is_token` is that of the mask.
    """
    for lane in range(LANES):
        a[is_token * LANES + lane] = np.float32(numbers[lane])
    given = load(a, is_token)
    for kind in range(types):
        # These are integers: closer than 1/2 means equal.
        apart = absolute(given - np.float32(kind))
        store(a, types0 + kind, if_less(apart, spread(HALF), spread(ONE), spread(ZERO)))
    store(a, is_token, if_less(given, spread(np.float32(types)), spread(ONE), spread(ZERO)))


# Losses of strings and of tokens, and their gradients.

number = np.float32


@inlined
def sigmoid_of(x):
    small = number(math.exp(-abs(x)))
    return (small if x < ZERO else ONE) / (ONE + small)


@kernel
def group_loss(logits, targets, weights, scaled, slopes):
    """Returns the sum of a group's losses in nats; writes D logit to `slopes`.

    Targets are 1 for positive strings, else 0; weights are those of the losses in the gradient, 0
    for padding.
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
            # In PyTorch's order of operations, and so with its rounding.
            log_sigmoid = min(x, ZERO) - number(math.log1p(number(math.exp(-abs(x)))))
            loss += np.float64((ONE - targets[lane]) * x - log_sigmoid)
        slopes[lane] = (sigmoid_of(x) - targets[lane]) * weights[lane] * slope
    return loss


@kernel
def classify_gradient(rows, o, a, w, gradient):
    """Writes D of the states that are read; adds D of the classifier.

    Args:
        o: a `ClassifyGradient`.
    """
    for r in range(rows):
        slope = load(a, o.dy.first + r * o.dy.apart)
        for i in range(o.layer.inputs):
            state = load(a, o.x.first + r * o.x.apart + i)
            gradient[o.layer.weight + i] += total(slope * state)
            store(a, o.dx.first + r * o.dx.apart + i, slope * spread_at(w, o.layer.weight + i))
        if o.layer.bias >= 0:
            gradient[o.layer.bias] += total(slope)


SCRATCH_VECTORS = 4


@kernel
def likeliest(network, a, first, scratch):
    """Writes the likeliest letter, and the likeliest of letters and END; the first of equals.

    CLS, SEP and PAD are never predicted; a head that answers may predict any output.
    """
    begin, stop = (0, network.outputs) if network.at_places else (1, network.outputs - 3)
    best, number = load(a, first + begin), spread(np.float32(begin))
    for token in range(begin + 1, stop):
        value = load(a, first + token)
        number = if_less(best, value, spread(np.float32(token)), number)
        best = larger(best, value)
    store(scratch, 0, number)
    end = network.outputs - 1 if network.at_places else network.outputs - 2
    store(scratch, 1, if_less(best, load(a, first + end), spread(np.float32(end)), number))


@kernel
def log_losses(network, a, number, targets, scratch):
    """Replaces outputs z, from `number` on, by exp(z - m), with m the largest of them; writes m
    minus the target's, and the sum. The loss is the logarithm of the sum plus that difference.

    Args:
        targets: (lane): the target's output; plus the number of outputs if it is not written.
    """
    highest = load(a, number)
    for token in range(1, network.outputs):
        highest = larger(highest, load(a, number + token))
    store(scratch, 2, highest)
    for lane in range(LANES):
        target = max(int(targets[lane]), 0) % network.outputs
        scratch[2 * LANES + lane] -= a[(number + target) * LANES + lane]
    sum_of = spread(ZERO)
    for token in range(network.outputs):
        weight = exp(load(a, number + token) - highest)
        store(a, number + token, weight)
        sum_of = sum_of + weight
    store(scratch, 3, sum_of)


@kernel
def token_losses(loss, targets, group, number, network, a, share, found, scratch, training):
    """Adds the losses at one token of a group, in nats, to a sum and to those of its strings.

    Args:
        loss: the sum, which is returned.
        targets: (lane), as in `Strings`.
        number: the start of the head's outputs, which are replaced by their gradients.
        share: the weight of each loss in the gradient.
        found: a `Found`.
        scratch: `SCRATCH_VECTORS` vectors.
        training: whether gradients are needed, or else the errors.
    """
    if not training:
        likeliest(network, a, number, scratch)
        for lane in range(LANES):
            target = targets[lane]
            if 0 <= target < network.outputs:
                found.missed[group, lane] += scratch[LANES + lane] != target
                is_inside = target != network.outputs - 2
                found.missed_inside[group, lane] += is_inside and scratch[lane] != target
    log_losses(network, a, number, targets, scratch)
    for lane in range(LANES):
        here = targets[lane] >= 0
        if here:
            log_sum = math.log(np.float64(scratch[3 * LANES + lane]))
            token_loss = log_sum + scratch[2 * LANES + lane]
            found.losses[group, lane] += token_loss
            loss += token_loss
        scratch[lane] = share / scratch[3 * LANES + lane] if here else ZERO
    if training:
        factor = load(scratch, 0)
        for token in range(network.outputs):
            store(a, number + token, load(a, number + token) * factor)
        for lane in range(LANES):
            if targets[lane] >= 0:
                # D of a softmax's cross entropy: its weights, minus one at the target.
                a[(number + targets[lane] % network.outputs) * LANES + lane] -= share
    return loss


@kernel
def set_losses(targets, sets, group, number, network, a, share, found, scratch, training):
    """Returns the losses at one token whose targets are sets: means over the bits of each set.

    Args:
        sets: as in `Strings`; the other arguments are those of `token_losses`.
    """
    loss = 0.0
    for lane in range(LANES):
        here = targets[lane] >= 0
        scratch[2 * LANES + lane] = share / np.float32(network.outputs) if here else ZERO
        scratch[3 * LANES + lane] = ZERO
    for token in range(network.outputs):
        for lane in range(LANES):
            scratch[lane] = sets[max(targets[lane], 0), token]
        value, bit = load(a, number + token), load(scratch, 0)
        small = exp(ZERO - absolute(value))
        likely = if_less(value, spread(ZERO), small, spread(ONE)) / (ONE + small)
        predicted = if_less(spread(ZERO), value, spread(ONE), spread(ZERO))
        store(a, number + token, (likely - bit) * load(scratch, 2))
        store(scratch, 0, small)
        store(scratch, 1, fnma(value, bit, larger(value, spread(ZERO))))
        store(scratch, 3, load(scratch, 3) + absolute(predicted - bit))
        for lane in range(LANES):
            if targets[lane] >= 0:
                log_rest = math.log1p(np.float64(scratch[lane]))
                token_loss = np.float64(scratch[LANES + lane]) + log_rest
                found.losses[group, lane] += token_loss / network.outputs
                loss += token_loss / network.outputs
    if not training:
        for lane in range(LANES):
            is_wrong = targets[lane] >= 0 and scratch[3 * LANES + lane] > ZERO
            found.missed[group, lane] += is_wrong
    return loss


# Greedy decoding: the next token of each lane, and the ends of outputs.


class OutputBuffers(NamedTuple):
    """Inputs in groups, and the outputs that are decoded for them."""

    tokens: np.ndarray
    """(group, position, lane): tokens of the input, then of the output, by their indices in the
    head's outputs."""
    begins: np.ndarray
    """(group, lane): number of the input's tokens; 0 for padding."""
    left: np.ndarray
    """(group, lane): number of tokens that may still be written; 0 if the output has ended."""
    counts: np.ndarray
    """(group, lane): number of tokens in the output, 0 at first."""
    is_ended: np.ndarray
    """(group, lane): whether END was predicted."""
    scores: np.ndarray
    """(group, lane): the log-probability of the output, in nats, 0 at first."""


@kernel
def write_likeliest(outputs, network, a, number, group, place, scratch):
    """Appends the likeliest token to the outputs of a group, given the head's, from `number` on."""
    likeliest(network, a, number, scratch)
    log_losses(network, a, number, scratch[LANES : 2 * LANES], scratch)
    for lane in range(LANES):
        if place + 1 < outputs.begins[group, lane] or outputs.left[group, lane] == 0:
            continue
        best = int(scratch[LANES + lane])
        log_sum = math.log(np.float64(scratch[3 * LANES + lane]))
        outputs.scores[group, lane] -= log_sum + scratch[2 * LANES + lane]
        if best == network.outputs - 2:
            outputs.is_ended[group, lane], outputs.left[group, lane] = True, 0
        else:
            end = outputs.begins[group, lane] + outputs.counts[group, lane]
            outputs.tokens[group, end, lane] = best
            outputs.counts[group, lane] += 1
            outputs.left[group, lane] -= 1
