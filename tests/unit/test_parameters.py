"""Stored weights are those of their configuration, or refused in a line."""

from collections.abc import Callable

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.engines.member import draw_initial
from seqcls.errors import StoreError
from seqcls.problem import resolve
from seqcls.results import Weights
from seqcls.weights import from_bytes, to_bytes, weights_of
from tests import zoo

NAME = "embedding.weight"


def drawn(config: RunConfig) -> Weights:
    (weights,) = draw_initial([(resolve(config), 0)])
    return weights


CHANGES: dict[str, Callable[[Weights], Weights]] = {
    "is missing": lambda own: {name: own[name] for name in own if name != NAME},
    "'extra' is not a parameter": lambda own: {**own, "extra": np.zeros(1, np.float32)},
    "has the shape": lambda own: {**own, NAME: own[NAME][:, :1].copy()},
    "is of float64, expected float32": lambda own: {**own, NAME: own[NAME].astype(np.float64)},
    "is not finite": lambda own: {**own, NAME: np.full_like(own[NAME], np.inf)},
}


def test_weights_are_read_only_where_they_fit_the_configuration() -> None:
    for name in zoo.NETWORKS:
        problem = zoo.problem(name, writes=name in zoo.WRITERS)
        weights = zoo.scattered_weights(problem.network)
        found = weights_of(problem, to_bytes(weights))
        assert all((found[parameter] == weights[parameter]).all() for parameter in weights)
    for blocks in (1, 2):
        config = RunConfig(num_blocks=blocks)
        for reason, change in CHANGES.items():
            refused = f"not of this configuration.*{reason}.*train the run again"
            with pytest.raises(StoreError, match=refused):
                weights_of(resolve(config), to_bytes(change(drawn(config))))
    with pytest.raises(StoreError, match="damaged weights"):
        from_bytes(b"not safetensors")
