"""The fused engine: one member after another, each in compiled code from counts to AdamW.

A member's result depends on nothing but its configuration and seed, to the last bit on one machine.
"""

import time
from collections.abc import Sequence
from functools import partial
from types import ModuleType
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.base import Member, Progress
from seqcls.engines.fused.adamw import Update
from seqcls.engines.fused.buffers import TILE
from seqcls.engines.fused.packing import pack, unpack
from seqcls.engines.fused.shapes import integers, shape_of, training_shape
from seqcls.engines.fused.tiles import Tiles, epoch_tiles, tiles_of
from seqcls.engines.member import MemberTraining, learning_rate
from seqcls.problem import Problem
from seqcls.results import EpochLosses, TrainedMember, Weights
from seqcls.tokens.strings import TokenStrings


def train_fused(
    members: Sequence[Member],
    initial: Sequence[Weights],
    *,
    every_epoch: bool,
    progress: Progress,
) -> list[TrainedMember]:
    """Trains members from their initial parameters, in their order."""
    results = []
    for number, (member, start) in enumerate(zip(members, initial, strict=True)):
        training = MemberTraining(number, *member, every_epoch)
        results.append(_train(training, start, partial(_add, progress, number)))
    return results


def _add(progress: Progress, before: int, done: float, epochs: Sequence[EpochLosses]) -> None:
    progress(before + done, epochs)


def fused_logits(
    config: NetworkConfig,
    weights: Sequence[Weights],
    strings: TokenStrings,
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings, by their letter counts."""
    tiles = tiles_of(strings, config.precision, special=config.readout != "mean")
    return np.stack([tile_logits(config, own, tiles)[: len(strings)] for own in weights])


def tile_logits(
    config: NetworkConfig, weights: Weights, tiles: Tiles
) -> Float[np.ndarray, " string"]:
    """One model's logits for the strings of one batch in tiles, its padding included."""
    logits = np.empty_like(tiles.targets)
    _kernel(config).evaluate(
        pack(config, weights),
        shape_of(config),
        np.empty(TILE, integers(config)),
        tiles.counts,
        tiles.factors,
        tiles.targets,
        tiles.weights,
        logits,
    )
    return logits.reshape(-1)


def _train(training: MemberTraining, initial: Weights, progress: Progress) -> TrainedMember:
    started = time.perf_counter()
    config, network = training.problem.config, training.problem.network
    program = program_of(training.problem)
    flat = pack(network, initial)
    moments = np.zeros((2, len(flat)), flat.dtype)
    epoch, steps, goes_on = 0, 0, True
    while goes_on:
        rate = learning_rate(config, epoch + 1)
        update = Update(rate, config.weight_decay, config.gradient_clip)
        train_loss, own_steps = program.epoch(flat, moments, steps, update, epoch)
        epoch, steps = epoch + 1, steps + own_steps
        validation_loss = program.validation_loss(flat)
        goes_on = training.goes_on_after(train_loss, validation_loss, lambda: unpack(network, flat))
        progress(epoch / config.max_num_epochs if goes_on else 1.0, training.last_epoch())
    training.result.train_seconds = time.perf_counter() - started
    return training.result


@runtime_checkable
class Program(Protocol):
    """One member's epochs and validation."""

    def epoch(
        self, flat: np.ndarray, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Trains for an epoch, in place; the sum of its losses, and how many steps it had."""
        ...

    def validation_loss(self, flat: np.ndarray) -> float:
        """The sum of the losses over the validation strings."""
        ...


def program_of(problem: Problem) -> Program:
    """What trains a model: from letter counts, or from a table of its places."""
    if problem.network.positions == "none":
        return CountsProgram(problem)
    from seqcls.engines.fused.tables.program import TableProgram

    return TableProgram(problem)


def _kernel(config: NetworkConfig) -> ModuleType:
    """The compiled functions of letter counts for one way of reading the logit."""
    # Each part's machine code is loaded, or made, only where it is used.
    if config.readout == "mean":
        from seqcls.engines.fused.mean import kernel as mean

        return mean
    from seqcls.engines.fused import kernel

    return kernel


class CountsProgram:
    """A member's epochs and validation from letter counts."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        self._shape = training_shape(problem)
        self._precision = network.precision
        self._scratch = np.empty(TILE, integers(network))
        self._train = problem.train
        self._special = network.readout != "mean"
        self._kernel = _kernel(network)
        self._validation = epoch_tiles(
            problem.validation, 0, network.precision, special=self._special
        )
        self._logits = np.empty_like(self._validation.targets)

    def epoch(
        self, flat: np.ndarray, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """As `Program.epoch`."""
        tiles = epoch_tiles(self._train, number, self._precision, special=self._special)
        own = (flat, moments, steps, update, self._shape, self._scratch)
        loss = self._kernel.train_epoch(*own, *tiles)
        return loss, len(tiles.ends)

    def validation_loss(self, flat: np.ndarray) -> float:
        """As `Program.validation_loss`."""
        tiles = self._validation[:4]
        own = (flat, self._shape, self._scratch)
        loss: float = self._kernel.evaluate(*own, *tiles, self._logits)
        return loss
