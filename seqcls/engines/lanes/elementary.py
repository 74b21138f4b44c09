# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Elementary functions and norms of vectors, in single precision."""

import math
from typing import NamedTuple

import numpy as np

from seqcls.engines.compiled.arithmetic import ERFC_SINGLE
from seqcls.engines.lanes.layers import LAYER
from seqcls.engines.lanes.vector import (
    HALF,
    ONE,
    ZERO,
    absolute,
    fma,
    fnma,
    if_less,
    inlined,
    kernel,
    larger,
    load,
    power_of_two,
    root,
    rounded,
    spread,
    spread_at,
    store,
    total,
)

# exp, tanh, the logistic function, softplus and GELU of vectors, in single precision.
#
#     exp(x) = 2^k exp(r),  k = round(x / log 2),  |r| <= log(2) / 2,  exp(r) by its Taylor series
#
#     atanh(z) = z + z^3 / 3 + z^5 / 5 + ..., z <= 1 / 3
#
#     tanh(x) = x + x^3 P(x^2) below 0.625 (Moshier's Cephes library), else (1 - e) / (1 + e) with
#     e = exp(-2 |x|)
#
# The coefficients of erfc are those of `seqcls.engines.compiled.arithmetic`.


number = np.float32
TWO = number(2)
# Where 2^k is 0.
LOWEST_EXPONENT = number(-88.1)
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
HALF_LOGARITHM = tuple(number(1 / k) for k in range(15, 0, -2))
ERFC = tuple(map(number, ERFC_SINGLE[::-1]))
THREE = number(3)
INNER, CUBIC = number(math.sqrt(2 / math.pi)), number(0.044715)
"""Constants of GELU by tanh (Hendrycks & Gimpel 2016)."""
PER_ROOT_2, PER_ROOT_2_PI = number(math.sqrt(0.5)), number(1 / math.sqrt(2 * math.pi))


@inlined
def polynomial(coefficients, x):
    """Evaluates a polynomial at x, given its coefficients from the highest power down."""
    value = spread(coefficients[0])
    for coefficient in coefficients[1:]:
        value = fma(value, x, spread(coefficient))
    return value


@inlined
def exp(x):
    """Computes the exponential of x <= 0; 0 below the least normal number."""
    x = larger(spread(LOWEST_EXPONENT), x)
    k = rounded(x * PER_LOG_2)
    rest = fma(k, spread(LOG_2_LOW), fma(k, spread(LOG_2_HIGH), x))
    return polynomial(TAYLOR, rest) * power_of_two(k)


@inlined
def tanh(x):
    """Computes the hyperbolic tangent."""
    size = absolute(x)
    square = x * x
    small = fma(polynomial(NEAR_ZERO, square) * square, x, x)
    e = exp(size * number(-2))
    large = (ONE - e) / (ONE + e)
    large = if_less(x, spread(ZERO), ZERO - large, large)
    return if_less(size, spread(number(0.625)), small, large)


@inlined
def sigmoid(x):
    """Computes 1 / (1 + exp(-x))."""
    e = exp(ZERO - absolute(x))
    share = ONE / (ONE + e)
    return if_less(x, spread(ZERO), e * share, share)


@inlined
def silu(x):
    """Computes the sigmoid linear unit, x sigmoid(x)."""
    return x * sigmoid(x)


@inlined
def silu_slope(x):
    """Computes the derivative of `silu`."""
    share = sigmoid(x)
    return share * fma(x, ONE - share, spread(ONE))


@inlined
def softplus(x):
    """Computes log(1 + exp(x)), by log(1 + e) = 2 atanh(e / (2 + e))."""
    e = exp(ZERO - absolute(x))
    z = e / (e + TWO)
    return fma(z * polynomial(HALF_LOGARITHM, z * z), spread(TWO), larger(x, spread(ZERO)))


@kernel
def gelu(rows, columns, a, x, slopes):
    """Replaces x by x Phi(x), with Phi the normal distribution; writes the slopes."""
    for r in range(rows):
        for c in range(columns):
            index = x.first + r * x.apart + c
            value = load(a, index)
            density = exp(value * value * (-HALF))
            t = TWO / fma(absolute(value), spread(PER_ROOT_2), spread(TWO))
            tail = density * t * polynomial(ERFC, t) * HALF
            below = if_less(value, spread(ZERO), tail, ONE - tail)
            store(a, index, value * below)
            slope = fma(value, density * PER_ROOT_2_PI, below)
            store(a, slopes.first + r * slopes.apart + c, slope)


