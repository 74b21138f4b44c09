"""A network as compiled code takes it: trained, answering, scored, writing."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int16, Int64, UInt8

from seqcls.config import NetworkConfig
from seqcls.counts import counts_suffice
from seqcls.engines.compiled.engine import Flat, Steps, Update
from seqcls.engines.lanes.batches import (
    Blank,
    LaneBatch,
    LaneExamples,
    LaneStrings,
    WrittenOutputs,
    answering_groups,
    empty_outputs,
    make_batch,
    make_blank,
    scored_batch,
    written_of,
)
from seqcls.engines.lanes.layers import READOUTS
from seqcls.engines.lanes.loss import OutputBuffers
from seqcls.engines.lanes.packing import output_rows, pack, padded_size, unpack, vectors
from seqcls.engines.lanes.parts import score_factor
from seqcls.engines.lanes.places import positions_of, positions_of_batch, written_positions
from seqcls.engines.lanes.positions import PositionArrays
from seqcls.engines.lanes.programs import program_of
from seqcls.engines.lanes.run import Found, Model, Network, Strings, run, write
from seqcls.engines.lanes.tape import ANSWERING, TRAINING, WRITING
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds import Examples
from seqcls.kinds.transduction import NO_TARGET, separator_id
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import PAD
from seqcls.tasks import Task

NO_STEPS = Steps(np.zeros((2, 0), np.float32), 0, Update(np.zeros(0), 0.0, 0.0))
TOGETHER, ONE_BY_ONE = 8, 64
"""Groups of a batch that is only answered or scored: where all go through the network at once,
enough to make use of each weight that is loaded; else any number."""
WRITTEN_TOGETHER = 4
"""Groups whose outputs are written together, unless all go through the network at once."""

Ids = UInt8[np.ndarray, "group position lane"]
Lengths = Int64[np.ndarray, "group lane"]


class Results(NamedTuple):
    """What came out for strings, in the places of their groups."""

    loss: float
    """The sum of all, in nats."""
    losses: Float[np.ndarray, "group lane"]
    missed: Int64[np.ndarray, "group lane"]
    """Tokens of each output that are not the likeliest, or wrong answers; counted where nothing is
    trained."""
    missed_inside: Int64[np.ndarray, "group lane"]
    """The wrong ones before the end and among letters."""
    token_logits: Float[np.ndarray, "group position lane output"]
    """The head's numbers where something is to be predicted; nothing where nobody asks."""


