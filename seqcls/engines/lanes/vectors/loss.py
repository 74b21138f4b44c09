"""From the state that is read to a group's loss, and back; and from every state that predicts."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.vectors.compiling import inlined, kernel
from seqcls.engines.lanes.vectors.elementary import exp
from seqcls.engines.lanes.vectors.linear import Linear, apply
from seqcls.engines.lanes.vectors.tiles import clear
from seqcls.engines.lanes.vectors.vector import (
    LANES,
    ONE,
    ZERO,
    fma,
    if_less,
    larger,
    load,
    spread,
    spread_at,
    store,
    total,
)

number = np.float32


@inlined
def sigmoid_of(x):
    small = number(math.exp(-abs(x)))
    return (small if x < ZERO else ONE) / (ONE + small)


@kernel
def classify(width, a, read0, w, classifier, bias, logits):
    """Writes the logits of a group's strings, given the state that is read of each."""
    value = spread_at(w, bias)
    for i in range(width):
        value = fma(load(a, read0 + i), spread_at(w, classifier + i), value)
    store(logits, 0, value)


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
    """A head that writes. It gives of each state numbers for CLS, the letters, and PAD, in this
    order; the last two letters are SEP and END.
    """

    layer: Linear
    outputs: int


@kernel
def head_of(sizes, parameters):
    """The head, as kernels take it."""
    outputs = (sizes.outputs + 3) // 4 * 4
    bias = parameters.classifier_bias if sizes.biases and not sizes.tied else -1
    weight = parameters.embedding if sizes.tied else parameters.classifier
    return Head(Linear(sizes.width, outputs, weight, bias), sizes.outputs)


class Taught(NamedTuple):
    """What is to be predicted of some rows of states, and where it is told how that went."""

    wanted: np.ndarray
    """(row, lane): the number of the token to be predicted; that of one which is predicted and not
    written, plus how many there are; -1 where there is none."""
    strings: np.ndarray
    """(row): the number of its group."""
    losses: np.ndarray
    """(group, lane): of each string, in nats."""
    missed: np.ndarray
    """(group, lane): tokens of its output that are not the likeliest."""
    missed_inside: np.ndarray
    """(group, lane): those of them before the end that are not the likeliest letter."""
    kept: np.ndarray
    """Scratch of `KEPT` vectors."""


KEPT = 4


@kernel
def likeliest(head, a, first, kept):
    """Writes which letter has the highest output, and which of those and END, the first of equals.

    CLS, SEP and PAD are never written.
    """
    best, number = load(a, first + 1), spread(ONE)
    for token in range(2, head.outputs - 3):
        value = load(a, first + token)
        number = if_less(best, value, spread(np.float32(token)), number)
        best = larger(best, value)
    store(kept, 0, number)
    end = head.outputs - 2
    store(kept, 1, if_less(best, load(a, first + end), spread(np.float32(end)), number))


@kernel
def token_losses(rows, first, head, a, states, outputs, w, taught, share, training):
    """Adds up the losses of what is to be predicted of rows of states; their sum in nats.

    Args:
        rows: of states.
        first: the first one's number in `taught`.
        head: a `Head`.
        a: all vectors.
        states: the `Rows` that the head reads.
        outputs: `Rows` of scratch; D of the head's numbers is left in them.
        w: the parameters.
        taught: a `Taught`.
        share: what each loss counts for in the gradient.
        training: whether gradients are wanted, or which tokens are missed.
    """
    apply(rows, head.layer, a, states, outputs, w, False)
    kept, loss = taught.kept, 0.0
    for r in range(rows):
        number, row = outputs.first + r * outputs.apart, first + r
        group = taught.strings[row]
        is_taught = False
        for lane in range(LANES):
            is_taught = is_taught or taught.wanted[row, lane] >= 0
        if not is_taught:
            clear(a, number, outputs.apart)
            continue
        if not training:
            likeliest(head, a, number, kept)
            for lane in range(LANES):
                wanted = taught.wanted[row, lane]
                if 0 <= wanted < head.outputs:
                    taught.missed[group, lane] += kept[LANES + lane] != wanted
                    is_inside = wanted != head.outputs - 2
                    taught.missed_inside[group, lane] += is_inside and kept[lane] != wanted
        highest = load(a, number)
        for token in range(1, head.outputs):
            highest = larger(highest, load(a, number + token))
        store(kept, 2, highest)
        for lane in range(LANES):
            wanted = max(taught.wanted[row, lane], 0) % head.outputs
            kept[2 * LANES + lane] -= a[(number + wanted) * LANES + lane]
        sum_of = spread(ZERO)
        for token in range(head.outputs):
            weight = exp(load(a, number + token) - highest)
            store(a, number + token, weight)
            sum_of = sum_of + weight
        store(kept, 3, sum_of)
        for lane in range(LANES):
            here = taught.wanted[row, lane] >= 0
            if here:
                its = math.log(np.float64(kept[3 * LANES + lane])) + kept[2 * LANES + lane]
                taught.losses[group, lane] += its
                loss += its
            kept[lane] = share / kept[3 * LANES + lane] if here else ZERO
        if not training:
            continue
        factor = load(kept, 0)
        for token in range(head.outputs):
            store(a, number + token, load(a, number + token) * factor)
        for lane in range(LANES):
            wanted = taught.wanted[row, lane]
            if wanted >= 0:
                a[(number + wanted % head.outputs) * LANES + lane] -= share
    return loss
