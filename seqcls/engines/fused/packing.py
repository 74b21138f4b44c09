"""Named parameters to the flat array of the fused engine, and back."""

import math
from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.fused.learned import LEARNED, learned_places
from seqcls.results import Weights
from seqcls.tokens.tokenizer import PAD

EMBEDDING = "embedding.weight"


def pack(config: NetworkConfig, weights: Weights) -> Float[np.ndarray, " parameter"]:
    """The parameters one after another; norms that the network lacks stand in as the identity."""
    values = []
    for name, shape in _slots(config):
        if name == EMBEDDING:
            # PAD has no part in anything.
            values.append(np.delete(weights[name], PAD, axis=0))
        else:
            values.append(weights.get(name, np.full(shape, float(name.endswith("norm.weight")))))
    return np.concatenate([value.reshape(-1) for value in values]).astype(config.precision)


def unpack(config: NetworkConfig, flat: Float[np.ndarray, " parameter"]) -> Weights:
    """Copies of the parameters that the network has, by name."""
    weights = {}
    end = 0
    for name, shape in _slots(config):
        start, end = end, end + math.prod(shape)
        value = flat[start:end].reshape(shape).copy()
        if name == EMBEDDING:
            weights[name] = np.insert(value, PAD, 0, axis=0)
        elif _has(config, name):
            weights[name] = value
    return weights


def parameter_shapes(config: NetworkConfig) -> dict[str, tuple[int, ...]]:
    """The shapes of the parameters that the network has, by name."""
    shapes = {name: shape for name, shape in _slots(config) if _has(config, name)}
    letters, hidden = shapes[EMBEDDING]
    return {**shapes, EMBEDDING: (letters + 1, hidden)}


def _slots(config: NetworkConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Names and shapes in the order of `buffers.Parameters`."""
    hidden, inner = config.hidden_size, config.feed_forward_size
    heads = config.num_attention_heads * config.attention_head_size
    yield EMBEDDING, (config.num_letters + 1, hidden)
    yield "blocks.0.attention_norm.weight", (hidden,)
    yield "blocks.0.attention_norm.bias", (hidden,)
    for name in ("query", "key", "value"):
        yield f"blocks.0.attention.{name}.weight", (heads, hidden)
    yield "blocks.0.attention.output.weight", (hidden, heads)
    yield "blocks.0.feed_forward_norm.weight", (hidden,)
    yield "blocks.0.feed_forward_norm.bias", (hidden,)
    yield "blocks.0.feed_forward.input.weight", (inner, hidden)
    yield "blocks.0.feed_forward.output.weight", (hidden, inner)
    yield "classifier.weight", (1, hidden)
    if config.biases:
        for name in ("query", "key", "value"):
            yield f"blocks.0.attention.{name}.bias", (heads,)
        yield "blocks.0.attention.output.bias", (hidden,)
        yield "blocks.0.feed_forward.input.bias", (inner,)
        yield "blocks.0.feed_forward.output.bias", (hidden,)
        yield "classifier.bias", (1,)
    if config.positions in LEARNED:
        yield "positions.table.weight", learned_places(config)


def _has(config: NetworkConfig, name: str) -> bool:
    if name.endswith("norm.weight"):
        return config.has_norms
    if name.endswith("norm.bias"):
        return config.has_norms and config.layer_norm == "nn"
    return True


class Packed:
    """How a network's parameters are packed for the fused engine."""

    rng: np.random.Generator | None = None

    def __init__(self, network: NetworkConfig) -> None:
        self._network = network

    def pack(self, weights: Weights) -> Float[np.ndarray, " parameter"]:
        """Implements `Program.pack`."""
        return pack(self._network, weights)

    def unpack(self, flat: Float[np.ndarray, " parameter"]) -> Weights:
        """Implements `Program.unpack`."""
        return unpack(self._network, flat)
