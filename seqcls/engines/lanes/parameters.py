"""Where a model's parameters stand for compiled code, by name. Numba is not loaded."""

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from jaxtyping import Int64

from seqcls.engines.lanes.layers import LAYER, LinearLayer, NormLayer
from seqcls.engines.lanes.packing import padded_size


class Axis(NamedTuple):
    """Where the numbers of an axis stand, and its size filled up."""

    places: Int64[np.ndarray, " number"]
    size: int

    @classmethod
    def of_size(cls, size: int) -> Self:
        """So many numbers, one after another."""
        return cls(np.arange(size), padded_size(size))

    @classmethod
    def parts(cls, parts: int, size: int) -> Self:
        """Parts one after another, each filled up."""
        width = padded_size(size)
        places = np.add.outer(np.arange(parts) * width, np.arange(size)).reshape(-1)
        return cls(places, parts * width)


class Parameters:
    """Where parameters stand, by name; `{}` in a name is `weight` or `bias`."""

    def __init__(self) -> None:
        self.size = 0
        self.slots: dict[str, Int64[np.ndarray, ...]] = {}

    def take(self, name: str | None, *axes: Axis) -> int:
        """Where a parameter begins that has these axes; what has no name is no parameter."""
        start, places, step = self.size, np.zeros((), np.int64), 1
        # The numbers of the last axis stand side by side, as in PyTorch's arrays.
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
        """One layer of some of the same sizes, one below another."""
        # Taken one right after another, the weights are one matrix, and the biases one vector.
        weights = [self.take(name.format("weight"), outputs, inputs) for name in names]
        biases = [self.take(name.format("bias"), outputs) for name in names if has_bias]
        size = len(names) * outputs.size
        return LinearLayer(inputs.size, size, weights[0], biases[0] if has_bias else -1)

    def norm(self, name: str, kind: int, axis: Axis) -> NormLayer:
        """A norm of an axis."""
        weight = self.take(name.format("weight"), axis)
        bias = self.take(name.format("bias"), axis) if kind == LAYER else -1
        return NormLayer(kind, len(axis.places), weight, bias)
