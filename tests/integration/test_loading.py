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


class OwnGPT2(nn.Module):
    """GPT-2 with the names of Hugging Face, matrices [in, out], and a head of its own if asked."""

    def __init__(self, tokens: int, places: int, score: bool) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, 8), nn.Embedding(places, 8)
        self.h = nn.ModuleList([self._block() for _ in range(2)])
        self.ln_f = nn.LayerNorm(8)
        if score:
            self.score = nn.Linear(8, 2, bias=False)

    def _block(self) -> nn.ModuleDict:
        sizes = {"attn.c_attn": (8, 24), "attn.c_proj": (8, 8), "mlp.c_fc": (8, 20)}
        sizes["mlp.c_proj"] = (20, 8)
        parts = nn.ModuleDict({"ln_1": nn.LayerNorm(8), "ln_2": nn.LayerNorm(8)})
        parts |= {"attn": nn.ModuleDict(), "mlp": nn.ModuleDict()}
        for name, (inputs, outputs) in sizes.items():
            of, layer = name.split(".")
            made = nn.Linear(inputs, outputs)
            made.weight = nn.Parameter(torch.empty(inputs, outputs))
            inside: Any = parts[of]
            inside[layer] = made
        return parts

    def states(self, ids: Tensor) -> Tensor:
        states = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.h:
            b: Any = block
            normed = b["ln_1"](states)
            joint = normed @ b["attn"]["c_attn"].weight + b["attn"]["c_attn"].bias
            query, key, value = (x.unflatten(2, (2, 4)).transpose(1, 2) for x in joint.split(8, 2))
            mixed = nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            mixed = mixed.transpose(1, 2).flatten(2)
            states = states + mixed @ b["attn"]["c_proj"].weight + b["attn"]["c_proj"].bias
            inner = b["ln_2"](states) @ b["mlp"]["c_fc"].weight + b["mlp"]["c_fc"].bias
            inner = nn.functional.gelu(inner, approximate="tanh")
            states = states + inner @ b["mlp"]["c_proj"].weight + b["mlp"]["c_proj"].bias
        last: Tensor = self.ln_f(states)
        return last

    def forward(self, ids: Tensor) -> Tensor:
        answers = self.score(self.states(ids)[:, -1])
        difference: Tensor = answers[:, 1] - answers[:, 0]
        return difference


def test_a_gpt2_classifier_answers_as_it_does_there(tmp_path: Path) -> None:
    model = OwnGPT2(2, 20, score=True).double()
    save(model, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"n_head": 2, "activation_function": "gelu_new"}')
    found = loaded_logits(tmp_path / "runs.db", tmp_path)
    assert np.allclose(found, logits_of(model, STRINGS), rtol=1e-10, atol=1e-10)


def test_a_gpt2_writes_the_output_that_it_writes_there(tmp_path: Path) -> None:
    tokens = ["0", "1", "<bos>", "<sep>", "<eos>", "<pad>"]
    model = OwnGPT2(len(tokens), 40, score=False).double()
    save(model, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text('{"n_head": 2}')
    (tmp_path / "vocabulary.json").write_text(json.dumps(tokens))
    task = {"task": "copy", "test_size": 50, "test_max_length": 6}
    run = api.load_weights(tmp_path / "runs.db", tmp_path, task=task)
    loaded = api.model(api.open_store(str(tmp_path / "runs.db")), run)
    for text in ("ab", "abba"):
        ids = torch.tensor([[2, *("ab".index(x) for x in text), 3]])
        with torch.no_grad():
            best = int((model.states(ids)[0, -1] @ model.wte.weight.T).argmax())
        written = loaded.outputs(loaded.ask_all([text]).strings)
        first = loaded.said(written.predicted)[0][:1]
        # Special tokens are written as no letter.
        assert first == ("ab"[best] if best < 2 else "") or best in (2, 3, 5)
