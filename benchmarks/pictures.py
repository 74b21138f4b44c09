"""A training step on pictures against the same layers of PyTorch, and what drawing takes of it."""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.plain import medians
from seqcls.config import RunConfig
from seqcls.kinds import Examples
from seqcls.kinds.transduction import NO_TARGET
from seqcls.models.pictures import page_of
from seqcls.problem import Problem, resolve
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import NO_LETTER
from seqcls.training import train_group
from sweeps.grid.spec import load_specs

STEPS = 8
REPEATS = 3
ASKED_RATIO, ASKED_SHARE = 1.2, 0.1


def main() -> None:
    """Prints milliseconds a step, the ratio, and the share of drawing."""
    torch.set_num_threads(1)
    problem = resolve(_config())
    strings = stream(problem.train).epoch(0)
    batches = list(_batches(problem, strings))
    ours, theirs, drawing = medians(
        partial(train_group, [(problem, 0)], engine="strings"),
        partial(_plain_epoch, problem, batches),
        partial(_draw, problem, strings),
        steps=STEPS,
        repeats=REPEATS,
    )
    print("pictures of up to 6 lines, 64 a step, as in known/paragraphs: milliseconds a step")
    print(f"  torch.nn {theirs / 1e3:.0f}, seqcls with drawing {ours / 1e3:.0f}", end="")
    print(f": ratio {ours / theirs:.2f} (at most {ASKED_RATIO})")
    print(f"  drawing {drawing / 1e3:.1f}: {drawing / ours:.1%} of a step (at most", end="")
    print(f" {ASKED_SHARE:.0%})", flush=True)


def _config() -> RunConfig:
    """Returns the shipped specification's configuration, with a few steps."""
    (spec,) = load_specs("known/paragraphs")
    *_, sinusoidal = spec.configs()
    few = {"train_size": 64 * STEPS, "validation_size": 1, "max_num_epochs": 1}
    return sinusoidal.model_copy(update=few)


def _draw(problem: Problem, strings: Examples) -> None:
    page = page_of(problem.network)
    for start in range(0, len(strings), 64):
        page.draw(strings.strings.letters[start : start + 64])


Batch = tuple[Tensor, Tensor, Tensor]
"""Pictures, what the decoder reads, and what it is to write."""


def _batches(problem: Problem, strings: Examples) -> Iterator[Batch]:
    page, letters = page_of(problem.network), strings.strings.letters
    begin, end, pad = (len(page.alphabet) + more for more in (1, 2, 3))
    for start in range(0, len(letters), 64):
        own = letters[start : start + 64]
        own = own[:, : int((own != NO_LETTER).sum(axis=1).max())].astype(np.int64)
        own[own == NO_LETTER] = pad
        read = np.pad(own, ((0, 0), (1, 0)), constant_values=begin)
        targets = np.pad(own, ((0, 0), (0, 1)), constant_values=pad)
        targets[np.arange(len(own)), (own != pad).sum(axis=1)] = end
        targets[targets == pad] = NO_TARGET
        pictures = torch.from_numpy(page.draw(letters[start : start + 64])).unsqueeze(1)
        yield pictures, torch.from_numpy(read), torch.from_numpy(targets)


def _plain_epoch(problem: Problem, batches: list[Batch]) -> None:
    model = _Reader(problem.config, len(page_of(problem.network).alphabet) + 4)
    optimizer = torch.optim.AdamW(model.parameters(), lr=problem.config.learning_rate)
    for pictures, read, targets in batches:
        outputs = model(pictures, read)
        functional.cross_entropy(outputs.mT, targets, ignore_index=NO_TARGET).backward()
        nn.utils.clip_grad_norm_(model.parameters(), problem.config.gradient_clip)
        optimizer.step()
        optimizer.zero_grad()


class _Norm(nn.Module):
    """Normalizes the channels of each pixel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, picture: Tensor) -> Tensor:
        factor = (picture.square().mean(dim=1, keepdim=True) + 1e-5).rsqrt()
        return picture * factor * self.weight[:, None, None]


class _Block(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        stride = outputs // inputs
        self.inner = nn.Sequential(
            nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
            _Norm(outputs),
            nn.ReLU(),
            nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
            _Norm(outputs),
        )
        self.passing: nn.Module = nn.Identity()
        if stride > 1:
            self.passing = nn.Conv2d(inputs, outputs, 1, stride, bias=False)

    def forward(self, picture: Tensor) -> Tensor:
        added: Tensor = (self.inner(picture) + self.passing(picture)).relu()
        return added


class _Reader(nn.Module):
    """The network as one would write it with PyTorch's own layers."""

    def __init__(self, config: RunConfig, tokens: int) -> None:
        super().__init__()
        hidden, channels = config.hidden_size, config.picture_channels
        widths = [channels * 2 ** (x // 2) for x in range(config.picture_blocks)]
        self.encoder = nn.Sequential(
            nn.Conv2d(1, channels, 7, 2, 3, bias=False),
            _Norm(channels),
            nn.ReLU(),
            nn.MaxPool2d(3, 2, 1),
            *(_Block(inputs, outputs) for inputs, outputs in pairwise([channels, *widths])),
            nn.Conv2d(widths[-1], hidden, 1, bias=False),
        )
        layer = nn.TransformerDecoderLayer(
            hidden,
            config.num_attention_heads,
            config.feed_forward_size,
            0.0,
            "gelu",
            norm_first=True,
            batch_first=True,
        )
        self.decoder = nn.TransformerDecoder(layer, config.num_blocks, nn.LayerNorm(hidden))
        self.embedding = nn.Embedding(tokens, hidden)
        self.classifier = nn.Linear(hidden, tokens)
        angles = torch.arange(300)[:, None] * 10_000 ** (-torch.arange(0, hidden, 2) / hidden)
        self.waves = torch.cat([angles.sin(), angles.cos()], dim=1)

    def forward(self, pictures: Tensor, read: Tensor) -> Tensor:
        memory = self.encoder(pictures).flatten(2).mT
        memory = memory + self.waves[: memory.shape[1]]
        width = read.shape[1]
        states = self.embedding(read) + self.waves[:width]
        later = torch.ones(width, width, dtype=torch.bool).triu(1)
        outputs: Tensor = self.classifier(self.decoder(states, memory, tgt_mask=later))
        return outputs


if __name__ == "__main__":
    main()
