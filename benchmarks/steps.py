"""The stacked engine's cost of a training step and member, against one plain model."""

import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import nn

from seqcls.config import RunConfig
from seqcls.models.initialization import initial_parameters
from seqcls.models.positions import read_ids
from seqcls.models.transformer import Transformer
from seqcls.problem import resolve
from seqcls.sampling.streams import stream
from seqcls.training import train_group

SHAPES = ((2, 2), (16, 2), (16, 16))
"""Hidden size and heads: those of the report."""

MEMBERS = (1, 8, 64, 512)
STEPS = 50
REPEATS = 5


def main() -> None:
    """Prints microseconds per step and member, and the ratio to the plain loop."""
    torch.set_num_threads(1)
    print("the stacked engine: microseconds per step and member (x: faster than the plain model)")
    print("  hidden heads        plain" + "".join(f"   group of {n:>3}" for n in MEMBERS))
    for hidden_size, heads in SHAPES:
        config = RunConfig(
            hidden_size=hidden_size,
            num_attention_heads=heads,
            layer_norm_eps=0.0,
            no_attend_cls=True,
            train_size=64 * STEPS,
            validation_size=64,
            max_num_epochs=1,
        )
        plain = _microseconds(partial(_plain_epoch, config), 1)
        row = f"  {hidden_size:>6} {heads:>5} {plain:>12.0f}"
        for members in MEMBERS:
            group = [(resolve(config), seed) for seed in range(members)]
            cost = _microseconds(partial(train_group, group, engine="torch", device="cpu"), members)
            row += f" {cost:>7.0f} {plain / cost:>5.0f}x"
        print(row, flush=True)


def _microseconds(epoch: Callable[[], object], members: int) -> float:
    """The median cost of a step and member over several epochs of `STEPS` steps."""
    epoch()
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        epoch()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds) / STEPS / members * 1e6


def _plain_epoch(config: RunConfig) -> None:
    """One epoch of one model, as one would write it without this program."""
    model = Transformer(resolve(config).network)
    model.load_state_dict(initial_parameters(resolve(config).network, 0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=config.learning_rate)
    loss_of = nn.BCEWithLogitsLoss()
    drawn = stream(resolve(config).train).epoch(0)
    ids = torch.from_numpy(read_ids(drawn.strings, "first")).int().split(config.train_batch_size)
    targets = torch.from_numpy(drawn.labels).float().split(config.train_batch_size)
    for batch, target in zip(ids, targets, strict=True):
        loss_of(model(batch), target).backward()
        optimizer.step()
        optimizer.zero_grad()
