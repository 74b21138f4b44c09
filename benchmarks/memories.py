"""The time of a training step of blocks with a memory, against a package and plain loops."""

from functools import partial
from typing import Any

import torch
from mambapy.mamba import Mamba as PackageMamba
from mambapy.mamba import MambaConfig
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.plain import STEPS, medians
from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.engines.pytorch.members import trimmed_ids
from seqcls.models.attention import AttentionMixer
from seqcls.models.base import Recorder, read_states
from seqcls.models.initialization import make_model
from seqcls.models.mixing import Mixing
from seqcls.problem import configuration, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import PAD
from seqcls.training import train_group

HEADS: dict[str, Any] = {"num_attention_heads": 2, "attention_head_size": 16}
SHARE = 8
"""One in so many of the steps of other benchmarks: loops over tokens are slow."""

CASES: dict[str, dict[str, Any]] = {
    "mamba": {"architecture": "mamba", "feed_forward_size": 0},
    "deltanet": {"architecture": "deltanet", **HEADS},
    "gated_deltanet": {"architecture": "gated_deltanet", **HEADS},
    "hybrid ga": {"architecture": "hybrid", "layers": "ga", "positions": "rotary", **HEADS},
    "deltaproduct": {"architecture": "deltaproduct", **HEADS},
    "slstm": {"architecture": "slstm", **HEADS},
    "linear_attention": {"architecture": "linear_attention", **HEADS},
}


def main() -> None:
    """Prints microseconds per step and model, and the ratios."""
    torch.set_num_threads(1)
    print("memories: microseconds per step and model, width 32, 64 strings of 1 to 40 tokens")
    print("  against mambapy (its parallel scan) for mamba, else against a loop over tokens")
    print(f"  {'':<18} {'reference':>10} {'strings':>9}  ratio {'lanes':>9}  of strings")
    for name, fields in CASES.items():
        config = _config(fields)
        reference = _Package(config) if name == "mamba" else _Loop(config)
        epochs = medians(
            partial(_epoch, config, reference),
            *(partial(_train, config, engine) for engine in _engines(config)),
        )
        theirs, strings, *compiled = (SHARE * time for time in epochs)
        line = f"  {name:<18} {theirs:>10.0f} {strings:>9.0f} {strings / theirs:>6.2f}"
        line += "".join(f" {time:>9.0f} {time / strings:>11.2f}" for time in compiled)
        print(line, flush=True)


def _engines(config: RunConfig) -> tuple[str, ...]:
    """PyTorch's, and the compiled one where it can."""
    chosen = choose_engine(resolve(config), device="cpu").name
    return ("strings",) if chosen == "strings" else ("strings", chosen)


def _train(config: RunConfig, engine: str) -> None:
    train_group([(resolve(config), 0)], engine=engine, device="cpu")


def _config(fields: dict[str, Any]) -> RunConfig:
    return configuration(
        {
            "task": "parity",
            "readout": "last",
            "hidden_size": 32,
            **({} if "layers" in fields else {"num_blocks": 2}),
            "feed_forward_size": 64,
            "train_max_length": 40,
            "train_size": 64 * STEPS // SHARE,
            "validation_max_length": 40,
            "validation_size": 1,
            "validation_batch_size": 1,
            "max_num_epochs": 1,
            **fields,
        }
    )


class _Package(nn.Module):
    """Mamba as its package has it: block after block, without feed-forwards."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        network, hidden = resolve(config).network, config.hidden_size
        self.config = network
        self.embedding = nn.Embedding(network.vocabulary_size, hidden, PAD)
        self.blocks = PackageMamba(MambaConfig(d_model=hidden, n_layers=config.num_blocks))
        self.classifier = nn.Linear(hidden, 1)

    def forward(self, ids: Tensor) -> Tensor:
        states = read_states(self.config, self.blocks(self.embedding(ids)), ids)
        logits: Tensor = self.classifier(states)
        return logits[:, 0]


class _Loop(nn.Module):
    """The same model, token after token by each mixer's formula; attention is no loop anywhere."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        model = make_model(resolve(config).network)
        assert isinstance(model, Mixing)
        self.model = model
        for parameter in model.parameters():
            nn.init.normal_(parameter, 0.0, 0.1)

    def forward(self, ids: Tensor) -> Tensor:
        model = self.model
        states = model.embedding(ids)
        for block in model.blocks:
            if isinstance(block.mixer, AttentionMixer):
                states = block(states, Recorder())
                continue
            memory, given = block.mixer.nothing(states[:, 0]), []
            for state in states.unbind(dim=1):
                after, memory = block.step(state, memory)
                given.append(after)
            states = torch.stack(given, dim=1)
        return model.head(read_states(model.config, states, ids))


def _epoch(config: RunConfig, model: nn.Module) -> None:
    problem = resolve(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate, fused=True)
    drawn = stream(problem.train).epoch(0)
    strings = problem.kind.reading(problem.task, drawn)
    targets = torch.from_numpy(drawn.targets).float()
    for start in range(0, len(drawn), 64):
        rows = slice(start, start + 64)
        logits = model(trimmed_ids(problem.network, strings, rows))
        functional.binary_cross_entropy_with_logits(logits, targets[rows]).backward()
        optimizer.step()
        optimizer.zero_grad()
