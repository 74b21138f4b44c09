"""Training and answering with letter counts."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import (
    EpochPart,
    Flat,
    Program,
    Steps,
    all_classified,
    some_batches,
)
from seqcls.engines.fused.buffers import TILE
from seqcls.engines.fused.packing import Packed, pack
from seqcls.engines.fused.tiles import (
    Tiles,
    epoch_tiles,
    integers,
    shape_of,
    tiles_of,
    training_shape,
)
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings


def fused_logits(
    config: NetworkConfig,
    weights: Sequence[Weights],
    strings: TokenStrings,
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape for strings, by their letter counts."""
    if not len(strings):
        return np.empty((len(weights), 0), config.precision)
    tiles = tiles_of(strings, config.precision, special=config.readout != "mean")
    return np.stack([tile_logits(config, member, tiles)[: len(strings)] for member in weights])


def tile_logits(
    config: NetworkConfig, weights: Weights, tiles: Tiles
) -> Float[np.ndarray, " string"]:
    """One model's logits for the strings of one batch in tiles, its padding included."""
    logits = np.empty_like(tiles.targets)
    _, evaluate_tiles = _compile(config)
    evaluate_tiles(
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


def program_of(problem: Problem) -> Program:
    """What trains a model: from letter counts, or from a table of its places."""
    if problem.network.positions == "none":
        return CountsProgram(problem)
    from seqcls.engines.fused.tables import TableProgram

    return TableProgram(problem)


def _compile(config: NetworkConfig) -> tuple[Callable[..., float], Callable[..., float]]:
    """What trains and what evaluates, compiled, for one way of reading the logit."""
    # Each part's machine code is loaded, or made, only where it is used.
    if config.readout == "mean":
        from seqcls.engines.fused import mean

        return mean.train_epoch, mean.evaluate
    from seqcls.engines.fused import kernel

    return kernel.train_epoch, kernel.evaluate


class CountsProgram(Packed):
    """A member's epochs and validation from letter counts."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        super().__init__(network)
        self._problem = problem
        self._shape = training_shape(problem)
        self._precision = network.precision
        self._scratch = np.empty(TILE, integers(network))
        self._train = problem.train
        self._special = network.readout != "mean"
        self._train_epoch, self._evaluate = _compile(network)
        self._validation = epoch_tiles(
            problem.validation, 0, network.precision, special=self._special
        )
        self._logits = np.empty_like(self._validation.targets)

    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        whole = epoch_tiles(self._train, part.number, self._precision, special=self._special)
        tiles = some_batches(whole, part.first, part.last)
        loss = self._train_epoch(flat, *steps, self._shape, self._scratch, *tiles)
        return loss, len(tiles.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        tiles = self._validation[:4]
        model = (flat, self._shape, self._scratch)
        loss = self._evaluate(*model, *tiles, self._logits)
        # Strings stand in their order, and only tiles' ends are empty.
        return loss, all_classified(self._problem, self._logits[self._validation.weights > 0])
