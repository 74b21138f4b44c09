"""Named parameters to the flat array of compiled code, and back."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float, Int64

from seqcls.results import Weights
from seqcls.tokens.tokenizer import PAD

Slots = Mapping[str, Int64[np.ndarray, "..."]]
"""Of each parameter by name, where in the flat array each of its values stands."""

EMBEDDING = "embedding.weight"
"""Without a row for PAD: that is zero, and has no part in anything."""

COLUMNS = 4
"""All widths are filled up to a multiple of it."""


def filled(size: int) -> int:
    """A size filled up to a multiple of `COLUMNS`."""
    return -(-size // COLUMNS) * COLUMNS


def one_after_another(sizes: Mapping[str, int], start: int = 0) -> dict[str, int]:
    """Where each of some parts of these sizes begins."""
    ends = np.cumsum([start, *sizes.values()]).tolist()
    return dict(zip(sizes, ends, strict=False))


def vectors(count: int, lanes: int) -> Float[np.ndarray, " number"]:
    """So many vectors of zeros, each within one line of the cache."""
    size, line = count * lanes, 64
    numbers = np.zeros(size + line // 4, np.float32)
    first = -numbers.ctypes.data % line // 4
    return numbers[first : first + size]


def pack(slots: Slots, size: int, weights: Weights) -> Float[np.ndarray, " parameter"]:
    """The parameters in one array, zeros between them."""
    flat = np.zeros(size, np.float32)
    for name, places in slots.items():
        values = weights[name]
        flat[places] = np.delete(values, PAD, axis=0) if name == EMBEDDING else values
    return flat


def unpack(slots: Slots, flat: Float[np.ndarray, " parameter"]) -> Weights:
    """Copies of the parameters, by name."""
    weights = {name: flat[places] for name, places in slots.items()}
    return {**weights, EMBEDDING: np.insert(weights[EMBEDDING], PAD, 0, axis=0)}


def shapes(slots: Slots) -> dict[str, tuple[int, ...]]:
    """The parameters' shapes, by name."""
    shapes = {name: places.shape for name, places in slots.items()}
    tokens, hidden = shapes[EMBEDDING]
    return {**shapes, EMBEDDING: (tokens + 1, hidden)}
