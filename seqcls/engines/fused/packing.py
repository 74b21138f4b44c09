"""What the fused engine takes of a network: parameters one after another, and its places."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.models.positions.numbers import (
    BUCKETS,
    angles,
    buckets,
    draw_positions,
    slopes,
    tested_positions,
    waves,
)
from seqcls.results import Weights
from seqcls.strings.tokenizer import PAD

# The table of places that a network learns.


LEARNED = ("learned", "relative")


def learned_positions(config: NetworkConfig) -> tuple[int, int]:
    """The shape of the learned table of places; no rows where none is learned."""
    if config.positions == "learned":
        return config.position_range or config.trained_length + 1, config.hidden_size
    if config.positions == "relative":
        return BUCKETS, config.num_attention_heads
    return 0, 1


# Named parameters to the flat array of the fused engine, and back.

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
        yield "positions.table.weight", learned_positions(config)


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
        return pack(self._network, weights)

    def unpack(self, flat: Float[np.ndarray, " parameter"]) -> Weights:
        return unpack(self._network, flat)


# What places do to one block that is read at one of them, in NumPy; PyTorch is not loaded.
#
# Places are counted from the reader's, whose own comes first: those of the letters follow in the
# order of their distance. The definitions are those of `seqcls.models.positions`, and tested so.

SINUSOIDAL, LEARNT, ROTARY, ALIBI, RELATIVE = range(5)
SCHEMES = {
    "sinusoidal": SINUSOIDAL,
    "learned": LEARNT,
    "rotary": ROTARY,
    "alibi": ALIBI,
    "relative": RELATIVE,
}
ADDED = ("sinusoidal", "learned")
"""Those that add to the embedding, so that keys and values depend on the place as well."""


class PositionTerms(NamedTuple):
    """What the places of some batches, or of one for all, do; the unused one of the two is empty.

    By scheme, for place 0 (the reader's) and those of the letters:
    """

    numbers: Float[np.ndarray, "batch number place"]
    """`sinusoidal`: what is added; `rotary`: cosines, then sines, of the angles from the reader;
    `alibi`: each head's bias."""
    rows: Int64[np.ndarray, "batch place"]
    """`learned`, `relative`: the row of the learned table."""


def position_terms(
    config: NetworkConfig, places: Int64[np.ndarray, "batch place"]
) -> PositionTerms:
    """What tokens at these places do, the reader's place first."""
    no_numbers = np.zeros((len(places), 0, places.shape[1]), config.precision)
    no_rows = np.zeros((len(places), 0), np.int64)
    distances = places - places[:, :1]
    if config.positions == "learned":
        # Beyond the table there is only padding: strings that are longer are not asked about.
        return PositionTerms(no_numbers, np.minimum(places, learned_positions(config)[0] - 1))
    if config.positions == "relative":
        both = config.attention_mask == "full"
        return PositionTerms(no_numbers, buckets(distances, both_directions=both))
    numbers = {"sinusoidal": _waves, "rotary": _turns, "alibi": _biases}[config.positions](
        config, places if config.positions == "sinusoidal" else distances
    )
    return PositionTerms(np.ascontiguousarray(numbers, config.precision), no_rows)


def fixed_positions(config: NetworkConfig, letters: int) -> Int64[np.ndarray, "1 place"]:
    """One place after another; read at the end, distances from there."""
    sign = -1 if config.readout == "last" else 1
    return sign * np.arange(letters + 1)[None]


def training_positions(
    config: NetworkConfig, rng: np.random.Generator, letters: list[int], most: int
) -> Int64[np.ndarray, "batch place"]:
    """The places of batches whose longest strings have so many letters, drawn one by one."""
    places = np.zeros((len(letters), most + 1), np.int64)
    for row, length in zip(places, letters, strict=True):
        row[: length + 1] = draw_positions(rng, config.position_range, length + 1)
    return places


def testing_positions(config: NetworkConfig, letters: int) -> Int64[np.ndarray, "1 place"]:
    """The places of every string of so many letters when nothing is learned."""
    return tested_positions(config.position_range, config.place_seed, letters + 1)[None]


def _waves(config: NetworkConfig, places: np.ndarray) -> np.ndarray:
    return waves(places, config.hidden_size).swapaxes(1, 2)


def _turns(config: NetworkConfig, distances: np.ndarray) -> np.ndarray:
    turned = angles(distances, config.attention_head_size).swapaxes(1, 2)
    return np.concatenate([np.cos(turned), np.sin(turned)], axis=1)


def _biases(config: NetworkConfig, distances: np.ndarray) -> np.ndarray:
    slope: np.ndarray = np.array(slopes(config.num_attention_heads))
    biases: np.ndarray = -np.abs(distances)[:, None, :] * slope[:, None]
    return biases
