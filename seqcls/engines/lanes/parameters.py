"""The layout of a model's parameters in vectors, and of its embedding and head, by name.

Numba is not loaded.
"""

from typing import Self

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.engines.compiled import parameters
from seqcls.engines.lanes.layers import COLUMNS
from seqcls.strings.tokenizer import CLS, FIRST_LETTER, PAD


def padded_size(size: int) -> int:
    """Returns a size filled up to a multiple of `COLUMNS`."""
    return -(-size // COLUMNS) * COLUMNS


def token_numbers(config: NetworkConfig) -> Int64[np.ndarray, " token"]:
    """Returns the number of each token id: CLS, the letters, PAD, so that what is read is
    contiguous.
    """
    ids = np.concatenate([[CLS], FIRST_LETTER + np.arange(config.num_letters), [PAD]])
    # `ids` has the token of each number; this is its inverse.
    return np.argsort(ids)


def head_rows(config: NetworkConfig) -> Int64[np.ndarray, " row"]:
    """Returns the packed index of each row of the embedding, and of a head that writes."""
    is_string = config.head == "string"
    return np.arange(config.num_letters + 1) if is_string else token_numbers(config)


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


class Axis(parameters.Axis):
    """An axis whose size is filled up."""

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
