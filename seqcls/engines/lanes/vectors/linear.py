"""Linear layers.

y = W x + b        D W = D y (x) x, summed over rows and lanes      D b = D y      D x = W^T D y
"""

from typing import NamedTuple

from seqcls.engines.lanes.vectors.compiling import kernel
from seqcls.engines.lanes.vectors.tiles import Matrix, bias_gradient, linear, weight_gradient


class Linear(NamedTuple):
    """A layer: its widths, filled up, and where its parameters begin."""

    inputs: int
    outputs: int
    weight: int
    """Rows of so many inputs."""
    bias: int
    """-1 where there is none."""


@kernel
def apply(rows, layer, a, x, y, w, add):
    """Writes y, or adds to it; both are `Rows` of `a`."""
    weight = Matrix(layer.weight, layer.inputs, 1)
    linear(rows, layer.outputs, layer.inputs, a, x, w, weight, y, w, layer.bias, add)


@kernel
def parameter_gradient(rows, layer, a, x, dy, gradient):
    """Adds D W and D b to the gradient."""
    weight_gradient(
        rows, layer.outputs, layer.inputs, a, dy, x, gradient, layer.weight, layer.inputs
    )
    if layer.bias >= 0:
        bias_gradient(rows, layer.outputs, a, dy, gradient, layer.bias)


@kernel
def input_gradient(rows, layer, a, dy, dx, w, add):
    """Writes D x, or adds to it."""
    weight = Matrix(layer.weight, 1, layer.inputs)
    linear(rows, layer.inputs, layer.outputs, a, dy, w, weight, dx, w, -1, add)


@kernel
def apply_gradient(rows, layer, a, x, dy, dx, w, gradient, add):
    """Adds D W and D b to the gradient, and writes D x, or adds to it."""
    parameter_gradient(rows, layer, a, x, dy, gradient)
    input_gradient(rows, layer, a, dy, dx, w, add)
