"""Strings in groups of as many as a vector has lanes, with their targets, and outputs of such."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64, Integer

from seqcls.cache import remembered
from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice, read_counts
from seqcls.engines.compiled.engine import tiles_between
from seqcls.engines.lanes.loss import OutputBuffers
from seqcls.engines.lanes.parameters import output_rows, padded_size, token_numbers
from seqcls.engines.lanes.run import Strings
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds import KINDS, Examples, Kind, kind_name
from seqcls.kinds.places import PlacesKind
from seqcls.kinds.transduction import NO_TARGET, separator_id
from seqcls.models.positions import LETTERS_ALONE, read_ids
from seqcls.sampling import Sampler
from seqcls.sampling.streams import stream
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, PAD
from seqcls.tasks import Task


class Groups(NamedTuple):
    """Strings in groups; a batch begins with a new group, and its last one may not be full.

    Within a batch the longest strings come first, so that those of a group have similar lengths.
    """

    strings: Strings
    places: Int64[np.ndarray, " string"]
    """Each string's group times the number of lanes, plus its lane."""
    lengths: Int64[np.ndarray, " string"]
    """Number of tokens that are read of each string, repetitions included."""
    coupled: Int64[np.ndarray, "string position"] | None
    """Coupled positions, before training shifts them."""

    def batches(self, first: int, last: int | None) -> Strings:
        """Returns some batches, as views; `last` is exclusive, None for all."""
        *by_group, sets, shares, ends = self.strings
        groups = tiles_between(ends, first, last)
        chosen = [x[groups] for x in by_group]
        return Strings(*[*chosen, sets, shares[first:last], ends[first:last] - groups.start])


