r"""exp, tanh, the logistic function and GELU of vectors, in single precision.

    exp(x) = 2^k exp(r),  k = round(x / log 2),  |r| <= log(2) / 2,  exp(r) by its Taylor series

    tanh(x) = x + x^3 P(x^2) below 0.625 (Moshier's Cephes library), else (1 - e) / (1 + e) with
    e = exp(-2 |x|)

The coefficients of erfc are those of `seqcls.engines.compiled.erfc`.
"""

import math

import numpy as np

from seqcls.engines.compiled.erfc import ERFC_SINGLE
from seqcls.engines.lanes.vectors.compiling import inlined, kernel
from seqcls.engines.lanes.vectors.vector import (
    HALF,
    ONE,
    ZERO,
    absolute,
    fma,
    if_less,
    larger,
    load,
    power_of_two,
    rounded,
    spread,
    store,
)

number = np.float32
TWO = number(2)
# Where 2^k is 0.
LEAST = number(-88.1)
PER_LOG_2 = number(1 / math.log(2))
# Log 2 in two parts, so that k log 2 loses nothing.
LOG_2_HIGH, LOG_2_LOW = number(-0.693359375), number(2.1219444005469057e-4)
TAYLOR = tuple(number(1 / math.factorial(k)) for k in range(7, -1, -1))
NEAR_ZERO = tuple(
    number(coefficient)
    for coefficient in (
        -5.70498872745e-3,
        2.06390887954e-2,
        -5.37397155531e-2,
        1.33314422036e-1,
        -3.33332819422e-1,
    )
)
ERFC = tuple(map(number, ERFC_SINGLE[::-1]))
THREE = number(3)
INNER, CUBIC = number(math.sqrt(2 / math.pi)), number(0.044715)
"""Constants of GELU by tanh (Hendrycks & Gimpel 2016)."""
PER_ROOT_2, PER_ROOT_2_PI = number(math.sqrt(0.5)), number(1 / math.sqrt(2 * math.pi))


@inlined
def polynomial(coefficients, x):
    """Its value at x; the highest power's coefficient comes first."""
    value = spread(coefficients[0])
    for coefficient in coefficients[1:]:
        value = fma(value, x, spread(coefficient))
    return value


@inlined
def exp(x):
    """The exponential of x <= 0; 0 below the least normal number."""
    x = larger(spread(LEAST), x)
    k = rounded(x * PER_LOG_2)
    rest = fma(k, spread(LOG_2_LOW), fma(k, spread(LOG_2_HIGH), x))
    return polynomial(TAYLOR, rest) * power_of_two(k)


@inlined
def tanh(x):
    """The hyperbolic tangent."""
    size = absolute(x)
    square = x * x
    small = fma(polynomial(NEAR_ZERO, square) * square, x, x)
    e = exp(size * number(-2))
    large = (ONE - e) / (ONE + e)
    large = if_less(x, spread(ZERO), ZERO - large, large)
    return if_less(size, spread(number(0.625)), small, large)


@inlined
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    e = exp(ZERO - absolute(x))
    share = ONE / (ONE + e)
    return if_less(x, spread(ZERO), e * share, share)


@kernel
def gelu(rows, columns, a, x, slopes):
    """Replaces x by x Phi(x), with Phi the normal distribution; leaves the slopes."""
    for r in range(rows):
        for c in range(columns):
            index = x.first + r * x.apart + c
            value = load(a, index)
            density = exp(value * value * (-HALF))
            t = TWO / (TWO + absolute(value) * PER_ROOT_2)
            tail = density * t * polynomial(ERFC, t) * HALF
            below = if_less(value, spread(ZERO), tail, ONE - tail)
            store(a, index, value * below)
            slope = fma(value, density * PER_ROOT_2_PI, below)
            store(a, slopes.first + r * slopes.apart + c, slope)


@kernel
def gelu_tanh(rows, columns, a, x, slopes):
    """Replaces x by x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3); leaves the slopes."""
    for r in range(rows):
        for c in range(columns):
            index = x.first + r * x.apart + c
            value = load(a, index)
            square = value * value
            share = tanh(value * fma(square, spread(INNER * CUBIC), spread(INNER)))
            half = (share + ONE) * HALF
            store(a, index, value * half)
            # D u, and D tanh = 1 - tanh^2.
            inner = fma(square, spread(THREE * INNER * CUBIC), spread(INNER))
            slope = fma(value * inner, (ONE - share * share) * HALF, half)
            store(a, slopes.first + r * slopes.apart + c, slope)


@kernel
def relu(rows, columns, a, x, slopes):
    """Replaces x by max(x, 0); leaves the slopes."""
    for r in range(rows):
        for c in range(columns):
            index = x.first + r * x.apart + c
            value, zero = load(a, index), spread(ZERO)
            store(a, index, larger(zero, value))
            slope = if_less(zero, value, spread(ONE), zero)
            store(a, slopes.first + r * slopes.apart + c, slope)


@kernel
def multiply(rows, columns, a, x, factors):
    """Multiplies x by factors, value by value."""
    for r in range(rows):
        for c in range(columns):
            index = x.first + r * x.apart + c
            store(a, index, load(a, index) * load(a, factors.first + r * factors.apart + c))
