"""Two thousand certificates, each with one number or one weight changed, prove nothing wrong; and
what proofs assume of compiled code holds.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
from numba import njit

from seqcls.engines.compiled.compiling import OPTIONS
from seqcls.engines.lanes.elementary import sigmoid, tanh
from seqcls.engines.lanes.vector import LANES, load, store
from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve
from seqcls.proofs import checker
from seqcls.proofs.prover import prove
from seqcls.training import train_group
from tests.chaos.conftest import long_alone
from tests.science.proved import adder, by_hand
from tests.science.test_proofs import try_changes, try_moved_weights

TOMITA: dict[str, Any] = {
    "task": "regular", "alphabet": "01", "architecture": "rnn", "readout": "last",
    "hidden_size": 8, "train_size": 4096, "max_num_epochs": 20, "train_max_length": 20,
    "validation_max_length": 20, "test_max_length": 100, "test_size": 2000,
}  # fmt: skip


def train_tomita(pattern: str) -> TrainedModel:
    """A small network of those that `known/tomita` trains."""
    problem = resolve(configuration({**TOMITA, "pattern": pattern}))
    (result,) = train_group([(problem, 0)])
    return TrainedModel(problem, result.kept_weights)


PROVED: Mapping[str, Callable[[], TrainedModel]] = {
    "parity of docs/proofs.md": lambda: by_hand(8.0),
    "parity, GRU": lambda: by_hand(12.0, "gru"),
    "last letter, LSTM": adder,
    "Tomita 1, trained": lambda: train_tomita("1*"),
}


@cache
def certificate_of(model: str) -> dict[str, Any]:
    proof = prove(PROVED[model]())
    assert proof.certificate is not None, proof
    return proof.certificate


@long_alone
@pytest.mark.cases(10)
@pytest.mark.parametrize("model", PROVED)
def test_changed_certificates_prove_nothing_wrong(model: str, seed: int) -> None:
    """A thousand of either change, over all models and seeds."""
    certificate = certificate_of(model)
    assert try_changes(certificate, 25, seed) > 0
    try_moved_weights(certificate, 25, seed)


@njit(**OPTIONS)
def apply(given, of_tanh, of_sigmoid):  # type: ignore[no-untyped-def]
    """Both functions of numbers, a vector of them at a time."""
    for row in range(len(given) // LANES):
        x = load(given, row)
        store(of_tanh, row, tanh(x))
        store(of_sigmoid, row, sigmoid(x))


def test_functions_of_compiled_code_are_as_near_as_proofs_assume() -> None:
    near = np.geomspace(1e-30, checker.LARGEST, 50_000)
    x = np.concatenate([np.linspace(-20, 20, 400_000), near, -near]).astype(np.float32)
    x, exact = x[: len(x) // LANES * LANES], x[: len(x) // LANES * LANES].astype(np.float64)
    given = np.zeros_like(x), np.zeros_like(x)
    apply(x, *given)
    assert np.abs(given[0] - np.tanh(exact)).max() < checker.FUNCTION / 4
    assert np.abs(given[1] - (1 + np.tanh(exact / 2)) / 2).max() < checker.FUNCTION / 4
