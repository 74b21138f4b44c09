"""The engine of lanes as one among others."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import COUPLED, NetworkConfig
from seqcls.engines.base import Scored, Written
from seqcls.engines.compiled.engine import CompiledEngine
from seqcls.engines.compiled.machine_code import (
    RECURRENT,
    RECURRENT_OUTPUTS,
    TRANSFORMER,
    TRANSFORMER_OUTPUTS,
    is_compiled,
    is_ready,
)
from seqcls.engines.lanes.packing import shapes
from seqcls.kinds import Examples
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tokens.strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.compiled.training import Program

_log = logging.getLogger(__name__)

WIDEST = {"transformer": 128, "rnn": 512, "gru": 512, "lstm": 512}
WIDEST_WRITING = {"transformer": 128, "rnn": 256, "gru": 256, "lstm": 256}
"""By architecture, the widest hidden state that it trains: beyond, PyTorch's matrix products are as
fast. Measured by `benchmarks.plain`, `WIDE`, with 64 strings of 0 to 40 tokens, and where outputs
are written by `benchmarks.outputs`."""

MOST_TOKENS = 64
"""The most tokens of an alphabet: each token type costs as much as a number of the hidden state.
Beside the head of
a Transformer that writes it is little."""

POSITIONS = ("none", "sinusoidal", "learned", "rotary", "alibi", "relative", *COUPLED)


class Lanes(CompiledEngine):
    """One member after another in compiled code, with a string in each lane of a vector."""

    name = "lanes"
    by_counts = False

    def _obstacle(self, problem: Problem) -> str | None:
        if problem.no_language and not problem.writes:
            return problem.no_language
        return _not_compiled(problem.network)

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Implements `Engine.prepare`: compiles what has not been compiled here."""
        for part in sorted({part_of(problem.network) for problem in problems}):
            if not is_compiled("float32", part):
                _log.warning("compiling for this machine (%s), once: about 20 seconds", part)
                from seqcls.engines.lanes import ahead

                ahead.compile_ahead(part)

    def is_ready(self, problem: Problem) -> bool:
        """Implements `Engine.is_ready`."""
        return is_ready("float32", part_of(problem.network))

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]]:
        """Implements `Engine.parameter_shapes`."""
        if config.architecture == "transformer":
            from seqcls.engines.lanes.transformer import sizes as transformer

            return shapes(config, transformer.slots_of(config))
        from seqcls.engines.lanes.recurrent import sizes as recurrent

        return shapes(config, recurrent.slots_of(config))

    def load(self) -> None:
        """Implements `Engine.load`."""
        from seqcls.engines.lanes import groups  # noqa: F401

    def _programs(self) -> "Callable[[Problem], Program]":
        from seqcls.engines.lanes.programs import program_of

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
        from seqcls.engines.lanes.programs import lane_logits

        return lane_logits(problem.network, weights, strings)

    def score(self, problem: Problem, weights: Weights, examples: Examples) -> Scored:
        """Implements `Writer.score`."""
        from seqcls.engines.lanes.programs import lane_scores

        return lane_scores(problem, weights, examples)

    def write(
        self,
        problem: Problem,
        weights: Weights,
        inputs: TokenStrings,
        limits: Int64[np.ndarray, " string"],
    ) -> list[Written]:
        """Implements `Writer.write`."""
        from seqcls.engines.lanes.programs import lane_outputs

        return lane_outputs(problem, weights, inputs, limits)


def part_of(config: NetworkConfig) -> str:
    """The part that trains a network which the engine can train."""
    answers_at_once = config.head == "string"
    if config.architecture == "transformer":
        return TRANSFORMER if answers_at_once else TRANSFORMER_OUTPUTS
    return RECURRENT if answers_at_once else RECURRENT_OUTPUTS


def _not_compiled(config: NetworkConfig) -> str | None:
    if config.architecture not in WIDEST:
        return f"architecture={config.architecture!r} is not compiled"
    if config.positions not in POSITIONS:
        return f"positions={config.positions!r} are not compiled"
    if config.precision != "float32":
        return f"precision={config.precision!r} has half the lanes, and is not compiled"
    if config.dropout_rate > 0:
        return f"dropout_rate={config.dropout_rate} is not compiled"
    writes = config.head != "string"
    if config.num_letters > MOST_TOKENS and not (writes and config.architecture == "transformer"):
        return f"an alphabet of {config.num_letters} tokens: up to {MOST_TOKENS} are compiled"
    widest = (WIDEST_WRITING if writes else WIDEST)[config.architecture]
    if config.hidden_size > widest:
        return f"hidden_size={config.hidden_size}: up to {widest} it is faster than PyTorch"
    if writes:
        return None
    if config.final_norm:
        return "final_norm=True is compiled only where an output is written"
    if config.position_draw != "sorted":
        return f"position_draw={config.position_draw!r} is compiled only where an output is written"
    return None
