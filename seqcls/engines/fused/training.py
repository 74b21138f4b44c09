"""The fused engine: one member after another, each in compiled code from counts to AdamW.

A member's result depends on nothing but its configuration and seed, to the last bit on one machine.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig, RunConfig
from seqcls.data import network_of, sampler_of
from seqcls.engines.fused.kernel import evaluate, train_epoch
from seqcls.engines.fused.packing import pack, unpack
from seqcls.engines.fused.rooms import NORMS, TILE, Shape
from seqcls.engines.fused.tiles import Tiles, epoch_tiles, make_tiles
from seqcls.engines.member import MemberTraining, learning_rate
from seqcls.results import TrainedMember, Weights


def train_fused(
    members: Sequence[tuple[RunConfig, int]],
    initial: Sequence[Weights],
    *,
    every_epoch: bool,
    progress: Callable[[float], None],
) -> list[TrainedMember]:
    """Trains (configuration, model seed) pairs from their initial parameters, in their order."""
    results = []
    for number, ((config, model_seed), start) in enumerate(zip(members, initial, strict=True)):
        own = partial(_add, progress, number)
        results.append(_train(config, model_seed, start, every_epoch, own))
    return results


def _add(progress: Callable[[float], None], before: int, done: float) -> None:
    progress(before + done)


def fused_logits(
    config: NetworkConfig,
    weights: Sequence[Weights],
    counts: Int64[np.ndarray, "string letter"],
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings given as letter counts."""
    unknown = np.zeros(len(counts), dtype=bool)
    tiles = make_tiles(counts, unknown, len(counts), config.precision)
    return np.stack([tile_logits(config, own, tiles)[: len(counts)] for own in weights])


def tile_logits(
    config: NetworkConfig, weights: Weights, tiles: Tiles
) -> Float[np.ndarray, " string"]:
    """One model's logits for the strings of one batch in tiles, its padding included."""
    logits = np.empty_like(tiles.targets)
    evaluate(
        pack(config, weights),
        shape_of(config),
        np.empty(TILE, _integers(config)),
        tiles.counts,
        tiles.targets,
        tiles.weights,
        logits,
    )
    return logits.reshape(-1)


def _train(
    config: RunConfig,
    model_seed: int,
    initial: Weights,
    every_epoch: bool,
    progress: Callable[[float], None],
) -> TrainedMember:
    started = time.perf_counter()
    training = MemberTraining(config, model_seed, every_epoch)
    network = network_of(config)
    flat = pack(network, initial)
    mean, square = np.zeros_like(flat), np.zeros_like(flat)
    shape, scratch = training_shape(config), np.empty(TILE, _integers(network))
    validation = epoch_tiles(sampler_of(config, "validation"), 0, config.precision)
    logits = np.empty_like(validation.targets)
    epoch, steps, goes_on = 0, 0, True
    while goes_on:
        tiles = epoch_tiles(sampler_of(config, "train"), epoch, config.precision)
        epoch += 1
        rate = learning_rate(config, epoch)
        train_loss = train_epoch(flat, mean, square, steps, rate, shape, scratch, *tiles)
        steps += len(tiles.ends)
        validation_loss = evaluate(flat, shape, scratch, *validation[:3], logits)
        goes_on = training.goes_on_after(train_loss, validation_loss, lambda: unpack(network, flat))
        progress(epoch / config.max_num_epochs if goes_on else 1.0)
    training.result.train_seconds = time.perf_counter() - started
    return training.result


def training_shape(config: RunConfig) -> Shape:
    """The sizes and switches of a network in training."""
    return shape_of(network_of(config), scaled_loss=config.train_loss == "sigmoid_scaled")


def shape_of(config: NetworkConfig, *, scaled_loss: bool = False) -> Shape:
    """The sizes and switches of a network, as the compiled code takes them."""
    return Shape(
        kinds=config.num_letters + 1,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        head_size=config.attention_head_size,
        feed_forward=config.feed_forward_size,
        first_kind=int(config.no_attend_cls),
        norm=NORMS[config.layer_norm if config.has_norms else "none"],
        eps=config.layer_norm_eps,
        scaled_loss=scaled_loss,
    )


def _integers(config: NetworkConfig) -> str:
    return config.precision.replace("float", "int")
