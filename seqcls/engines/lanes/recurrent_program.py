"""Training and answering with recurrent networks, those that write among them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import Flat, Update
from seqcls.engines.lanes.batches import (
    Groups,
    LaneStrings,
    Lesson,
    OutputProgram,
    Results,
    Steps,
    WrittenOutputs,
    answering_groups,
    empty_outputs,
    epoch_groups,
    make_blank,
    scored_lesson,
    validation_groups,
    written_of,
)
from seqcls.engines.lanes.packing import PackedProgram, pack, vectors
from seqcls.engines.lanes.recurrent_kernel import run
from seqcls.engines.lanes.recurrent_outputs import run_outputs, write
from seqcls.engines.lanes.recurrent_sizes import parameters_of, sizes_of, slots_of, states_of
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds import Examples
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks import Task

GROUPS = 8
"""Groups that are answered together: enough to make use of each weight that is loaded."""


class RecurrentProgram(PackedProgram):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        super().__init__(network, slots_of(network), parameters_of(network).size)
        self._train = problem.train
        self._scaled = problem.config.train_loss == "sigmoid_scaled"
        self._validation = validation_groups(self._network.readout, problem.validation, GROUPS)

    def epoch(
        self, flat: Flat, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Implements `Program.epoch`."""
        groups = epoch_groups(self._network.readout, self._train, number)
        loss, _ = answered(self._network, flat, groups, moments, steps, update, self._scaled)
        return loss, len(groups.strings.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""
        return answered(self._network, flat, self._validation, scaled=self._scaled)[0], False


def answered(
    network: NetworkConfig,
    flat: Flat,
    groups: Groups,
    moments: np.ndarray | None = None,
    steps: int = 0,
    update: Update | None = None,
    scaled: bool = False,
) -> tuple[float, Float[np.ndarray, "group lane"]]:
    """The sum of the losses of strings and their logits; trains on them if moments are given."""
    training = moments is not None
    sizes = sizes_of(network, scaled_loss=scaled)
    strings = groups.strings
    at = states_of(sizes, *most_rows(strings))
    logits = np.empty(strings.targets.shape, np.float32)
    table = np.zeros(sizes.gates * sizes.type_width, np.float32)
    loss: float = run(
        training,
        flat,
        np.zeros_like(flat) if training else flat[:0],
        np.zeros((2, 0), np.float32) if moments is None else moments,
        steps,
        Update(0.0, 0.0, 0.0) if update is None else update,
        sizes,
        parameters_of(network),
        at,
        vectors(at.size, lanes()),
        groups.strings,
        table,
        np.zeros_like(table),
        logits,
    )
    return loss, logits


def most_rows(strings: LaneStrings) -> tuple[int, int]:
    """The most that a batch has: tokens of all its groups, and groups."""
    sums = np.concatenate([[0], np.cumsum(strings.lengths.max(axis=1))])
    starts = np.concatenate([[0], strings.ends[:-1]])
    rows = int((sums[strings.ends] - sums[starts]).max(initial=0))
    return rows, int((strings.ends - starts).max(initial=0))


def logits(
    network: NetworkConfig, weights: Sequence[Weights], strings: TokenStrings
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape."""
    groups = answering_groups(network.readout, strings, GROUPS)
    slots, size = slots_of(network), parameters_of(network).size
    rows = [answered(network, pack(slots, size, x), groups)[1] for x in weights]
    return np.stack([logits.reshape(-1)[groups.places] for logits in rows])


# Training and scoring recurrent networks that write.


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


def program_of(problem: Problem) -> "RecurrentProgram | RecurrentOutputs":
    """What trains a model."""
    if problem.network.head == "string":
        return RecurrentProgram(problem)
    return RecurrentOutputs(problem)
