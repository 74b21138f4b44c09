"""A network in compiled code: evaluated, scored and decoded, and its training by epochs."""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import (
    Flat,
    Steps,
    all_classified,
    all_right,
    tiles_between,
)
from seqcls.engines.compiled.parameters import Update
from seqcls.engines.lanes.batches import (
    epoch_groups,
    make_outputs,
    tested_groups,
    validation_groups,
)
from seqcls.engines.lanes.layers import READOUTS
from seqcls.engines.lanes.parameters import (
    output_rows,
    padded_size,
    token_numbers,
    vectors,
)
from seqcls.engines.lanes.places import positions_of, written_positions
from seqcls.engines.lanes.positions import PositionArrays
from seqcls.engines.lanes.programs import program_of
from seqcls.engines.lanes.run import Found, Network, Strings, run, write
from seqcls.engines.lanes.tape import ANSWERING, TRAINING, WRITING
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds import Examples
from seqcls.kinds.base import Scored, Written
from seqcls.kinds.transduction import NO_TARGET
from seqcls.models.positions.numbers import training_generator
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks import Task

NO_STEPS = Steps(np.zeros((2, 0), np.float32), 0, Update(np.zeros(0), 0.0, 0.0))
TOGETHER, ONE_BY_ONE = 8, 64
"""Groups of a batch that is only evaluated: if all pass the network together, enough to make use of
each weight that is loaded; otherwise any number."""
WRITTEN_TOGETHER = 4
"""Groups whose outputs are decoded together, unless all pass the network together."""


