"""Small trained models, stored as weights, with the fields and the seed that give them.

    python -m tests.science.trained

trains them again and writes them to `tests/assets/trained`.
"""

from functools import cache
from pathlib import Path
from typing import Any

from safetensors.numpy import load_file, save_file

from seqcls.interpretability.trained_model import TrainedModel
from seqcls.problem import Problem, configuration, resolve
from seqcls.training import train_group

FOLDER = Path(__file__).parents[1] / "assets" / "trained"
LSTM: dict[str, Any] = {
    "architecture": "lstm", "readout": "last", "biases": True, "hidden_size": 8,
    "train_size": 2048, "validation_size": 256,
}  # fmt: skip
EQUATIONS: dict[str, Any] = {
    "task": "modular_arithmetic",
    **{f"{part}_min_length": 3 for part in ("train", "validation", "test")},
    "train_max_length": 7, "validation_max_length": 7, "test_max_length": 10, "train_size": 2048,
    "validation_size": 256, "test_size": 800, "test_negatives": "near",
}  # fmt: skip
TRAINED: dict[str, tuple[dict[str, Any], int]] = {
    # Wrong where brackets are nested too deep, at trained lengths too.
    "deep": ({
        **LSTM, "task": "dyck", "max_depth": 3, "train_max_length": 12, "test_size": 1000,
        "validation_max_length": 12, "test_max_length": 60, "max_num_epochs": 25,
        "learning_rate": 5e-3,
    }, 2),
    # It has learned how equations look, and not whether they are right.
    "formal": ({
        **LSTM, **EQUATIONS, "train_batch_size": 32, "learning_rate": 0.02, "max_num_epochs": 8,
        "min_num_epochs": 8,
    }, 0),
    # One layer without positions cannot compute parity: it detects whether there is a 1.
    "parity": ({
        "task": "parity", "hidden_size": 8, "attention_head_size": 8, "train_size": 2048,
        "validation_size": 256, "test_size": 512, "train_max_length": 10,
        "validation_max_length": 10, "test_max_length": 30, "max_num_epochs": 12,
        "learning_rate": 3e-3,
    }, 0),
}  # fmt: skip


def problem_of(name: str) -> Problem:
    return resolve(configuration(TRAINED[name][0]))


@cache
def trained(name: str) -> TrainedModel:
    """A model with its stored weights."""
    return TrainedModel(problem_of(name), load_file(FOLDER / f"{name}.safetensors"))


def train(name: str) -> TrainedModel:
    """The model, trained again."""
    problem = problem_of(name)
    (result,) = train_group([(problem, TRAINED[name][1])])
    return TrainedModel(problem, result.kept_weights)


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name in TRAINED:
        save_file(train(name).weights, FOLDER / f"{name}.safetensors")
