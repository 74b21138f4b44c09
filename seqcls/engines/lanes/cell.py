# ruff: noqa
# mypy: ignore-errors
"""A program where today's engine takes a cell: training, stopping, validation and tests are today's."""

import numpy as np

from seqcls.engines.lanes.packing import padded_size, vectors
from seqcls.engines.lanes.program import NO_STEPS, LaneCell, Results
from seqcls.engines.lanes.programs import program_of
from seqcls.engines.lanes.run import Found, Model, Network, Strings, run, write
from seqcls.engines.lanes.tape import ANSWERING, TRAINING, WRITING
from seqcls.engines.lanes.transformer_sizes import READOUTS, score_factor
from seqcls.engines.lanes.vector import LANES
from seqcls.kinds.transduction import separator_id
from seqcls.models.positions.numbers import angles, waves
from seqcls.strings.tokenizer import PAD

WRITTEN_TOGETHER = 4


class TapeCell(LaneCell):
    """A network as a program."""

    def __init__(self, network):
        program, parameters = program_of(network, 4, 4, 1, ANSWERING)
        super().__init__(network, parameters.slots, parameters)
        self.together = program.together
        self.groups = 8 if self.together else 64

    def sizes(self, *, scaled_loss):
        return scaled_loss

    def states(self, sizes, strings, *, training):
        raise NotImplementedError

    def own_arguments(self):
        raise NotImplementedError

    def as_taken(self, tokens, scaled=False):
        """What `run` asks about the network, with places for so many tokens."""
        c, places = self.network, np.arange(padded_size(tokens))
        added, turned = np.zeros((1, 1), np.float32), np.zeros((1, 0))
        if c.positions == "sinusoidal":
            added = np.zeros((len(places), padded_size(c.hidden_size)), np.float32)
            added[:, : c.hidden_size] = waves(places, c.hidden_size)
        elif c.positions == "rotary":
            turned = np.asarray(angles(places, c.attention_head_size))
        return Network(
            c.num_letters + 1, c.num_outputs, c.head != "string", c.head == "places", c.architecture == "encoder_decoder",
            READOUTS[c.readout], scaled, c.layer_norm_eps, np.float32(score_factor(c)), added,
            np.cos(turned).astype(np.float32), np.sin(turned).astype(np.float32),
        )  # fmt: skip

    def streams(self, strings, wanted):
        """The input and the output of `CLS x SEP y`, each from its first token on, and what is wanted there."""
        count, tokens, width = strings.ids.shape
        by_string = lambda x: x.transpose(0, 2, 1).reshape(count * width, tokens)
        by_lane = lambda x, size: np.ascontiguousarray(
            x[:, :size].reshape(count, width, size).transpose(0, 2, 1)
        )
        ids, wanted = by_string(strings.ids), by_string(wanted)
        is_output = np.cumsum(ids == separator_id(self.network), axis=1) > 0
        begins = (~is_output & (ids != PAD)).sum(axis=1)
        lengths = (is_output & (ids != PAD)).sum(axis=1)
        columns = begins[:, None] + np.arange(tokens)
        inside = columns < tokens
        columns = np.minimum(columns, tokens - 1)
        outputs = np.where(inside, np.take_along_axis(ids, columns, 1), PAD).astype(np.uint8)
        moved = np.where(inside, np.take_along_axis(wanted, columns, 1), -1).astype(np.int16)
        size, most = (
            padded_size(int(lengths.max(initial=1))),
            padded_size(int(begins.max(initial=1))),
        )
        inputs = by_lane(np.where(is_output, PAD, ids).astype(np.uint8), most)
        shape = count, width
        return (
            by_lane(outputs, size),
            lengths.reshape(shape),
            inputs,
            begins.reshape(shape),
            by_lane(moved, size),
        )

    def answer(self, flat, strings, places, steps=None, *, scaled=False):
        found = Found(np.empty(strings.targets.shape, np.float32), *nothing_found((0, 0)))
        none = (
            np.zeros((0, 0, LANES), np.int16),
            np.zeros(0, np.float32),
            np.zeros((0, 0), np.float32),
        )
        read = Strings(
            strings.ids,
            strings.lengths,
            np.zeros((0, 0, LANES), np.uint8),
            strings.lengths[:0],
            strings.ends,
            strings.targets,
            strings.weights,
            *none,
        )
        return self.play(flat, read, found, steps, scaled), found.logits

    def teach(self, flat, taught, places, steps=None, *, asked=False):
        strings, wanted, ids = taught.strings, taught.wanted, taught.strings.ids
        lengths, inputs, input_lengths = (
            strings.lengths,
            np.zeros((0, 0, LANES), np.uint8),
            strings.lengths[:0],
        )
        if self.network.architecture == "encoder_decoder":
            ids, lengths, inputs, input_lengths, wanted = self.streams(strings, wanted)
        said = np.zeros((*wanted.shape, self.network.num_outputs * asked), np.float32)
        found = Found(np.empty((0, LANES), np.float32), *nothing_found(lengths.shape)[:-1], said)
        read = Strings(
            ids,
            lengths,
            inputs,
            input_lengths,
            strings.ends,
            strings.targets,
            strings.weights,
            wanted,
            taught.shares,
            taught.sets,
        )
        return Results(self.play(flat, read, found, steps), *found[1:])

    def play(self, flat, strings, found, steps, scaled=False):
        training, groups = steps is not None, 1
        rows, inputs = padded_size(strings.ids.shape[1]), padded_size(strings.inputs.shape[1])
        if self.together:
            rows, groups = most_rows(strings)
            rows = max(-(-rows // 64) * 64, groups)
        program, _ = program_of(
            self.network, rows, max(inputs, 4), groups, TRAINING if training else ANSWERING
        )
        steps = steps or NO_STEPS
        gradient = np.zeros_like(flat) if training else flat[:0]
        network = self.as_taken(max(strings.ids.shape[1], strings.inputs.shape[1]), scaled)
        return run(
            Model(training, flat, gradient, *steps, network, vectors(program.size, LANES)),
            program,
            strings,
            found,
        )

    def write(self, flat, sizes, blank, inputs, outputs):
        groups, tokens, network = (
            min(8 if self.together else WRITTEN_TOGETHER, len(blank.begins)),
            blank.tokens,
            self.network,
        )
        read, lengths, most = np.zeros((0, 0, LANES), np.uint8), blank.begins[:0], 4
        if network.architecture == "encoder_decoder":
            # The encoder reads all but SEP, which the decoder reads first.
            width = inputs.ids.shape[1] + 1
            most = padded_size(width)
            ids = np.full((blank.begins.size, most), PAD, np.uint8)
            ids[blank.places, 1:width] = inputs.ids
            ids[blank.places, 0] = 0
            read = np.ascontiguousarray(
                ids.reshape(len(blank.begins), LANES, most).transpose(0, 2, 1)
            )
            lengths = np.where(blank.begins > 0, blank.begins - 1, 0)
            given = np.take_along_axis(blank.given, np.maximum(blank.begins - 1, 0)[:, None], 1)
            outputs = outputs._replace(
                given=np.ascontiguousarray(given), begins=np.minimum(blank.begins, 1)
            )
            tokens = padded_size(int(blank.limits.max(initial=1)) + 1)
        program, _ = program_of(network, tokens * groups, most * groups, groups, WRITING)
        taken = self.as_taken(max(tokens, most))
        write(flat, program, taken, groups, outputs, read, lengths, vectors(program.size, LANES))


def nothing_found(shape):
    """Losses and counts of nothing, and no numbers."""
    return (
        np.zeros(shape),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
        np.zeros((0, 0, LANES, 0), np.float32),
    )


def most_rows(strings) -> tuple[int, int]:
    """The most that a batch has: tokens of all its groups, and groups."""
    sums = np.concatenate([[0], np.cumsum(strings.lengths.max(axis=1))])
    starts = np.concatenate([[0], strings.ends[:-1]])
    rows = int((sums[strings.ends] - sums[starts]).max(initial=0))
    return rows, int((strings.ends - starts).max(initial=0))
