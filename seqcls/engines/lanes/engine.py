"""The engine `lanes`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.engines.compiled.engine import CompiledEngine, Program
from seqcls.engines.compiled.machine_code import TAPE
from seqcls.engines.lanes.programs import parameters_of
from seqcls.kinds import Examples
from seqcls.kinds.base import Scored, Written
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings

if TYPE_CHECKING:
    from seqcls.engines.lanes.cell import LaneCell


def cell_of(config: NetworkConfig) -> "LaneCell":
    """Returns a network for compiled code, whose module is imported here."""
    from seqcls.engines.lanes.cell import LaneCell

    return LaneCell(config)


class Lanes(CompiledEngine):
    """The engine that trains one member after another, with a string in each lane of a vector.

    Embeddings are products with those of all letters, so that one letter's infinity makes NaN of
    the others. Strings with such outputs are evaluated again by the readable model.
    """

    name = "lanes"
    precisions = ("float32",)
    part = TAPE
    # Short strings, since compiling ahead also trains a model.
    least: ClassVar[Mapping[str, Any]] = {
        "task": "copy", "train_max_length": 4, "validation_max_length": 4,
    }  # fmt: skip
    compiling = "compiling for this machine (lanes), once: about a minute"

    def obstacle(self, problem: Problem, device: str) -> str | None:
        if (reason := super().obstacle(problem, device)) is not None:
            return reason
        others = problem.lacks("outputs") and not problem.at_places
        if others and (reason := problem.lacks("labels")):
            return reason
        config = problem.network
        for part in (MODELS[config.architecture], POSITIONS[config.positions]):
            if (reason := part.not_compiled(config)) is not None:
                return reason
        if config.precision != "float32":
            return f"precision={config.precision!r} has half the lanes, and is not compiled"
        if config.dropout_rate > 0:
            return f"dropout_rate={config.dropout_rate} is not compiled"
        return None

    def reads_counts(self, problem: Problem) -> bool:
        labels = problem.lacks("labels") is None
        return labels and counts_suffice(problem.network, training=True) is None

    def parameter_shapes(self, config: NetworkConfig) -> Mapping[str, tuple[int, ...]]:
        return parameters_of(config).shapes()

    def load(self) -> None:
        from seqcls.engines.lanes import batches  # noqa: F401

    def program_of(self, problem: Problem) -> Program:
        from seqcls.engines.lanes.cell import LaneProgram

        return LaneProgram(problem)

    def logits(
        self,
        problem: Problem,
        weights: Sequence[Weights],
        strings: TokenStrings,
        *,
        device: str,
    ) -> Float[np.ndarray, "member string *output"]:
        logits = cell_of(problem.network).logits(weights, problem.task, strings)
        if problem.at_places:
            there = np.arange(logits.shape[2]) <= strings.lengths[:, None]
            is_unknown = (np.isnan(logits).any(axis=(0, 3)) & there).any(axis=1)
        else:
            is_unknown = np.isnan(logits).any(axis=0)
        unknown = np.flatnonzero(is_unknown)
        if len(unknown):
            from seqcls.engines.pytorch.engine import PyTorchStrings

            some = strings.take(unknown)
            answers = PyTorchStrings().logits(problem, weights, some, device=device)
            if problem.at_places:
                logits[:, unknown, : answers.shape[2]] = answers
            else:
                logits[:, unknown] = answers
        return logits

    def score(self, problem: Problem, weights: Weights, examples: Examples) -> Scored:
        # Only the output is scored, although training may predict the input too.
        network = problem.network.model_copy(update={"head": "output"})
        return cell_of(network).score(weights, problem.task, examples)

    def write(
        self,
        problem: Problem,
        weights: Weights,
        inputs: TokenStrings,
        limits: Int64[np.ndarray, " string"],
    ) -> list[Written]:
        if not len(inputs):
            return []
        return cell_of(problem.network).outputs(weights, inputs, limits)
