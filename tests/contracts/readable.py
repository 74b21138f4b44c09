"""Comparison of engines with the readable model in double precision, and of trained members."""

import numpy as np
import pytest
import torch

from seqcls.models.positions import read_ids
from seqcls.models.positions.places import TrainingPlaces
from seqcls.problem import Problem, resolve
from seqcls.results import TrainedMember, Weights
from seqcls.sampling.streams import stream
from tests import zoo
from tests.contracts import engines
from tests.oracles.training import sum_of_losses


def with_precision(problem: Problem, precision: str) -> Problem:
    """The same problem, computed in another precision."""
    return resolve(problem.config.model_copy(update={"precision": precision}))


def compare_gradients(engine: str, problem: Problem, weights: Weights) -> None:
    """Asserts that an engine's loss and gradient are those of autograd in double precision."""
    double = with_precision(problem, "float64")
    model = zoo.readable_model(double.network, weights)
    places = TrainingPlaces(double.network, double.config.train_seed)
    loss, units = sum_of_losses(double, model, stream(double.train).epoch(0), places)
    (loss / units).backward()
    found, gradient = engines.loss_and_gradient(engine, problem, weights)
    near = 1e-9 if problem.config.precision == "float64" else 6e-5
    assert found == pytest.approx(loss.item(), rel=near), engine
    plain = {
        name: np.zeros(value.shape) if value.grad is None else value.grad.numpy()
        for name, value in model.named_parameters()
    }
    largest = max(1e-3, *(float(np.abs(value).max(initial=0)) for value in plain.values()))
    assert gradient.keys() == plain.keys()
    for name, value in plain.items():
        what = f"{engine}: {name}"
        np.testing.assert_allclose(gradient[name], value, rtol=0, atol=near * largest, err_msg=what)


def compare_answers(engine: str, problem: Problem, members: list[Weights]) -> None:
    """Asserts that an engine's answers are those of the readable model in double precision."""
    strings = stream(problem.validation).epoch(0).strings
    found = engines.logits(engine, problem, members, strings)
    double = with_precision(problem, "float64").network
    ids = torch.from_numpy(read_ids(strings, double.readout)).int()
    near = 1e-9 if problem.config.precision == "float64" else 6e-5
    for row, weights in enumerate(members):
        expected = zoo.readable_model(double, weights)(ids).detach().numpy()
        if problem.at_places:
            expected[np.arange(ids.shape[1]) > strings.lengths[:, None]] = np.nan
        atol = near * max(1, np.nanmax(np.abs(expected)))
        np.testing.assert_allclose(found[row], expected, rtol=0, atol=atol, err_msg=engine)


def compare_members(one: TrainedMember, other: TrainedMember, near: float = 0) -> None:
    """Asserts that two members have the same epochs, losses and stored weights."""
    assert (one.epochs, one.best_epoch) == (other.epochs, other.best_epoch)
    for losses in ("train_losses", "validation_losses"):
        np.testing.assert_allclose(getattr(one, losses), getattr(other, losses), rtol=near)
    assert one.weights.keys() == other.weights.keys()
    for epoch, weights in other.weights.items():
        for name, values in weights.items():
            found = one.weights[epoch][name]
            np.testing.assert_allclose(found, values, rtol=0, atol=near, err_msg=name)
