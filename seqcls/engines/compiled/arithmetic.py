# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Arithmetic of the compiled engines: functions over whole rows, and AdamW."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

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


# exp, log and the normal distribution over whole rows, so that the processor can use vectors.
#
# A compiler makes vector code of loops of plain arithmetic, not of loops that call a library. All
# functions are therefore polynomials, with as many terms as the precision needs:
#
#     exp(x) = 2^k exp(r),  k = round(x / log 2),  |r| <= log(2) / 2,  exp(r) by its Taylor series
#
#     erfc as above
#
#     log(1 + x) = 2 artanh(x / (2 + x)) by its Taylor series,  0 <= x <= 1
#
# A test holds both precisions against `math`.


class Format(NamedTuple):
    """A precision: its types, and the constants of functions."""

    number: Any
    integer: Any
    bias: int
    """The exponent's."""
    mantissa: int
    """The number of its bits."""
    exp_terms: int
    artanh_terms: int
    erfc: tuple[float, ...]
    """The coefficients of P, the lowest power first."""


FORMATS = {
    types.float32: Format(np.float32, np.int32, 127, 23, 8, 8, ERFC_SINGLE),
    types.float64: Format(np.float64, np.int64, 1023, 52, 14, 17, ERFC_DOUBLE),
}
# In two parts, so that k log 2 loses nothing.
LOG_2 = (0.693359375, -2.1219444005469057e-4)
# No `fastmath` here: regrouped, the two parts of log 2 would be of no use.
JIT_OPTIONS: Any = {"error_model": "numpy", "forceinline": True, "_nrt": False}


def by_precision(compute_for: Callable[[Format], Any]) -> Any:
    """Defines a function of rows, one-dimensional and contiguous, given what returns it for a
    precision.
    """

    def compute(*rows: Any) -> None:
        raise NotImplementedError("only in compiled code")

    overload(compute, jit_options=JIT_OPTIONS, strict=False)(
        lambda *rows: compute_for(FORMATS[rows[0].dtype])
    )
    return compute


@by_precision
def exp_row(form: Format) -> Any:
    """Replaces every x <= 0 by exp(x); below the least normal number by 0.

    `powers` is scratch of that length.
    """
    number, integer, terms = form.number, form.integer, form.exp_terms
    coefficients = tuple(number(1 / math.factorial(k)) for k in range(terms))
    high, low = map(number, LOG_2)
    per_log_2, half, least = number(1 / math.log(2)), number(0.5), number(-form.bias)
    offset, shift = integer(form.bias), integer(form.mantissa)

    def compute(x: Any, powers: Any) -> None:
        exponents = powers.view(integer)
        for s in range(x.size):
            # With k = -bias the bits of 2^k are those of zero.
            k = max(math.floor(x[s] * per_log_2 + half), least)
            exponents[s] = (integer(k) + offset) << shift
            x[s] = max(x[s], least) - k * high - k * low
        for s in range(x.size):
            value = coefficients[terms - 1]
            for term in range(2, terms + 1):
                value = value * x[s] + coefficients[terms - term]
            x[s] = value * powers[s]

    return compute


@by_precision
def cross_entropy_row(form: Format) -> Any:
    """Writes the binary cross entropy of a row of logits to `out`, in nats; `small` is exp(-|x|).

    The order of operations, and so the rounding, is PyTorch's: (1 - target) logit - log
    sigmoid(logit). The loss of a negative string far below 0 has few digits in single precision.
    """
    number, terms = form.number, form.artanh_terms
    coefficients = tuple(number(2 / (2 * k + 1)) for k in range(terms))
    zero, one, two = map(number, (0, 1, 2))

    def compute(logit: Any, small: Any, target: Any, out: Any) -> None:
        for s in range(logit.size):
            ratio = small[s] / (two + small[s])
            square = ratio * ratio
            value = coefficients[terms - 1]
            for term in range(2, terms + 1):
                value = value * square + coefficients[terms - term]
            out[s] = value * ratio
        for s in range(logit.size):
            log_sigmoid = min(logit[s], zero) - out[s]
            out[s] = (one - target[s]) * logit[s] - log_sigmoid

    return compute


@by_precision
def normal_rows(form: Format) -> Any:
    """Computes the standard normal distribution at every x: the probability of a value `below` it,
    and the density; `powers` is scratch.
    """
    number, p, terms = form.number, tuple(map(form.number, form.erfc)), len(form.erfc)
    zero, half, one, two = map(number, (0, 0.5, 1, 2))
    per_root_2, per_root_2_pi = number(math.sqrt(0.5)), number(1 / math.sqrt(2 * math.pi))

    def compute(x: Any, below: Any, density: Any, powers: Any) -> None:
        for s in range(x.size):
            density[s] = -half * x[s] * x[s]
        exp_row(density, powers)
        for s in range(x.size):
            t = two / (two + abs(x[s]) * per_root_2)
            value = p[terms - 1]
            for term in range(2, terms + 1):
                value = value * t + p[terms - term]
            tail = half * density[s] * t * value
            below[s] = tail if x[s] < zero else one - tail
            density[s] *= per_root_2_pi

    return compute


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
def _move_unfrozen(flat, gradient, moments, step, rate, update):
    """Updates parameters of which some were frozen at first; their steps count from then on."""
    number = flat.dtype.type
    beta_1, beta_2, eps = number(BETA_1), number(BETA_2), number(ADAM_EPS)
    rest_1, rest_2 = number(1 - BETA_1), number(1 - BETA_2)
    decayed = number(1 - rate * update.weight_decay)
    mean, square = moments[0], moments[1]
    size, correction, counted = number(0), number(0), -1
    for i in range(flat.size):
        own = step - update.frozen_steps[i]
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
    """Makes one step of AdamW (Loshchilov & Hutter 2019); clears the gradient."""
    number = flat.dtype.type
    beta_1, beta_2, eps = number(BETA_1), number(BETA_2), number(ADAM_EPS)
    rest_1, rest_2 = number(1 - BETA_1), number(1 - BETA_2)
    decayed = number(1 - rate * update.weight_decay)
    size = number(rate / (1 - BETA_1**step))
    correction = number(1 / math.sqrt(1 - BETA_2**step))
    mean, square = moments[0], moments[1]
    has_frozen = update.frozen_steps.size > 0
    if has_frozen:
        for i in range(flat.size):
            if step <= update.frozen_steps[i]:
                gradient[i] = number(0)
    if update.gradient_clip > 0:
        clip(gradient, update.gradient_clip)
    if has_frozen:
        _move_unfrozen(flat, gradient, moments, step, rate, update)
        return
    if update.decays.size > 0:
        for i in range(flat.size):
            flat[i] *= decayed if update.decays[i] else number(1)
        decayed = number(1)
    for i in range(flat.size):
        g = gradient[i]
        mean[i] = beta_1 * mean[i] + rest_1 * g
        square[i] = beta_2 * square[i] + rest_2 * g * g
        flat[i] = flat[i] * decayed - size * mean[i] / (math.sqrt(square[i]) * correction + eps)
        gradient[i] = number(0)
