# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""What all compiled engines compute alike: AdamW, and the coefficients of erfc."""

import math

from seqcls.engines.compiled.compiling import inlined

# The coefficients of the complementary error function.
#
#     erfc(z) = exp(-z^2) t P(t),  t = 2 / (2 + z),  z >= 0
#
# P interpolates exp(z^2) erfc(z) / t at the Chebyshev nodes of t in (0, 1]; its coefficients, the
# lowest power first, were computed with 60 digits. The relative error of erfc is at most 3e-8 with
# the 11 coefficients for single and 1e-14 with the 24 for double precision.


ERFC_SINGLE = (
    0.282094799651273,
    0.2820928673346307,
    0.24691356121779123,
    0.17494859631541002,
    0.0958271993931922,
    -0.06795827531374868,
    0.1518851796289982,
    -0.4824747605145184,
    0.5168995401022985,
    -0.245580036275335,
    0.0453513366235701,
)
ERFC_DOUBLE = (
    0.2820947917738782,
    0.28209479177385055,
    0.24683294280664786,
    0.17630924462337408,
    0.0837468944234614,
    -0.004407596136815426,
    -0.05675627249712694,
    -0.053298964424690204,
    -0.005736283719851457,
    0.06795503045323195,
    -0.07248796911751416,
    0.6536458411537402,
    -2.7550085732244454,
    8.330012672530506,
    -20.509230760722552,
    39.21028970469867,
    -56.466894948417945,
    60.95483067364521,
    -49.239892533213144,
    29.46322618295092,
    -12.723350945115444,
    3.7615082403296265,
    -0.6830458465428919,
    0.05756368196931846,
)


# AdamW on all parameters of one model.

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
def _move_those_that_wait_no_more(flat, gradient, moments, step, rate, update):
    """The same step of parameters held fixed at first, whose steps are counted from then on."""
    number = flat.dtype.type
    beta_1, beta_2, eps = number(BETA_1), number(BETA_2), number(ADAM_EPS)
    rest_1, rest_2 = number(1 - BETA_1), number(1 - BETA_2)
    decayed = number(1 - rate * update.weight_decay)
    mean, square = moments[0], moments[1]
    size, correction, counted = number(0), number(0), -1
    for i in range(flat.size):
        own = step - update.waits[i]
        g = gradient[i]
        gradient[i] = number(0)
        if own < 1:
            continue
        if own != counted:
            size = number(rate / (1 - BETA_1**own))
            correction = number(1 / math.sqrt(1 - BETA_2**own))
            counted = own
        decays = update.decays.size == 0 or update.decays[i]
        mean[i] = beta_1 * mean[i] + rest_1 * g
        square[i] = beta_2 * square[i] + rest_2 * g * g
        moved = size * mean[i] / (math.sqrt(square[i]) * correction + eps)
        flat[i] = flat[i] * (decayed if decays else number(1)) - moved


@inlined
def adamw(flat, gradient, moments, step, rate, update):
    """One step of AdamW (Loshchilov & Hutter 2019) on all parameters; clears the gradient."""
    number = flat.dtype.type
    beta_1, beta_2, eps = number(BETA_1), number(BETA_2), number(ADAM_EPS)
    rest_1, rest_2 = number(1 - BETA_1), number(1 - BETA_2)
    kept = number(1 - rate * update.weight_decay)
    size = number(rate / (1 - BETA_1**step))
    correction = number(1 / math.sqrt(1 - BETA_2**step))
    mean, square = moments[0], moments[1]
    waiting = update.waits.size > 0
    if waiting:
        for i in range(flat.size):
            if step <= update.waits[i]:
                gradient[i] = number(0)
    if update.gradient_clip > 0:
        clip(gradient, update.gradient_clip)
    if waiting:
        _move_those_that_wait_no_more(flat, gradient, moments, step, rate, update)
        return
    if update.decays.size > 0:
        for i in range(flat.size):
            flat[i] *= kept if update.decays[i] else number(1)
        kept = number(1)
    for i in range(flat.size):
        g = gradient[i]
        mean[i] = beta_1 * mean[i] + rest_1 * g
        square[i] = beta_2 * square[i] + rest_2 * g * g
        flat[i] = flat[i] * kept - size * mean[i] / (math.sqrt(square[i]) * correction + eps)
        gradient[i] = number(0)
