"""Weights as bytes and back."""

import numpy as np
import pytest

from seqcls.errors import StoreError
from seqcls.models.initialization import initial_parameters
from seqcls.problem import resolve
from seqcls.weights import from_bytes, to_bytes
from tests.conftest import short_config


def test_weights_come_back_as_they_were() -> None:
    for config in (short_config(), short_config(precision="float64", num_attention_heads=0)):
        weights = {k: v.numpy() for k, v in initial_parameters(resolve(config).network, 0).items()}
        restored = from_bytes(to_bytes(weights))
        assert set(restored) == set(weights)
        for name, value in weights.items():
            assert restored[name].dtype == value.dtype
            assert np.array_equal(restored[name], value)


def test_damaged_bytes_are_refused() -> None:
    with pytest.raises(StoreError, match="damaged weights"):
        from_bytes(b"not safetensors")
