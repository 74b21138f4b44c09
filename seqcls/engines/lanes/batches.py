"""Strings as the engine of lanes reads them, and what is learned at each of their tokens."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int16, Int64, Integer, UInt8

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.counts import read_counts
from seqcls.engines.compiled.engine import some_batches, tiles_between
from seqcls.engines.lanes.loss import SCRATCH_VECTORS, OutputBuffers
from seqcls.engines.lanes.packing import head_rows, output_rows, padded_size
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds import KINDS, Examples, Kind, kind_name
from seqcls.kinds.places import PlacesKind
from seqcls.kinds.transduction import NO_TARGET, separator_id
from seqcls.models.positions import LETTERS_ALONE, Readout, read_ids
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from seqcls.tasks import Task

# Strings as the engine of lanes reads them: in groups of as many as a vector has lanes.


class LaneStrings(NamedTuple):
    """Strings in groups; a batch begins with a new group, and its last one may not be full.

    Within a batch the longest strings come first, so that those of a group are of like length.
    """

    ids: UInt8[np.ndarray, "group position lane"]
    times: Float[np.ndarray, "group position lane"]
    """How often each token occurs; of no position where each stands for itself."""
    lengths: Int64[np.ndarray, "group lane"]
    """Tokens that are written down; 0 where there is no string."""
    sizes: Int64[np.ndarray, "group lane"]
    """Tokens that the model reads, as often as they occur."""
    targets: Float[np.ndarray, "group lane"]
    """1 for positive strings, else 0."""
    weights: Float[np.ndarray, "group lane"]
    """What each loss counts for in the gradient: one over the size of the batch; 0 where there is
    no string."""
    ends: Int64[np.ndarray, " batch"]
    """The number of the first group after each batch."""


class Groups(NamedTuple):
    """Strings as compiled code takes them, and where each is."""

    strings: LaneStrings
    places: Int64[np.ndarray, " string"]
    """Each one's group's number times the lanes, and its lane."""


def make_groups(
    readout: Readout,
    strings: TokenStrings,
    targets: np.ndarray,
    batches: Sequence[Int64[np.ndarray, " _"]],
    *,
    by_counts: bool = False,
) -> Groups:
    """Strings in groups.

    Args:
        targets: of each, 1 for positive ones.
        batches: the rows of the strings of each batch.
        by_counts: whether each letter is read once, however often it occurs.
    """
    width = lanes()
    tokens_read = strings.lengths + (readout not in LETTERS_ALONE)
    if by_counts:
        ids_read, times = read_counts(readout, strings.counts)
        lengths = np.full(len(strings), len(ids_read))
    else:
        ids_read, times = read_ids(strings, readout), np.zeros((len(strings), 0))
        lengths = tokens_read
    sizes = np.array([-(-len(rows) // width) for rows in batches], np.int64)
    ends = np.cumsum(sizes)
    places = np.empty(len(strings), np.int64)
    shares = np.empty(len(strings), np.float32)
    for rows, end, size in zip(batches, ends, sizes, strict=True):
        longest_first = rows[np.argsort(-tokens_read[rows], kind="stable")]
        places[longest_first] = (end - size) * width + np.arange(len(rows))
        shares[rows] = 1 / len(rows)
    groups = int(sizes.sum())
    tokens = padded_size(int(lengths.max(initial=1)))
    ids = np.full((groups * width, tokens), PAD, np.uint8)
    ids[places, : ids_read.shape[-1]] = ids_read[..., :tokens]
    often = np.zeros((groups * width, tokens * by_counts), np.float32)
    often[places, : times.shape[1]] = times
    lane_strings = LaneStrings(
        _by_lane(ids, groups),
        _by_lane(often, groups),
        _place_in_lanes(lengths, places, groups, np.int64),
        _place_in_lanes(tokens_read, places, groups, np.int64),
        _place_in_lanes(targets, places, groups, np.float32),
        _place_in_lanes(shares, places, groups, np.float32),
        ends,
    )
    return Groups(lane_strings, places)


def _by_lane(values: np.ndarray, groups: int) -> np.ndarray:
    """Values by string and position, those of a group's strings side by side."""
    by_group = values.reshape(groups, lanes(), values.shape[1])
    return np.ascontiguousarray(by_group.transpose(0, 2, 1))


def _place_in_lanes(values: np.ndarray, places: np.ndarray, groups: int, dtype: type) -> np.ndarray:
    placed: np.ndarray = np.zeros(groups * lanes(), dtype)
    placed[places] = values
    return placed.reshape(groups, lanes())


@remembered
def epoch_groups(readout: Readout, sampler: Sampler, epoch: int, *, by_counts: bool) -> Groups:
    """An epoch of a stream in groups, made once for all members that read it."""
    drawn = stream(sampler).epoch(epoch)
    rows, size = np.arange(len(drawn)), sampler.batch_size
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return make_groups(readout, drawn.strings, drawn.labels, batches, by_counts=by_counts)


