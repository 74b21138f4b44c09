"""The common parts of the compiled engines: programs, training by them, and the engine."""

import logging
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.curricula import frozen_parameters
from seqcls.engines.base import Member, Progress, Writer
from seqcls.engines.compiled.machine_code import is_compiled, is_ready, mark_compiled
from seqcls.engines.compiled.parameters import Parameters, Update
from seqcls.engines.member import (
    MemberTraining,
    Unfinished,
    checks_within_epoch,
    draw_initial,
    is_matrix,
    learning_rates,
    steps_of_epoch,
    whole_epochs_loss,
)
from seqcls.problem import Problem, configuration, resolve
from seqcls.results import EpochLosses, TrainedMember, Weights
from seqcls.sampling.streams import stream

_log = logging.getLogger(__name__)

# Training by compiled code: one member after another.
#
# A member's result depends on nothing but its configuration and seed, to the last bit on one
# machine.


Flat = Float[np.ndarray, " parameter"]
"""A model's parameters in one array."""


class Steps(NamedTuple):
    """The state of the optimizer before some steps, and their settings."""

    moments: Float[np.ndarray, "2 parameter"]
    """AdamW's first and second moments."""
    done: int
    """Number of steps made so far."""
    update: Update


@runtime_checkable
class Program(Protocol):
    """One member's epochs and validation."""

    parameters: Parameters
    rng: np.random.Generator | None
    """The generator of training's positions, where any are drawn."""

    def epoch(
        self, flat: Flat, steps: Steps, epoch: int, first: int = 0, last: int | None = None
    ) -> tuple[float, int]:
        """Trains on an epoch or a part of it, in place: the parameters and their moments.

        Args:
            epoch: counted from 0.
            first: the first batch; those before have been trained on just before.
            last: the end of the batches, exclusive; None for all.

        Returns:
            The sum of the losses, and the number of steps.
        """
        ...

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Returns the sum of the losses over the validation strings, and whether those of trained
        lengths are all right; False unless training ends then.
        """
        ...


def tiles_between(ends: Int64[np.ndarray, " batch"], first: int, last: int | None) -> slice:
    """Returns the tiles or groups of some batches, given the end of each, exclusive."""
    return slice(int(ends[first - 1]) if first else 0, int(ends[first:last][-1]))


def all_right(problem: Problem, right: Bool[np.ndarray, " string"]) -> bool:
    """Returns True if training ends when all validation strings of trained lengths are right, and
    they are.
    """
    if not problem.config.stop_when_right:
        return False
    strings = stream(problem.validation).epoch(0).strings
    return bool(right[problem.are_of_trained_lengths(strings)].all())


def all_classified(problem: Problem, logits: Float[np.ndarray, " string"]) -> bool:
    """Returns `all_right` of a language, given the logits of the validation strings."""
    if not problem.config.stop_when_right:
        return False
    labels = stream(problem.validation).epoch(0).labels
    # NaN is no answer.
    return all_right(problem, np.where(labels, logits > 0, logits <= 0))


@dataclass
class _Underway:
    """A member's training between two epochs; a checkpoint holds those of a group."""

    training: MemberTraining
    flat: Flat
    moments: np.ndarray
    rng: np.random.Generator | None
    steps: int = 0
    goes_on: bool = True

    @property
    def done(self) -> float:
        """The share of its epochs that are done."""
        most = self.training.problem.config.max_num_epochs
        return self.training.result.epochs / most if self.goes_on else 1.0


def _train(
    member: _Underway, program: Program, program_of: Callable[[Problem], Program]
) -> Iterator[list[EpochLosses]]:
    """Trains a member to its end; yields the losses of every epoch that has ended."""
    training, flat = member.training, member.flat
    # The program that validates on strings of trained lengths alone.
    trained_lengths = cache(lambda: program_of(training.problem.asking_trained_lengths))
    result = training.result
    config = training.problem.config
    update = Update(np.zeros(0), config.weight_decay, config.gradient_clip)
    if config.decay != "all":
        matrices = _mark(program, flat, lambda _, values: is_matrix(values))
        update = update._replace(decays=matrices > 0)
    if config.freeze:
        update = update._replace(frozen_steps=_frozen_steps(program, flat, training.problem))
    while member.goes_on:
        started = time.perf_counter()
        train_loss, is_right = _train_epoch(member, program, trained_lengths, update)
        validation_loss, all_right = program.validation(flat)
        member.goes_on = training.goes_on_after(
            train_loss,
            validation_loss,
            lambda: program.parameters.unpack(flat),
            all_right=is_right or all_right,
        )
        result.train_seconds += time.perf_counter() - started
        yield training.last_epoch()


