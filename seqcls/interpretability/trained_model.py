"""A trained model of any architecture, asked about strings of its language."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.config import RunConfig
from seqcls.errors import InvalidStringError
from seqcls.evaluation import logits_of, readable_strings
from seqcls.kinds import Examples
from seqcls.kinds.base import are_unanswered
from seqcls.kinds.transduction import target_lengths
from seqcls.models.positions import longest_readable
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks import Task

if TYPE_CHECKING:
    from seqcls.decode import Judged


Letters = tuple[int, ...]
"""One string by the numbers of its letters."""

MAX_LENGTH = 2_000
"""Tokens of a string that is worked on token by token: attention between all pairs still fits."""


@dataclass(frozen=True)
class Answer:
    """What the language and the model say of one string."""

    string: str
    length: int
    label: bool | str | None
    """What is right: of a language its label, else the target as text; None where it is not
    known, as of a string that is not in the file."""
    logit: float
    """The logit, or the margin of another kind."""
    predicted: bool | str
    """What the model says, likewise."""
    tokenizer: Tokenizer = field(repr=False, compare=False)
    """The alphabet's tokenizer: it writes texts as they are shown."""

    number: ClassVar[str] = "margin"
    """What the logit is, where it is none."""

    @property
    def is_answered(self) -> bool:
        """Whether the model says anything: NaN is no answer, and so is wrong."""
        return not math.isnan(self.logit)

    @property
    def is_wrong(self) -> bool:
        """Whether the model misclassifies it."""
        return self.label is not None and (self.predicted != self.label or not self.is_answered)

    def record(self) -> dict[str, Any]:
        """The answer as programs read it: its texts as they are stored."""
        record = {name: value for name, value in vars(self).items() if name != "tokenizer"}
        return record if self.is_answered else {**record, "logit": None, "predicted": None}


class OutputAnswer(Answer):
    """What a model that writes answers: the target, the output, and the target's log-
    probability.
    """

    number: ClassVar[str] = "log-probability of the target"


class UnjudgedOutput(OutputAnswer):
    """What a model that writes answers where no target is known: the output and its log-
    probability.
    """

    number: ClassVar[str] = "log-probability of the output"


