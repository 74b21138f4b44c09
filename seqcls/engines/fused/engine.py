"""The fused engine: one block that reads letter counts, in compiled code from counts to AdamW.

It makes the arguments of its kernels: a network's shape, its parameters in one array, and strings
in tiles. Numba is loaded where it is needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.engines.compiled.engine import (
    CompiledEngine,
    Flat,
    Program,
    Steps,
    all_classified,
    tiles_between,
)
from seqcls.engines.compiled.machine_code import FUSED
from seqcls.engines.compiled.parameters import EMBEDDING, Axis, Parameters
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings


class Fused(CompiledEngine):
    """The engine that trains one member after another in compiled code, from letter counts."""

    name = "fused"
    precisions = ("float32", "float64")
    part = FUSED
    compiling = "compiling for this machine ({precision}), once: about a minute"

    def obstacle(self, problem: Problem, device: str) -> str | None:
        reason = super().obstacle(problem, device) or problem.lacks("labels")
        return reason or _why_not_compiled(problem.network)

    def reads_counts(self, problem: Problem) -> bool:
        return True

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]]:
        return parameters_of(config).shapes()

    def load(self) -> None:
        import seqcls.engines.fused.kernel  # noqa: F401

    def program_of(self, problem: Problem) -> Program:
        return CountsProgram(problem)

    def logits(
        self,
        problem: Problem,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string"]:
        config = problem.network
        if not len(strings):
            return np.empty((len(weights), 0), config.precision)
        from seqcls.engines.fused.kernel import evaluate

        tiles, shape = _tiles_of(strings, config.precision), shape_of(config)
        logits = np.empty((len(weights), *tiles.targets.shape), config.precision)
        for flat, own in zip(map(parameters_of(config).pack, weights), logits, strict=True):
            evaluate(flat, shape, *tiles[:4], own)
        # All strings are one batch, so that only the last tile's end is padding.
        return logits.reshape(len(weights), -1)[:, : len(strings)]


_ONE_BLOCK: Mapping[str, tuple[object, ...]] = {
    "num_blocks": (1,),
    "activation": ("gelu", "relu"),
    "final_norm": (False,),
    "attention_scale": ("sqrt", "log_length"),
    "readout": ("first", "last"),
}
"""The values of settings that the kernels support: one block, of which one token is read."""


def _why_not_compiled(config: NetworkConfig) -> str | None:
    # The last token, which is read, attends to all tokens with a causal mask too.
    full = {"attention_mask": "full"} if config.readout == "last" else {}
    if (reason := counts_suffice(config.model_copy(update=full), training=True)) is not None:
        return reason
    for field, known in _ONE_BLOCK.items():
        if (value := getattr(config, field)) not in known:
            return f"{field}={value!r} is not compiled by letter counts in one block"
    if config.norm_placement == "post" and config.has_norms:
        return "norm_placement='post' is not compiled by letter counts in one block"
    return None


# A network as arguments of compiled code: sizes and switches, and parameters in one array.

NORMS = {"none": 0, "rms": 1, "nn": 2}


class Shape(NamedTuple):
    """The sizes and switches of a network, for compiled code."""

    token_types: int
    hidden: int
    heads: int
    head_size: int
    feed_forward: int
    first_type: int
    """0 where CLS attends to itself, else 1."""
    norm: int
    """A value of `NORMS`."""
    eps: float
    scaled_loss: bool
    log_length: bool
    relu: bool
    biases: bool


def shape_of(config: NetworkConfig, *, scaled_loss: bool = False) -> Shape:
    """Returns the sizes and switches of a network."""
    return Shape(
        token_types=config.num_letters + 1,
        hidden=config.hidden_size,
        heads=config.num_attention_heads,
        head_size=config.attention_head_size,
        feed_forward=config.feed_forward_size,
        first_type=int(config.no_attend_cls),
        norm=NORMS[config.layer_norm if config.has_norms else "none"],
        eps=config.layer_norm_eps,
        scaled_loss=scaled_loss,
        log_length=config.attention_scale == "log_length",
        relu=config.activation == "relu",
        biases=config.biases,
    )


@lru_cache
def parameters_of(config: NetworkConfig) -> Parameters:
    """Returns the parameters, with memory for norms and biases that the network lacks."""
    parameters = Parameters(config)
    for name, shape in _slots(config):
        axes = (Axis(np.arange(size), size) for size in shape)
        parameters.take(name if _has(config, name) else None, *axes)
    return parameters


def _slots(config: NetworkConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yields names and shapes in the order of `forward.Parameters`."""
    hidden, inner = config.hidden_size, config.feed_forward_size
    heads = config.num_attention_heads * config.attention_head_size
    yield EMBEDDING, (config.num_letters + 1, hidden)
    yield "blocks.0.attention_norm.weight", (hidden,)
    yield "blocks.0.attention_norm.bias", (hidden,)
    for name in ("query", "key", "value"):
        yield f"blocks.0.attention.{name}.weight", (heads, hidden)
    yield "blocks.0.attention.output.weight", (hidden, heads)
    yield "blocks.0.feed_forward_norm.weight", (hidden,)
    yield "blocks.0.feed_forward_norm.bias", (hidden,)
    yield "blocks.0.feed_forward.input.weight", (inner, hidden)
    yield "blocks.0.feed_forward.output.weight", (hidden, inner)
    yield "classifier.weight", (1, hidden)
    if config.biases:
        for name in ("query", "key", "value"):
            yield f"blocks.0.attention.{name}.bias", (heads,)
        yield "blocks.0.attention.output.bias", (hidden,)
        yield "blocks.0.feed_forward.input.bias", (inner,)
        yield "blocks.0.feed_forward.output.bias", (hidden,)
        yield "classifier.bias", (1,)


