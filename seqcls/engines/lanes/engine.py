"""The engine of lanes as one among others, its programs, and its machine code."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import COUPLED, NetworkConfig
from seqcls.engines.compiled.engine import CompiledEngine
from seqcls.engines.compiled.machine_code import (
    RECURRENT,
    RECURRENT_OUTPUTS,
    TRANSFORMER,
    TRANSFORMER_OUTPUTS,
    is_compiled,
    is_ready,
    mark_compiled,
)
from seqcls.engines.lanes.packing import shapes
from seqcls.kinds import Examples
from seqcls.kinds.base import Scored, Written
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.compiled.engine import Program


# Each part's machine code is loaded, or made, only where it is used.


def program_of(problem: Problem) -> "Program":
    """What trains a model."""
    if problem.network.head != "string":
        return _output_program(problem)
    if problem.network.architecture == "transformer":
        from seqcls.engines.lanes.transformer_program import TransformerProgram

        return TransformerProgram(problem)
    from seqcls.engines.lanes.recurrent_program import RecurrentProgram

    return RecurrentProgram(problem)


def _output_program(problem: Problem) -> "Program":
    if problem.network.architecture == "transformer":
        from seqcls.engines.lanes.transformer_program import TransformerOutputs

        return TransformerOutputs(problem)
    from seqcls.engines.lanes.recurrent_program import RecurrentOutputs

    return RecurrentOutputs(problem)


def lane_scores(problem: Problem, weights: Weights, examples: Examples) -> Scored:
    """What teacher forcing says of inputs and their targets."""
    # Of an input nothing is asked, whatever training asks of it.
    network = problem.network.model_copy(update={"head": "output"})
    if not len(examples):
        nothing = np.zeros(0, np.bool_)
        return Scored(nothing, nothing, np.zeros(0))
    if network.architecture == "transformer":
        from seqcls.engines.lanes.transformer_program import scores as transformer_scores

        results, lesson = transformer_scores(network, weights, problem.task, examples)
    else:
        from seqcls.engines.lanes.recurrent_program import scores as recurrent_scores

        results, lesson = recurrent_scores(network, weights, problem.task, examples)
    losses, missed, inside = (
        values.reshape(-1)[lesson.groups.places]
        for values in (results.losses, results.missed, results.missed_inside)
    )
    return Scored(missed == 0, inside == 0, -losses).answered()


def lane_outputs(
    problem: Problem, weights: Weights, inputs: TokenStrings, limits: Int64[np.ndarray, " string"]
) -> list[Written]:
    """What a model writes for inputs."""
    if not len(inputs):
        return []
    if problem.network.architecture == "transformer":
        from seqcls.engines.lanes.transformer_program import wrote as transformer_wrote

        written = transformer_wrote(problem.network, weights, inputs, limits)
    else:
        from seqcls.engines.lanes.recurrent_program import wrote as recurrent_wrote

        written = recurrent_wrote(problem.network, weights, inputs, limits)
    # A number that is none cannot be the greatest: nothing is written.
    unknown = np.isnan(written.log_probability)
    counts = np.where(unknown, 0, (written.tokens >= 0).sum(axis=1)).tolist()
    rows = zip(
        written.tokens.tolist(),
        counts,
        (written.is_ended & ~unknown).tolist(),
        written.log_probability.tolist(),
        strict=True,
    )
    return [Written(tokens[:count], ended, score) for tokens, count, ended, score in rows]


def lane_logits(
    config: NetworkConfig, weights: Sequence[Weights], strings: TokenStrings
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape."""
    if not len(strings):
        return np.empty((len(weights), 0), np.float32)
    if config.architecture == "transformer":
        from seqcls.engines.lanes.transformer_program import transformer_logits

        return transformer_logits(config, weights, strings)
    from seqcls.engines.lanes.recurrent_program import recurrent_logits

    return recurrent_logits(config, weights, strings)


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
        if problem.lacks("outputs") and (reason := problem.lacks("labels")):
            return reason
        return _not_compiled(problem.network)

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Implements `Engine.prepare`: compiles what has not been compiled here."""
        for part in sorted({part_of(problem.network) for problem in problems}):
            if not is_compiled("float32", part):
                _log.warning("compiling for this machine (%s), once: about 20 seconds", part)
                compile_ahead(part)

    def is_ready(self, problem: Problem) -> bool:
        """Implements `Engine.is_ready`."""
        return is_ready("float32", part_of(problem.network))

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]]:
        """Implements `Engine.parameter_shapes`."""
        if config.architecture == "transformer":
            from seqcls.engines.lanes import transformer_sizes

            return shapes(config, transformer_sizes.slots_of(config))
        from seqcls.engines.lanes import recurrent_sizes

        return shapes(config, recurrent_sizes.slots_of(config))

    def load(self) -> None:
        """Implements `Engine.load`."""
        from seqcls.engines.lanes import batches  # noqa: F401

    def _programs(self) -> "Callable[[Problem], Program]":
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
        return lane_logits(problem.network, weights, strings)

    def score(self, problem: Problem, weights: Weights, examples: Examples) -> Scored:
        """Implements `Writer.score`."""
        return lane_scores(problem, weights, examples)

    def write(
        self,
        problem: Problem,
        weights: Weights,
        inputs: TokenStrings,
        limits: Int64[np.ndarray, " string"],
    ) -> list[Written]:
        """Implements `Writer.write`."""
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


# Machine code of this engine, compiled before processes need it that would each compile.

LEAST: Mapping[str, Mapping[str, str]] = {
    TRANSFORMER: {"task": "parity", "architecture": "transformer"},
    RECURRENT: {"task": "parity", "architecture": "rnn", "readout": "last"},
    TRANSFORMER_OUTPUTS: {"task": "copy", "architecture": "transformer"},
    RECURRENT_OUTPUTS: {"task": "copy", "architecture": "rnn"},
}
"""What makes each part compile all of it."""


def compile_ahead(part: str) -> None:
    """Compiles what training and testing need, so that no other process has to.

    Args:
        part: of the engine, as `seqcls.engines.compiled.machine_code` calls them.
    """
    config = configuration(
        {
            **LEAST[part],
            "train_size": 64,
            "train_max_length": 4,
            "validation_size": 64,
            "validation_max_length": 4,
            "max_num_epochs": 1,
        }
    )
    # Imported where it is used: this is what loads PyTorch and Numba.
    from seqcls.engines.compiled.engine import train_one_by_one
    from seqcls.sampling.streams import stream

    problem = resolve(config)
    (trained,) = train_one_by_one(
        [(problem, 0)],
        None,
        program_of,
        engine="lanes",
        every_epoch=False,
        progress=lambda *_: None,
    )
    if problem.network.head != "string":
        inputs = stream(problem.validation).epoch(0).strings
        lane_outputs(problem, trained.kept_weights, inputs, np.ones(len(inputs), np.int64))
    mark_compiled("float32", part)