@remembered
def validation_groups(
    readout: Readout, sampler: Sampler, most: int, *, alike: bool = False, by_counts: bool = False
) -> Groups:
    """The strings of a validation in groups, made once for all members.

    Args:
        most: groups of a batch at most.
        alike: whether all strings of a group are of one length.
        by_counts: as for `make_groups`.
    """
    drawn = stream(sampler).epoch(0)
    return _group(readout, drawn.strings, drawn.labels, most, alike, by_counts)


def answering_groups(
    readout: Readout,
    strings: TokenStrings,
    most: int,
    *,
    alike: bool = False,
    by_counts: bool = False,
) -> Groups:
    """Strings without labels in groups; the arguments are those of `validation_groups`."""
    return _group(readout, strings, np.zeros(len(strings)), most, alike, by_counts)


def _group(
    readout: Readout,
    strings: TokenStrings,
    targets: np.ndarray,
    most: int,
    alike: bool,
    by_counts: bool,
) -> Groups:
    lengths = strings.lengths
    if alike:
        rows = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    else:
        longest_first = np.argsort(-lengths, kind="stable")
        size = most * lanes()
        rows = [longest_first[x : x + size] for x in range(0, len(strings), size)]
    return make_groups(readout, strings, targets, rows, by_counts=by_counts)


# Strings for models that write, or answer at every token: in groups, with what is to be predicted.


class LaneExamples(NamedTuple):
    """Strings in groups, and what is to be predicted at each of their tokens."""

    strings: LaneStrings
    token_targets: Int16[np.ndarray, "group position lane"]
    """The `targets` of `seqcls.engines.lanes.loss.RowTargets`, of every token."""
    begins: Int64[np.ndarray, "group lane"]
    """The first token at which one is."""
    shares: Float[np.ndarray, " batch"]
    """What each loss counts for in the gradient: one over the tokens predicted in the batch."""
    sets: Float[np.ndarray, "set output"]
    """The `sets` of the same."""


class LaneBatch(NamedTuple):
    """Strings as compiled code takes them, and where each is."""

    examples: LaneExamples
    groups: Groups
    coupled: Int64[np.ndarray, "string position"] | None
    """The places of tokens that share them, before training moves them."""

    @property
    def lanes_of_strings(self) -> tuple[np.ndarray, int]:
        """Each string's group's number times the lanes, and its lane; how many groups."""
        return self.groups.places, len(self.examples.token_targets)

    def examples_in(self, first: int, last: int | None) -> LaneExamples:
        """The examples of the batches from the first on and before the last; None for all."""
        strings, token_targets, begins, shares, sets = self.examples
        groups = tiles_between(strings.ends, first, last)
        strings = some_batches(strings, first, last)
        return LaneExamples(
            strings, token_targets[groups], begins[groups], shares[first:last], sets
        )


def make_batch(
    network: NetworkConfig,
    task: Task,
    examples: Examples,
    batches: Sequence[Int64[np.ndarray, " _"]],
) -> LaneBatch:
    """Inputs with their targets, in groups.

    Args:
        batches: the rows of the strings of each batch.
    """
    kind = _kind(task)
    read = kind.reading(task, examples)
    groups = make_groups("first", read, np.zeros(len(examples)), batches)
    encoded = kind.encoded(task, examples, network)
    is_predicted = encoded != NO_TARGET
    # The last token that is predicted, END, is predicted at the last one that is read.
    begins = read.lengths + 1 - is_predicted.sum(axis=1)
    rows, places = np.nonzero(is_predicted)
    numbers, sets = encoded[rows, places], np.zeros((0, network.num_outputs), np.float32)
    if isinstance(kind, PlacesKind) and kind.of_bits:
        codes, numbers = np.unique(numbers, return_inverse=True)
        sets = np.zeros((len(codes), network.num_outputs), np.float32)
        sets[:, output_rows(network)] = codes[:, None] >> np.arange(network.num_outputs) & 1
    else:
        numbers = output_rows(network)[numbers]
    if network.head == "all":
        ids = read.ids
        after = np.cumsum(ids == separator_id(network), axis=1) > 0
        # Token ids stand one to the right of their letters, behind CLS.
        is_written = np.pad(after, ((0, 0), (1, 0)))[rows, places]
        numbers = numbers + np.where(is_written, 0, network.num_outputs)
    count, tokens, width = groups.strings.ids.shape
    token_targets = np.full((count * width, tokens), -1, np.int16)
    token_targets[groups.places[rows], begins[rows] + places] = numbers
    first = np.zeros(count * width, np.int64)
    first[groups.places] = begins
    shares = [1 / max(int(is_predicted[rows_of].sum()), 1) for rows_of in batches]
    by_lane = token_targets.reshape(count, width, tokens).transpose(0, 2, 1)
    coupled = None
    if network.coupling:
        ids_by_string = groups.strings.ids.transpose(0, 2, 1).reshape(count * width, tokens)
        coupled = coupled_of(network, ids_by_string[groups.places])
    return LaneBatch(
        LaneExamples(
            groups.strings,
            np.ascontiguousarray(by_lane),
            first.reshape(count, width),
            np.array(shares, np.float32),
            sets,
        ),
        groups,
        coupled,
    )


