"""Encoder of gray pictures, for tasks that draw their strings: a residual network.

A model's input remains token ids, from which the picture is drawn here; the last batch of pictures
is cached for the other members. The network is a stem of stride 4, `picture_blocks` residual blocks
of which every two halve the sides and double the channels, and a 1 x 1 convolution to the hidden
size (as ResNet, He et al. 2015; Singh & Karayev 2021). Instead of batch norm the channels of every
pixel are normalized, so that reading a line depends on nothing else on the page. Half of the hidden
numbers encode a place's row and half its column, by sines and cosines.
"""

import json
import sys
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, cast

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from seqcls.config import NetworkConfig
from seqcls.models.base import Ids, Recorder
from seqcls.models.layers import Dropout
from seqcls.models.positions.numbers import waves
from seqcls.pictures import Page
from seqcls.strings.tokenizer import FIRST_LETTER
from seqcls.tasks import TASKS

Picture = Float[Tensor, "string channel row column"]
Memory = Float[Tensor, "string place hidden"]

# ResNet's stem: a 7 x 7 convolution, and a stride of 4 with the pooling after it.
STEM, STRIDE = 7, 4
PER_STAGE = 2
"""Blocks of one size."""

NUMBERS_AT_ONCE = 2**25
"""The most numbers of a state, 128 MiB in single precision."""


class Convolution(nn.Module):
    """A convolution whose values `seqcls.models.initialization` draws."""

    def __init__(self, inputs: int, outputs: int, size: int, stride: int = 1) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs, size, size))
        self.stride = stride

    def forward(self, picture: Picture) -> Float[Tensor, "string output output_row output_column"]:
        padding = self.weight.shape[2] // 2
        return functional.conv2d(picture, self.weight, stride=self.stride, padding=padding)


class PixelNorm(nn.Module):
    """RMS norm over the channels of each pixel, with a weight a channel."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))

    def forward(self, picture: Picture) -> Picture:
        factor = (picture.square().mean(dim=1, keepdim=True) + 1e-5).rsqrt()
        return picture * factor * self.weight[:, None, None]


class PictureBlock(nn.Module):
    """Two convolutions added to their input, which a third one resizes if needed."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.first = Convolution(inputs, outputs, 3, stride)
        self.first_norm = PixelNorm(outputs)
        self.second = Convolution(outputs, outputs, 3)
        self.second_norm = PixelNorm(outputs)
        fits = stride == 1 and inputs == outputs
        self.passing = None if fits else Convolution(inputs, outputs, 1, stride)

    def forward(self, picture: Picture) -> Float[Tensor, "string output output_row output_column"]:
        inner = self.first_norm(self.first(picture)).relu()
        inner = self.second_norm(self.second(inner))
        passed = picture if self.passing is None else self.passing(picture)
        added: Picture = (inner + passed).relu()
        return added


class PictureEncoder(nn.Module):
    """Encodes the pictures that the task draws from token ids."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.config = config
        self.page = page_of(config)
        widths = [
            config.picture_channels * 2 ** (x // PER_STAGE) for x in range(config.picture_blocks)
        ]
        # Half of the stem's stride of 4: the pooling in `see` does the other half.
        self.stem = Convolution(1, widths[0], STEM, 2)
        self.stem_norm = PixelNorm(widths[0])
        blocks = nn.ModuleList(
            [
                # A block that doubles the channels halves the sides, so this ratio is its stride.
                PictureBlock(inputs, outputs, outputs // inputs)
                # A block reads the channels of the one before it; the first reads the stem's.
                for inputs, outputs in zip([widths[0], *widths], widths, strict=False)
            ]
        )
        self.blocks = cast("Iterable[PictureBlock]", blocks)
        self.output = Convolution(widths[-1], config.hidden_size, 1)
        self.dropout = Dropout(config.dropout_rate)

    def forward(self, inputs: Ids, record: Recorder) -> Memory:
        return self.see(self.draw(inputs), record)

    def draw(self, inputs: Ids) -> Picture:
        """Draws the pictures of strings, each with `CLS` before it."""
        # Padding becomes NO_LETTER.
        letters = (inputs[:, 1:].cpu().numpy() - FIRST_LETTER).astype(np.uint8)
        pictures = _draw(self.page, letters.tobytes(), letters.shape)
        return pictures.to(inputs.device, self.output.weight.dtype).unsqueeze(1)

    def see(self, pictures: Picture, record: Recorder) -> Memory:
        """Encodes pictures to a memory, row by row."""
        states = self.stem_norm(self.stem(pictures)).relu()
        states = record("stem", functional.max_pool2d(states, 3, STRIDE // 2, 1))
        for number, block in enumerate(self.blocks):
            states = record(f"blocks.{number}", block(states))
        output: Tensor = self.output(states)
        places = _waves(*output.shape[1:]).to(output)
        return record("memory", self.dropout((output + places).flatten(2).mT))


def page_of(config: NetworkConfig) -> Page:
    """The page on which the network's task draws inputs."""
    settings: dict[str, Any] = json.loads(config.picture)
    task: Any = TASKS[settings.pop("task")]
    page: Page = task(**settings).page
    return page


@lru_cache(maxsize=64)
def pictures_at_once(config: NetworkConfig) -> int:
    """The largest number of strings to encode together; unlimited if there are no pictures.

    The stem's states, the largest, then have at most `NUMBERS_AT_ONCE` numbers.
    """
    if not config.picture:
        return sys.maxsize
    rows, columns = page_of(config).shape
    # The stem halves both sides, which leaves a quarter of the pixels.
    return max(NUMBERS_AT_ONCE // (rows * columns * config.picture_channels // 4), 1)


def memory_shape(config: NetworkConfig) -> tuple[int, int]:
    """Rows and columns of an encoded picture."""
    factor = STRIDE * 2 ** ((config.picture_blocks - 1) // PER_STAGE)
    rows, columns = page_of(config).shape
    # Rounded up, as by convolutions with this padding.
    return -(-rows // factor), -(-columns // factor)


# Members read the same batch one after another, so the last one drawn is cached.
@lru_cache(maxsize=1)
def _draw(page: Page, letters: bytes, shape: tuple[int, ...]) -> Float[Tensor, "string row column"]:
    return torch.from_numpy(page.draw(np.frombuffer(letters, dtype=np.uint8).reshape(shape)))


def _waves(hidden: int, rows: int, columns: int) -> Float[Tensor, "hidden row column"]:
    half = hidden // 2
    row_waves, column_waves = (torch.from_numpy(waves(np.arange(x), half)) for x in (rows, columns))
    both = (
        row_waves.unsqueeze(1).expand(-1, columns, -1),
        column_waves.unsqueeze(0).expand(rows, -1, -1),
    )
    return torch.cat(both, dim=2).permute(2, 0, 1)
