"""The fused engine as one among others, and its machine code."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import CompiledEngine
from seqcls.engines.compiled.machine_code import (
    FUSED,
    MEAN,
    TABLES,
    is_compiled,
    is_ready,
    mark_compiled,
)
from seqcls.engines.fused.packing import ADDED, SCHEMES, parameter_shapes
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.compiled.engine import Program


_log = logging.getLogger(__name__)


class Fused(CompiledEngine):
    """One member after another, each in compiled code from counts or places to AdamW."""

    name = "fused"
    by_counts = True

    def _obstacle(self, problem: Problem) -> str | None:
        return problem.lacks("labels") or _not_compiled(problem.network)

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Implements `Engine.prepare`: compiles what has not been compiled here."""
        networks = [problem.network for problem in problems]
        for precision, part in sorted({(x.precision, part_of(x)) for x in networks}):
            if not is_compiled(precision, part):
                _log.warning("compiling for this machine (%s), once: about a minute", precision)
                compile_ahead(precision, part)

    def is_ready(self, problem: Problem) -> bool:
        """Implements `Engine.is_ready`."""
        return is_ready(problem.network.precision, part_of(problem.network))

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]]:
        """Implements `Engine.parameter_shapes`."""
        return parameter_shapes(config)

    def load(self) -> None:
        """Implements `Engine.load`."""
        import seqcls.engines.fused.training  # noqa: F401

    def _programs(self) -> "Callable[[Problem], Program]":
        from seqcls.engines.fused.training import program_of

        return program_of

    def logits(
        self,
        problem: Problem,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string"]:
        """Implements `Engine.logits`."""
        del device
        from seqcls.engines.fused.training import fused_logits

        network = problem.network
        if network.positions == "none":
            return fused_logits(network, weights, strings)
        from seqcls.engines.fused.packing import pack
        from seqcls.engines.fused.tables import table_logits

        return table_logits(network, [pack(network, member) for member in weights], strings)


def part_of(config: NetworkConfig) -> str:
    """The part that trains a network which the engine can train."""
    if config.readout == "mean":
        return MEAN
    return FUSED if config.positions == "none" else TABLES


def _not_compiled(config: NetworkConfig) -> str | None:
    if config.architecture != "transformer":
        return f"architecture={config.architecture!r} is not compiled"
    if config.num_blocks > 1:
        return f"num_blocks={config.num_blocks}: one block is compiled"
    if config.dropout_rate > 0:
        return f"dropout_rate={config.dropout_rate} makes equal letters differ"
    if config.activation not in ("gelu", "relu"):
        return f"activation={config.activation!r} is not compiled"
    if config.final_norm:
        return "final_norm=True is not compiled"
    if config.position_draw != "sorted":
        return f"position_draw={config.position_draw!r} is not compiled"
    if config.readout == "mean" and config.attention_mask == "causal":
        return "readout='mean' with attention_mask='causal' is not compiled"
    if config.norm_placement == "post" and config.has_norms:
        return "norm_placement='post' is not compiled"
    # At the end, where it is read, one block with a causal mask has seen all, as without one.
    return None if config.positions == "none" else _places_not_compiled(config)


def _places_not_compiled(config: NetworkConfig) -> str | None:
    if config.readout == "mean":
        return f"readout='mean' with positions={config.positions!r} is not compiled"
    if config.positions not in SCHEMES:
        return f"positions={config.positions!r} are not compiled"
    if config.readout == "last" and config.positions in ADDED:
        return f"readout='last' with positions={config.positions!r} is not compiled"
    if config.readout == "last" and config.position_range:
        return f"readout='last' with position_range={config.position_range} is not compiled"
    return None


# Machine code of the fused engine, compiled before processes need it that would each compile.


def compile_ahead(precision: str, part: str) -> None:
    """Compiles what training and testing at a precision need, so that no other process has to.

    Args:
        precision: `float32` or `float64`.
        part: of the engine, as `seqcls.engines.compiled.machine_code` calls them.
    """
    config = configuration(
        {
            "precision": precision,
            "positions": "alibi" if part == TABLES else "none",
            "readout": "mean" if part == MEAN else "first",
            "train_size": 64,
            "validation_size": 64,
            "max_num_epochs": 1,
        }
    )
    # Imported where it is used: this is what loads PyTorch and Numba.
    from seqcls.engines.compiled.engine import train_one_by_one
    from seqcls.engines.fused.training import program_of

    train_one_by_one(
        [(resolve(config), 0)],
        None,
        program_of,
        engine="fused",
        every_epoch=False,
        progress=lambda *_: None,
    )
    mark_compiled(precision, part)
