"""One block with positions: the compiled engine beside PyTorch's own encoder of the same shape."""

import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from seqcls.config import RunConfig
from seqcls.engines.compiled.engine import EpochPart, Steps, Update
from seqcls.engines.fused.packing import SCHEMES, pack
from seqcls.engines.fused.tables import TableProgram
from seqcls.engines.fused.tiles import training_shape
from seqcls.engines.member import draw_initial, learning_rates
from seqcls.models.positions import read_ids
from seqcls.problem import resolve
from seqcls.sampling.streams import stream
from seqcls.strings.tokenizer import PAD

HIDDEN = 16
LONGEST = 40
STEPS = 50
REPEATS = 5


def main() -> None:
    """Prints microseconds per step for each scheme, and the ratio to `nn.TransformerEncoder`."""
    torch.set_num_threads(1)
    print(f"one block with positions, 64 strings of 0 to {LONGEST} tokens, width {HIDDEN}:")
    print("microseconds per step (x: faster than nn.TransformerEncoder)")
    print("  heads    encoder" + "".join(f"{name:>17}" for name in SCHEMES))
    for heads in (1, 2):
        plain = _microseconds(_encoder_epoch(_config("sinusoidal", heads)))
        row = f"  {heads:>5} {plain:>10.0f}"
        for name in SCHEMES:
            cost = _microseconds(_table_epoch(_config(name, heads)))
            row += f" {cost:>9.0f} {plain / cost:>5.0f}x"
        print(row, flush=True)


def _config(positions: str, heads: int) -> RunConfig:
    return RunConfig(
        task="parity",
        positions=positions,
        hidden_size=HIDDEN,
        num_attention_heads=heads,
        attention_head_size=HIDDEN // heads,
        feed_forward_size=4 * HIDDEN,
        layer_norm="nn",
        train_max_length=LONGEST,
        train_size=64 * STEPS,
        validation_max_length=LONGEST,
        validation_size=64,
        max_num_epochs=1,
    )


def _microseconds(epoch: Callable[[], object]) -> float:
    """The median cost of a step over several epochs of `STEPS` steps."""
    epoch()
    seconds = []
    for _ in range(REPEATS):
        started = time.perf_counter()
        epoch()
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds) / STEPS * 1e6


def _table_epoch(config: RunConfig) -> Callable[[], object]:
    program = TableProgram(resolve(config))
    (initial,) = draw_initial([(resolve(config), 0)])
    flat = pack(resolve(config).network, initial)
    moments = np.zeros((2, len(flat)), flat.dtype)
    update = Update(learning_rates(resolve(config), 1), config.weight_decay, config.gradient_clip)
    steps = Steps(moments, 0, update)
    assert training_shape(resolve(config)).hidden == HIDDEN
    return lambda: program.epoch(flat, steps, EpochPart(0))


class _Encoder(nn.Module):
    """What one would write with PyTorch's own layers: sinusoids added, the first state read."""

    def __init__(self, config: RunConfig) -> None:
        super().__init__()
        self.embedding = nn.Embedding(resolve(config).network.vocabulary_size, HIDDEN)
        layer = nn.TransformerEncoderLayer(
            HIDDEN,
            config.num_attention_heads,
            config.feed_forward_size,
            dropout=0.0,
            activation="gelu",
            batch_first=True,
            norm_first=True,
        )
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.classifier = nn.Linear(HIDDEN, 1)
        self.waves = torch.randn(LONGEST + 1, HIDDEN)

    def forward(self, ids: Tensor) -> Tensor:
        states = self.embedding(ids) + self.waves[: ids.shape[1]]
        states = self.encoder(states, src_key_padding_mask=ids == PAD)
        logits: Tensor = self.classifier(states[:, 0]).squeeze(-1)
        return logits


def _encoder_epoch(config: RunConfig) -> Callable[[], object]:
    model = _Encoder(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    loss_of = nn.BCEWithLogitsLoss()
    drawn = stream(resolve(config).train).epoch(0)
    ids = torch.from_numpy(read_ids(drawn.strings, "first")).int().split(config.train_batch_size)
    targets = torch.from_numpy(drawn.labels).float().split(config.train_batch_size)

    def epoch() -> None:
        for batch, target in zip(ids, targets, strict=True):
            loss_of(model(batch), target).backward()
            optimizer.step()
            optimizer.zero_grad()

    return epoch


if __name__ == "__main__":
    main()
