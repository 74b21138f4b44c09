"""What the fused engine is given: a network's shape, and strings in tiles."""

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.engines.fused.buffers import NORMS, TILE, Shape
from seqcls.engines.fused.packing import learned_positions
from seqcls.problem import Problem
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings

# The sizes and switches of a network, as the compiled code takes them.


def training_shape(problem: Problem) -> Shape:
    """The sizes and switches of a network in training."""
    scaled_loss = problem.config.train_loss == "sigmoid_scaled"
    return shape_of(problem.network, scaled_loss=scaled_loss)


def shape_of(config: NetworkConfig, *, scaled_loss: bool = False) -> Shape:
    """The sizes and switches of a network."""
    places, per_place = learned_positions(config)
    return Shape(
        token_types=config.num_letters + 1,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        head_size=config.attention_head_size,
        feed_forward=config.feed_forward_size,
        first_type=int(config.no_attend_cls or config.readout == "mean"),
        norm=NORMS[config.layer_norm if config.has_norms else "none"],
        eps=config.layer_norm_eps,
        scaled_loss=scaled_loss,
        log_length=config.attention_scale == "log_length",
        relu=config.activation == "relu",
        biases=config.biases,
        places=places,
        per_place=per_place,
    )


def integers(config: NetworkConfig) -> str:
    """The type of whole numbers that are as wide as the network's numbers."""
    return config.precision.replace("float", "int")


# Strings as the fused engine reads them: letter counts in tiles of strings.


class Tiles(NamedTuple):
    """Strings in tiles; a batch begins with a new tile, and its last one may not be full."""

    counts: Float[np.ndarray, "tile token_type string"]
    """Token types are CLS, which occurs once or never, and the letters."""
    factors: Float[np.ndarray, "tile string"]
    """The logarithm of the number of tokens that the model reads; 0 where it reads none."""
    targets: Float[np.ndarray, "tile string"]
    weights: Float[np.ndarray, "tile string"]
    """One over the size of the batch; 0 where there is no string."""
    ends: Int64[np.ndarray, " batch"]
    """The number of the first tile after each batch."""


def make_tiles(
    counts: Int64[np.ndarray, "string letter"],
    positive: Bool[np.ndarray, " string"],
    batch_size: int,
    precision: str,
    *,
    special: bool = True,
) -> Tiles:
    """Strings in tiles, `batch_size` strings in a batch; the last batch may be short.

    Args:
        precision: the type of all numbers.
        special: whether the model reads a token of its own, CLS, beside the letters.
    """
    starts = range(0, len(counts), batch_size)
    sizes = [min(batch_size, len(counts) - start) for start in starts]
    tiles = [-(-size // TILE) for size in sizes]
    # Where each string goes: its batch's first tile, then one after another.
    firsts = np.repeat(np.cumsum([0, *tiles[:-1]]) * TILE - np.array(starts), sizes)
    place = firsts + np.arange(len(counts))
    tiled_size = sum(tiles) * TILE
    columns = np.zeros((counts.shape[1] + 1, tiled_size), precision)
    columns[0] = special
    columns[1:, place] = counts.T
    targets = np.zeros(tiled_size, precision)
    targets[place] = positive
    weights = np.zeros(tiled_size, precision)
    weights[place] = np.repeat(1 / np.array(sizes), sizes)
    factors = np.log(np.maximum(columns.sum(axis=0), 1))
    shaped = columns.reshape(len(columns), -1, TILE).transpose(1, 0, 2)
    return Tiles(
        np.ascontiguousarray(shaped),
        factors.reshape(-1, TILE),
        targets.reshape(-1, TILE),
        weights.reshape(-1, TILE),
        np.cumsum(tiles),
    )


@remembered
def epoch_tiles(sampler: Sampler, epoch: int, precision: str, *, special: bool) -> Tiles:
    """An epoch of a stream in tiles, made once for all members that read it."""
    drawn = stream(sampler).epoch(epoch)
    counts, size = drawn.strings.counts, sampler.batch_size
    return make_tiles(counts, drawn.labels, size, precision, special=special)


@lru_cache(maxsize=2)
def tiles_of(strings: TokenStrings, precision: str, *, special: bool) -> Tiles:
    """Strings without labels in tiles, made once for the models that are asked about them.

    Two sets are kept, by which object they are: those that models are tested on, and those that
    stand for all strings.
    """
    unknown = np.zeros(len(strings), dtype=bool)
    return make_tiles(strings.counts, unknown, len(strings), precision, special=special)
