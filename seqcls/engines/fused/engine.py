"""The fused engine as one among others."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import CompiledEngine
from seqcls.engines.compiled.machine_code import FUSED, MEAN, TABLES
from seqcls.engines.fused.packing import ADDED, SCHEMES, parameter_shapes
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.compiled.engine import Program


class Fused(CompiledEngine):
    """One member after another, each in compiled code from counts or places to AdamW."""

    name = "fused"
    by_counts = True
    precisions = ("float32", "float64")
    least: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        TABLES: {"positions": "alibi"},
        FUSED: {},
        MEAN: {"readout": "mean"},
    }
    compiling = "compiling for this machine ({precision}), once: about a minute"

    def _obstacle(self, problem: Problem) -> str | None:
        return problem.lacks("labels") or _why_not_compiled(problem.network)

    def part_of(self, config: NetworkConfig) -> str:
        if config.readout == "mean":
            return MEAN
        return FUSED if config.positions == "none" else TABLES

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]]:
        return parameter_shapes(config)

    def load(self) -> None:
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
        from seqcls.engines.fused.training import fused_logits

        network = problem.network
        if network.positions == "none":
            return fused_logits(network, weights, strings)
        from seqcls.engines.fused.packing import pack
        from seqcls.engines.fused.tables import table_logits

        return table_logits(network, [pack(network, member) for member in weights], strings)


def _why_not_compiled(config: NetworkConfig) -> str | None:
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
    if config.attention_scale == "learned_log_length":
        return "attention_scale='learned_log_length' is not compiled"
    if config.position_draw != "sorted":
        return f"position_draw={config.position_draw!r} is not compiled"
    if config.readout == "last_letter":
        return "readout='last_letter' is not compiled"
    if config.readout == "mean" and config.attention_mask == "causal":
        return "readout='mean' with attention_mask='causal' is not compiled"
    if config.norm_placement == "post" and config.has_norms:
        return "norm_placement='post' is not compiled"
    # At the end, where it is read, one block with a causal mask has seen all, as without one.
    return None if config.positions == "none" else _why_positions_not_compiled(config)


def _why_positions_not_compiled(config: NetworkConfig) -> str | None:
    if config.readout == "mean":
        return f"readout='mean' with positions={config.positions!r} is not compiled"
    if config.positions not in SCHEMES:
        return f"positions={config.positions!r} are not compiled"
    if config.readout == "last" and config.positions in ADDED:
        return f"readout='last' with positions={config.positions!r} is not compiled"
    if config.readout == "last" and config.position_range:
        return f"readout='last' with position_range={config.position_range} is not compiled"
    return None
