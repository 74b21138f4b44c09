r"""exp, log and the normal distribution over whole rows, so that the processor can use vectors.

A compiler makes vector code of loops of plain arithmetic, not of loops that call a library. All
functions are therefore polynomials, with as many terms as the precision needs:

    exp(x) = 2^k exp(r),  k = round(x / log 2),  |r| <= log(2) / 2,  exp(r) by its Taylor series

    erfc(z) = exp(-z^2) t P(t),  t = 2 / (2 + z),  z >= 0

    log(1 + x) = 2 artanh(x / (2 + x)) by its Taylor series,  0 <= x <= 1

The coefficients of P are those of `seqcls.engines.compiled.erfc`. A test holds both precisions
against `math`.
"""

import math
from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from seqcls.engines.compiled.erfc import ERFC_DOUBLE, ERFC_SINGLE

# The exponent's bias, the bits of the mantissa, the terms of exp and of artanh, the coefficients of
# P, the lowest power first. LOG_2 is in two parts, so that k log 2 loses nothing.
FORMATS: dict[Any, tuple[Any, Any, int, int, int, int, tuple[float, ...]]] = {
    types.float32: (np.float32, np.int32, 127, 23, 8, 8, ERFC_SINGLE),
    types.float64: (np.float64, np.int64, 1023, 52, 14, 17, ERFC_DOUBLE),
}
LOG_2 = (0.693359375, -2.1219444005469057e-4)
# No `fastmath` here: regrouped, the two parts of log 2 would be of no use.
JIT_OPTIONS: Any = {"error_model": "numpy", "forceinline": True, "_nrt": False}


def exp_row(x: Any, powers: Any, exponents: Any) -> None:
    """Replaces every x <= 0 by exp(x), in compiled code; below the least normal number it is 0.

    Args:
        x: one-dimensional and contiguous.
        powers: scratch of at least that length, of the same type.
        exponents: the memory of `powers`, seen as integers of the same size.
    """
    raise NotImplementedError


@overload(exp_row, jit_options=JIT_OPTIONS)
def _exp_row(x: Any, powers: Any, exponents: Any) -> Any:  # noqa: ARG001
    number, integer, bias, mantissa, terms, _, _ = FORMATS[x.dtype]
    coefficients = tuple(number(1 / math.factorial(k)) for k in range(terms))
    high, low = map(number, LOG_2)
    per_log_2, half, least = number(1 / math.log(2)), number(0.5), number(-bias)
    offset, shift = integer(bias), integer(mantissa)

    def compiled(x: Any, powers: Any, exponents: Any) -> None:
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

    return compiled


def cross_entropy_row(logit: Any, small: Any, target: Any, out: Any) -> None:
    """Writes the binary cross entropy of a row of logits to `out`, in compiled code.

    The order of the operations is that of PyTorch, (1 - target) logit - log sigmoid(logit), and so
    is the rounding: the loss of a negative string far below 0 has few digits in single precision.

    Args:
        logit: one-dimensional and contiguous.
        small: exp(-|logit|).
        target: 0 or 1.
        out: receives the losses, in nats.
    """
    raise NotImplementedError


@overload(cross_entropy_row, jit_options=JIT_OPTIONS)
def _cross_entropy_row(
    logit: Any,
    small: Any,  # noqa: ARG001
    target: Any,  # noqa: ARG001
    out: Any,  # noqa: ARG001
) -> Any:
    number, terms = FORMATS[logit.dtype][0], FORMATS[logit.dtype][5]
    coefficients = tuple(number(2 / (2 * k + 1)) for k in range(terms))
    zero, one, two = map(number, (0, 1, 2))

    def compiled(logit: Any, small: Any, target: Any, out: Any) -> None:
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

    return compiled


def normal_rows(x: Any, below: Any, density: Any, powers: Any, exponents: Any) -> None:
    """The standard normal distribution at every x, in compiled code.

    Args:
        x: one-dimensional and contiguous.
        below: receives the probability of a value below x.
        density: receives the density at x.
        powers: as for `exp_row`.
        exponents: as for `exp_row`.
    """
    raise NotImplementedError


@overload(normal_rows, jit_options=JIT_OPTIONS)
def _normal_rows(
    x: Any,
    below: Any,  # noqa: ARG001
    density: Any,  # noqa: ARG001
    powers: Any,  # noqa: ARG001
    exponents: Any,  # noqa: ARG001
) -> Any:
    number = FORMATS[x.dtype][0]
    p = tuple(map(number, FORMATS[x.dtype][-1]))
    terms = len(p)
    zero, half, one, two = map(number, (0, 0.5, 1, 2))
    per_root_2, per_root_2_pi = number(math.sqrt(0.5)), number(1 / math.sqrt(2 * math.pi))

    def compiled(x: Any, below: Any, density: Any, powers: Any, exponents: Any) -> None:
        for s in range(x.size):
            density[s] = -half * x[s] * x[s]
        exp_row(density, powers, exponents)
        for s in range(x.size):
            t = two / (two + abs(x[s]) * per_root_2)
            value = p[terms - 1]
            for term in range(2, terms + 1):
                value = value * t + p[terms - term]
            tail = half * density[s] * t * value
            below[s] = tail if x[s] < zero else one - tail
            density[s] *= per_root_2_pi

    return compiled
