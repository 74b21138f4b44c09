"""Strings of two streams and values of their models, for tests of what these compute."""

from typing import Any

import torch
from torch import Tensor

from seqcls.config import NetworkConfig
from seqcls.models.initialization import initial_parameters
from seqcls.strings.tokenizer import CLS, PAD

LETTERS = 5
SEP = LETTERS + 2
GENERAL: dict[str, Any] = {
    "num_letters": LETTERS + 2,
    "num_outputs": LETTERS + 4,
    "head": "output",
    "trained_length": 20,
    "precision": "float64",
}
"""Settings of a network that writes tokens of five letters."""


def example_ids() -> Tensor:
    """Strings `CLS x SEP y`, of several lengths each, padded."""
    rows = [
        [CLS, 2, 3, 4, 5, 6, SEP, 3],
        [CLS, 4, SEP, 2, 2, 6, 5],
        [CLS, SEP],
        [CLS, 3, 3, 2, SEP, 6, 4],
    ]
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


def random_values(config: NetworkConfig) -> dict[str, Tensor]:
    """Values that are far from those of a norm or a bias at the start."""
    generator = torch.Generator().manual_seed(0)
    return {
        name: 0.5 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
        for name, value in initial_parameters(config, 0).items()
    }