def make_groups(
    network: NetworkConfig,
    task: Task,
    examples: Examples,
    batches: Sequence[Int64[np.ndarray, " _"]],
) -> Groups:
    """Arranges strings with their targets in groups.

    Args:
        batches: the rows of the strings of each batch.
    """
    width, at_tokens = lanes(), network.head != "string"
    read = _kind(task).reading(task, examples)
    readout = "first" if at_tokens else network.readout
    tokens_read = read.lengths + (readout not in LETTERS_ALONE)
    if not at_tokens and counts_suffice(network, training=True) is None:
        ids_read, times = read_counts(readout, read.counts)
        lengths = np.full(len(read), len(ids_read))
    else:
        ids_read, times = read_ids(read, readout), np.zeros((len(read), 0))
        lengths = tokens_read
    sizes = np.array([-(-len(rows) // width) for rows in batches], np.int64)
    ends = np.cumsum(sizes)
    places = np.empty(len(read), np.int64)
    shares = np.empty(len(read), np.float32)
    for rows, end, size in zip(batches, ends, sizes, strict=True):
        longest_first = rows[np.argsort(-tokens_read[rows], kind="stable")]
        places[longest_first] = (end - size) * width + np.arange(len(rows))
        shares[rows] = 1 / len(rows)
    count, tokens = int(sizes.sum()), padded_size(int(lengths.max(initial=1)))

    def place(values: np.ndarray, dtype: type) -> np.ndarray:
        placed: np.ndarray = np.zeros(count * width, dtype)
        placed[places] = values
        return placed.reshape(count, width)

    ids = np.full((count * width, tokens), PAD, np.uint8)
    ids[places, : ids_read.shape[-1]] = ids_read[..., :tokens]
    often = np.zeros((count * width, times.shape[1] and tokens), np.float32)
    often[places, : times.shape[1]] = times
    nothing = np.zeros((0, 0), np.int64)
    strings = Strings(
        ids=_by_lane(token_numbers(network)[ids].astype(np.uint8)),
        times=_by_lane(often),
        lengths=place(lengths, np.int64),
        sizes=place(tokens_read, np.int64),
        inputs=_by_lane(nothing.astype(np.uint8)),
        input_lengths=np.zeros((0, width), np.int64),
        targets=place(np.zeros(len(read)) if at_tokens else examples.targets, np.float32),
        weights=place(shares, np.float32),
        token_targets=_by_lane(nothing.astype(np.int16)),
        sets=nothing.astype(np.float32),
        shares=np.zeros(0, np.float32),
        ends=ends,
    )
    if at_tokens:
        rows, positions, numbers, sets = _locate_targets(network, task, examples, read)
        predicted = np.bincount(rows, minlength=len(read))
        token_targets = np.full(ids.shape, -1, np.int16)
        token_targets[places[rows], positions] = numbers
        shares = np.array([1 / max(int(predicted[x].sum()), 1) for x in batches], np.float32)
        by_lane = _by_lane(token_targets)
        strings = strings._replace(token_targets=by_lane, sets=sets, shares=shares)
        if network.architecture == "encoder_decoder":
            strings = _split_streams(network, strings, ids, token_targets)
    coupled = coupled_of(network, ids[places]) if network.coupling else None
    return Groups(strings, places, tokens_read, coupled)


def _by_lane(values: np.ndarray) -> np.ndarray:
    """Arranges values by string and position as (group, position, lane)."""
    by_group = values.reshape(len(values) // lanes(), lanes(), values.shape[1])
    return np.ascontiguousarray(by_group.transpose(0, 2, 1))


def _kind(task: Task) -> Kind:
    return KINDS[kind_name(task)]()


def _locate_targets(
    network: NetworkConfig, task: Task, examples: Examples, read: TokenStrings
) -> tuple[np.ndarray, np.ndarray, np.ndarray, Float[np.ndarray, "set output"]]:
    """Returns the targets of tokens: their rows, positions and numbers in `Strings`; its `sets`."""
    kind = _kind(task)
    encoded = kind.encoded(task, examples, network)
    is_predicted = encoded != NO_TARGET
    # The last target, END, is predicted at the last token that is read.
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
        after = np.cumsum(read.ids == separator_id(network), axis=1) > 0
        # The index of a token is one more than that of its letter, because of CLS.
        is_written = np.pad(after, ((0, 0), (1, 0)))[rows, places]
        numbers = numbers + np.where(is_written, 0, network.num_outputs)
    return rows, begins[rows] + places, numbers, sets


def _split_streams(
    network: NetworkConfig, strings: Strings, ids: np.ndarray, token_targets: np.ndarray
) -> Strings:
    """Splits `CLS x SEP y`, (string, position), into input and output, from their first tokens."""
    is_output = np.cumsum(ids == separator_id(network), axis=1) > 0
    begins = (~is_output & (ids != PAD)).sum(axis=1)
    lengths = (is_output & (ids != PAD)).sum(axis=1)
    columns = begins[:, None] + np.arange(padded_size(int(lengths.max(initial=1))))
    inside = columns < ids.shape[1]
    columns = np.minimum(columns, ids.shape[1] - 1)
    inputs = np.where(is_output, PAD, ids)[:, : padded_size(int(begins.max(initial=1)))]
    outputs, targets = (np.take_along_axis(x, columns, 1) for x in (ids, token_targets))
    numbers = token_numbers(network)
    return strings._replace(
        ids=_by_lane(numbers[np.where(inside, outputs, PAD)].astype(np.uint8)),
        lengths=lengths.reshape(strings.lengths.shape),
        sizes=lengths.reshape(strings.lengths.shape),
        inputs=_by_lane(numbers[inputs].astype(np.uint8)),
        input_lengths=begins.reshape(strings.lengths.shape),
        token_targets=_by_lane(np.where(inside, targets, -1).astype(np.int16)),
    )


def coupled_of(
    network: NetworkConfig, ids: Integer[np.ndarray, "string position"]
) -> Int64[np.ndarray, "string position"]:
    """Returns coupled positions of tokens; loads PyTorch."""
    import torch

    from seqcls.models.positions.places import coupled_positions

    places = coupled_positions(network.coupling, torch.from_numpy(ids.astype(np.int64)))
    return np.asarray(places.numpy())


@remembered
def epoch_groups(network: NetworkConfig, sampler: Sampler, epoch: int) -> Groups:
    """Returns an epoch of a stream in groups, made once for all members that train on it."""
    drawn = stream(sampler).epoch(epoch)
    rows, size = np.arange(len(drawn)), sampler.batch_size
    batches = [rows[start : start + size] for start in range(0, len(rows), size)]
    return make_groups(network, sampler.task, drawn, batches)


def tested_groups(network: NetworkConfig, task: Task, examples: Examples, most: int) -> Groups:
    """Returns strings that are only evaluated, in batches of at most `most` groups."""
    lengths = _kind(task).lengths_read(examples)
    if network.position_range:
        # Positions are drawn for strings of one length.
        rows = [np.flatnonzero(lengths == length) for length in np.unique(lengths)]
    else:
        longest_first, size = np.argsort(-lengths, kind="stable"), most * lanes()
        rows = [longest_first[x : x + size] for x in range(0, len(lengths), size)]
    return make_groups(network, task, examples, rows)


@remembered
def validation_groups(network: NetworkConfig, sampler: Sampler, most: int) -> Groups:
    """Returns the strings of a validation in groups, made once for all members."""
    return tested_groups(network, sampler.task, stream(sampler).epoch(0), most)


def make_outputs(
    network: NetworkConfig, inputs: TokenStrings, limits: Int64[np.ndarray, " string"]
) -> tuple[OutputBuffers, np.ndarray, np.ndarray, np.ndarray]:
    """Arranges inputs in groups of similar lengths, with empty outputs.

    Returns:
        The outputs; the tokens of an encoder, (group, position, lane), and how many these are,
        (group, lane); and each input's group times the number of lanes, plus its lane, (string).
    """
    width, count = lanes(), -(-len(inputs) // lanes())
    # A group is decoded until its longest output ends, so similar lengths go together.
    order = np.argsort(-(inputs.lengths + limits), kind="stable")
    places = np.empty(len(inputs), np.int64)
    places[order] = np.arange(len(inputs))
    separator, numbers = separator_id(network), token_numbers(network)
    letters = np.pad(inputs.ids, ((0, 0), (1, 0)), constant_values=CLS)
    if network.architecture == "encoder_decoder":
        # The encoder reads all but SEP, which is the decoder's first token.
        read, given = letters, np.full((len(inputs), 1), separator)
        begins = np.ones(len(inputs), np.int64)
    else:
        read, given = letters[:, :0], np.pad(letters, ((0, 0), (0, 1)))
        begins = inputs.lengths + 2
        given[np.arange(len(inputs)), begins - 1] = separator
    tokens = np.where(np.arange(given.shape[1]) < begins[:, None], numbers[given], 0)

    def place(values: np.ndarray, size: int, filling: int, dtype: type) -> np.ndarray:
        placed: np.ndarray = np.full((count * width, size), filling, dtype)
        placed[places, : values.shape[1]] = values[:, :size]
        return _by_lane(placed)

    def place_one(values: np.ndarray) -> np.ndarray:
        return place(values[:, None], 1, 0, np.int64)[:, 0]

    shape = count, width
    outputs = OutputBuffers(
        tokens=place(tokens, int((begins + limits).max()), 0, np.int16),
        begins=place_one(begins),
        left=place_one(limits),
        counts=np.zeros(shape, np.int64),
        is_ended=np.zeros(shape, np.bool_),
        scores=np.zeros(shape),
    )
    read = place(numbers[read], padded_size(read.shape[1]), numbers[PAD], np.uint8)
    return outputs, read, place_one(inputs.lengths + 1), places
