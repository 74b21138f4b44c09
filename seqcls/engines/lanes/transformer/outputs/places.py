"""Places in a learned table that differ from string to string.

The definitions are those of `seqcls.models.positions.places`, draws included, and tested so.
"""

import numpy as np
from jaxtyping import Int16, Int64

from seqcls.config import NetworkConfig
from seqcls.engines.lanes.outputs import Lesson, coupled_of
from seqcls.engines.lanes.vectors.target import lanes
from seqcls.kinds.transduction import separator_id
from seqcls.models.positions import table_size
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import CLS, FIRST_LETTER

Places = Int64[np.ndarray, "string position"]
LanePlaces = Int16[np.ndarray, "group position lane"]

NONE: LanePlaces = np.zeros((1, 1, 1), np.int16)
"""The places of networks without such a table."""


def needs_lanes(network: NetworkConfig) -> bool:
    """Whether the network has a learned table."""
    return table_size(network) is not None


def places_without_draws(network: NetworkConfig, lesson: Lesson, *, drawn: bool = False) -> Places:
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
    places: Places,
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
    network: NetworkConfig, places: Places, offsets: Int64[np.ndarray, " string"]
) -> Places:
    """Places moved by an offset each; those that tokens share with none stay at 0."""
    if network.coupling:
        return np.where(places > 0, places + offsets[:, None], 0)
    return np.asarray(places + offsets[:, None])


def coupled_with_outputs(network: NetworkConfig, inputs: TokenStrings, tokens: int) -> Places:
    """The places of inputs and of all tokens that may follow them, whichever they are."""
    ids = np.pad(inputs.ids, ((0, 0), (1, tokens)), constant_values=FIRST_LETTER)[:, :tokens]
    after = np.arange(tokens) > inputs.lengths[:, None]
    ids = np.where(after, FIRST_LETTER, ids).astype(np.int64)
    ids[:, 0] = CLS
    ids[np.arange(len(ids)), inputs.lengths + 1] = separator_id(network)
    return tested(network, coupled_of(network, ids))


def tested(network: NetworkConfig, places: Places) -> Places:
    """Places that tokens share, moved as in tests."""
    # PyTorch is loaded where places are shared.
    from seqcls.models.positions.coupled import tested_offset

    return shifted(network, places, np.full(len(places), tested_offset(network.coupling)))


def in_lanes(
    network: NetworkConfig,
    places: Places,
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
