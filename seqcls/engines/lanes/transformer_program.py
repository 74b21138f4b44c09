"""Training and answering with Transformers, those that write among them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int16, Int64

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import Flat, Update
from seqcls.engines.lanes.batches import (
    Blank,
    Groups,
    Lesson,
    OutputProgram,
    Results,
    Steps,
    WrittenOutputs,
    answering_groups,
    coupled_of,
    empty_outputs,
    epoch_groups,
    make_blank,
    scored_lesson,
    validation_groups,
    written_of,
)
from seqcls.engines.lanes.packing import PackedProgram, filled, pack, vectors
from seqcls.engines.lanes.transformer_kernel import PositionArrays, run
from seqcls.engines.lanes.transformer_outputs import run_outputs, write, written_states_of
from seqcls.engines.lanes.transformer_sizes import (
    parameters_of,
    score_factor,
    sizes_of,
    slots_of,
    states_of,
)
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds import Examples
from seqcls.kinds.transduction import separator_id
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import (
    angles,
    buckets,
    drawn_places,
    slopes,
    tested_places,
    training_generator,
    waves,
)
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER
from seqcls.tasks import Task

# What the places of tokens mean in each scheme, in NumPy; PyTorch is not loaded.
#
# The definitions are those of `seqcls.models.positions`, and tested so.


def make_places(
    config: NetworkConfig,
    rows: Int64[np.ndarray, " group"],
    places: Sequence[Int64[np.ndarray, " _"]],
    tokens: int,
) -> PositionArrays:
    """The places of strings in groups.

    Args:
        config: the network.
        rows: of each group, which of `places` are its tokens'.
        places: one after another, or drawn at random.
        tokens: of the longest string, filled up.
    """
    numbers = np.zeros((len(places), tokens), np.int64)
    for row, drawn in zip(numbers, places, strict=True):
        row[: len(drawn)] = drawn[:tokens]
    scheme = config.positions
    added = cosines = sines = np.zeros((1, 1, 1), np.float32)
    distances, slope = np.zeros(1, np.int64), np.zeros(1, np.float32)
    if scheme == "sinusoidal":
        added = np.zeros((*numbers.shape, filled(config.hidden_size)), np.float32)
        added[:, :, : config.hidden_size] = waves(numbers, config.hidden_size)
    elif scheme == "learned":
        # Beyond the table there is only padding: strings that are longer are not asked about.
        numbers = np.minimum(numbers, (table_size(config) or 1) - 1)
    elif scheme == "rotary":
        turned = angles(numbers, config.attention_head_size)
        cosines, sines = np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32)
    elif scheme == "alibi":
        slope = np.array(slopes(config.num_attention_heads), np.float32)
    elif scheme == "relative":
        both = config.attention_mask == "full"
        distances = buckets(np.arange(-tokens, tokens + 1), both_directions=both)
    return PositionArrays(rows, numbers, added, cosines, sines, distances, slope)


GROUPS = 64
"""Groups of a batch that is answered: any number, since each goes through the network alone."""


def _alike(network: NetworkConfig) -> bool:
    """Whether the strings of a group have to be of one length, whose places are drawn for it."""
    return network.position_range > 0


class TransformerProgram(PackedProgram):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        network = problem.network
        super().__init__(network, slots_of(network), parameters_of(network).size)
        self._train = problem.train
        self._scaled = problem.config.train_loss == "sigmoid_scaled"
        self.rng = training_generator(problem.config.train_seed)
        self._validation = validation_groups(
            self._network.readout, problem.validation, GROUPS, alike=_alike(self._network)
        )
        self._validation_places = answering_places(self._network, self._validation)

    def epoch(
        self, flat: Flat, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Implements `Program.epoch`."""
        groups = epoch_groups(self._network.readout, self._train, number)
        loss, _ = answered(
            self._network, flat, groups, self._places(groups), moments, steps, update, self._scaled
        )
        return loss, len(groups.strings.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""
        strings, places = self._validation, self._validation_places
        return answered(self._network, flat, strings, places, scaled=self._scaled)[0], False

    def _places(self, groups: Groups) -> PositionArrays:
        strings = groups.strings
        count, tokens, _ = strings.ids.shape
        if not self._network.position_range:
            return fixed_places(self._network, count, tokens)
        starts = np.concatenate([[0], strings.ends[:-1]])
        # The longest strings of a batch stand in its first group.
        longest = strings.lengths[starts].max(axis=1).tolist()
        assert self.rng is not None
        drawn = [drawn_places(self.rng, self._network.position_range, x) for x in longest]
        rows = np.repeat(np.arange(len(drawn)), np.diff(strings.ends, prepend=0))
        return make_places(self._network, rows, drawn, tokens)


@remembered
def fixed_places(network: NetworkConfig, groups: int, tokens: int) -> PositionArrays:
    """The places of tokens one after another, the same for all groups."""
    return make_places(network, np.zeros(groups, np.int64), [np.arange(tokens)], tokens)


def answering_places(network: NetworkConfig, groups: Groups) -> PositionArrays:
    """The places of strings when nothing is learned."""
    count, tokens, _ = groups.strings.ids.shape
    if not network.position_range:
        return fixed_places(network, count, tokens)
    # All strings of a group have the same length.
    lengths = groups.strings.lengths.max(axis=1)
    known, rows = np.unique(lengths, return_inverse=True)
    drawn = [
        tested_places(network.position_range, network.place_seed, length)
        for length in known.tolist()
    ]
    return make_places(network, rows.astype(np.int64), drawn, tokens)


def answered(
    network: NetworkConfig,
    flat: Flat,
    groups: Groups,
    places: PositionArrays,
    moments: np.ndarray | None = None,
    steps: int = 0,
    update: Update | None = None,
    scaled: bool = False,
) -> tuple[float, Float[np.ndarray, "group lane"]]:
    """The sum of the losses of strings and their logits; trains on them if moments are given."""
    training = moments is not None
    sizes = sizes_of(network, scaled_loss=scaled)
    at = states_of(sizes, groups.strings.ids.shape[1], training=training)
    logits = np.empty(groups.strings.targets.shape, np.float32)
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
        places,
        np.float32(score_factor(network)),
        logits,
    )
    return loss, logits


