"""The numbers of each scheme of positions, in NumPy; PyTorch is not loaded.

The definitions are those of `seqcls.models.positions`, draws included, and tests compare them.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32, Int64

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.engines.lanes.batches import Groups, coupled_of
from seqcls.engines.lanes.parameters import padded_size
from seqcls.engines.lanes.parts import has_table
from seqcls.engines.lanes.positions import PositionArrays
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds.transduction import separator_id
from seqcls.models.positions import table_size
from seqcls.models.positions.numbers import (
    angles,
    buckets,
    draw_positions,
    slopes,
    tested_positions,
    waves,
)
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER


def make_positions(
    config: NetworkConfig,
    rows: Int64[np.ndarray, " group"],
    places: Sequence[Int64[np.ndarray, " _"]],
    tokens: int,
) -> PositionArrays:
    """Returns the positions of strings in groups.

    Args:
        rows: the row of `places` of each group.
        places: the positions of tokens, consecutive or drawn at random.
        tokens: the length of the longest string, filled up.
    """
    numbers = np.zeros((len(places), tokens), np.int32)
    for row, drawn in zip(numbers, places, strict=True):
        row[: len(drawn)] = drawn[:tokens]
    scheme = config.positions
    added, cosines, sines = (np.zeros((1, 1, 1), np.float32) for _ in range(3))
    distances, slope = np.zeros((2, 1), np.int64), np.zeros(1, np.float32)
    if scheme == "sinusoidal":
        added = np.zeros((*numbers.shape, padded_size(config.hidden_size)), np.float32)
        added[:, :, : config.hidden_size] = waves(numbers, config.hidden_size)
    elif scheme == "learned":
        # Beyond the table there is only padding: longer strings are not evaluated.
        numbers = np.minimum(numbers, (table_size(config) or 1) - 1)
    elif scheme == "rotary":
        turned = angles(numbers, config.attention_head_size)
        cosines, sines = np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32)
    elif scheme == "alibi":
        slope = np.array(slopes(config.num_attention_heads), np.float32)
    elif scheme == "relative":
        # An encoder reads in both directions, a decoder backwards, others according to the mask.
        both = config.attention_mask == "full"
        ways = (True, False) if config.architecture == "encoder_decoder" else (both, both)
        every = np.arange(-tokens, tokens + 1)
        distances = np.stack([buckets(every, both_directions=way) for way in ways])
    return PositionArrays(rows, numbers[:, :, None], added, cosines, sines, distances, slope)


@remembered
def fixed_positions(network: NetworkConfig, groups: int, tokens: int) -> PositionArrays:
    """Returns consecutive positions, the same for all groups."""
    return make_positions(network, np.zeros(groups, np.int64), [np.arange(tokens)], tokens)


def positions_of(
    network: NetworkConfig,
    groups: Groups,
    batch_size: int = 0,
    rng: np.random.Generator | None = None,
) -> PositionArrays:
    """Returns the positions of strings; with a generator, those of training in batches."""
    strings, drawn_from = groups.strings, network.position_range
    count, tokens = len(strings.ids), max(strings.ids.shape[1], strings.inputs.shape[1])
    is_shifted = rng is not None and network.position_draw == "shifted"
    if is_shifted or (has_table(network) and network.head != "string"):
        places = np.broadcast_to(np.arange(tokens), (len(groups.lengths), tokens))
        if groups.coupled is not None:
            places = groups.coupled if rng is not None else _in_test(network, groups.coupled)
        if rng is not None:
            offsets = _offsets(network, rng, places, groups.lengths, batch_size)
            places = shift_positions(network, places, offsets)
        return in_lanes(network, places, groups.places, count)
    if not drawn_from:
        return fixed_positions(network, count, tokens)
    if rng is None:
        # All strings of a group have the same length.
        known, rows = np.unique(strings.lengths.max(axis=1), return_inverse=True)
        seed = network.place_seed
        drawn = [tested_positions(drawn_from, seed, length) for length in known.tolist()]
    else:
        starts = np.concatenate([[0], strings.ends[:-1]])
        # The longest strings of a batch are in its first group.
        longest = strings.lengths[starts].max(axis=1).tolist()
        drawn = [draw_positions(rng, drawn_from, length) for length in longest]
        rows = np.repeat(np.arange(len(drawn)), np.diff(strings.ends, prepend=0))
    return make_positions(network, rows.astype(np.int64), drawn, tokens)


def written_positions(
    network: NetworkConfig,
    inputs: TokenStrings,
    lanes_of_strings: Int64[np.ndarray, " string"],
    groups: int,
    tokens: int,
) -> PositionArrays:
    """Returns the positions of inputs and of all tokens that may be written."""
    if not has_table(network):
        return fixed_positions(network, groups, tokens)
    if network.coupling:
        places = _coupled_with_outputs(network, inputs, tokens)
    else:
        places = np.broadcast_to(np.arange(tokens), (len(inputs), tokens))
    return in_lanes(network, places, lanes_of_strings, groups)


# Positions in a learned table that differ from string to string.

StringPlaces = Int64[np.ndarray, "string position"]


def _offsets(
    network: NetworkConfig,
    rng: np.random.Generator,
    places: StringPlaces,
    lengths: Int64[np.ndarray, " string"],
    batch_size: int,
) -> Int64[np.ndarray, " string"]:
    """Draws the offsets of each string's positions in training, batch after batch."""
    size = table_size(network)
    assert size is not None
    if network.coupling:
        left = size - 1 - places.max(axis=1)
    elif network.position_draw == "shifted":
        left = size - lengths
    else:
        return np.zeros(len(places), np.int64)
    starts = range(0, len(left), batch_size)
    return np.concatenate(
        [rng.integers(0, left[start : start + batch_size], endpoint=True) for start in starts]
    )


