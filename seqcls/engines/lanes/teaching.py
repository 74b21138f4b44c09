"""What training and scoring have in common for all networks that write."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from seqcls.engines.compiled.training import Flat, Update
from seqcls.engines.lanes.outputs import Lesson, epoch_lesson, validation_lesson
from seqcls.engines.lanes.packing import PackedProgram, Slots
from seqcls.problem import Problem


class Steps(NamedTuple):
    """What training goes on from."""

    moments: Float[np.ndarray, "2 parameter"]
    done: int
    update: Update


class Results(NamedTuple):
    """What came out for strings, in the places of their groups."""

    loss: float
    """The sum of all, in nats."""
    losses: Float[np.ndarray, "group lane"]
    missed: Int64[np.ndarray, "group lane"]
    """Tokens of each output that are not the likeliest; counted where nothing is trained."""
    missed_inside: Int64[np.ndarray, "group lane"]
    """The wrong ones before the end and among letters."""


class OutputProgram(PackedProgram, ABC):
    """One member's epochs and validation.

    Args:
        problem: a transduction, and a network that writes.
        slots: where its parameters stand.
        size: of all parameters.
        groups: of a batch that is only scored.
    """

    def __init__(self, problem: Problem, slots: Slots, size: int, groups: int) -> None:
        super().__init__(problem.network, slots, size)
        self._train = problem.train
        self._validation = validation_lesson(problem.network, problem.validation, groups)

    @abstractmethod
    def taught(self, flat: Flat, lesson: Lesson, steps: Steps | None) -> Results:
        """Trains on strings, in place, or scores them where no steps are given."""

    def epoch(
        self, flat: Flat, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Implements `Program.epoch`."""
        lesson = epoch_lesson(self._network, self._train, number)
        results = self.taught(flat, lesson, Steps(moments, steps, update))
        return results.loss, len(lesson.taught.shares)

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Implements `Program.validation`."""
        results = self.taught(flat, self._validation, None)
        return results.loss, not results.missed.any()