def logits(
    network: NetworkConfig, weights: Sequence[Weights], strings: TokenStrings
) -> Float[np.ndarray, "member string"]:
    """Logits of models of one shape."""
    groups = answering_groups(network.readout, strings, GROUPS, alike=_alike(network))
    places = answering_places(network, groups)
    slots, size = slots_of(network), parameters_of(network).size
    rows = [answered(network, pack(slots, size, x), groups, places)[1] for x in weights]
    return np.stack([logits.reshape(-1)[groups.places] for logits in rows])


# Places in a learned table that differ from string to string.
#
# The definitions are those of `seqcls.models.positions.places`, draws included, and tested so.

StringPlaces = Int64[np.ndarray, "string position"]
LanePlaces = Int16[np.ndarray, "group position lane"]

NO_PLACES: LanePlaces = np.zeros((1, 1, 1), np.int16)
"""The places of networks without such a table."""


def needs_lanes(network: NetworkConfig) -> bool:
    """Whether the network has a learned table."""
    return table_size(network) is not None


def places_without_draws(
    network: NetworkConfig, lesson: Lesson, *, drawn: bool = False
) -> StringPlaces:
    """The places of each string's tokens when nothing is learned; 0 after its end.

    With `drawn`, those from which training moves them.
    """
    if lesson.coupled is not None:
        return lesson.coupled if drawn else tested(network, lesson.coupled)
    tokens = lesson.taught.strings.ids.shape[1]
    return np.broadcast_to(np.arange(tokens), (len(lesson.groups.places), tokens))


def drawn_offsets(
    network: NetworkConfig,
    rng: np.random.Generator,
    places: StringPlaces,
    lesson: Lesson,
    batch_size: int,
) -> Int64[np.ndarray, " string"]:
    """By how much training moves each string's places, batch after batch."""
    size = table_size(network)
    assert size is not None
    if network.coupling:
        left = size - 1 - places.max(axis=1)
    elif network.position_draw == "shifted":
        left = size - lesson.taught.strings.lengths.reshape(-1)[lesson.groups.places]
    else:
        return np.zeros(len(places), np.int64)
    starts = range(0, len(left), batch_size)
    return np.concatenate(
        [rng.integers(0, left[start : start + batch_size], endpoint=True) for start in starts]
    )


def shifted(
    network: NetworkConfig, places: StringPlaces, offsets: Int64[np.ndarray, " string"]
) -> StringPlaces:
    """Places moved by an offset each; those that tokens share with none stay at 0."""
    if network.coupling:
        return np.where(places > 0, places + offsets[:, None], 0)
    return np.asarray(places + offsets[:, None])


def coupled_with_outputs(network: NetworkConfig, inputs: TokenStrings, tokens: int) -> StringPlaces:
    """The places of inputs and of all tokens that may follow them, whichever they are."""
    ids = np.pad(inputs.ids, ((0, 0), (1, tokens)), constant_values=FIRST_LETTER)[:, :tokens]
    after = np.arange(tokens) > inputs.lengths[:, None]
    ids = np.where(after, FIRST_LETTER, ids).astype(np.int64)
    ids[:, 0] = CLS
    ids[np.arange(len(ids)), inputs.lengths + 1] = separator_id(network)
    return tested(network, coupled_of(network, ids))


def tested(network: NetworkConfig, places: StringPlaces) -> StringPlaces:
    """Places that tokens share, moved as in tests."""
    # PyTorch is loaded where places are shared.
    from seqcls.models.positions.places import tested_offset

    return shifted(network, places, np.full(len(places), tested_offset(network.coupling)))


def in_lanes(
    network: NetworkConfig,
    places: StringPlaces,
    lanes_of_strings: Int64[np.ndarray, " string"],
    groups: int,
) -> LanePlaces:
    """Places as compiled code takes them.

    Args:
        network: one with a learned table.
        places: of each string.
        lanes_of_strings: each string's group's number times the lanes, and its lane.
        groups: how many there are.
    """
    size, tokens = table_size(network), places.shape[1]
    assert size is not None
    rows = np.zeros((groups * lanes(), tokens), np.int16)
    # Beyond the table there is only padding.
    rows[lanes_of_strings] = np.minimum(places, size - 1)
    return np.ascontiguousarray(rows.reshape(groups, lanes(), tokens).transpose(0, 2, 1))


# Training and scoring Transformers that write.


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
        return NO_PLACES
    if network.coupling:
        places = coupled_with_outputs(network, inputs, blank.tokens)
    else:
        places = np.broadcast_to(np.arange(blank.tokens), (len(inputs), blank.tokens))
    return in_lanes(network, places, blank.places, len(blank.begins))


def tested_lanes(network: NetworkConfig, lesson: Lesson) -> LanePlaces:
    """The places of strings when nothing is learned."""
    if not needs_lanes(network):
        return NO_PLACES
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


def program_of(problem: Problem) -> "TransformerProgram | TransformerOutputs":
    """What trains a model."""
    if problem.network.head == "string":
        return TransformerProgram(problem)
    return TransformerOutputs(problem)
