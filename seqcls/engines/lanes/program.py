"""Training, answering, scoring and greedy decoding, whatever the cell that compiled code runs."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float, Int64

from seqcls.config import NetworkConfig
from seqcls.engines.compiled.engine import (
    EpochPart,
    Flat,
    Steps,
    Update,
    all_classified,
    all_right,
    some_batches,
    tiles_between,
)
from seqcls.engines.lanes.batches import (
    Blank,
    Groups,
    LaneStrings,
    Lesson,
    Model,
    TaughtStrings,
    WrittenOutputs,
    answering_groups,
    empty_outputs,
    epoch_batch,
    epoch_groups,
    make_batch,
    make_blank,
    scored_batch,
    validation_batch,
    validation_groups,
    written_of,
)
from seqcls.engines.lanes.loss import OutputBuffers
from seqcls.engines.lanes.packing import Slots, output_rows, pack, unpack, vectors
from seqcls.engines.lanes.vector import lanes
from seqcls.kinds import Examples
from seqcls.kinds.transduction import NO_TARGET
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks import Task

NO_STEPS = Steps(np.zeros((2, 0), np.float32), 0, Update(np.zeros(0), 0.0, 0.0))


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
    said: Float[np.ndarray, "group position lane output"]
    """The head's numbers where something is to be predicted; nothing where nobody asks."""


class LaneCell(ABC):
    """A network as compiled code takes it; each family of architectures has its own.

    Args:
        network: one that the engine can train.
        slots: where its parameters stand.
        parameters: where they begin, as compiled code counts, and how many there are: `size`.
    """

    groups: ClassVar[int]
    """Groups of a batch that is only answered or scored."""
    run: ClassVar[Callable[..., float]]
    """The compiled function that trains or answers."""
    run_outputs: ClassVar[Callable[..., float]]
    """The one that trains or scores what is written, or answered at every token."""
    alike = False
    """Whether the strings of a group that is answered have to be of one length."""

    def __init__(self, network: NetworkConfig, slots: Slots, parameters: Any) -> None:
        self.network, self.slots, self.parameters = network, slots, parameters

    @abstractmethod
    def sizes(self, *, scaled_loss: bool) -> Any:
        """The network's sizes and switches."""

    @abstractmethod
    def states(self, sizes: Any, strings: LaneStrings, *, training: bool) -> Any:
        """Where the states of strings stand."""

    @abstractmethod
    def own_arguments(self) -> tuple[Any, ...]:
        """What both functions take after the places, which only this family needs."""

    @abstractmethod
    def write(
        self, flat: Flat, sizes: Any, blank: Blank, inputs: TokenStrings, outputs: OutputBuffers
    ) -> None:
        """Writes the likeliest token at every place."""

    def generator(self, seed: int) -> np.random.Generator | None:
        """What training draws places from, where it draws any."""
        return None

    def positions(self, groups: Groups, rng: np.random.Generator | None = None) -> tuple[Any, ...]:
        """The places of strings, as `run` takes them; with a generator, those of training."""
        return ()

    def positions_of_groups(self, places: tuple[Any, ...], groups: slice) -> tuple[Any, ...]:
        """Those of some groups, of places as both give them."""
        return places

    def output_positions(
        self, lesson: Lesson, batch_size: int = 0, rng: np.random.Generator | None = None
    ) -> tuple[Any, ...]:
        """The places of strings, as `run_outputs` takes them; with a generator, those of training
        in batches of this size.
        """
        return ()

    def pack(self, weights: Weights) -> Flat:
        """The parameters in one array."""
        return pack(self.slots, self.parameters.size, weights)

    def unpack(self, flat: Flat) -> Weights:
        return unpack(self.network, self.slots, flat)

    def answer(
        self,
        flat: Flat,
        strings: LaneStrings,
        places: tuple[Any, ...],
        steps: Steps | None = None,
        *,
        scaled: bool = False,
    ) -> tuple[float, Float[np.ndarray, "group lane"]]:
        """The sum of the losses of strings and their logits; trains on them if steps are given."""
        sizes = self.sizes(scaled_loss=scaled)
        logits = np.empty(strings.targets.shape, np.float32)
        model = self._model(flat, strings, steps, sizes)
        loss = self.run(model, strings, *places, *self.own_arguments(), logits)
        return loss, logits

    def teach(
        self,
        flat: Flat,
        taught: TaughtStrings,
        places: tuple[Any, ...],
        steps: Steps | None = None,
        *,
        asked: bool = False,
    ) -> Results:
        """Trains on strings, in place, or scores them where no steps are given, and says the head's
        numbers where they are asked for.
        """
        sizes = self.sizes(scaled_loss=False)
        losses = np.zeros(taught.strings.lengths.shape)
        missed = np.zeros(losses.shape, np.int64)
        missed_inside = np.zeros_like(missed)
        said = np.zeros((*taught.wanted.shape, self.network.num_outputs * asked), np.float32)
        model = self._model(flat, taught.strings, steps, sizes)
        loss = self.run_outputs(
            model, taught, *places, *self.own_arguments(), losses, missed, missed_inside, said
        )
        return Results(loss, losses, missed, missed_inside, said)

    def _model(self, flat: Flat, strings: LaneStrings, steps: Steps | None, sizes: Any) -> Model:
        training = steps is not None
        at = self.states(sizes, strings, training=training)
        gradient = np.zeros_like(flat) if training else flat[:0]
        states = vectors(at.size, lanes())
        steps = steps or NO_STEPS
        return Model(training, flat, gradient, *steps, sizes, self.parameters, at, states)

    def logits(
        self, weights: Sequence[Weights], strings: TokenStrings
    ) -> Float[np.ndarray, "member string"]:
        """Logits of models of this shape."""
        groups = answering_groups(self.network.readout, strings, self.groups, alike=self.alike)
        places = self.positions(groups)
        rows = [self.answer(self.pack(member), groups.strings, places)[1] for member in weights]
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
            asked = Examples(strings.take(rows), np.where(there, 0, NO_TARGET))
            lesson = make_batch(self.network, task, asked, [np.arange(len(rows))])
            of_tokens = self.output_positions(lesson)
            for member, its in enumerate(weights):
                said = self.teach(self.pack(its), lesson.taught, of_tokens, asked=True).said
                by_string = said.transpose(0, 2, 1, 3).reshape(-1, *said.shape[1::2])
                own = by_string[lesson.groups.places][:, : len(places), output_rows(self.network)]
                width = own.shape[1]
                outputs[member, rows, :width] = np.where(there[:, :width, None], own, np.nan)
        return outputs

    def scores(self, weights: Weights, task: Task, examples: Examples) -> tuple[Results, Lesson]:
        """What a model makes of inputs with their targets, and where each stands."""
        lesson = scored_batch(self.network, task, examples, self.groups)
        places = self.output_positions(lesson)
        return self.teach(self.pack(weights), lesson.taught, places), lesson

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
        self.write(self.pack(weights), self.sizes(scaled_loss=False), blank, inputs, outputs)
        return written_of(self.network, blank, outputs)