class LaneCell:
    """A network as compiled code takes it.

    Args:
        network: one that the engine can train.
    """

    def __init__(self, network: NetworkConfig) -> None:
        self.network = network
        # Any size will do: where parameters stand depends on the network alone.
        program, self.parameters = program_of(network, 4, 4, 1, ANSWERING)
        self.slots, self.together = self.parameters.slots, program.together
        self.groups = TOGETHER if self.together else ONE_BY_ONE
        # Places are drawn for strings of one length.
        self.alike = network.position_range > 0
        self.by_counts = network.head == "string" and not counts_suffice(network, training=True)

    def pack(self, weights: Weights) -> Flat:
        """The parameters in one array."""
        return pack(self.slots, self.parameters.size, weights)

    def unpack(self, flat: Flat) -> Weights:
        """Copies of the parameters, by name."""
        return unpack(self.network, self.slots, flat)

    def answer(
        self,
        flat: Flat,
        strings: LaneStrings,
        positions: PositionArrays,
        steps: Steps | None = None,
        *,
        scaled: bool = False,
    ) -> tuple[float, Float[np.ndarray, "group lane"]]:
        """The sum of the losses of strings and their logits; trains on them if steps are given."""
        found = _nothing_found((0, 0))._replace(logits=np.empty(strings.targets.shape, np.float32))
        width = strings.targets.shape[1]
        nothing = (
            np.zeros((0, 0, width), np.int16),
            np.zeros(0, np.float32),
            np.zeros((0, 0), np.float32),
        )
        read = Strings(
            strings.ids,
            strings.times,
            strings.lengths,
            strings.sizes,
            np.zeros((0, 0, width), np.uint8),
            strings.lengths[:0],
            strings.ends,
            strings.targets,
            strings.weights,
            *nothing,
        )
        return self._play(flat, read, positions, found, steps, scaled=scaled), found.logits

    def train_or_score(
        self,
        flat: Flat,
        examples: LaneExamples,
        positions: PositionArrays,
        steps: Steps | None = None,
        *,
        with_logits: bool = False,
    ) -> Results:
        """Trains on strings, in place, or scores them where no steps are given, and returns the
        head's numbers too where `with_logits` says so.
        """
        strings, token_targets, ids = examples.strings, examples.token_targets, examples.strings.ids
        lengths = strings.lengths
        inputs, input_lengths = np.zeros((0, 0, ids.shape[2]), np.uint8), lengths[:0]
        if self.network.architecture == "encoder_decoder":
            streams = self._streams(strings, token_targets)
            ids, lengths, inputs, input_lengths, token_targets = streams
        outputs = self.network.num_outputs * with_logits
        token_logits = np.zeros((*token_targets.shape, outputs), np.float32)
        found = _nothing_found(lengths.shape)._replace(token_logits=token_logits)
        read = Strings(
            ids,
            strings.times,
            lengths,
            lengths,
            inputs,
            input_lengths,
            strings.ends,
            strings.targets,
            strings.weights,
            token_targets,
            examples.shares,
            examples.sets,
        )
        return Results(self._play(flat, read, positions, found, steps), *found[1:])

    def _play(
        self,
        flat: Flat,
        strings: Strings,
        positions: PositionArrays,
        found: Found,
        steps: Steps | None,
        *,
        scaled: bool = False,
    ) -> float:
        training, groups = steps is not None, 1
        rows, inputs = padded_size(strings.ids.shape[1]), padded_size(strings.inputs.shape[1])
        if self.together:
            rows, groups = most_rows(strings)
            # So that few lists are made.
            rows = max(-(-rows // 64) * 64, groups)
        use = TRAINING if training else ANSWERING
        program, _ = program_of(self.network, rows, max(inputs, 4), groups, use)
        gradient, states = (
            np.zeros_like(flat) if training else flat[:0],
            vectors(program.size, lanes()),
        )
        network = self._network(scaled=scaled)
        model = Model(training, flat, gradient, *(steps or NO_STEPS), network, states)
        loss: float = run(model, program, strings, positions, found)
        return loss

    def _network(self, *, scaled: bool = False) -> Network:
        """What compiled code is told of the network."""
        network = self.network
        return Network(
            types=network.num_letters + 1,
            outputs=network.num_outputs,
            at_tokens=network.head != "string",
            at_places=network.head == "places",
            two_streams=network.architecture == "encoder_decoder",
            readout=READOUTS[network.readout],
            scaled_loss=scaled,
            eps=network.layer_norm_eps,
            factor=np.float32(score_factor(network)),
            exact_factor=score_factor(network),
        )

    def _streams(
        self, strings: LaneStrings, token_targets: Int16[np.ndarray, "group position lane"]
    ) -> tuple[Ids, Lengths, Ids, Lengths, Int16[np.ndarray, "group position lane"]]:
        """The output and the input of `CLS x SEP y`, each from its first token on, and what is to
        be predicted in the output.
        """
        count, tokens, width = strings.ids.shape

        def by_string(x: np.ndarray) -> np.ndarray:
            return x.transpose(0, 2, 1).reshape(count * width, tokens)

        def by_lane(x: np.ndarray, size: int) -> np.ndarray:
            return np.ascontiguousarray(x[:, :size].reshape(count, width, size).transpose(0, 2, 1))

        ids, token_targets = by_string(strings.ids), by_string(token_targets)
        is_output = np.cumsum(ids == separator_id(self.network), axis=1) > 0
        begins = (~is_output & (ids != PAD)).sum(axis=1)
        lengths = (is_output & (ids != PAD)).sum(axis=1)
        columns = begins[:, None] + np.arange(tokens)
        inside = columns < tokens
        columns = np.minimum(columns, tokens - 1)
        outputs = np.where(inside, np.take_along_axis(ids, columns, 1), PAD).astype(np.uint8)
        moved = np.where(inside, np.take_along_axis(token_targets, columns, 1), -1).astype(np.int16)
        size = padded_size(int(lengths.max(initial=1)))
        inputs = by_lane(
            np.where(is_output, PAD, ids).astype(np.uint8), padded_size(int(begins.max(initial=1)))
        )
        shape = count, width
        own = by_lane(outputs, size), lengths.reshape(shape)
        return *own, inputs, begins.reshape(shape), by_lane(moved, size)

    def logits(
        self, weights: Sequence[Weights], strings: TokenStrings
    ) -> Float[np.ndarray, "member string"]:
        """Logits of models of this shape."""
        groups = answering_groups(
            self.network.readout,
            strings,
            self.groups,
            alike=self.alike,
            by_counts=self.by_counts,
        )
        positions = positions_of(self.network, groups)
        rows = [self.answer(self.pack(member), groups.strings, positions)[1] for member in weights]
        return np.stack([logits.reshape(-1)[groups.places] for logits in rows])

    def answers(
        self, weights: Sequence[Weights], task: Task, strings: TokenStrings
    ) -> Float[np.ndarray, "member string place output"]:
        """What models of this shape answer at every place; NaN after each string's end."""
        places = np.arange(strings.lengths.max(initial=0) + 1)
        shape = len(weights), len(strings), len(places), self.network.num_outputs
        outputs = np.full(shape, np.nan, np.float32)
        longest_first, size = np.argsort(-strings.lengths, kind="stable"), self.groups * lanes()
        for first in range(0, len(strings), size):
            rows = longest_first[first : first + size]
            there = places <= strings.lengths[rows, None]
            # Any answer may be right: nothing is made of it.
            examples = Examples(strings.take(rows), np.where(there, 0, NO_TARGET))
            batch = make_batch(self.network, task, examples, [np.arange(len(rows))])
            positions = positions_of_batch(self.network, batch)
            for member, member_weights in enumerate(weights):
                flat = self.pack(member_weights)
                results = self.train_or_score(flat, batch.examples, positions, with_logits=True)
                token_logits = results.token_logits
                by_string = token_logits.transpose(0, 2, 1, 3).reshape(
                    -1, *token_logits.shape[1::2]
                )
                own = by_string[batch.groups.places][:, : len(places), output_rows(self.network)]
                width = own.shape[1]
                outputs[member, rows, :width] = np.where(there[:, :width, None], own, np.nan)
        return outputs

    def scores(self, weights: Weights, task: Task, examples: Examples) -> tuple[Results, LaneBatch]:
        """What a model makes of inputs with their targets, and where each stands."""
        batch = scored_batch(self.network, task, examples, self.groups)
        positions = positions_of_batch(self.network, batch)
        return self.train_or_score(self.pack(weights), batch.examples, positions), batch

    def outputs(
        self, weights: Weights, inputs: TokenStrings, limits: Int64[np.ndarray, " string"]
    ) -> WrittenOutputs:
        """What a model writes for inputs, the likeliest token at every place.

        Args:
            inputs: strings that it has places for.
            limits: tokens of each output at most, at least 1.
        """
        blank = make_blank(self.network, inputs, limits)
        outputs = empty_outputs(blank)
        self._write(self.pack(weights), blank, inputs, outputs)
        return written_of(self.network, blank, outputs)

    def _write(
        self, flat: Flat, blank: Blank, inputs: TokenStrings, outputs: OutputBuffers
    ) -> None:
        count, width = blank.begins.shape
        groups, tokens, most = (
            min(TOGETHER if self.together else WRITTEN_TOGETHER, count),
            blank.tokens,
            4,
        )
        read, lengths = np.zeros((0, 0, width), np.uint8), blank.begins[:0]
        if self.network.architecture == "encoder_decoder":
            # The encoder reads all but SEP, which the decoder reads first.
            size = inputs.ids.shape[1] + 1
            most = padded_size(size)
            ids = np.full((blank.begins.size, most), PAD, np.uint8)
            ids[blank.places, 1:size] = inputs.ids
            ids[blank.places, 0] = 0
            read = np.ascontiguousarray(ids.reshape(count, width, most).transpose(0, 2, 1))
            lengths = np.where(blank.begins > 0, blank.begins - 1, 0)
            last = np.maximum(blank.begins - 1, 0)[:, None]
            given = np.ascontiguousarray(np.take_along_axis(blank.given, last, 1))
            outputs = outputs._replace(given=given, begins=np.minimum(blank.begins, 1))
            tokens = padded_size(int(blank.limits.max(initial=1)) + 1)
        program, _ = program_of(self.network, tokens * groups, most * groups, groups, WRITING)
        positions = written_positions(self.network, blank, inputs, max(tokens, most))
        states = vectors(program.size, lanes())
        write(flat, program, self._network(), positions, groups, outputs, read, lengths, states)


def _nothing_found(shape: tuple[int, ...]) -> Found:
    """Losses and counts of nothing, and no numbers."""
    return Found(
        np.empty((0, lanes()), np.float32),
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros((0, 0, lanes(), 0), np.float32),
    )


def most_rows(strings: Strings) -> tuple[int, int]:
    """The most that a batch has: tokens of all its groups, and groups."""
    sums = np.concatenate([[0], np.cumsum(strings.lengths.max(axis=1))])
    starts = np.concatenate([[0], strings.ends[:-1]])
    rows = int((sums[strings.ends] - sums[starts]).max(initial=0))
    return rows, int((strings.ends - starts).max(initial=0))