class LaneCell:
    """A network in compiled code.

    Args:
        network: one that the engine can train.
    """

    def __init__(self, network: NetworkConfig) -> None:
        self.network = network
        # Neither parameters nor the rest depend on these sizes.
        program, parameters = program_of(network, 4, 4, 1, ANSWERING)
        self.parameters, self.together = parameters, program.together
        self.groups = TOGETHER if self.together else ONE_BY_ONE

    def run(
        self,
        flat: Flat,
        strings: Strings,
        positions: PositionArrays,
        steps: Steps | None = None,
        *,
        scaled: bool = False,
        with_logits: bool = False,
    ) -> tuple[float, Found]:
        """Evaluates strings, or trains on them, in place, if steps are given.

        Args:
            scaled: whether losses are those of `sigmoid_scaled`.
            with_logits: whether the head's outputs at tokens are returned too.

        Returns:
            The sum of the losses in nats, and what was found of each string.
        """
        use, groups = ANSWERING if steps is None else TRAINING, 1
        rows, inputs = padded_size(strings.ids.shape[1]), padded_size(strings.inputs.shape[1])
        if self.together:
            rows, groups = most_rows(strings)
            # A multiple of 64, so that few lists are made.
            rows = max(-(-rows // 64) * 64, groups)
        program, _ = program_of(self.network, rows, max(inputs, 4), groups, use)
        states, network = vectors(program.size, lanes()), self._network(scaled=scaled)
        shape, outputs = strings.lengths.shape, self.network.num_outputs * with_logits
        found = Found(
            logits=np.empty(shape, np.float32),
            losses=np.zeros(shape),
            missed=np.zeros(shape, np.int64),
            missed_inside=np.zeros(shape, np.int64),
            token_logits=np.zeros((*strings.token_targets.shape, outputs), np.float32),
        )
        loss: float = run(
            flat, *(steps or NO_STEPS), program, network, strings, positions, found, states
        )
        return loss, found

    def _network(self, *, scaled: bool = False) -> Network:
        """Returns the network's settings for compiled code."""
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
            factor=1 / math.sqrt(max(network.attention_head_size, 1)),
        )

    def logits(
        self, weights: Sequence[Weights], task: Task, strings: TokenStrings
    ) -> Float[np.ndarray, "member string *output"]:
        """Returns the outputs of models of this shape: a logit of each string, or all outputs at
        its tokens, with NaN after its end.
        """
        at_tokens = self.network.head != "string"
        there = np.arange(strings.lengths.max(initial=0) + 1) <= strings.lengths[:, None]
        # The targets are not used.
        targets = np.where(there, 0, NO_TARGET) if at_tokens else np.zeros(len(strings))
        groups = tested_groups(self.network, task, Examples(strings, targets), self.groups)
        positions, outputs = positions_of(self.network, groups), []
        for flat in map(self.parameters.pack, weights):
            _, found = self.run(flat, groups.strings, positions, with_logits=at_tokens)
            if not at_tokens:
                outputs.append(found.logits.reshape(-1)[groups.places])
                continue
            by_string = found.token_logits.transpose(0, 2, 1, 3)
            own = by_string.reshape(-1, *by_string.shape[2:])[groups.places, : there.shape[1]]
            outputs.append(np.where(there[..., None], own[..., output_rows(self.network)], np.nan))
        return np.stack(outputs)

    def score(self, weights: Weights, task: Task, examples: Examples) -> Scored:
        """Scores a model's targets by teacher forcing."""
        groups = tested_groups(self.network, task, examples, self.groups)
        positions = positions_of(self.network, groups)
        _, found = self.run(self.parameters.pack(weights), groups.strings, positions)
        losses, missed, inside = (
            values.reshape(-1)[groups.places]
            for values in (found.losses, found.missed, found.missed_inside)
        )
        return Scored(missed == 0, inside == 0, -losses)

    def outputs(
        self, weights: Weights, inputs: TokenStrings, limits: Int64[np.ndarray, " string"]
    ) -> list[Written]:
        """Decodes a model's outputs greedily.

        Args:
            inputs: strings that it has positions for.
            limits: the largest number of tokens in each output, at least 1.
        """
        outputs, read, lengths, places = make_outputs(self.network, inputs, limits)
        count, tokens = len(outputs.begins), padded_size(outputs.tokens.shape[1])
        groups = min(TOGETHER if self.together else WRITTEN_TOGETHER, count)
        most = max(read.shape[1], 4)
        program, _ = program_of(self.network, tokens * groups, most * groups, groups, WRITING)
        positions = written_positions(self.network, inputs, places, count, max(tokens, most))
        flat, states = self.parameters.pack(weights), vectors(program.size, lanes())
        write(flat, program, self._network(), positions, groups, outputs, read, lengths, states)
        ids, by_lane = np.argsort(token_numbers(self.network)), outputs.tokens.transpose(0, 2, 1)
        begins, counts = (x.reshape(-1)[places] for x in (outputs.begins, outputs.counts))
        rows = zip(
            by_lane.reshape(-1, by_lane.shape[2])[places],
            begins,
            begins + counts,
            outputs.is_ended.reshape(-1)[places].tolist(),
            outputs.scores.reshape(-1)[places].tolist(),
            strict=True,
        )
        return [Written(ids[x[begin:end]].tolist(), *how) for x, begin, end, *how in rows]


def most_rows(strings: Strings) -> tuple[int, int]:
    """Returns the largest numbers of a batch's rows and groups."""
    sums = np.concatenate([[0], np.cumsum(strings.lengths.max(axis=1))])
    starts = np.concatenate([[0], strings.ends[:-1]])
    rows = int((sums[strings.ends] - sums[starts]).max(initial=0))
    return rows, int((strings.ends - starts).max(initial=1))


class LaneProgram:
    """A member's epochs and validation."""

    def __init__(self, problem: Problem) -> None:
        self._cell, self._problem = LaneCell(problem.network), problem
        self.rng: np.random.Generator | None = training_generator(problem.config.train_seed)
        self.parameters = self._cell.parameters
        self._scaled = problem.config.train_loss == "sigmoid_scaled"
        self._validation = validation_groups(problem.network, problem.validation, self._cell.groups)
        self._positions = positions_of(problem.network, self._validation)

    def epoch(
        self, flat: Flat, steps: Steps, epoch: int, first: int = 0, last: int | None = None
    ) -> tuple[float, int]:
        """Implements `Program.epoch`."""
        train = self._problem.train
        groups = epoch_groups(self._problem.network, train, epoch)
        if first == 0:
            # Once an epoch: a check within it must not change the draws.
            self._drawn = positions_of(self._problem.network, groups, train.batch_size, self.rng)
        strings = groups.batches(first, last)
        rows = self._drawn.rows[tiles_between(groups.strings.ends, first, last)]
        positions = self._drawn._replace(rows=rows)
        loss, _ = self._cell.run(flat, strings, positions, steps, scaled=self._scaled)
        return loss, len(strings.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""
        strings, places = self._validation.strings, self._validation.places
        loss, found = self._cell.run(flat, strings, self._positions, scaled=self._scaled)
        if self._problem.network.head == "string":
            return loss, all_classified(self._problem, found.logits.reshape(-1)[places])
        return loss, all_right(self._problem, found.missed.reshape(-1)[places] == 0)