@kernel
def gelu_tanh(rows, columns, a, x, slopes):
    """Replaces x by x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3); writes the slopes."""
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
            slope = fma(value * inner, fnma(share, share, spread(ONE)) * HALF, half)
            store(a, slopes.first + r * slopes.apart + c, slope)


@kernel
def relu(rows, columns, a, x, slopes):
    """Replaces x by max(x, 0); writes the slopes."""
    for r in range(rows):
        for c in range(columns):
            index = x.first + r * x.apart + c
            value, zero = load(a, index), spread(ZERO)
            store(a, index, larger(zero, value))
            slope = if_less(zero, value, spread(ONE), zero)
            store(a, slopes.first + r * slopes.apart + c, slope)


@kernel
def multiply(rows, columns, a, x, factors):
    """Multiplies x by factors, elementwise."""
    for r in range(rows):
        for c in range(columns):
            index = x.first + r * x.apart + c
            store(a, index, load(a, index) * load(a, factors.first + r * factors.apart + c))


# RMS norm and layer norm, over the features of each row.
#
# unit = r (x - mean),  r = (mean((x - mean)^2) + eps)^(-1/2),  mean = 0 for `rms`
# y = weight unit + bias,  bias = 0 for `rms`
#
# D x = r (D u - unit mean(D u unit) - mean(D u)),  D u = weight D y,  mean(D u) only for `nn`


class Norm(NamedTuple):
    """A norm: its number of features, and the starts of its parameters."""

    kind: int
    size: int
    eps: float
    weight: int
    bias: int


class NormStates(NamedTuple):
    """The starts of a norm's states: its units, in rows like those of x, and an r for each row."""

    units: int
    scales: int


@kernel
def norm(rows, layer, a, x, y, states, w):
    """Writes y, and the states for the gradient; x and y are `Rows` of `a`, and may be the same."""
    share = np.float32(1 / layer.size)
    for r in range(rows):
        x0, unit0, y0 = x.first + r * x.apart, states.units + r * x.apart, y.first + r * y.apart
        mean = spread(ZERO)
        if layer.kind == LAYER:
            for i in range(layer.size):
                mean = mean + load(a, x0 + i)
            mean = mean * share
        squares = spread(ZERO)
        for i in range(layer.size):
            centered = load(a, x0 + i) - mean
            squares = fma(centered, centered, squares)
        scale = ONE / root(fma(squares, spread(share), spread(np.float32(layer.eps))))
        store(a, states.scales + r, scale)
        for i in range(layer.size):
            unit = (load(a, x0 + i) - mean) * scale
            store(a, unit0 + i, unit)
            value = unit * spread_at(w, layer.weight + i)
            if layer.kind == LAYER:
                value = value + spread_at(w, layer.bias + i)
            store(a, y0 + i, value)


@kernel
def norm_gradient(rows, layer, a, dy, dx, states, sums, w, gradient, add):
    """Writes D x, or adds to it, and adds D of weights and biases.

    dx may be dy, unless it is added to; `sums` is the start of two vectors of scratch for each
    feature.
    """
    size = layer.size
    share = np.float32(1 / size)
    for i in range(2 * size):
        store(a, sums + i, spread(ZERO))
    for r in range(rows):
        dy0, dx0, unit0 = (
            dy.first + r * dy.apart,
            dx.first + r * dx.apart,
            states.units + r * dy.apart,
        )
        parallel = spread(ZERO)
        mean = spread(ZERO)
        for i in range(size):
            given, unit = load(a, dy0 + i), load(a, unit0 + i)
            store(a, sums + i, fma(given, unit, load(a, sums + i)))
            if layer.kind == LAYER:
                store(a, sums + size + i, load(a, sums + size + i) + given)
            du = given * spread_at(w, layer.weight + i)
            parallel = fma(du, unit, parallel)
            if layer.kind == LAYER:
                mean = mean + du
        parallel, mean, scale = parallel * share, mean * share, load(a, states.scales + r)
        for i in range(size):
            du = load(a, dy0 + i) * spread_at(w, layer.weight + i)
            value = scale * (fnma(load(a, unit0 + i), parallel, du) - mean)
            if add:
                value = value + load(a, dx0 + i)
            store(a, dx0 + i, value)
    for i in range(size):
        gradient[layer.weight + i] += total(load(a, sums + i))
        if layer.kind == LAYER:
            gradient[layer.bias + i] += total(load(a, sums + size + i))
