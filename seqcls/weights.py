"""A model's parameters as safetensors bytes, checked against its configuration."""

from collections.abc import Mapping
from contextlib import suppress

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import StoreError
from seqcls.problem import Problem
from seqcls.results import Weights


def to_bytes(weights: dict[str, np.ndarray]) -> bytes:
    """Encodes parameters, by name, in the safetensors format."""
    return save(weights)


def from_bytes(data: bytes) -> dict[str, np.ndarray]:
    """Decodes the parameters, by name, in safetensors bytes.

    Raises:
        StoreError: the bytes are damaged.
    """
    try:
        return load(data)
    except SafetensorError as error:
        raise StoreError(f"damaged weights: {error}") from None


def num_parameters(data: bytes) -> int | None:
    """Counts the numbers in safetensors bytes; None if they are damaged."""
    with suppress(StoreError):
        return sum(value.size for value in from_bytes(data).values())
    return None


RETRAIN = "train the run again in another database"


def weights_of(problem: Problem, data: bytes) -> Weights:
    """Decodes the parameters, by name, of the problem's network.

    Raises:
        StoreError: the bytes are damaged, or hold other parameters, shapes or types of numbers, or
            a value that is not finite.
        ConfigError: a part of the configuration, such as a plug-in's, is not installed here.
    """
    weights = from_bytes(data)
    obstacle = shape_mismatch(problem, weights)
    if obstacle is not None:
        raise StoreError(f"weights that are not of this configuration: {obstacle}; {RETRAIN}")
    return weights


def shape_mismatch(problem: Problem, weights: Mapping[str, np.ndarray]) -> str | None:
    """Returns the reason why weights do not fit a configuration; None if they do."""
    network = problem.network
    expected = _shapes(problem)
    if missing := sorted(expected.keys() - weights.keys()):
        return f"{missing[0]!r} is missing"
    if unknown := sorted(weights.keys() - expected.keys()):
        return f"{unknown[0][:60]!r} is not a parameter of it"
    for name, shape in expected.items():
        value = weights[name]
        if value.shape != shape:
            return f"{name!r} has the shape {value.shape}, expected {shape}"
        if value.dtype != network.precision:
            return f"{name!r} is of {value.dtype}, expected {network.precision}"
        if not np.isfinite(value).all():
            return f"{name!r} has a value that is not finite"
    return None


def _shapes(problem: Problem) -> dict[str, tuple[int, ...]]:
    # Some engines have the shapes without PyTorch, which takes a second or two to load.
    shapes = engine_named(choose_engine(problem).name).parameter_shapes(problem.network)
    if shapes is not None:
        return dict(shapes)
    import torch

    from seqcls.models.initialization import make_model

    # On this device tensors have no values, which could be large.
    with torch.device("meta"):
        model = make_model(problem.network)
    return {name: tuple(value.shape) for name, value in model.named_parameters()}
