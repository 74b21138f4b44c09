"""The time of a training step with two streams, against PyTorch's own layers."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from benchmarks.plain import MEMBERS, STEPS, medians
from seqcls.config import RunConfig
from seqcls.engines.pytorch.members import trimmed_ids
from seqcls.kinds.transduction import NO_TARGET
from seqcls.models.two_streams import split
from seqcls.problem import configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group


def _sizes(width: int, blocks: int, heads: int, **fields: Any) -> dict[str, Any]:
    return {
        "hidden_size": width,
        "num_blocks": blocks,
        "num_attention_heads": heads,
        "attention_head_size": width // heads,
        "feed_forward_size": 4 * width,
        **fields,
    }


CASES: dict[str, dict[str, Any]] = {
    "width 16, 1 block": _sizes(16, 1, 1),
    "width 32, 2 blocks": _sizes(32, 2, 2),
    "width 64, 2 blocks": _sizes(64, 2, 2),
    "width 64, 2 blocks, post": _sizes(64, 2, 2, norm_placement="post"),
}

RECURRENT: dict[str, dict[str, Any]] = {
    "LSTM of 32, attention": {"architecture": "recurrent_attention", "hidden_size": 32},
    "LSTM of 64, attention": {"architecture": "recurrent_attention", "hidden_size": 64},
}


def main() -> None:
    """Prints microseconds per step and model, and the ratios."""
    torch.set_num_threads(1)
    print("two streams: microseconds per step and model, 64 strings of 1 to 40 tokens copied")
    print(f"  {'':<26} {'torch.nn':>9} {'strings':>9}  ratio")
    for name, fields in (CASES | RECURRENT).items():
        config = _config(fields)
        members = [(resolve(config), seed) for seed in range(MEMBERS)]
        theirs, strings = medians(
            partial(_pytorch_epoch, config), partial(train_group, members, engine="strings")
        )
        strings /= MEMBERS
        print(f"  {name:<26} {theirs:>9.0f} {strings:>9.0f} {strings / theirs:>6.2f}", flush=True)


def _config(fields: dict[str, Any]) -> RunConfig:
    return configuration(
        {
            "task": "copy",
            "num_tokens": 30,
            "biases": True,
            "train_max_length": 40,
            "train_size": 64 * STEPS,
            "validation_max_length": 40,
            "validation_size": 1,
            "validation_batch_size": 1,
            "max_num_epochs": 1,
            **({} if "architecture" in fields else TRANSFORMER),
            **fields,
        }
    )


TRANSFORMER = {
    "architecture": "encoder_decoder",
    "positions": "sinusoidal",
    "layer_norm": "nn",
    "final_norm": True,
}


class _Transformer(nn.Module):
    """The network as one would write it with PyTorch's own layers."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        hidden, network = config.hidden_size, resolve(config).network
        self.embedding = nn.Embedding(network.vocabulary_size, hidden, PAD)
        self.layers = nn.Transformer(
            hidden,
            config.num_attention_heads,
            config.num_blocks,
            config.num_blocks,
            config.feed_forward_size,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=config.norm_placement == "pre",
        )
        self.classifier = nn.Linear(hidden, network.num_outputs)
        angles = torch.arange(100)[:, None] * 10_000 ** (-torch.arange(0, hidden, 2) / hidden)
        self.waves = torch.cat([angles.sin(), angles.cos()], dim=1)

    def forward(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        is_absent = inputs == PAD
        later = torch.ones(outputs.shape[1], outputs.shape[1]).triu(1).bool()
        states = self.layers(
            self.embedding(inputs) + self.waves[: inputs.shape[1]],
            self.embedding(outputs) + self.waves[: outputs.shape[1]],
            tgt_mask=later,
            src_key_padding_mask=is_absent,
            tgt_key_padding_mask=outputs == PAD,
            memory_key_padding_mask=is_absent,
            tgt_is_causal=True,
        )
        logits: Tensor = self.classifier(states)
        return logits


class _Attention(nn.Module):
    """The same models written with PyTorch: an LSTM, and cells with additive attention token by
    token.
    """

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        hidden, network = config.hidden_size, resolve(config).network
        self.embedding = nn.Embedding(network.vocabulary_size, hidden, PAD)
        self.encoder = nn.LSTM(hidden, hidden, batch_first=True)
        self.cell = nn.LSTMCell(2 * hidden, hidden)
        self.query = nn.Linear(hidden, hidden, bias=False)
        self.key = nn.Linear(hidden, hidden, bias=False)
        self.score = nn.Linear(hidden, 1, bias=False)
        self.classifier = nn.Linear(hidden, network.num_outputs)

    def forward(self, inputs: Tensor, outputs: Tensor) -> Tensor:
        lengths = (inputs != PAD).sum(dim=1)
        packed = pack_padded_sequence(
            self.embedding(inputs), lengths, batch_first=True, enforce_sorted=False
        )
        states, (state, cell) = self.encoder(packed)
        encoded, _ = pad_packed_sequence(states, batch_first=True)
        keys, is_absent = self.key(encoded), inputs == PAD
        state, cell = state[0], cell[0]
        embedded, written = self.embedding(outputs), []
        for place in range(outputs.shape[1]):
            scores = self.score((self.query(state).unsqueeze(1) + keys).tanh()).squeeze(2)
            weights = scores.masked_fill(is_absent, -torch.inf).softmax(dim=1)
            context = (weights.unsqueeze(1) @ encoded).squeeze(1)
            state, cell = self.cell(torch.cat([embedded[:, place], context], 1), (state, cell))
            written.append(state)
        logits: Tensor = self.classifier(torch.stack(written, dim=1))
        return logits


def _pytorch_epoch(config: RunConfig) -> None:
    recurs = config.architecture == "recurrent_attention"
    model = _Attention(config) if recurs else _Transformer(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    loss_of = nn.CrossEntropyLoss(ignore_index=NO_TARGET)
    for inputs, outputs, targets in _batches(config):
        logits = model(inputs, outputs)
        loss_of(logits.transpose(1, 2), targets[:, : outputs.shape[1]]).backward()
        optimizer.step()
        optimizer.zero_grad()


def _batches(config: RunConfig) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    problem = resolve(config)
    drawn = stream(problem.train).epoch(0)
    strings = problem.kind.reading(problem.task, drawn)
    targets = torch.from_numpy(problem.kind.encoded(problem.task, drawn, problem.network))
    for start in range(0, len(drawn), 64):
        rows = slice(start, start + 64)
        ids = trimmed_ids(problem.network, strings, rows)
        streams = split(problem.network, ids)
        yield streams.inputs, streams.outputs, targets[rows]
