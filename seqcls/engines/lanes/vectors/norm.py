r"""RMS norm and layer norm, over the features of each row.

unit = r (x - mean),  r = (mean((x - mean)^2) + eps)^(-1/2),  mean = 0 for `rms`
y = weight unit + bias,  bias = 0 for `rms`

D x = r (D u - unit mean(D u unit) - mean(D u)),  D u = weight D y,  mean(D u) only for `nn`
"""

from typing import NamedTuple

import numpy as np

from seqcls.engines.lanes.vectors.compiling import kernel
from seqcls.engines.lanes.vectors.vector import (
    ONE,
    ZERO,
    fma,
    load,
    root,
    spread,
    spread_at,
    store,
    total,
)

NONE, RMS, LAYER = range(3)
NORMS = {"none": NONE, "rms": RMS, "nn": LAYER}


class Norm(NamedTuple):
    """A norm: its features, and where its parameters begin."""

    kind: int
    size: int
    eps: float
    weight: int
    bias: int


class Kept(NamedTuple):
    """What the gradient needs: where the units begin, in rows like those of x, and one r a row."""

    units: int
    scales: int


@kernel
def norm(rows, layer, a, x, y, kept, w):
    """Writes y, and what is kept; x and y are `Rows` of `a`, and may be the same."""
    share = np.float32(1 / layer.size)
    for r in range(rows):
        x0, unit0, y0 = x.first + r * x.apart, kept.units + r * x.apart, y.first + r * y.apart
        mean = spread(ZERO)
        if layer.kind == LAYER:
            for i in range(layer.size):
                mean = mean + load(a, x0 + i)
            mean = mean * share
        squares = spread(ZERO)
        for i in range(layer.size):
            centered = load(a, x0 + i) - mean
            squares = fma(centered, centered, squares)
        scale = ONE / root(squares * share + np.float32(layer.eps))
        store(a, kept.scales + r, scale)
        for i in range(layer.size):
            unit = (load(a, x0 + i) - mean) * scale
            store(a, unit0 + i, unit)
            value = unit * spread_at(w, layer.weight + i)
            if layer.kind == LAYER:
                value = value + spread_at(w, layer.bias + i)
            store(a, y0 + i, value)


@kernel
def norm_gradient(rows, layer, a, dy, dx, kept, sums, w, gradient, add):
    """Writes D x, or adds to it, and adds to the gradients of weights and biases.

    dx may be dy, unless it is added to; `sums` begins two vectors of scratch for each feature.
    """
    size = layer.size
    share = np.float32(1 / size)
    for i in range(2 * size):
        store(a, sums + i, spread(ZERO))
    for r in range(rows):
        dy0, dx0, unit0 = (
            dy.first + r * dy.apart,
            dx.first + r * dx.apart,
            kept.units + r * dy.apart,
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
        parallel, mean, scale = parallel * share, mean * share, load(a, kept.scales + r)
        for i in range(size):
            du = load(a, dy0 + i) * spread_at(w, layer.weight + i)
            value = scale * (du - load(a, unit0 + i) * parallel - mean)
            if add:
                value = value + load(a, dx0 + i)
            store(a, dx0 + i, value)
    for i in range(size):
        gradient[layer.weight + i] += total(load(a, sums + i))
        if layer.kind == LAYER:
            gradient[layer.bias + i] += total(load(a, sums + size + i))
