# Compiled by Numba, which infers the types of arguments: what has none here is compiled.
# mypy: allow-untyped-defs, allow-untyped-calls, allow-untyped-decorators
"""Elementary functions and norms of vectors, in single precision."""

import math

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
def softplus(x):
    """Computes log(1 + exp(x)), by log(1 + e) = 2 atanh(e / (2 + e))."""
    e = exp(ZERO - absolute(x))
    z = e / (e + TWO)
    return fma(z * polynomial(HALF_LOGARITHM, z * z), spread(TWO), larger(x, spread(ZERO)))


# Functions with their slopes.


@inlined
def gelu(x):
    """Computes x Phi(x), with Phi the normal distribution."""
    density = exp(x * x * (-HALF))
    t = TWO / fma(absolute(x), spread(PER_ROOT_2), spread(TWO))
    tail = density * t * polynomial(ERFC, t) * HALF
    below = if_less(x, spread(ZERO), tail, ONE - tail)
    return x * below, fma(x, density * PER_ROOT_2_PI, below)


@inlined
def gelu_tanh(x):
    """Computes x (1 + tanh u) / 2, u = sqrt(2 / pi) (x + 0.044715 x^3)."""
    square = x * x
    share = tanh(x * fma(square, spread(INNER * CUBIC), spread(INNER)))
    half = (share + ONE) * HALF
    # D u, and D tanh = 1 - tanh^2.
    inner = fma(square, spread(THREE * INNER * CUBIC), spread(INNER))
    return x * half, fma(x * inner, fnma(share, share, spread(ONE)) * HALF, half)


@inlined
def relu(x):
    """Computes max(x, 0)."""
    zero = spread(ZERO)
    return larger(zero, x), if_less(zero, x, spread(ONE), zero)


@inlined
def elu(x):
    """Computes 1 + ELU(x)."""
    zero, small = spread(ZERO), exp(ZERO - larger(ZERO - x, spread(ZERO)))
    return if_less(zero, x, x + ONE, small), if_less(zero, x, spread(ONE), small)


@inlined
def silu(x):
    """Computes the sigmoid linear unit, x sigmoid(x)."""
    share = sigmoid(x)
    return x * share, share * fma(x, ONE - share, spread(ONE))


@inlined
def softplus_and_slope(x):
    """Computes `softplus`."""
    return softplus(x), sigmoid(x)


def replacing(function):
    """Defines the kernel that replaces x by a function of it, and writes the slopes."""

    @kernel
    def replace(rows, columns, a, x, slopes):
        for r in range(rows):
            for c in range(columns):
                index = x.first + r * x.apart + c
                value, slope = function(load(a, index))
                store(a, index, value)
                store(a, slopes.first + r * slopes.apart + c, slope)

    return replace


replace_by_gelu, replace_by_gelu_tanh, replace_by_relu, replace_by_elu = map(
    replacing, (gelu, gelu_tanh, relu, elu)
)
replace_by_silu, replace_by_softplus = map(replacing, (silu, softplus_and_slope))


@kernel
def multiply(rows, o, a):
    """Writes the products of a `Multiply`."""
    for r in range(rows):
        for c in range(o.columns):
            factor = load(a, o.factors.first + r * o.factors.apart + c)
            product = load(a, o.x.first + r * o.x.apart + c) * factor
            store(a, o.y.first + r * o.y.apart + c, product)


# RMS norm and layer norm, over the features of each row.
#
# unit = r (x - mean),  r = (mean((x - mean)^2) + eps)^(-1/2),  mean = 0 for `rms`
# y = weight unit + bias,  bias = 0 for `rms`
#
# D x = r (D u - unit mean(D u unit) - mean(D u)),  D u = weight D y,  mean(D u) only for `nn`


@kernel
def norm(rows, layer, eps, a, x, y, units, scales, w):
    """Writes y, and the states for the gradient; x and y are `Rows` of `a`, and may be the same.

    Args:
        layer: a `NormLayer`.
        units: the start of the units, in rows like those of x; `scales` of an r for each row.
    """
    share = np.float32(1 / layer.size)
    for r in range(rows):
        x0, unit0, y0 = x.first + r * x.apart, units + r * x.apart, y.first + r * y.apart
        mean = spread(ZERO)
        if layer.kind == LAYER:
            for i in range(layer.size):
                mean = mean + load(a, x0 + i)
            mean = mean * share
        squares = spread(ZERO)
        for i in range(layer.size):
            centered = load(a, x0 + i) - mean
            squares = fma(centered, centered, squares)
        scale = ONE / root(fma(squares, spread(share), spread(np.float32(eps))))
        store(a, scales + r, scale)
        for i in range(layer.size):
            unit = (load(a, x0 + i) - mean) * scale
            store(a, unit0 + i, unit)
            value = unit * spread_at(w, layer.weight + i)
            if layer.kind == LAYER:
                value = value + spread_at(w, layer.bias + i)
            store(a, y0 + i, value)


@kernel
def norm_gradient(rows, layer, a, dy, dx, units, scales, sums, w, gradient, add):
    """Writes D x, or adds to it, and adds D of weights and biases.

    dx may be dy, unless it is added to; `sums` is the start of two vectors of scratch for each
    feature.
    """
    size = layer.size
    share = np.float32(1 / size)
    for i in range(2 * size):
        store(a, sums + i, spread(ZERO))
    for r in range(rows):
        dy0, dx0, unit0 = dy.first + r * dy.apart, dx.first + r * dx.apart, units + r * dy.apart
        parallel, mean = spread(ZERO), spread(ZERO)
        for i in range(size):
            given, unit = load(a, dy0 + i), load(a, unit0 + i)
            store(a, sums + i, fma(given, unit, load(a, sums + i)))
            if layer.kind == LAYER:
                store(a, sums + size + i, load(a, sums + size + i) + given)
            du = given * spread_at(w, layer.weight + i)
            parallel = fma(du, unit, parallel)
            if layer.kind == LAYER:
                mean = mean + du
        parallel, mean, scale = parallel * share, mean * share, load(a, scales + r)
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