@dataclass(frozen=True, eq=False)
class Answers:
    """What the language and the model say of many strings."""

    strings: TokenStrings
    targets: np.ndarray
    """What is right: of languages their labels; where a file does not say it, what is predicted."""
    predicted: np.ndarray
    """What the model says: of languages whether the logit is positive."""
    logits: Float[np.ndarray, " string"]
    """The logits, or the margins of another kind; of outputs the targets' log-probabilities.

    NaN where there is no answer.
    """
    unanswered: Bool[np.ndarray, " string"]
    """For which strings the model computes NaN: they are wrong.

    Of a string so long that the model has no places for it the logit is NaN too, but that one is
    neither right nor wrong.
    """

    @property
    def known(self) -> Bool[np.ndarray, " string"]:
        """Which strings are answered."""
        return np.asarray(~np.isnan(self.logits))

    @property
    def wrong(self) -> Bool[np.ndarray, " string"]:
        return np.asarray((self.known & self._differ) | self.unanswered)

    @property
    def right(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.known & ~self._differ)

    def said(self, answer: np.ndarray) -> Bool[np.ndarray, " string"]:
        """Which strings the model says this of, a row of the predictions of others."""
        predicted, answer = _of_one_width(self.predicted, answer[None])
        return ~_rows_differ(predicted, answer)

    @property
    def _differ(self) -> Bool[np.ndarray, " string"]:
        return _rows_differ(self.predicted, self.targets)


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """What a model was trained for, and its weights. It answers as in its test: dropout is off."""

    problem: Problem
    weights: Weights

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self.config.changed.items())
        return f"<TrainedModel {changed or 'of the default configuration'}>"

    @property
    def config(self) -> RunConfig:
        return self.problem.config

    @property
    def task(self) -> Task:
        return self.problem.task

    @property
    def tokenizer(self) -> Tokenizer:
        return self.problem.tokenizer

    @property
    def num_letters(self) -> int:
        return self.tokenizer.num_letters

    @property
    def writes(self) -> bool:
        """Whether the problem writes, as `Problem.writes` says."""
        return self.problem.writes

    def is_input(self, letters: Sequence[int]) -> bool:
        """Whether anything is known to be right of a string."""
        return self.why_no_input(letters) is None

    def why_no_input(self, letters: Sequence[int]) -> str | None:
        """Why nothing is known to be right of a string: it is no input, or not in the file."""
        if not self.writes and self.problem.known_strings is None:
            return None
        string = TokenStrings.of_lists(self.num_letters, [letters])
        targets = self.problem.targets_or_reason(string)
        return targets if isinstance(targets, str) else None

    def refuse_no_input(self, letters: Sequence[int]) -> str | None:
        """Refuses a string that is no input; what a file does not have is one all the same.

        Returns:
            Why nothing is known to be right of it; None where something is.

        Raises:
            InvalidStringError: it is none.
        """
        reason = self.why_no_input(letters)
        if reason is not None and self.problem.known_strings is None:
            raise InvalidStringError(reason)
        return reason

    def letters(self, string: str | Sequence[str]) -> Letters:
        """The letters of a string in the usual notation, or of a list of its tokens.

        Raises:
            InvalidStringError: it is not of this alphabet, or longer than `MAX_LENGTH`.
        """
        text = self.tokenizer.notation(string)
        length = sum(count for _, count in self.tokenizer.pieces(text))
        if length > MAX_LENGTH:
            raise InvalidStringError(
                f"{text[:60]!r} has {length:,} tokens, more than the {MAX_LENGTH:,} that are "
                "looked at one by one; shorten it"
            )
        return tuple(x - FIRST_LETTER for x in self.tokenizer.encode(text)[1:])

    def text(self, letters: Sequence[int]) -> str:
        """The string with these letters, in the notation in which strings are stored."""
        return self.tokenizer.decode([FIRST_LETTER + letter for letter in letters])

    def display(self, letters: Sequence[int]) -> str:
        """The same as it is shown; no string is looked up by it."""
        return self.tokenizer.display(self.text(letters))

    def ask(self, strings: TokenStrings) -> Answers:
        """Labels and answers of strings; where a file does not say the label, what is answered."""
        if self.writes:
            return self._outputs(strings)
        kind = self.problem.kind
        outputs = logits_of(self.problem.without_dropout, [self.weights], strings)[0]
        predicted = kind.answers(outputs)
        targets = self.problem.targets_or(strings, predicted)
        margins = kind.margins(outputs, targets).astype(np.float64)
        unanswered = are_unanswered(outputs) & readable_strings(self.problem, strings)
        if predicted.dtype == np.bool_:
            predicted = np.where(unanswered, ~targets, predicted)
        return Answers(strings, targets, predicted, margins, unanswered)

    def _outputs(self, strings: TokenStrings) -> Answers:
        """Answers `ask` for a transduction; the logits are the targets' log-probabilities."""
        # PyTorch, which takes a second or two to load.
        from seqcls.decode import best_written, judge, letter_rows, readable_inputs

        is_input, inputs = self.inputs_among(strings)
        every = Examples(strings, inputs)
        known = np.flatnonzero(readable_inputs(self.problem, every) & is_input)
        judged = judge(self.problem, self.weights, every.take(known))
        wrong = letter_rows(judged.outputs)
        width = max(every.targets.shape[1], wrong.shape[1])
        targets = _widened(every.targets, width)
        predicted = targets.copy()
        predicted[known[judged.is_wrong]] = _widened(wrong, width)
        logits = np.full(len(strings), np.nan)
        logits[known] = judged.log_probability
        unanswered = np.zeros(len(strings), dtype=bool)
        unanswered[known] = judged.is_wrong & np.isnan(judged.log_probability)
        unknown = np.flatnonzero(
            readable_inputs(self.problem, every) & ~self.problem.knows(strings)
        )
        if len(unknown):
            written = best_written(self.problem, self.weights, strings.take(unknown))
            rows = letter_rows([[x - FIRST_LETTER for x in output.tokens] for output in written])
            targets, predicted = _of_one_width(targets, predicted, rows)[:2]
            targets[unknown] = predicted[unknown] = _widened(rows, targets.shape[1])
            logits[unknown] = [output.log_probability for output in written]
            unanswered[unknown] = np.isnan(logits[unknown])
        return Answers(strings, targets, predicted, logits, unanswered)

    def inputs_among(self, strings: TokenStrings) -> tuple[Bool[np.ndarray, " string"], np.ndarray]:
        """Which strings are inputs whose target is known, and the targets, empty of the others."""
        targets = self.problem.targets_or_reason(strings)
        if not isinstance(targets, str):
            return np.ones(len(strings), dtype=bool), targets
        each = [
            self.problem.targets_or_reason(strings.take(slice(row, row + 1)))
            for row in range(len(strings))
        ]
        is_input = np.array([not isinstance(target, str) for target in each])
        none = np.zeros((1, 0), dtype=np.uint8)
        rows = [none if isinstance(target, str) else target for target in each]
        width = max(row.shape[1] for row in rows)
        return is_input, np.concatenate([_widened(row, width) for row in rows])

    def ask_all(self, strings: Sequence[str | Sequence[str] | Sequence[int]]) -> Answers:
        """Labels and answers of strings: as text, or by their tokens or the letters' numbers."""
        listed = [strings] if isinstance(strings, str) else strings
        rows = [self.letters(x) if _is_text(x) else x for x in listed]  # type: ignore[arg-type]
        return self.ask(TokenStrings.of_lists(self.num_letters, rows))  # type: ignore[arg-type]

    def answer(self, string: str | Sequence[str] | Sequence[int]) -> Answer:
        """Label and answer of one string: text, its tokens, or the numbers of its letters.

        Raises:
            InvalidStringError: it is not of this alphabet, no input of the task, or longer than the
                model has places for.
        """
        letters = self._numbers(string)
        unknown = self.refuse_no_input(letters)
        answers = self.ask_all([letters])
        if not (answers.known[0] or answers.unanswered[0]):
            tokens, what = len(letters), ""
            if self.writes:
                tokens += 1 + int(target_lengths(answers.targets)[0])
                what = " with SEP and its target"
            raise InvalidStringError(
                f"{self.display(letters)[:60]!r} has {tokens:,} tokens{what}, more than the "
                f"{longest_readable(self.problem.network)} places that the model has "
                f"(positions={self.config.positions!r}); shorten it"
            )
        label = None if unknown else self.said(answers.targets)[0]
        predicted = self.said(answers.predicted)[0]
        logit = float(answers.logits[0])
        made = Answer
        if self.writes:
            made = UnjudgedOutput if unknown else OutputAnswer
        return made(self.text(letters), len(letters), label, logit, predicted, self.tokenizer)

    def _numbers(self, string: str | Sequence[str] | Sequence[int]) -> Letters:
        if isinstance(string, str | set | frozenset) or not isinstance(string, Iterable):
            return self.letters(string)
        numbers = [x for x in string if isinstance(x, int | np.integer)]
        if len(numbers) < len(string):
            return self.letters([str(x) for x in string])
        if beyond := [x for x in numbers if not 0 <= x < self.num_letters]:
            raise InvalidStringError(
                f"there is no letter number {beyond[0]}: expected 0 to {self.num_letters - 1}, or "
                "the string as text"
            )
        return tuple(map(int, numbers))

    def said(self, answers: np.ndarray) -> Sequence[bool | str]:
        """Targets or answers as they are told: bits of a language, else text."""
        texts = self.problem.kind.texts(self.task, answers)
        bits: list[bool] = answers.tolist()
        return bits if texts is None else texts


