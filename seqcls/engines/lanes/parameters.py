"""The layout of a model's parameters for compiled code, by name. Numba is not loaded."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Int64

from seqcls.engines.lanes.layers import LAYER, LinearLayer, NormLayer
from seqcls.engines.lanes.packing import padded_size


class Axis(NamedTuple):
    """The indices of an axis's numbers, and its size filled up."""

    places: Int64[np.ndarray, " number"]
    size: int

    @classmethod
    def of_size(cls, size: int) -> Self:
        """Returns an axis of contiguous numbers."""
        return cls(np.arange(size), padded_size(size))

    @classmethod
    def parts(cls, parts: int, size: int) -> Self:
        """Returns an axis of consecutive parts, each filled up."""
        width = padded_size(size)
        places = np.add.outer(np.arange(parts) * width, np.arange(size)).reshape(-1)
        return cls(places, parts * width)


class Parameters:
    """The indices of parameters, by name; `{}` in a name is `weight` or `bias`."""

    def __init__(self) -> None:
        self.size = 0
        self.slots: dict[str, Int64[np.ndarray, ...]] = {}

    def take(self, name: str | None, *axes: Axis) -> int:
        """Adds a parameter with these axes and returns its start; without a name, only memory."""
        start, places, step = self.size, np.zeros((), np.int64), 1
        # The last axis is contiguous, as in PyTorch's arrays.
        for axis in reversed(axes):
            places = np.asarray(np.add.outer(axis.places * step, places))
            step *= axis.size
        if name is not None:
            self.slots[name] = start + places
        self.size += step
        return start

    def linear(
        self, names: Sequence[str], outputs: Axis, inputs: Axis, has_bias: bool
    ) -> LinearLayer:
        """Adds layers of the same sizes, stacked to one layer."""
        # Added consecutively, the weights are one matrix, and the biases one vector.
        weights = [self.take(name.format("weight"), outputs, inputs) for name in names]
        biases = [self.take(name.format("bias"), outputs) for name in names if has_bias]
        size = len(names) * outputs.size
        return LinearLayer(inputs.size, size, weights[0], biases[0] if has_bias else -1)

    def norm(self, name: str, kind: int, axis: Axis) -> NormLayer:
        """Adds a norm of an axis."""
        weight = self.take(name.format("weight"), axis)
        bias = self.take(name.format("bias"), axis) if kind == LAYER else -1
        return NormLayer(kind, len(axis.places), weight, bias)
