"""From the state that is read to a group's loss, and back."""

import math

import numpy as np

from seqcls.engines.lanes.compiling import inlined, kernel
from seqcls.engines.lanes.vector import LANES, fma, load, spread_at, store, total

number = np.float32
ZERO, ONE = number(0), number(1)


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
