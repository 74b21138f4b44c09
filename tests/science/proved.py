"""A recurrent network whose weights are written down, so that it is right on every string."""

from typing import Any

import numpy as np

from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import configuration, resolve

FEW: dict[str, Any] = {"test_size": 50, "test_min_length": 1, "test_max_length": 30}


def by_hand(sharpness: float, architecture: str = "rnn") -> TrainedModel:
    """Parity by two units: one says that the sum of the letter and the parity before is above 1/2,
    the other that it is above 3/2. Gates are open or shut for good.
    """
    fields = {"hidden_size": 2, "biases": True, "readout": "last", "architecture": architecture}
    problem = resolve(configuration({"task": "parity", **fields, **FEW}))
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
