"""Recurrent networks whose weights are written down, so that they are right on every string."""

from typing import Any

import numpy as np

from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve

SMALL_TEST: dict[str, Any] = {"test_size": 50, "test_min_length": 1, "test_max_length": 30}


def by_hand(sharpness: float, architecture: str = "rnn") -> TrainedModel:
    """Parity by two units: one is on if the letter plus the parity before is above 1/2, the other
    if it is above 3/2. Gates are always open or always shut.
    """
    fields = {"hidden_size": 2, "biases": True, "readout": "last", "architecture": architecture}
    problem = resolve(configuration({"task": "parity", **fields, **SMALL_TEST}))
    weights: dict[str, list[Any]] = {
        "embedding.weight": [[0, 0], [0, 0], [0, 0], [1, 0]],
        "layers.0.input_weight": [[sharpness, 0], [sharpness, 0]],
        "layers.0.state_weight": [[sharpness / 2, -sharpness / 2]] * 2,
        "layers.0.input_bias": [-sharpness / 2, -1.5 * sharpness],
        "classifier.weight": [[1, -1]],
        "classifier.bias": [-1],
    }
    # Before the candidate's rows those of the first two gates, after them an LSTM's output gate.
    shut = {"rnn": ([], []), "gru": ([9, -9], []), "lstm": ([9, -9], [9])}[architecture]
    for name in ("input_weight", "state_weight", "input_bias"):
        before, after = (
            [gate if name == "input_bias" else [0, 0] for gate in gates for _ in range(2)]
            for gates in shut
        )
        weights[f"layers.0.{name}"] = [*before, *weights[f"layers.0.{name}"], *after]
    weights["layers.0.state_bias"] = [0] * len(weights["layers.0.input_bias"])
    return TrainedModel(problem, {name: np.array(x, np.float32) for name, x in weights.items()})


def adder() -> TrainedModel:
    """An LSTM that accepts strings ending in 1.

    One cell forgets everything, the other hardly anything of what it adds at each 0: no box that
    ends at the state of the longest string is closed.
    """
    fields: dict[str, Any] = {
        "hidden_size": 2,
        "biases": True,
        "readout": "last_letter",
        "architecture": "lstm",
    }
    problem = resolve(
        configuration(
            {"task": "regular", "alphabet": "01", "pattern": "(0|1)*1", **fields, **SMALL_TEST}
        )
    )
    zero = [0.0, 0.0]
    gates = {"take": ([0, 0], [9, 9]), "keep": ([0, -16], [-9, 8]), "give": ([0, 0], [9, 9])}
    rows = [gates["take"], gates["keep"], ([9, -1], [-5, 1]), gates["give"]]
    weights: dict[str, list[Any]] = {
        "embedding.weight": [zero, zero, zero, [1, 0]],
        "layers.0.input_weight": [[x, 0] for own, _ in rows for x in own],
        "layers.0.state_weight": [zero] * 8,
        "layers.0.input_bias": [x for _, own in rows for x in own],
        "layers.0.state_bias": [0] * 8,
        "classifier.weight": [[1, 0]],
        "classifier.bias": [0],
    }
    return TrainedModel(problem, {name: np.array(x, np.float32) for name, x in weights.items()})
