"""Training and scoring Transformers that write."""

import numpy as np
from jaxtyping import Int64

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.training import Flat, Update
from seqcls.engines.lanes.outputs import (
    Blank,
    Lesson,
    WrittenOutputs,
    empty_outputs,
    make_blank,
    scored_lesson,
    written_of,
)
from seqcls.engines.lanes.packing import pack, vectors
from seqcls.engines.lanes.teaching import OutputProgram, Results, Steps
from seqcls.engines.lanes.transformer.outputs.places import (
    NONE,
    LanePlaces,
    coupled_with_outputs,
    drawn_offsets,
    in_lanes,
    needs_lanes,
    places_without_draws,
    shifted,
)
from seqcls.engines.lanes.transformer.outputs.teaching import run_outputs
from seqcls.engines.lanes.transformer.outputs.writing import write, written_states_of
from seqcls.engines.lanes.transformer.program import GROUPS, fixed_places
from seqcls.engines.lanes.transformer.sizes import (
    parameters_of,
    score_factor,
    sizes_of,
    slots_of,
    states_of,
)
from seqcls.engines.lanes.vectors.target import lanes
from seqcls.kinds import Examples
from seqcls.models.positions.numbers import training_generator
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tasks import Task
from seqcls.tokens.strings import TokenStrings


class TransformerOutputs(OutputProgram):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        super().__init__(problem, slots_of(network), parameters_of(network).size, GROUPS)
        self.rng = training_generator(problem.config.train_seed)

    def taught(self, flat: Flat, lesson: Lesson, steps: Steps | None) -> Results:
        """Implements `OutputProgram.taught`."""
        network = self._network
        if steps is None or not needs_lanes(network):
            return taught(network, flat, lesson, tested_lanes(network, lesson), steps)
        assert self.rng is not None
        places = places_without_draws(network, lesson, drawn=True)
        offsets = drawn_offsets(network, self.rng, places, lesson, self._train.batch_size)
        moved = shifted(network, places, offsets)
        by_lane = in_lanes(network, moved, *lesson.lanes_of_strings)
        return taught(network, flat, lesson, by_lane, steps)


def scores(
    network: NetworkConfig, weights: Weights, task: Task, examples: Examples
) -> tuple[Results, Lesson]:
    """What a model makes of inputs with their targets, and where each stands."""
    flat = pack(slots_of(network), parameters_of(network).size, weights)
    lesson = scored_lesson(network, task, examples, GROUPS)
    return taught(network, flat, lesson, tested_lanes(network, lesson), None), lesson


GROUPS_WRITTEN = 4
"""Groups whose outputs are written together."""


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
        inputs: strings that it has places for.
        limits: tokens of each output at most, at least 1.
    """
    sizes, blank = sizes_of(network), make_blank(network, inputs, limits)
    tokens = blank.tokens
    at = written_states_of(sizes, tokens, min(GROUPS_WRITTEN, len(blank.begins)))
    outputs = empty_outputs(blank)
    factors = np.full(tokens, score_factor(network))
    if sizes.log_length:
        factors *= np.log(np.arange(1, tokens + 1))
    write(
        pack(slots_of(network), parameters_of(network).size, weights),
        sizes,
        parameters_of(network),
        at,
        vectors(at.size, lanes()),
        outputs,
        fixed_places(network, 1, tokens),
        _places_written(network, blank, inputs),
        factors.astype(np.float32),
    )
    return written_of(network, blank, outputs)


def _places_written(network: NetworkConfig, blank: Blank, inputs: TokenStrings) -> LanePlaces:
    """The places of inputs and of all tokens that may be written."""
    if not needs_lanes(network):
        return NONE
    if network.coupling:
        places = coupled_with_outputs(network, inputs, blank.tokens)
    else:
        places = np.broadcast_to(np.arange(blank.tokens), (len(inputs), blank.tokens))
    return in_lanes(network, places, blank.places, len(blank.begins))


def tested_lanes(network: NetworkConfig, lesson: Lesson) -> LanePlaces:
    """The places of strings when nothing is learned."""
    if not needs_lanes(network):
        return NONE
    return in_lanes(network, places_without_draws(network, lesson), *lesson.lanes_of_strings)


def taught(
    network: NetworkConfig,
    flat: Flat,
    lesson: Lesson,
    by_lane: LanePlaces,
    steps: Steps | None,
) -> Results:
    """Trains on strings, or scores them, at these places."""
    strings = lesson.taught.strings
    training = steps is not None
    moments, done, update = steps or (np.zeros((2, 0), np.float32), 0, Update(0.0, 0.0, 0.0))
    sizes = sizes_of(network)
    count, tokens, _ = strings.ids.shape
    at = states_of(sizes, tokens, training=training)
    losses = np.zeros(strings.lengths.shape)
    missed = np.zeros(losses.shape, np.int64)
    missed_inside = np.zeros_like(missed)
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
        fixed_places(network, count, tokens),
        by_lane,
        np.float32(score_factor(network)),
        losses,
        missed,
        missed_inside,
    )
    return Results(loss, losses, missed, missed_inside)