class LaneProgram(ABC):
    """One member's epochs and validation."""

    def __init__(self, problem: Problem, cell: LaneCell) -> None:
        self._cell, self._problem, self._train = cell, problem, problem.train
        self.rng = cell.generator(problem.config.train_seed)
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
            self._readout, problem.validation, cell.groups, alike=cell.alike
        )
        self._places = cell.positions(self._validation)

    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        number, first, last = part
        groups = epoch_groups(self._readout, self._train, number)
        if first == 0:
            self._drawn = self._cell.positions(groups, self.rng)
        strings = some_batches(groups.strings, first, last)
        chosen = tiles_between(groups.strings.ends, first, last)
        places = self._cell.positions_of_groups(self._drawn, chosen)
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

    def teach(
        self, flat: Flat, lesson: Lesson, steps: Steps, first: int = 0, last: int | None = None
    ) -> Results:
        """Trains on strings, or on some batches of them, in place."""
        if first == 0:
            self._drawn = self._cell.output_positions(lesson, self._train.batch_size, self.rng)
        chosen = tiles_between(lesson.taught.strings.ends, first, last)
        places = self._cell.positions_of_groups(self._drawn, chosen)
        return self._cell.teach(flat, lesson.taught_in(first, last), places, steps)

    def epoch(self, flat: Flat, steps: Steps, part: EpochPart) -> tuple[float, int]:
        lesson = epoch_batch(self._cell.network, self._train, part.number)
        results = self.teach(flat, lesson, steps, part.first, part.last)
        return results.loss, len(lesson.taught.shares[part.first : part.last])

    def validation(self, flat: Flat) -> tuple[float, bool]:
        places = self._cell.output_positions(self._validation)
        results = self._cell.teach(flat, self._validation.taught, places)
        missed = results.missed.reshape(-1)[self._validation.groups.places]
        return results.loss, all_right(self._problem, missed == 0)