def _train_epoch(
    member: _Underway,
    program: Program,
    trained_lengths: Callable[[], Program],
    update: Update,
) -> tuple[float, bool]:
    """Trains a member for an epoch, or until a check within it ends training.

    Returns:
        The sum of the losses over a whole epoch's strings, and whether it ended early.
    """
    training, flat = member.training, member.flat
    problem, epoch = training.problem, training.result.epochs
    rates = learning_rates(problem, epoch + 1)
    loss, first = 0.0, 0
    for last in (*checks_within_epoch(problem, epoch + 1), None):
        before = Steps(member.moments, member.steps, update._replace(rates=rates[first:last]))
        batches_loss, steps = program.epoch(flat, before, epoch, first, last)
        member.steps += steps
        loss += batches_loss
        if last is None:
            break
        if training.ends_right(trained_lengths().validation(flat)[1], member.steps):
            return whole_epochs_loss(problem, loss, last), True
        first = last
    return loss, False


def _frozen_steps(
    program: Program, flat: Flat, problem: Problem
) -> Int64[np.ndarray, " parameter"]:
    """Returns the number of training steps for which each of the flat parameters is frozen."""
    steps = problem.config.max_num_epochs * steps_of_epoch(problem)
    frozen = frozen_parameters(problem.config.freeze, program.parameters.unpack(flat), steps)
    known = np.array(sorted({0, *frozen.values()}))
    # By their indices, which a flat parameter holds exactly.
    indices = _mark(program, flat, lambda name, _: np.searchsorted(known, frozen.get(name, 0)))
    return known[indices.astype(np.int64)]


def _mark(program: Program, flat: Flat, mark: Callable[[str, np.ndarray], Any]) -> Flat:
    """Returns the mark of each flat parameter, given that of a named one and its values."""
    weights, pack = program.parameters.unpack(flat), program.parameters.pack
    return pack({x: np.full(y.shape, mark(x, y), float) for x, y in weights.items()})


class CompiledEngine(ABC):
    """An engine that trains one member after another on the CPU; it loads Numba where needed."""

    name: ClassVar[str]
    is_compiled = True
    precisions: ClassVar[tuple[str, ...]]
    """The precisions that it is compiled for."""
    part: ClassVar[str]
    """Its part of `seqcls.engines.compiled.machine_code`."""
    least: ClassVar[Mapping[str, Any]] = {}
    """Fields of a configuration whose training compiles all of the part."""
    compiling: ClassVar[str]
    """The message logged before the part is compiled for a precision."""

    def obstacle(self, problem: Problem, device: str) -> str | None:
        return "device='cuda' is no CPU" if device == "cuda" else None

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Implements `Engine.prepare`: compiles the part unless it is cached."""
        for precision in sorted({problem.network.precision for problem in problems}):
            if not is_compiled(precision, self.part):
                _log.warning(self.compiling.format(precision=precision))
                self.compile_ahead(precision)

    def is_ready(self, problem: Problem) -> bool:
        return is_ready(problem.network.precision, self.part)

    def compile_ahead(self, precision: str) -> None:
        """Compiles all functions of the part, so that no other process has to."""
        # The least work that calls every function of the part.
        few = {"train_size": 64, "validation_size": 64, "max_num_epochs": 1}
        problem = resolve(configuration({**self.least, **few, "precision": precision}))
        (trained,) = self.train(
            [(problem, 0)], None, every_epoch=False, progress=lambda *_: None, device="cpu"
        )
        if isinstance(self, Writer) and problem.network.head != "string":
            inputs = stream(problem.validation).epoch(0).strings
            self.write(problem, trained.kept_weights, inputs, np.ones(len(inputs), np.int64))
        mark_compiled(precision, self.part)

    def group_size(self, problem: Problem) -> int:
        """Implements `Engine.group_size`: few, as members are trained one after another, and small
        groups keep all cores busy.
        """
        return 16

    def train(
        self,
        members: Sequence[Member],
        initial: Sequence[Weights] | None,
        *,
        every_epoch: bool,
        progress: Progress,
        device: str,
    ) -> list[TrainedMember]:
        """Implements `Engine.train`. Drawing initial parameters loads PyTorch."""
        if initial is None:
            initial = draw_initial(members)
        unfinished = Unfinished(self.name, members, initial, every_epoch=every_epoch)
        content = unfinished.read()
        begun: list[_Underway] = pickle.loads(content) if content else []
        if before := [epoch for member in begun for epoch in member.training.epochs()]:
            progress(sum(member.done for member in begun), before)
        for number, (member, start) in enumerate(zip(members, initial, strict=True)):
            if number < len(begun) and not begun[number].goes_on:
                continue
            program = self.program_of(member[0])
            if number == len(begun):
                training = MemberTraining(number, *member, every_epoch)
                flat = program.parameters.pack(start)
                moments = np.zeros((2, len(flat)), flat.dtype)
                begun.append(_Underway(training, flat, moments, program.rng))
            else:
                program.rng = begun[number].rng
            for ended in _train(begun[number], program, self.program_of):
                progress(number + begun[number].done, ended)
                # After the last member's last epoch there is nothing left to resume.
                if begun[number].goes_on or number + 1 < len(members):
                    unfinished.keep(lambda: pickle.dumps(begun))
        unfinished.forget()
        return [member.training.result for member in begun]

    @abstractmethod
    def program_of(self, problem: Problem) -> Program:
        """Returns the program that trains a problem's models."""
