"""The time of a training step by engine, for models that read strings token by token."""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seqcls.config import RunConfig
from seqcls.models.positions import read_ids
from seqcls.problem import configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group

STEPS = 40
REPEATS = 5
MEMBERS = 2


def _transformer(width: int, blocks: int, heads: int = 2, **fields: Any) -> dict[str, Any]:
    sizes = {"hidden_size": width, "num_attention_heads": heads, "num_blocks": blocks}
    return {**sizes, "attention_head_size": width // heads, **fields}


def _lstm(width: int, layers: int = 1) -> dict[str, Any]:
    return {
        "architecture": "lstm", "hidden_size": width, "readout": "last", "num_blocks": layers,
    }  # fmt: skip


CASES: dict[str, dict[str, Any]] = {
    "width 16, 1 head": _transformer(16, 1, heads=1),
    "width 16, 2 heads": _transformer(16, 1),
    "width 16, mean": _transformer(16, 1, readout="mean"),
    "width 16, 2 blocks": _transformer(16, 2),
    "width 32, 2 blocks": _transformer(32, 2),
    "width 32, 2 blocks, mean": _transformer(32, 2, readout="mean"),
    "width 64, 2 blocks": _transformer(64, 2),
    "LSTM of 16": _lstm(16),
    "LSTM of 16, 2 layers": _lstm(16, 2),
    "LSTM of 32": _lstm(32),
    "LSTM of 64": _lstm(64),
}
WIDE: dict[str, dict[str, Any]] = {
    "width 128, 2 blocks": _transformer(128, 2),
    "width 160, 2 blocks": _transformer(160, 2),
    "width 192, 2 blocks": _transformer(192, 2),
    "LSTM of 256": _lstm(256),
    "LSTM of 512": _lstm(512),
}
"""Those about as wide as the widest that the engine `lanes` trains."""


def main(cases: Mapping[str, dict[str, Any]] = CASES) -> None:
    """Prints microseconds per step and model, and the ratios."""
    torch.set_num_threads(1)
    print("strings token by token: microseconds per step and model, 64 strings of 0 to 40 tokens")
    print(f"  {'':<26} {'torch.nn':>9} {'strings':>9}  ratio {'lanes':>9}  lanes / strings")
    for name, fields in cases.items():
        config = _config(fields)
        members = [(resolve(config), seed) for seed in range(MEMBERS)]
        theirs, strings, lanes = medians(
            partial(_pytorch_epoch, config),
            partial(train_group, members, engine="strings"),
            partial(train_group, members, engine="lanes"),
        )
        strings, lanes = strings / MEMBERS, lanes / MEMBERS
        print(
            f"  {name:<26} {theirs:>9.0f} {strings:>9.0f} {strings / theirs:>6.2f} {lanes:>9.0f} "
            f"{lanes / strings:>9.3f}",
            flush=True,
        )


def _config(fields: dict[str, Any]) -> RunConfig:
    transformer = fields.get("architecture", "transformer") == "transformer"
    own = {
        "positions": "sinusoidal",
        "feed_forward_size": 4 * fields["hidden_size"],
        "layer_norm": "nn",
    }
    return configuration(
        {
            "task": "even_pairs",
            "train_max_length": 40,
            "train_size": 64 * STEPS,
            "validation_max_length": 40,
            "validation_size": 1,
            "validation_batch_size": 1,
            "max_num_epochs": 1,
            "biases": True,
            **(own if transformer else {}),
            **fields,
        }
    )


def medians(
    *epochs: Callable[[], object], steps: int = STEPS, repeats: int = REPEATS
) -> list[float]:
    """The median cost of a step of each, taken in turns, in microseconds."""
    seconds: list[list[float]] = [[] for _ in epochs]
    for repeat in range(repeats + 1):
        for own, epoch in zip(seconds, epochs, strict=True):
            started = time.process_time()
            epoch()
            if repeat:
                own.append(time.process_time() - started)
    return [statistics.median(own) / steps * 1e6 for own in seconds]


class _Encoder(nn.Module):
    """The network as one would write it with PyTorch's own layers."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.readout = config.readout
        hidden, network = config.hidden_size, resolve(config).network
        self.embedding = nn.Embedding(network.vocabulary_size, hidden, PAD)
        layer = nn.TransformerEncoderLayer(
            hidden,
            config.num_attention_heads,
            config.feed_forward_size,
            0.0,
            "gelu",
            norm_first=True,
            batch_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, config.num_blocks, enable_nested_tensor=False)
        self.classifier = nn.Linear(hidden, 1)
        angles = torch.arange(100)[:, None] * 10_000 ** (-torch.arange(0, hidden, 2) / hidden)
        self.waves = torch.cat([angles.sin(), angles.cos()], dim=1)

    def forward(self, ids: Tensor) -> Tensor:
        padding = ids == PAD
        states = self.embedding(ids) + self.waves[: ids.shape[1]]
        states = self.encoder(states, src_key_padding_mask=padding)
        read = states[:, 0]
        if self.readout == "mean":
            is_token = ~padding.unsqueeze(2)
            read = (states * is_token).sum(dim=1) / is_token.sum(dim=1).clamp_min(1)
        logits: Tensor = self.classifier(read).squeeze(1)
        return logits


class _LSTM(nn.Module):
    """The same model with PyTorch's own recurrent layers."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        hidden = config.hidden_size
        self.embedding = nn.Embedding(resolve(config).network.vocabulary_size, hidden, PAD)
        self.layers = nn.LSTM(hidden, hidden, config.num_blocks, batch_first=True)
        self.classifier = nn.Linear(hidden, 1)

    def forward(self, ids: Tensor) -> Tensor:
        states, _ = self.layers(self.embedding(ids))
        last = (ids != PAD).sum(dim=1) - 1
        logits: Tensor = self.classifier(states[torch.arange(len(ids)), last]).squeeze(1)
        return logits


def _pytorch_epoch(config: RunConfig) -> None:
    model = (_LSTM if config.architecture == "lstm" else _Encoder)(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    loss_of = nn.BCEWithLogitsLoss()
    for ids, targets in _batches(config):
        loss_of(model(ids), targets).backward()
        optimizer.step()
        optimizer.zero_grad()


def _batches(config: RunConfig) -> Iterator[tuple[Tensor, Tensor]]:
    drawn = stream(resolve(config).train).epoch(0)
    ids = torch.from_numpy(read_ids(drawn.strings, config.readout)).int()
    targets = torch.from_numpy(drawn.labels).float()
    for own, labels in zip(ids.split(64), targets.split(64), strict=True):
        yield own[:, : int((own != PAD).sum(dim=1).max())], labels