def _has(config: NetworkConfig, name: str) -> bool:
    if name.endswith("norm.weight"):
        return config.has_norms
    if name.endswith("norm.bias"):
        return config.has_norms and config.layer_norm == "nn"
    return True


# Strings as letter counts, in tiles of strings.


class Tiles(NamedTuple):
    """Strings in tiles; a batch begins with a new tile, and its last one may not be full."""

    counts: Float[np.ndarray, "tile token_type string"]
    """Token types are CLS, which occurs once, and the letters."""
    factors: Float[np.ndarray, "tile string"]
    """The logarithm of the number of tokens that the model reads."""
    targets: Float[np.ndarray, "tile string"]
    weights: Float[np.ndarray, "tile string"]
    """One over the size of the batch; 0 where there is no string."""
    ends: Int64[np.ndarray, " batch"]
    """The end of each batch's tiles, exclusive."""


def make_tiles(
    counts: Int64[np.ndarray, "string letter"],
    positive: Bool[np.ndarray, " string"],
    batch_size: int,
    precision: str,
) -> Tiles:
    """Arranges strings in tiles, `batch_size` strings in a batch; the last batch may be short.

    Args:
        precision: the type of all numbers.
    """
    from seqcls.engines.fused.forward import TILE

    batches, within = np.divmod(np.arange(len(counts)), batch_size)
    sizes = np.bincount(batches)
    tiles = -(-sizes // TILE)
    # The index of each string: one after another from its batch's first tile on.
    place = batches * tiles[0] * TILE + within
    tiled_size = int(tiles.sum()) * TILE
    columns = np.zeros((counts.shape[1] + 1, tiled_size), precision)
    columns[0] = 1
    columns[1:, place] = counts.T
    targets = np.zeros(tiled_size, precision)
    targets[place] = positive
    weights = np.zeros(tiled_size, precision)
    weights[place] = 1 / sizes[batches]
    factors = np.log(columns.sum(axis=0))
    shaped = columns.reshape(len(columns), -1, TILE).transpose(1, 0, 2)
    return Tiles(
        np.ascontiguousarray(shaped),
        factors.reshape(-1, TILE),
        targets.reshape(-1, TILE),
        weights.reshape(-1, TILE),
        np.cumsum(tiles),
    )


@remembered
def epoch_tiles(sampler: Sampler, epoch: int, precision: str) -> Tiles:
    """Returns an epoch of a stream in tiles, made once for all members that read it."""
    drawn = stream(sampler).epoch(epoch)
    return make_tiles(drawn.strings.counts, drawn.labels, sampler.batch_size, precision)


@lru_cache(maxsize=2)
def _tiles_of(strings: TokenStrings, precision: str) -> Tiles:
    """Returns strings without labels in tiles, made once for all models that are tested on them.

    Two sets are cached, by object: the strings of the test, and those that represent all strings.
    """
    unknown = np.zeros(len(strings), dtype=bool)
    return make_tiles(strings.counts, unknown, len(strings), precision)


# Training and evaluation.


class CountsProgram:
    """The epochs and validation of a member that reads letter counts."""

    rng: np.random.Generator | None = None

    def __init__(self, problem: Problem) -> None:
        self._problem, self._network = problem, problem.network
        self.parameters = parameters_of(problem.network)
        scaled = problem.config.train_loss == "sigmoid_scaled"
        self._shape = shape_of(self._network, scaled_loss=scaled)
        self._validation = epoch_tiles(problem.validation, 0, self._network.precision)
        self._logits = np.empty_like(self._validation.targets)

    def epoch(
        self, flat: Flat, steps: Steps, epoch: int, first: int = 0, last: int | None = None
    ) -> tuple[float, int]:
        from seqcls.engines.fused.kernel import train_epoch

        *by_tile, ends = epoch_tiles(self._problem.train, epoch, self._network.precision)
        tiles = tiles_between(ends, first, last)
        ends = ends[first:last] - tiles.start
        strings = (x[tiles] for x in by_tile)
        loss: float = train_epoch(flat, *steps, self._shape, *strings, ends)
        return loss, len(ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        from seqcls.engines.fused.kernel import evaluate

        tiles = self._validation[:4]
        loss: float = evaluate(flat, self._shape, *tiles, self._logits)
        # Strings are in order, and only the last tile's end is padding.
        return loss, all_classified(self._problem, self._logits[self._validation.weights > 0])
