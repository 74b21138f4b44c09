"""Named parameters to the flat array of compiled code, and back."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.results import Weights
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD

Slots = Mapping[str, Int64[np.ndarray, "..."]]
"""Where in the flat array each value of each parameter stands, by the parameter's name."""

EMBEDDING = "embedding.weight"
"""Without a row for PAD, which has no part in anything; but one that may be tied to a head has all.
"""

COLUMNS = 4
"""All widths are filled up to a multiple of it."""


def padded_size(size: int) -> int:
    """A size filled up to a multiple of `COLUMNS`."""
    return -(-size // COLUMNS) * COLUMNS


def embedded_rows(config: NetworkConfig) -> int:
    """Rows of the embedding as it is packed."""
    return config.num_letters + (1 if config.head == "string" else 2)


def head_rows(config: NetworkConfig) -> Int64[np.ndarray, " row"]:
    """Where the rows of the embedding stand, and those of a head that writes or is tied to it.

    CLS first, then the letters, so that those that are read are one after another, and PAD last.
    """
    rows = np.arange(embedded_rows(config))
    if config.head == "string":
        return rows
    ids = np.concatenate([[CLS], np.arange(FIRST_LETTER, len(rows)), [PAD]])
    # `ids` says which token each row is of; this is its inverse, the row of each token.
    return np.argsort(ids)


def output_rows(config: NetworkConfig) -> Int64[np.ndarray, " output"]:
    """Where the rows of the head stand: as those of the embedding where each is a token's."""
    if config.writes or config.tied_embeddings:
        return head_rows(config)
    return np.arange(config.num_outputs)


def vectors(count: int, lanes: int) -> Float[np.ndarray, " number"]:
    """So many vectors of zeros, each within one line of the cache."""
    size, line = count * lanes, 64
    # One line more, of 4 bytes a number, so that the first vector can begin at a line.
    numbers = np.zeros(size + line // 4, np.float32)
    first = -numbers.ctypes.data % line // 4
    return numbers[first : first + size]


def pack(slots: Slots, size: int, weights: Weights) -> Float[np.ndarray, " parameter"]:
    """The parameters in one array, zeros between them."""
    flat = np.zeros(size, np.float32)
    for name, places in slots.items():
        values = weights[name]
        flat[places] = values if len(values) == len(places) else np.delete(values, PAD, axis=0)
    return flat


def unpack(config: NetworkConfig, slots: Slots, flat: Float[np.ndarray, " parameter"]) -> Weights:
    """Copies of the parameters, by name."""
    weights = {name: flat[places] for name, places in slots.items()}
    if config.head == "string":
        weights[EMBEDDING] = np.insert(weights[EMBEDDING], PAD, 0, axis=0)
    return weights


def shapes(config: NetworkConfig, slots: Slots) -> dict[str, tuple[int, ...]]:
    """The parameters' shapes, by name."""
    shapes = {name: places.shape for name, places in slots.items()}
    return {**shapes, EMBEDDING: (config.vocabulary_size, config.hidden_size)}
