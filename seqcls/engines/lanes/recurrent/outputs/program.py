"""Training and scoring recurrent networks that write."""

import numpy as np
from jaxtyping import Int64

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.training import Flat, Update
from seqcls.engines.lanes.outputs import (
    Lesson,
    WrittenOutputs,
    empty_outputs,
    make_blank,
    scored_lesson,
    written_of,
)
from seqcls.engines.lanes.packing import pack, vectors
from seqcls.engines.lanes.recurrent.outputs.teaching import run_outputs
from seqcls.engines.lanes.recurrent.outputs.writing import write
from seqcls.engines.lanes.recurrent.program import GROUPS, most_rows
from seqcls.engines.lanes.recurrent.sizes import parameters_of, sizes_of, slots_of, states_of
from seqcls.engines.lanes.teaching import OutputProgram, Results, Steps
from seqcls.engines.lanes.vectors.target import lanes
from seqcls.kinds import Examples
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tasks import Task
from seqcls.tokens.strings import TokenStrings


class RecurrentOutputs(OutputProgram):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        super().__init__(problem, slots_of(network), parameters_of(network).size, GROUPS)

    def taught(self, flat: Flat, lesson: Lesson, steps: Steps | None) -> Results:
        """Implements `OutputProgram.taught`."""
        return taught(self._network, flat, lesson, steps)


def scores(
    network: NetworkConfig, weights: Weights, task: Task, examples: Examples
) -> tuple[Results, Lesson]:
    """What a model makes of inputs with their targets, and where each stands."""
    flat = pack(slots_of(network), parameters_of(network).size, weights)
    lesson = scored_lesson(network, task, examples, GROUPS)
    return taught(network, flat, lesson, None), lesson


def wrote(
    network: NetworkConfig,
    weights: Weights,
    inputs: TokenStrings,
    limits: Int64[np.ndarray, " string"],
) -> WrittenOutputs:
    """What a model writes for inputs, the likeliest token at every place.

    Args:
        network: one that writes.
        weights: its parameters.
        inputs: any strings.
        limits: tokens of each output at most, at least 1.
    """
    sizes, blank = sizes_of(network), make_blank(network, inputs, limits)
    groups = min(GROUPS, len(blank.begins))
    at = states_of(sizes, groups, groups, training=True)
    kept = 2 * sizes.layers * groups * (sizes.width + 1)
    outputs = empty_outputs(blank)
    write(
        pack(slots_of(network), parameters_of(network).size, weights),
        sizes,
        parameters_of(network),
        at,
        at.size,
        groups,
        vectors(at.size + kept, lanes()),
        outputs,
        np.zeros(sizes.gates * sizes.type_width, np.float32),
    )
    return written_of(network, blank, outputs)


def taught(network: NetworkConfig, flat: Flat, lesson: Lesson, steps: Steps | None) -> Results:
    """Trains on strings, or scores them."""
    strings = lesson.taught.strings
    training = steps is not None
    moments, done, update = steps or (np.zeros((2, 0), np.float32), 0, Update(0.0, 0.0, 0.0))
    sizes = sizes_of(network)
    count, _, width = strings.ids.shape
    at = states_of(sizes, *most_rows(strings), training=training)
    table = np.zeros(sizes.gates * sizes.type_width, np.float32)
    losses = np.zeros((count, width))
    missed, missed_inside = np.zeros((2, count, width), np.int64)
    loss: float = run_outputs(
        training,
        flat,
        np.zeros_like(flat) if training else flat[:0],
        moments,
        done,
        update,
        sizes,
        parameters_of(network),
        at,
        vectors(at.size, lanes()),
        lesson.taught,
        table,
        np.zeros_like(table),
        losses,
        missed,
        missed_inside,
    )
    return Results(loss, losses, missed, missed_inside)
