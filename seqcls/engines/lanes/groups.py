"""Strings as the engine of lanes reads them: in groups of as many as a vector has lanes."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64, UInt8

from seqcls.caching.remembered import remembered
from seqcls.engines.lanes.packing import filled
from seqcls.engines.lanes.vectors.target import lanes
from seqcls.models.reading import Readout, read_ids
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import PAD


class Strings(NamedTuple):
    """Strings in groups; a batch begins with a new group, and its last one may not be full.

    Within a batch the longest strings come first, so that those of a group are of like length.
    """

    ids: UInt8[np.ndarray, "group position lane"]
    lengths: Int64[np.ndarray, "group lane"]
    """Tokens that the model reads; 0 where there is no string."""
    targets: Float[np.ndarray, "group lane"]
    """1 for positive strings, else 0."""
    weights: Float[np.ndarray, "group lane"]
    """What each loss counts for in the gradient: one over the size of the batch; 0 where there is
    no string."""
    ends: Int64[np.ndarray, " batch"]
    """The number of the first group after each batch."""


class Groups(NamedTuple):
    """Strings as compiled code takes them, and where each is."""

    strings: Strings
    places: Int64[np.ndarray, " string"]
    """Each one's group's number times the lanes, and its lane."""


def make_groups(
    readout: Readout,
    strings: TokenStrings,
    targets: np.ndarray,
    batches: Sequence[Int64[np.ndarray, " row"]],
) -> Groups:
    """Strings in groups.

    Args:
        readout: what is read of a string.
        strings: all of them.
        targets: of each, 1 for positive ones.
        batches: the rows of the strings of each batch.
    """
    width = lanes()
    lengths = strings.lengths + (readout != "mean")
    sizes = np.array([-(-len(rows) // width) for rows in batches], np.int64)
    ends = np.cumsum(sizes)
    places = np.empty(len(strings), np.int64)
    shares = np.empty(len(strings), np.float32)
    for rows, end, size in zip(batches, ends, sizes, strict=True):
        longest_first = rows[np.argsort(-lengths[rows], kind="stable")]
        places[longest_first] = (end - size) * width + np.arange(len(rows))
        shares[rows] = 1 / len(rows)
    groups = int(sizes.sum())
    tokens = filled(int(lengths.max(initial=1)))
    ids = np.full((groups * width, tokens), PAD, np.uint8)
    read = read_ids(strings, readout)
    ids[places, : read.shape[1]] = read[:, :tokens]
    read_of_each = Strings(
        np.ascontiguousarray(ids.reshape(groups, width, tokens).transpose(0, 2, 1)),
        _placed(lengths, places, groups, np.int64),
        _placed(targets, places, groups, np.float32),
        _placed(shares, places, groups, np.float32),
        ends,
    )
    return Groups(read_of_each, places)


def _placed(values: np.ndarray, places: np.ndarray, groups: int, dtype: type) -> np.ndarray:
    placed: np.ndarray = np.zeros(groups * lanes(), dtype)
    placed[places] = values
    return placed.reshape(groups, lanes())


@remembered
def epoch_groups(readout: Readout, sampler: Sampler, epoch: int) -> Groups:
    """An epoch of a stream in groups, made once for all members that read it."""
    drawn = stream(sampler).epoch(epoch)
    rows, size = np.arange(len(drawn)), sampler.batch_size
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return make_groups(readout, drawn.strings, drawn.labels, batches)


@remembered
def validation_groups(
    readout: Readout, sampler: Sampler, most: int, *, alike: bool = False
) -> Groups:
    """The strings of a validation in groups, made once for all members.

    Args:
        readout: what is read of a string.
        sampler: what draws the strings.
        most: groups of a batch at most.
        alike: whether all strings of a group are of one length.
    """
    drawn = stream(sampler).epoch(0)
    return _grouped(readout, drawn.strings, drawn.labels, most, alike)


def answering_groups(
    readout: Readout, strings: TokenStrings, most: int, *, alike: bool = False
) -> Groups:
    """Strings without labels in groups; the arguments are those of `validation_groups`."""
    return _grouped(readout, strings, np.zeros(len(strings)), most, alike)


def _grouped(
    readout: Readout, strings: TokenStrings, targets: np.ndarray, most: int, alike: bool
) -> Groups:
    lengths = strings.lengths
    if alike:
        rows = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    else:
        longest_first = np.argsort(-lengths, kind="stable")
        size = most * lanes()
        rows = [longest_first[x : x + size] for x in range(0, len(strings), size)]
    return make_groups(readout, strings, targets, rows)
