"""Which compiled program trains a network, and answers for it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.engines.base import Scored, Written
from seqcls.kinds import Examples
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tokens.strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.compiled.training import Program

# Each part's machine code is loaded, or made, only where it is used.


def program_of(problem: Problem) -> "Program":
    """What trains a model."""
    if problem.writes:
        return _output_program(problem)
    if problem.network.architecture == "transformer":
        from seqcls.engines.lanes.transformer.program import TransformerProgram

        return TransformerProgram(problem)
    from seqcls.engines.lanes.recurrent.program import RecurrentProgram

    return RecurrentProgram(problem)


def _output_program(problem: Problem) -> "Program":
    if problem.network.architecture == "transformer":
        from seqcls.engines.lanes.transformer.outputs.program import TransformerOutputs

        return TransformerOutputs(problem)
    from seqcls.engines.lanes.recurrent.outputs.program import RecurrentOutputs

    return RecurrentOutputs(problem)


def lane_scores(problem: Problem, weights: Weights, examples: Examples) -> Scored:
    """What teacher forcing says of inputs and their targets."""
    # Of an input nothing is asked, whatever training asks of it.
    network = problem.network.model_copy(update={"head": "output"})
    if not len(examples):
        nothing = np.zeros(0, np.bool_)
        return Scored(nothing, nothing, np.zeros(0))
    if network.architecture == "transformer":
        from seqcls.engines.lanes.transformer.outputs.program import scores as transformer_scores

        results, lesson = transformer_scores(network, weights, problem.task, examples)
    else:
        from seqcls.engines.lanes.recurrent.outputs.program import scores as recurrent_scores

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
        from seqcls.engines.lanes.transformer.outputs.program import wrote as transformer_wrote

        written = transformer_wrote(problem.network, weights, inputs, limits)
    else:
        from seqcls.engines.lanes.recurrent.outputs.program import wrote as recurrent_wrote

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
        from seqcls.engines.lanes.transformer.program import transformer_logits

        return transformer_logits(config, weights, strings)
    from seqcls.engines.lanes.recurrent.program import recurrent_logits

    return recurrent_logits(config, weights, strings)
