"""Transformers as programs take them, those that write among them, and their tokens' places."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Int16, Int64

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import Flat
from seqcls.engines.lanes.batches import Blank, Groups, LaneStrings, Lesson, coupled_of
from seqcls.engines.lanes.loss import OutputBuffers
from seqcls.engines.lanes.packing import padded_size, vectors
from seqcls.engines.lanes.program import LaneCell
from seqcls.engines.lanes.transformer_kernel import PositionArrays, run
from seqcls.engines.lanes.transformer_outputs import run_outputs, write, written_states_of
from seqcls.engines.lanes.transformer_sizes import (
    TransformerSizes,
    TransformerStates,
    parameters_of,
    score_factor,
    sizes_of,
    states_of,
)
from seqcls.engines.lanes.transformer_slots import slots_of
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds.transduction import separator_id
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import (
    angles,
    buckets,
    draw_positions,
    slopes,
    tested_positions,
    training_generator,
    waves,
)
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER

# What the places of tokens mean in each scheme, in NumPy; PyTorch is not loaded.
#
# The definitions are those of `seqcls.models.positions`, and tested so.


def make_positions(
    config: NetworkConfig,
    rows: Int64[np.ndarray, " group"],
    places: Sequence[Int64[np.ndarray, " _"]],
    tokens: int,
) -> PositionArrays:
    """The places of strings in groups.

    Args:
        rows: of each group, which of `positions` are its tokens'.
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
        added = np.zeros((*numbers.shape, padded_size(config.hidden_size)), np.float32)
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


@remembered
def fixed_positions(network: NetworkConfig, groups: int, tokens: int) -> PositionArrays:
    """The places of tokens one after another, the same for all groups."""
    return make_positions(network, np.zeros(groups, np.int64), [np.arange(tokens)], tokens)


def positions_of(
    network: NetworkConfig, groups: Groups, rng: np.random.Generator | None = None
) -> PositionArrays:
    """The places of strings; with a generator, those of training."""
    strings, drawn_from = groups.strings, network.position_range
    count, tokens, _ = strings.ids.shape
    if not drawn_from:
        return fixed_positions(network, count, tokens)
    if rng is None:
        # All strings of a group have the same length.
        known, rows = np.unique(strings.lengths.max(axis=1), return_inverse=True)
        seed = network.place_seed
        drawn = [tested_positions(drawn_from, seed, length) for length in known.tolist()]
    else:
        starts = np.concatenate([[0], strings.ends[:-1]])
        # The longest strings of a batch stand in its first group.
        longest = strings.lengths[starts].max(axis=1).tolist()
        drawn = [draw_positions(rng, drawn_from, length) for length in longest]
        rows = np.repeat(np.arange(len(drawn)), np.diff(strings.ends, prepend=0))
    return make_positions(network, rows.astype(np.int64), drawn, tokens)


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


def positions_without_draws(
    network: NetworkConfig, lesson: Lesson, *, drawn: bool = False
) -> StringPlaces:
    """The places of each string's tokens when nothing is learned; 0 after its end.

    With `drawn`, those from which training moves them.
    """
    if lesson.coupled is not None:
        return lesson.coupled if drawn else positions_in_test(network, lesson.coupled)
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


def shift_positions(
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
    return positions_in_test(network, coupled_of(network, ids))


def positions_in_test(network: NetworkConfig, places: StringPlaces) -> StringPlaces:
    """Places that tokens share, moved as in tests."""
    # PyTorch is loaded where places are shared.
    from seqcls.models.positions.places import tested_offset

    return shift_positions(network, places, np.full(len(places), tested_offset(network.coupling)))


def in_lanes(
    network: NetworkConfig,
    places: StringPlaces,
    lanes_of_strings: Int64[np.ndarray, " string"],
    groups: int,
) -> LanePlaces:
    """Places as compiled code takes them.

    Args:
        network: one with a learned table.
        lanes_of_strings: each string's group's number times the lanes, and its lane.
    """
    size, tokens = table_size(network), places.shape[1]
    assert size is not None
    rows = np.zeros((groups * lanes(), tokens), np.int16)
    # Beyond the table there is only padding.
    rows[lanes_of_strings] = np.minimum(places, size - 1)
    return np.ascontiguousarray(rows.reshape(groups, lanes(), tokens).transpose(0, 2, 1))


def _written_positions(network: NetworkConfig, blank: Blank, inputs: TokenStrings) -> LanePlaces:
    """The places of inputs and of all tokens that may be written."""
    if not needs_lanes(network):
        return NO_PLACES
    if network.coupling:
        places = coupled_with_outputs(network, inputs, blank.tokens)
    else:
        places = np.broadcast_to(np.arange(blank.tokens), (len(inputs), blank.tokens))
    return in_lanes(network, places, blank.places, len(blank.begins))


class TransformerCell(LaneCell):
    """A Transformer as compiled code takes it."""

    groups = 64  # Any number, since each goes through the network alone.
    run = staticmethod(run)
    run_outputs = staticmethod(run_outputs)

    def __init__(self, network: NetworkConfig) -> None:
        super().__init__(network, slots_of(network), parameters_of(network))
        # Places are drawn for strings of one length.
        self.alike = network.position_range > 0

    def generator(self, seed: int) -> np.random.Generator:
        return training_generator(seed)

    def sizes(self, *, scaled_loss: bool) -> TransformerSizes:
        return sizes_of(self.network, scaled_loss=scaled_loss)

    def states(
        self, sizes: TransformerSizes, strings: LaneStrings, *, training: bool
    ) -> TransformerStates:
        return states_of(sizes, strings.ids.shape[1], training=training)

    def positions(
        self, groups: Groups, rng: np.random.Generator | None = None
    ) -> tuple[PositionArrays]:
        return (positions_of(self.network, groups, rng),)

    def positions_of_groups(self, places: tuple[Any, ...], groups: slice) -> tuple[Any, ...]:
        of_tokens, *by_lane = places
        its = (x if x is NO_PLACES else x[groups] for x in by_lane)
        return of_tokens._replace(rows=of_tokens.rows[groups]), *its

    def output_positions(
        self, lesson: Lesson, batch_size: int = 0, rng: np.random.Generator | None = None
    ) -> tuple[PositionArrays, LanePlaces]:
        network = self.network
        count, tokens, _ = lesson.taught.strings.ids.shape
        fixed = fixed_positions(network, count, tokens)
        if not needs_lanes(network):
            return fixed, NO_PLACES
        places = positions_without_draws(network, lesson, drawn=rng is not None)
        if rng is not None:
            offsets = drawn_offsets(network, rng, places, lesson, batch_size)
            places = shift_positions(network, places, offsets)
        return fixed, in_lanes(network, places, *lesson.lanes_of_strings)

    def own_arguments(self) -> tuple[Any, ...]:
        return (np.float32(score_factor(self.network)),)

    def write(
        self,
        flat: Flat,
        sizes: TransformerSizes,
        blank: Blank,
        inputs: TokenStrings,
        outputs: OutputBuffers,
    ) -> None:
        tokens = blank.tokens
        at = written_states_of(sizes, tokens, min(GROUPS_WRITTEN, len(blank.begins)))
        factors = np.full(tokens, score_factor(self.network))
        if sizes.log_length:
            factors *= np.log(np.arange(1, tokens + 1))
        write(
            flat,
            sizes,
            self.parameters,
            at,
            vectors(at.size, lanes()),
            outputs,
            fixed_positions(self.network, 1, tokens),
            _written_positions(self.network, blank, inputs),
            factors.astype(np.float32),
        )


GROUPS_WRITTEN = 4
"""Groups whose outputs are written together."""
