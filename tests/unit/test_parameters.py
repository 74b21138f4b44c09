"""Stored weights are those of their configuration, or refused in a line."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.engines.member import draw_initial
from seqcls.errors import StoreError
from seqcls.interpretability.families import counted_curve
from seqcls.interpretability.family import parse_family
from seqcls.interpretability.network import Network
from seqcls.problem import resolve
from seqcls.results import Weights
from seqcls.weights import to_bytes, weights_of

KINDS: list[dict[str, Any]] = [
    {},
    {"layer_norm": "rms"},
    {"biases": True},
    {"precision": "float64"},
    {"positions": "alibi"},
    {"positions": "relative"},
    {"positions": "learned", "readout": "last", "attention_mask": "causal"},
    {"num_blocks": 2},
    {"architecture": "lstm"},
    {"architecture": "rnn", "biases": True},
]

NAME = "embedding.weight"


def drawn(config: RunConfig) -> Weights:
    (weights,) = draw_initial([(resolve(config), 0)])
    return weights


@pytest.mark.parametrize("fields", KINDS, ids=str)
def test_weights_of_every_kind_of_network_are_taken(fields: dict[str, Any]) -> None:
    config = RunConfig(**fields)
    weights = drawn(config)
    found = weights_of(resolve(config), to_bytes(weights))
    assert all((found[name] == weights[name]).all() for name in weights)


CHANGES: dict[str, Callable[[Weights], Weights]] = {
    "is missing": lambda own: {name: own[name] for name in own if name != NAME},
    "'extra' is no parameter": lambda own: {**own, "extra": np.zeros(1, np.float32)},
    "has the shape": lambda own: {**own, NAME: own[NAME][:, :1].copy()},
    "is of float64, expected float32": lambda own: {**own, NAME: own[NAME].astype(np.float64)},
    "is not finite": lambda own: {**own, NAME: np.full_like(own[NAME], np.inf)},
}


@pytest.mark.parametrize("said", CHANGES)
@pytest.mark.parametrize("fields", [{}, {"num_blocks": 2}], ids=str)
def test_weights_that_do_not_fit_are_refused(fields: dict[str, Any], said: str) -> None:
    config = RunConfig(**fields)
    data = to_bytes(CHANGES[said](drawn(config)))
    with pytest.raises(StoreError, match=f"not of this configuration.*{said}.*train the run again"):
        weights_of(resolve(config), data)


def test_a_model_of_zeros_has_no_answer_that_changes() -> None:
    config = RunConfig()
    zeros = {name: np.zeros_like(value) for name, value in drawn(config).items()}
    network = Network.of(resolve(config), zeros)
    found = counted_curve(network, parse_family(network.tokenizer, "ab{n}"))
    assert found.changes == ()
    assert found.limit == 0