def _is_text(string: str | Sequence[str] | Sequence[int]) -> bool:
    return isinstance(string, str) or (len(string) > 0 and isinstance(string[0], str))


def _rows_differ(one: np.ndarray, other: np.ndarray) -> Bool[np.ndarray, " string"]:
    differ = one != other
    return np.asarray(differ.any(axis=tuple(range(1, differ.ndim))))


def _of_one_width(*outputs: np.ndarray) -> list[np.ndarray]:
    """Outputs with as many places; other answers have none."""
    if outputs[0].ndim == 1:
        return list(outputs)
    width = max(some.shape[1] for some in outputs)
    return [_widened(some, width) for some in outputs]


def _widened(letters: np.ndarray, width: int) -> np.ndarray:
    return np.pad(letters, ((0, 0), (0, width - letters.shape[1])), constant_values=NO_LETTER)


# Which strings are inputs of a transduction, and what a model makes of those.


@dataclass(frozen=True, eq=False)
class JudgedInputs:
    """The inputs among some strings that a model has places for, and what it makes of them."""

    rows: Int64[np.ndarray, " input"]
    """Their places among the strings."""
    examples: Examples
    judged: "Judged"


def judged_inputs(model: TrainedModel, strings: TokenStrings) -> JudgedInputs:
    """Asks a model about those of some strings that it can be asked about.

    Args:
        model: one that writes.
        strings: inputs of its task or not.
    """
    # PyTorch, which takes a second or two to load.
    from seqcls.decode import judge, readable_inputs

    is_input, targets = model.inputs_among(strings)
    examples = Examples(strings, targets)
    rows = np.flatnonzero(readable_inputs(model.problem, examples) & is_input)
    taken = examples.take(rows)
    return JudgedInputs(rows, taken, judge(model.problem, model.weights, taken))
