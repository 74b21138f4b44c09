"""A model's parameters in the flat array of compiled code: layout and updates, without Numba."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.results import Weights
from seqcls.strings.tokenizer import PAD

EMBEDDING = "embedding.weight"
"""Packed without a row for PAD, which is never read, unless it may be tied to a head."""


class Axis(NamedTuple):
    """The indices of an axis's numbers, and its size with padding."""

    places: Int64[np.ndarray, " number"]
    size: int


class Parameters:
    """The indices of a network's parameters in a flat array, by name."""

    def __init__(self, config: NetworkConfig) -> None:
        self.config, self.size = config, 0
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

    def pack(self, weights: Weights) -> Float[np.ndarray, " parameter"]:
        """Returns the parameters in one array, filled up with zeros."""
        flat = np.zeros(self.size, self.config.precision)
        for name, places in self.slots.items():
            values = weights[name]
            flat[places] = values if len(values) == len(places) else np.delete(values, PAD, axis=0)
        return flat

    def unpack(self, flat: Float[np.ndarray, " parameter"]) -> Weights:
        """Returns copies of the parameters, by name."""
        weights = {name: flat[places] for name, places in self.slots.items()}
        if self.config.head == "string":
            weights[EMBEDDING] = np.insert(weights[EMBEDDING], PAD, 0, axis=0)
        return weights

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Returns the parameters' shapes, by name."""
        shapes = {name: places.shape for name, places in self.slots.items()}
        return {**shapes, EMBEDDING: (self.config.vocabulary_size, self.config.hidden_size)}


class Update(NamedTuple):
    """The settings of AdamW's steps in an epoch."""

    rates: Float[np.ndarray, " step"]
    """The learning rate of each."""
    weight_decay: float
    gradient_clip: float
    """The largest norm of the gradient; 0 means no limit."""
    decays: np.ndarray = np.zeros(0, bool)
    """True for parameters that decay; empty where all do."""
    frozen_steps: np.ndarray = np.zeros(0, np.int64)
    """Number of training steps for which each parameter is frozen; empty where none is."""