def _kind(task: Task) -> Kind:
    return KINDS[kind_name(task)]()


def coupled_of(
    network: NetworkConfig, ids: Integer[np.ndarray, "string position"]
) -> Int64[np.ndarray, "string position"]:
    """The places of tokens that share them."""
    # Only here is PyTorch loaded.
    import torch

    from seqcls.models.positions.places import coupled_positions

    places = coupled_positions(network.coupling, torch.from_numpy(ids.astype(np.int64)))
    return np.asarray(places.numpy())


@remembered
def epoch_batch(network: NetworkConfig, sampler: Sampler, epoch: int) -> LaneBatch:
    """An epoch's strings, made once for all members that train on them."""
    drawn = stream(sampler).epoch(epoch)
    rows, size = np.arange(len(drawn)), sampler.batch_size
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return make_batch(network, sampler.task, drawn, batches)


def scored_batch(network: NetworkConfig, task: Task, examples: Examples, most: int) -> LaneBatch:
    """Strings that are only scored, in batches of so many groups at most."""
    longest_first = np.argsort(-_kind(task).reading(task, examples).lengths, kind="stable")
    size = most * lanes()
    rows = [longest_first[x : x + size] for x in range(0, len(examples), size)]
    return make_batch(network, task, examples, rows)


@remembered
def validation_batch(network: NetworkConfig, sampler: Sampler, most: int) -> LaneBatch:
    """The strings of a validation, made once for all members."""
    return scored_batch(network, sampler.task, stream(sampler).epoch(0), most)


class Blank(NamedTuple):
    """Inputs in groups, for which outputs are to be written."""

    given: Int16[np.ndarray, "group position lane"]
    begins: Int64[np.ndarray, "group lane"]
    limits: Int64[np.ndarray, "group lane"]
    places: Int64[np.ndarray, " string"]
    """Each one's group's number times the lanes, and its lane."""

    @property
    def tokens(self) -> int:
        """Places that are read at most, filled up."""
        return padded_size(int((self.begins + self.limits).max(initial=1)))


class WrittenOutputs(NamedTuple):
    """The outputs of strings."""

    tokens: Int16[np.ndarray, "string position"]
    """Token ids, -1 after each end."""
    is_ended: Bool[np.ndarray, " string"]
    log_probability: Float[np.ndarray, " string"]


def make_blank(
    network: NetworkConfig, inputs: TokenStrings, limits: Int64[np.ndarray, " string"]
) -> Blank:
    """Inputs with `CLS` before and `SEP` behind them, in groups of like length."""
    width, count = lanes(), -(-len(inputs) // lanes())
    begins = inputs.lengths + 2
    # A group is written until its longest output ends, so like lengths go together.
    order = np.argsort(-(begins + limits), kind="stable")
    places = np.empty(len(inputs), np.int64)
    places[order] = np.arange(len(inputs))
    ids = np.pad(inputs.ids, ((0, 0), (1, 1)), constant_values=CLS)
    ids[np.arange(len(inputs)), begins - 1] = separator_id(network)
    given = np.zeros((count * width, ids.shape[1]), np.int16)
    given[places] = head_rows(network)[ids]
    by_lane = given.reshape(count, width, -1).transpose(0, 2, 1)
    first, most = np.zeros((2, count * width), np.int64)
    first[places], most[places] = begins, limits
    shape = count, width
    return Blank(np.ascontiguousarray(by_lane), first.reshape(shape), most.reshape(shape), places)


def empty_outputs(blank: Blank) -> OutputBuffers:
    """Outputs of which nothing is written yet."""
    shape = count, width = blank.begins.shape
    return OutputBuffers(
        given=blank.given,
        begins=blank.begins,
        limits=blank.limits,
        written=np.full((count, int(blank.limits.max(initial=1)), width), -1, np.int16),
        counts=np.zeros(shape, np.int64),
        is_ended=np.zeros(shape, np.bool_),
        scores=np.zeros(shape),
        scratch=np.zeros(SCRATCH_VECTORS * lanes(), np.float32),
    )


def written_of(network: NetworkConfig, blank: Blank, outputs: OutputBuffers) -> WrittenOutputs:
    """Outputs in the order of the strings."""
    # From the head's rows back to token ids; the appended -1 is what -1 looks up.
    ids, at = np.append(np.argsort(head_rows(network)), -1), blank.places
    written = outputs.written.transpose(0, 2, 1)
    tokens = written.reshape(-1, written.shape[2])[at]
    return WrittenOutputs(
        ids[tokens].astype(np.int16),
        outputs.is_ended.reshape(-1)[at],
        outputs.scores.reshape(-1)[at],
    )
