"""The common parts of the compiled engines: programs, training by them, and the engine."""

import logging
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.config import NetworkConfig
from seqcls.curricula import frozen_parameters
from seqcls.engines.base import Member, Progress, Writer
from seqcls.engines.compiled.machine_code import is_compiled, is_ready, mark_compiled
from seqcls.engines.member import (
    MemberTraining,
    Unfinished,
    checks_within_epoch,
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


ALL_DECAY = np.zeros(0, bool)
NONE_FROZEN = np.zeros(0, np.int64)


class Update(NamedTuple):
    """The settings of AdamW's steps in an epoch."""

    rates: Float[np.ndarray, " step"]
    """The learning rate of each."""
    weight_decay: float
    gradient_clip: float
    """The largest norm of the gradient; 0 means no limit."""
    decays: np.ndarray = ALL_DECAY
    """True for parameters that decay; empty where all do."""
    frozen_steps: np.ndarray = NONE_FROZEN
    """Number of training steps for which each parameter is frozen; empty where none is."""


class Steps(NamedTuple):
    """The state of the optimizer before some steps, and their settings."""

    moments: Float[np.ndarray, "2 parameter"]
    """AdamW's first and second moments."""
    done: int
    """Number of steps made so far."""
    update: Update


class EpochPart(NamedTuple):
    """An epoch's batches, or some of them, those before having been trained on just before."""

    number: int
    """The epoch, counted from 0."""
    first: int = 0
    """The first batch."""
    last: int | None = None
    """The end of the batches, exclusive; None for all."""


@runtime_checkable
class Program(Protocol):
    """One member's epochs and validation."""

    rng: np.random.Generator | None
    """The generator of training's positions, where any are drawn."""

    def pack(self, weights: Weights) -> Flat:
        """Returns the parameters in one array."""
        ...

    def unpack(self, flat: Flat) -> Weights:
        """Returns copies of the parameters, by name."""
        ...

    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        """Trains on an epoch or a part of it, in place: the parameters and their moments.

        Returns:
            The sum of the losses, and the number of steps.
        """
        ...

    def validation(self, flat: Flat) -> tuple[float, bool]:
        """Returns the sum of the losses over the validation strings, and whether those of trained
        lengths are all right; False unless training ends then.
        """
        ...


Batches = TypeVar("Batches", bound=tuple[Any, ...])


def some_batches(strings: Batches, first: int, last: int | None) -> Batches:
    """Returns some of an epoch's batches, as views.

    Args:
        strings: arrays with tiles or groups of strings as their first axis, followed by the end of
            each batch's tiles or groups, exclusive.
        last: the end of the batches, exclusive; None for all.
    """
    if first == 0 and last is None:
        return strings
    *arrays, ends = strings
    within = tiles_between(ends, first, last)
    make: Any = type(strings)
    chosen: Batches = make(*(x[within] for x in arrays), ends[first:last] - within.start)
    return chosen


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


def train_one_by_one(
    members: Sequence[Member],
    initial: Sequence[Weights] | None,
    program_of: Callable[[Problem], Program],
    *,
    engine: str,
    every_epoch: bool,
    progress: Progress,
) -> list[TrainedMember]:
    """Trains members from their initial parameters, in their order.

    Drawing these, where they are missing, loads PyTorch. Checkpoints are named by the engine.
    """
    if initial is None:
        from seqcls.engines.member import draw_initial

        initial = draw_initial(members)
    unfinished = Unfinished(engine, members, initial, every_epoch=every_epoch)
    content = unfinished.read()
    begun: list[_Underway] = pickle.loads(content) if content else []
    if before := [epoch for member in begun for epoch in member.training.epochs()]:
        progress(sum(member.done for member in begun), before)
    for number, (member, start) in enumerate(zip(members, initial, strict=True)):
        if number < len(begun) and not begun[number].goes_on:
            continue
        programs = _Programs(member[0], program_of)
        program = programs.whole
        if number == len(begun):
            training = MemberTraining(number, *member, every_epoch)
            flat = program.pack(start)
            moments = np.zeros((2, len(flat)), flat.dtype)
            begun.append(_Underway(training, flat, moments, program.rng))
        else:
            program.rng = begun[number].rng
        for ended in _train(begun[number], programs):
            progress(number + begun[number].done, ended)
            # After the last member's last epoch there is nothing left to go on from.
            if begun[number].goes_on or number + 1 < len(members):
                unfinished.keep(lambda: pickle.dumps(begun))
    unfinished.forget()
    return [member.training.result for member in begun]


class _Programs:
    """The programs that train a member and check it within epochs."""

    def __init__(self, problem: Problem, program_of: Callable[[Problem], Program]) -> None:
        self._problem, self._program_of = problem, program_of
        self.whole = program_of(problem)

    @cached_property
    def trained_lengths(self) -> Program:
        """The program that validates on strings of trained lengths alone."""
        return self._program_of(self._problem.asking_trained_lengths)


def _train(member: _Underway, programs: _Programs) -> Iterator[list[EpochLosses]]:
    """Trains a member to its end; yields the losses of every epoch that has ended."""
    training, flat, program = member.training, member.flat, programs.whole
    result = training.result
    config = training.problem.config
    decays = ALL_DECAY if config.decay == "all" else _are_matrices(program, flat)
    frozen_steps = _frozen_steps(program, flat, training.problem) if config.freeze else NONE_FROZEN
    while member.goes_on:
        started = time.perf_counter()
        train_loss, is_right = _train_epoch(member, programs, decays, frozen_steps)
        validation_loss, all_right = program.validation(flat)
        member.goes_on = training.goes_on_after(
            train_loss,
            validation_loss,
            lambda: program.unpack(flat),
            all_right=is_right or all_right,
        )
        result.train_seconds += time.perf_counter() - started
        yield training.last_epoch()


def _train_epoch(
    member: _Underway,
    programs: _Programs,
    decays: Bool[np.ndarray, " parameter"],
    frozen_steps: Int64[np.ndarray, " frozen"],
) -> tuple[float, bool]:
    """Trains a member for an epoch, or until a check within it ends training.

    Returns:
        The sum of the losses over a whole epoch's strings, and whether it ended early.
    """
    training, flat = member.training, member.flat
    problem, config, epoch = training.problem, training.problem.config, training.result.epochs
    rates = learning_rates(problem, epoch + 1)
    loss, first = 0.0, 0
    for last in (*checks_within_epoch(problem, epoch + 1), None):
        update = Update(
            rates[first:last], config.weight_decay, config.gradient_clip, decays, frozen_steps
        )
        before = Steps(member.moments, member.steps, update)
        batches_loss, steps = programs.whole.epoch(flat, before, EpochPart(epoch, first, last))
        member.steps += steps
        loss += batches_loss
        if last is None:
            break
        if training.ends_right(programs.trained_lengths.validation(flat)[1], member.steps):
            return whole_epochs_loss(problem, loss, last), True
        first = last
    return loss, False


def _frozen_steps(
    program: Program, flat: Flat, problem: Problem
) -> Int64[np.ndarray, " parameter"]:
    """Returns the number of training steps for which each of the flat parameters is frozen."""
    weights = program.unpack(flat)
    steps = problem.config.max_num_epochs * steps_of_epoch(problem)
    frozen = frozen_parameters(problem.config.freeze, weights, steps)
    known = np.array(sorted({0, *frozen.values()}))
    # By their indices, which a flat parameter holds exactly.
    places = {x: np.searchsorted(known, frozen.get(x, 0)) for x in weights}
    marked = {x: np.full(value.shape, places[x], float) for x, value in weights.items()}
    return known[program.pack(marked).astype(np.int64)]


def _are_matrices(program: Program, flat: Flat) -> Bool[np.ndarray, " parameter"]:
    """Returns True for each of the flat parameters that belongs to a matrix."""
    weights = program.unpack(flat)
    # Packed like the parameters, each mark has the index of its parameter.
    marked = {name: np.full(x.shape, is_matrix(x), float) for name, x in weights.items()}
    return program.pack(marked) > 0


class CompiledEngine(ABC):
    """An engine that trains one member after another on the CPU; it loads Numba where needed."""

    name: ClassVar[str]
    one_thread = True
    wants_initial = True
    precisions: ClassVar[tuple[str, ...]]
    """The precisions that it is compiled for."""
    least: ClassVar[Mapping[str, Mapping[str, Any]]]
    """By part of `seqcls.engines.compiled.machine_code`, fields of a configuration whose training
    compiles all of the part."""
    compiling: ClassVar[str]
    """The message logged before a part is compiled for a precision."""

    def obstacle(self, problem: Problem, device: str) -> str | None:
        if device == "cuda":
            return "device='cuda' is no CPU"
        return self._obstacle(problem)

    @abstractmethod
    def _obstacle(self, problem: Problem) -> str | None:
        """Returns the obstacle of task and network; None where there is none."""

    @abstractmethod
    def part_of(self, config: NetworkConfig) -> str:
        """Returns the part that trains a network which the engine can train."""

    def prepare(self, problems: Iterable[Problem]) -> None:
        """Implements `Engine.prepare`: compiles the parts that are not cached."""
        networks = [problem.network for problem in problems]
        for precision, part in sorted({(x.precision, self.part_of(x)) for x in networks}):
            if not is_compiled(precision, part):
                _log.warning(self.compiling.format(precision=precision, part=part))
                self.compile_ahead(precision, part)

    def is_ready(self, problem: Problem) -> bool:
        return is_ready(problem.network.precision, self.part_of(problem.network))

    def compile_ahead(self, precision: str, part: str) -> None:
        """Compiles all functions of a part, so that no other process has to."""
        # The least work that calls every function of the part.
        few = {"train_size": 64, "validation_size": 64, "max_num_epochs": 1}
        problem = resolve(configuration({**self.least[part], **few, "precision": precision}))
        (trained,) = self.train(
            [(problem, 0)], None, every_epoch=False, progress=lambda *_: None, device="cpu"
        )
        if isinstance(self, Writer) and problem.network.head != "string":
            inputs = stream(problem.validation).epoch(0).strings
            self.write(problem, trained.kept_weights, inputs, np.ones(len(inputs), np.int64))
        mark_compiled(precision, part)

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
        return train_one_by_one(
            members,
            initial,
            self._programs(),
            engine=self.name,
            every_epoch=every_epoch,
            progress=progress,
        )

    @abstractmethod
    def _programs(self) -> "Callable[[Problem], Program]":
        """Returns a function that makes the program which trains a problem's models."""
