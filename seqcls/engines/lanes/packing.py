"""Conversion of named parameters to the flat array of compiled code, and back."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.results import Weights
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD

Slots = Mapping[str, Int64[np.ndarray, "..."]]
"""The indices in the flat array of each parameter's values, by the parameter's name."""

EMBEDDING = "embedding.weight"
"""Packed without a row for PAD, which is never read, unless it may be tied to a head."""

COLUMNS = 4
"""All widths are filled up to multiples of it."""


def padded_size(size: int) -> int:
    """Returns a size filled up to a multiple of `COLUMNS`."""
    return -(-size // COLUMNS) * COLUMNS


def embedded_rows(config: NetworkConfig) -> int:
    """Returns the number of the packed embedding's rows."""
    return config.num_letters + (1 if config.head == "string" else 2)


def head_rows(config: NetworkConfig) -> Int64[np.ndarray, " row"]:
    """Returns the packed index of each row of the embedding, and of a head that writes.

    The order is CLS, the letters, PAD, so that the tokens that are read are contiguous.
    """
    rows = np.arange(embedded_rows(config))
    if config.head == "string":
        return rows
    ids = np.concatenate([[CLS], np.arange(FIRST_LETTER, len(rows)), [PAD]])
    # `ids` has the token of each row; this is its inverse, the row of each token.
    return np.argsort(ids)


def output_rows(config: NetworkConfig) -> Int64[np.ndarray, " output"]:
    """Returns the packed index of each row of the head."""
    if config.writes or config.tied_embeddings:
        return head_rows(config)
    return np.arange(config.num_outputs)


def vectors(count: int, lanes: int) -> Float[np.ndarray, " number"]:
    """Returns zeros for vectors, aligned with the lines of the cache."""
    size, line = count * lanes, 64
    # One line more, of 4 bytes a number, so that the first vector can begin at a line.
    numbers = np.zeros(size + line // 4, np.float32)
    first = -numbers.ctypes.data % line // 4
    return numbers[first : first + size]


def pack(slots: Slots, size: int, weights: Weights) -> Float[np.ndarray, " parameter"]:
    """Returns the parameters in one array, filled up with zeros."""
    flat = np.zeros(size, np.float32)
    for name, places in slots.items():
        values = weights[name]
        flat[places] = values if len(values) == len(places) else np.delete(values, PAD, axis=0)
    return flat


def unpack(config: NetworkConfig, slots: Slots, flat: Float[np.ndarray, " parameter"]) -> Weights:
    """Returns copies of the parameters, by name."""
    weights = {name: flat[places] for name, places in slots.items()}
    if config.head == "string":
        weights[EMBEDDING] = np.insert(weights[EMBEDDING], PAD, 0, axis=0)
    return weights


def shapes(config: NetworkConfig, slots: Slots) -> dict[str, tuple[int, ...]]:
    """Returns the parameters' shapes, by name."""
    shapes = {name: places.shape for name, places in slots.items()}
    return {**shapes, EMBEDDING: (config.vocabulary_size, config.hidden_size)}
