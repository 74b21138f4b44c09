"""Training by the engine of lanes: a member's epochs and its validation."""

from abc import ABC, abstractmethod

import numpy as np

from seqcls.engines.compiled.engine import (
    EpochPart,
    Flat,
    Steps,
    all_classified,
    all_right,
    some_batches,
    tiles_between,
)
from seqcls.engines.lanes.batches import (
    LaneBatch,
    epoch_batch,
    epoch_groups,
    validation_batch,
    validation_groups,
)
from seqcls.engines.lanes.cell import LaneCell, Results
from seqcls.engines.lanes.places import positions_of, positions_of_batch
from seqcls.engines.lanes.positions import PositionArrays
from seqcls.models.positions.numbers import training_generator
from seqcls.problem import Problem


class LaneProgram(ABC):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem, cell: LaneCell) -> None:
        self._cell, self._problem, self._train = cell, problem, problem.train
        self.rng: np.random.Generator | None = training_generator(problem.config.train_seed)
        self.pack, self.unpack = cell.pack, cell.unpack

    @abstractmethod
    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        """Implements `Program.epoch`."""

    @abstractmethod
    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""


class AnswerProgram(LaneProgram):
    """That of a network which gives one answer to a string."""

    def __init__(self, problem: Problem, cell: LaneCell) -> None:
        super().__init__(problem, cell)
        self._readout = problem.network.readout
        self._scaled = problem.config.train_loss == "sigmoid_scaled"
        self._validation = validation_groups(
            self._readout,
            problem.validation,
            cell.groups,
            alike=cell.alike,
            by_counts=cell.by_counts,
        )
        self._places = positions_of(cell.network, self._validation)

    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        number, first, last = part
        by_counts = self._cell.by_counts
        groups = epoch_groups(self._readout, self._train, number, by_counts=by_counts)
        if first == 0:
            # Once an epoch: a check within it must not change what is drawn.
            self._drawn = positions_of(self._cell.network, groups, self._train.batch_size, self.rng)
        strings = some_batches(groups.strings, first, last)
        chosen = tiles_between(groups.strings.ends, first, last)
        places = _some_groups(self._drawn, chosen)
        loss, _ = self._cell.answer(flat, strings, places, steps, scaled=self._scaled)
        return loss, len(strings.ends)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        strings, places = self._validation
        loss, logits = self._cell.answer(flat, strings, self._places, scaled=self._scaled)
        return loss, all_classified(self._problem, logits.reshape(-1)[places])


class OutputProgram(LaneProgram):
    """That of a network which writes, or answers at every token."""

    def __init__(self, problem: Problem, cell: LaneCell) -> None:
        super().__init__(problem, cell)
        self._validation = validation_batch(problem.network, problem.validation, cell.groups)

    def train(
        self, flat: Flat, batch: LaneBatch, steps: Steps, first: int = 0, last: int | None = None
    ) -> Results:
        """Trains on strings, or on some batches of them, in place."""
        if first == 0:
            # Once an epoch: a check within it must not change what is drawn.
            self._drawn = positions_of_batch(
                self._cell.network, batch, self._train.batch_size, self.rng
            )
        chosen = tiles_between(batch.examples.strings.ends, first, last)
        places = _some_groups(self._drawn, chosen)
        return self._cell.train_or_score(flat, batch.examples_in(first, last), places, steps)

    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        batch = epoch_batch(self._cell.network, self._train, part.number)
        results = self.train(flat, batch, steps, part.first, part.last)
        return results.loss, len(batch.examples.shares[part.first : part.last])

    def validation(self, flat: Flat) -> tuple[float, bool]:
        places = positions_of_batch(self._cell.network, self._validation)
        results = self._cell.train_or_score(flat, self._validation.examples, places)
        missed = results.missed.reshape(-1)[self._validation.groups.places]
        return results.loss, all_right(self._problem, missed == 0)


def _some_groups(positions: PositionArrays, groups: slice) -> PositionArrays:
    return positions._replace(rows=positions.rows[groups])
