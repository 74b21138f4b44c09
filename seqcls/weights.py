"""A model's parameters as safetensors bytes."""

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from seqcls.errors import StoreError


def to_bytes(weights: dict[str, np.ndarray]) -> bytes:
    """The parameters, by name, in the safetensors format."""
    return save(weights)


def from_bytes(data: bytes) -> dict[str, np.ndarray]:
    """The parameters in safetensors bytes, by name.

    Raises:
        StoreError: the bytes are damaged.
    """
    try:
        return load(data)
    except SafetensorError as error:
        raise StoreError(f"damaged weights: {error}") from None