def shift_positions(
    network: NetworkConfig, places: StringPlaces, offsets: Int64[np.ndarray, " string"]
) -> StringPlaces:
    """Adds each string's offset to its positions; those that are coupled with none stay at 0."""
    if network.coupling:
        return np.where(places > 0, places + offsets[:, None], 0)
    return np.asarray(places + offsets[:, None])


def _coupled_with_outputs(
    network: NetworkConfig, inputs: TokenStrings, tokens: int
) -> StringPlaces:
    """Returns the positions of inputs and of all tokens that may follow them."""
    ids = np.pad(inputs.ids, ((0, 0), (1, tokens)), constant_values=FIRST_LETTER)[:, :tokens]
    after = np.arange(tokens) > inputs.lengths[:, None]
    ids = np.where(after, FIRST_LETTER, ids).astype(np.int64)
    ids[:, 0] = CLS
    ids[np.arange(len(ids)), inputs.lengths + 1] = separator_id(network)
    return _in_test(network, coupled_of(network, ids))


def _in_test(network: NetworkConfig, places: StringPlaces) -> StringPlaces:
    """Shifts coupled positions as in tests."""
    # PyTorch is loaded only for coupled positions.
    from seqcls.models.positions.places import tested_offset

    return shift_positions(network, places, np.full(len(places), tested_offset(network.coupling)))


def in_lanes(
    network: NetworkConfig,
    places: StringPlaces,
    lanes_of_strings: Int64[np.ndarray, " string"],
    groups: int,
) -> PositionArrays:
    """Returns positions that differ from string to string, for compiled code.

    Args:
        network: one with a learned table.
        lanes_of_strings: each string's group times the number of lanes, plus its lane.
    """
    size, tokens = table_size(network), places.shape[1]
    assert size is not None
    numbers: Int32[np.ndarray, "string position"] = np.zeros((groups * lanes(), tokens), np.int32)
    # Beyond the table there is only padding.
    numbers[lanes_of_strings] = np.minimum(places, size - 1)
    by_lane = numbers.reshape(groups, lanes(), tokens).transpose(0, 2, 1)
    fixed = fixed_positions(network, groups, tokens)
    return fixed._replace(rows=np.arange(groups), numbers=np.ascontiguousarray(by_lane))
