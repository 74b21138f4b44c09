"""Weights that were trained elsewhere, loaded as runs and looked into like any."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from seqcls.errors import ConfigError
from sweeps import api

TASK = {"task": "parity", "test_size": 200, "test_max_length": 12}
STRINGS = ["0", "1", "01", "110", "0101101", "111111111111"]


class OwnRecurrent(nn.Module):
    """A network as people write it: an embedding, a recurrent layer, a linear head."""

    def __init__(self, cell: type[nn.RNNBase], embedding: int, answers: int = 1) -> None:
        super().__init__()
        self.embedding = nn.Embedding(2, embedding)
        self.body = cell(embedding, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(6, answers)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.body(self.embedding(ids))
        read: Tensor = self.head(states[:, -1])
        return read[:, 0] if read.shape[1] == 1 else read[:, 1] - read[:, 0]


class OwnEncoder(nn.Module):
    """An encoder that reads `<cls>` first, with a learned table of positions."""

    def __init__(self, **how: Any) -> None:
        super().__init__()
        self.tok = nn.Embedding(4, 8)
        self.pos = nn.Parameter(torch.randn(20, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True, **how)
        norm = nn.LayerNorm(8) if how.get("norm_first") else None
        self.encoder = nn.TransformerEncoder(layer, 2, norm=norm, enable_nested_tensor=False)
        self.out = nn.Linear(8, 1)

    def forward(self, ids: Tensor) -> Tensor:
        ids = torch.cat([torch.full_like(ids[:, :1], 2), ids], dim=1)
        states = self.encoder(self.tok(ids) + self.pos[: ids.shape[1]])
        logits: Tensor = self.out(states[:, 0])[:, 0]
        return logits


@torch.no_grad()
def logits_of(model: Callable[[Tensor], Tensor], strings: Sequence[str]) -> list[float]:
    return [float(model(torch.tensor([[int(x) for x in text]]))) for text in strings]


def save(model: nn.Module, file: Path) -> Path:
    # Values like those of a trained model: initial norms and biases are ones and zeros.
    for value in model.parameters():
        value.data = torch.randn_like(value)
    save_file(model.state_dict(), file)
    return file


def loaded_logits(db: Path, file: Path, strings: Sequence[str] = STRINGS, **how: Any) -> Any:
    run = api.load_weights(db, file, **{"task": TASK, **how})
    return api.model(api.open_store(str(db)), run).ask_all(list(strings)).score


@pytest.mark.parametrize("precision", [torch.float32, torch.float64])
@pytest.mark.parametrize("embedding", [3, 6, 9])
@pytest.mark.parametrize("cell", [nn.RNN, nn.GRU, nn.LSTM])
def test_a_recurrent_network_of_pytorch_answers_as_it_does_there(
    cell: type[nn.RNNBase], embedding: int, precision: torch.dtype, tmp_path: Path
) -> None:
    model = OwnRecurrent(cell, embedding, answers=2 if embedding == 6 else 1).to(precision)
    file = save(model, tmp_path / "own.safetensors")
    found = loaded_logits(tmp_path / "runs.db", file)
    close = 1e-5 if precision == torch.float32 else 1e-12
    assert np.allclose(found, logits_of(model, STRINGS), rtol=close, atol=close)


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_of_pytorch_answers_as_it_does_there(norm_first: bool, tmp_path: Path) -> None:
    model = OwnEncoder(norm_first=norm_first, activation="gelu").double().eval()
    file = save(model, tmp_path / "own.safetensors")
    tokens = tmp_path / "tokens.json"
    tokens.write_text(json.dumps(["0", "1", "<cls>", "<pad>"]))
    settings = {"heads": 2, "norm_first": norm_first, "activation": "gelu"}
    found = loaded_logits(tmp_path / "runs.db", file, tokens=tokens, settings=settings)
    assert np.allclose(found, logits_of(model, STRINGS), rtol=1e-10, atol=1e-10)
