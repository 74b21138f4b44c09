"""Training by compiled code: one member after another.

A member's result depends on nothing but its configuration and seed, to the last bit on one machine.
"""

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float

from seqcls.engines.base import Member, Progress
from seqcls.engines.compiled.adamw import Update
from seqcls.engines.member import MemberTraining, learning_rate
from seqcls.problem import Problem
from seqcls.results import EpochLosses, TrainedMember, Weights

Flat = Float[np.ndarray, " parameter"]
"""A model's parameters, one after another."""


@runtime_checkable
class Program(Protocol):
    """One member's epochs and validation."""

    def pack(self, weights: Weights) -> Flat:
        """The parameters as compiled code takes them."""
        ...

    def unpack(self, flat: Flat) -> Weights:
        """Copies of the parameters, by name."""
        ...

    def epoch(
        self, flat: Flat, moments: np.ndarray, steps: int, update: Update, number: int
    ) -> tuple[float, int]:
        """Trains for an epoch, in place; the sum of its losses, and how many steps it had."""
        ...

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """The sum of the losses over the validation strings; whether all of them are right, told
        only by what can stop there.
        """
        ...


def train_one_by_one(
    members: Sequence[Member],
    initial: Sequence[Weights] | None,
    program_of: Callable[[Problem], Program],
    *,
    every_epoch: bool,
    progress: Progress,
) -> list[TrainedMember]:
    """Trains members from their initial parameters, in their order.

    Drawing these, where they are missing, loads PyTorch.
    """
    if initial is None:
        from seqcls.engines.initial import draw_initial

        initial = draw_initial(members)
    results = []
    for number, (member, start) in enumerate(zip(members, initial, strict=True)):
        training = MemberTraining(number, *member, every_epoch)
        program = program_of(training.problem)
        results.append(_train(training, program, start, partial(_add, progress, number)))
    return results


def _add(progress: Progress, before: int, done: float, epochs: Sequence[EpochLosses]) -> None:
    progress(before + done, epochs)


def _train(
    training: MemberTraining, program: Program, initial: Weights, progress: Progress
) -> TrainedMember:
    started = time.perf_counter()
    config = training.problem.config
    flat = program.pack(initial)
    moments = np.zeros((2, len(flat)), flat.dtype)
    epoch, steps, goes_on = 0, 0, True
    while goes_on:
        rate = learning_rate(training.problem, epoch + 1)
        update = Update(rate, config.weight_decay, config.gradient_clip)
        train_loss, done = program.epoch(flat, moments, steps, update, epoch)
        epoch, steps = epoch + 1, steps + done
        validation_loss, all_right = program.validation(flat)
        goes_on = training.goes_on_after(
            train_loss, validation_loss, lambda: program.unpack(flat), all_right=all_right
        )
        progress(epoch / config.max_num_epochs if goes_on else 1.0, training.last_epoch())
    training.result.train_seconds = time.perf_counter() - started
    return training.result
