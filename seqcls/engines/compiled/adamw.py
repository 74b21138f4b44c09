"""AdamW on all parameters of one model."""

import math

from seqcls.engines.compiled.compiling import inlined

BETA_1, BETA_2, ADAM_EPS = 0.9, 0.999, 1e-8
"""PyTorch's defaults."""


@inlined
def clip(gradient, limit):
    """Shortens a gradient to a norm, as PyTorch's `clip_grad_norm_` does."""
    number = gradient.dtype.type
    total = 0.0
    for i in range(gradient.size):
        total += float(gradient[i]) * float(gradient[i])
    share = limit / (math.sqrt(total) + 1e-6)
    if share < 1:
        for i in range(gradient.size):
            gradient[i] *= number(share)


@inlined
def adamw(flat, gradient, moments, step, update):
    """One step of AdamW (Loshchilov & Hutter 2019) on all parameters; clears the gradient."""
    number = flat.dtype.type
    beta_1, beta_2, eps = number(BETA_1), number(BETA_2), number(ADAM_EPS)
    rest_1, rest_2 = number(1 - BETA_1), number(1 - BETA_2)
    kept = number(1 - update.learning_rate * update.weight_decay)
    size = number(update.learning_rate / (1 - BETA_1**step))
    correction = number(1 / math.sqrt(1 - BETA_2**step))
    mean, square = moments[0], moments[1]
    if update.gradient_clip > 0:
        clip(gradient, update.gradient_clip)
    for i in range(flat.size):
        g = gradient[i]
        mean[i] = beta_1 * mean[i] + rest_1 * g
        square[i] = beta_2 * square[i] + rest_2 * g * g
        flat[i] = flat[i] * kept - size * mean[i] / (math.sqrt(square[i]) * correction + eps)
        gradient[i] = number(0)
