"""Base class of kinds of answers: targets, loss, evaluation, and the display of errors."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int64, UInt8

from seqcls.declarations import Fields
from seqcls.network import NetworkConfig
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.tasks.base import Task

if TYPE_CHECKING:
    from torch import Tensor

Targets = np.ndarray
"""The target of each string: for a language its label, (string,); for a transduction the letters of
its output, with `NO_LETTER` after their end, (string, target_position)."""

Outputs = np.ndarray
"""The outputs of a model's head for each string: (string,), or (string, output)."""


DRAWN = ("positive", "uniform", "edited", "near", "border")
"""Ways of drawing strings of languages: positive ones, three kinds of negative ones, and pairs of
one of each (`seqcls.sampling.border`)."""

ErrorKind = Literal[
    "stopped early", "went on", "repeats", "wrong token", "too much", "too little", "wrong answer"
]
"""Difference of a wrong output of a transduction from its target, the first that applies: a proper
prefix of it, a continuation of it, a loop at its end, or anything else. For answers at every place
the difference of the first wrong one: a superset, a subset, or neither."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Strings in the order in which they were drawn, with their targets."""

    strings: TokenStrings
    targets: Targets
    drawn: "UInt8[np.ndarray, ' string'] | None" = field(default=None, kw_only=True)
    """The index in `DRAWN` of the way each was drawn; None if the sampler does not record it."""

    @property
    def labels(self) -> Bool[np.ndarray, " string"]:
        """The targets of a language: True for strings in it."""
        return self.targets

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: "slice | Int64[np.ndarray, ' row']") -> "Examples":
        """Selects rows."""
        drawn = None if self.drawn is None else self.drawn[rows]
        return Examples(self.strings.take(rows), self.targets[rows], drawn=drawn)


def are_unanswered(outputs: Outputs) -> Bool[np.ndarray, " string"]:
    """A mask of the strings for which a model outputs NaN, which is no answer."""
    # One NaN among a string's outputs is enough, since comparisons with it have no meaning.
    return np.asarray(np.isnan(outputs).any(axis=tuple(range(1, outputs.ndim))))


@dataclass(frozen=True, eq=False)
class Questions(Examples):
    """Strings on which models are evaluated, with their targets as far as those are known."""

    has_target: Bool[np.ndarray, " string"]
    """A mask of the strings with a known target; the targets of the others have no meaning."""
    is_input: Bool[np.ndarray, " string"]
    """A mask of the strings that models answer, with or without a known target."""

    @classmethod
    def about(cls, examples: Examples) -> "Questions":
        """Makes questions whose targets are all known."""
        every = np.ones(len(examples), dtype=bool)
        return cls(examples.strings, examples.targets, every, every)

    @classmethod
    def without_targets(cls, strings: TokenStrings) -> "Questions":
        """Makes questions without targets, for a model's answers alone."""
        every = np.ones(len(strings), dtype=bool)
        # Nothing reads these targets, which need a row for each string and no column.
        return cls(strings, np.zeros((len(strings), 0), dtype=np.uint8), ~every, every)


class TrainedModels(Protocol):
    """Trained models of one configuration, as a kind evaluates them, without dropout."""

    @property
    def places(self) -> float:
        """Number of tokens that they have positions for; infinity if unlimited."""
        ...

    @property
    def writes_likeliest(self) -> bool:
        """True if decoding writes the likeliest token each time, as teacher forcing predicts."""
        ...

    def members(self) -> "Iterator[TrainedModels]":
        """Yields each model alone."""
        ...

    def outputs(self, strings: TokenStrings) -> Float[np.ndarray, "member string *output"]:
        """Computes the head's outputs for strings; NaN for strings that are too long to be read.

        A head that answers at every place gives (member, string, place, output), with NaN after
        each string's end.
        """
        ...

    def score(self, examples: Examples) -> "Iterator[Scored]":
        """Yields each member's scores of targets by teacher forcing."""
        ...

    def write(self, member: int, inputs: TokenStrings) -> "list[Written]":
        """Writes one member's outputs for inputs, by the decoding of its configuration."""
        ...


@dataclass(frozen=True, eq=False)
class Scored:
    """Scores of each string's target by teacher forcing."""

    right: Bool[np.ndarray, " string"]
    right_length_given: Bool[np.ndarray, " string"]
    log_probability: Float[np.ndarray, " string"]

    def without_nan(self) -> "Scored":
        """Returns scores in which no string with a log-probability of NaN is right."""
        known = ~np.isnan(self.log_probability)
        return Scored(self.right & known, self.right_length_given & known, self.log_probability)


class Written(NamedTuple):
    """One output: token ids without `END`, and its log-probability, in nats."""

    tokens: list[int]
    ended: bool
    """True if `END` was written; otherwise the output was cut off at its limit."""
    log_probability: float
    """The log-probability of the tokens, and of `END` if it was written."""


@dataclass(frozen=True, eq=False)
class Answers:
    """The targets of strings and a model's predictions, in the precision of its test."""

    strings: TokenStrings
    targets: np.ndarray
    """The targets, for languages the labels; the predictions where no target is known."""
    predicted: np.ndarray
    """The model's predictions, in the form of targets; for a language the opposite of the label
    where the model has no answer."""
    score: Float[np.ndarray, " string"]
    """The logits, or the margins of another kind; for outputs the targets' log-probabilities.

    NaN if there is no answer.
    """
    known: Bool[np.ndarray, " string"]
    """A mask of the strings that are answered."""
    unanswered: Bool[np.ndarray, " string"]
    """A mask of the strings for which the model computes NaN, which are wrong.

    Strings that are no inputs, or too long for the model to read, are neither right nor wrong.
    """

    @property
    def judged(self) -> Bool[np.ndarray, " string"]:
        """A mask of the strings that are right or wrong."""
        return np.asarray(self.known | self.unanswered)

    @property
    def wrong(self) -> Bool[np.ndarray, " string"]:
        # The prediction for an unanswered string is a placeholder that may equal the target.
        return np.asarray((self.known & self._differ) | self.unanswered)

    @property
    def right(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.known & ~self._differ)

    @property
    def error_counts(self) -> dict[str, int]:
        """Number of wrong strings by kind of error; for a language, by the answer."""
        # A wrong answer is the opposite of its label, so it determines the kind.
        positive = self.predicted[self.wrong]
        number = int(np.count_nonzero(positive))
        return {"false positive": number, "false negative": len(positive) - number}

    def are_predicted(self, answer: np.ndarray) -> Bool[np.ndarray, " string"]:
        """A mask of the strings for which the model predicts this answer, a row of predictions."""
        # Another model's answer may be longer than all answers here, or shorter.
        predicted, answer = pad_to_one_width(self.predicted, answer[None])
        return ~_rows_differ(predicted, answer)

    @property
    def _differ(self) -> Bool[np.ndarray, " string"]:
        return _rows_differ(self.predicted, self.targets)


def pad_to_one_width(*answers: np.ndarray) -> list[np.ndarray]:
    """Pads outputs to the positions of the longest; answers of one bit are unchanged."""
    if answers[0].ndim == 1:
        return list(answers)
    width = max(some.shape[1] for some in answers)
    # Answers other than letters are padded with -1.
    return [
        np.pad(
            some,
            ((0, 0), (0, width - some.shape[1])),
            constant_values=NO_LETTER if some.dtype == np.uint8 else -1,
        )
        for some in answers
    ]


def _rows_differ(one: np.ndarray, other: np.ndarray) -> Bool[np.ndarray, " string"]:
    differ = one != other
    # Labels have no further axis; over no axes `any` does not change the comparison.
    return np.asarray(differ.any(axis=tuple(range(1, differ.ndim))))


@dataclass(frozen=True)
class Words:
    """Words for errors: a model `misclassifies a string`, or `gets an input wrong`."""

    string: str
    miss: str
    """Predicate of several models, with braces for the strings that they miss."""
    misses: str
    """Predicate of one model, likewise."""
    missed: str
    """Participle for a missed string."""
    task: str
    """Noun for the task."""
    right: str
    """Noun for the target of a string."""
    hit: str = "correctly classified"
    """Participle for a string that is not missed."""

    @property
    def one(self) -> str:
        """The word for a string, with its article."""
        return f"{'an' if self.string[0] in 'aeiou' else 'a'} {self.string}"

    def plural(self, what: str) -> str:
        """Returns the plural with an attribute, such as `test strings`."""
        return f"{what} {self.string}s".strip()


MISCLASSIFIED = Words(
    "string", "misclassify {}", "misclassifies {}", "misclassified", "language", "label"
)


Ability = Literal["labels", "outputs", "prefixes", "causes"]
"""Properties of a kind that an analysis may need: answers that are yes or no, answers that are
strings, answers to all prefixes of a string, and errors with known causes."""


NO_LANGUAGE = " is not a language: its answers are not yes or no"
"""Message for a task of another kind in an analysis of languages."""

NO_TRANSDUCTION = " is not a transduction: its models write no outputs"


class Kind(Fields, ABC):
    """One kind of answer. Its constructor takes nothing; it holds no state.

    The defaults are those of a kind whose models read a string and answer it once; such a kind is a
    subclass of `seqcls.kinds.membership.OneAnswer`.
    """

    sampler: ClassVar[str] = "uniform_inputs"
    """Default sampler of its strings."""
    shortcut_readers: ClassVar[tuple[str, ...]] = ()
    """Readers of `seqcls.shortcuts` that can answer it without knowing the task."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Defaults of fields that differ from those for languages."""
    words: ClassVar[Words] = MISCLASSIFIED
    """Words for its errors."""
    answer_columns: ClassVar[tuple[str, str]] = ("predicted", "margin")
    """Names of the columns of an answer and of its confidence, if the kind is not a language."""
    cells: ClassVar[tuple[str, ...]] = ()
    """Columns of counts that are stored beside `tested` and `wrong`, if any."""
    score_name: ClassVar[str] = "margin"
    """Name of the number that scores an answer, such as `logit`."""
    unjudged_score_name: ClassVar[str] = "margin"
    """Name of that number if the target is not known."""
    every_string: ClassVar[bool] = True
    """True if every string over the alphabet is an input of every task."""
    absent: ClassVar[Mapping[Ability, str]] = {
        "labels": NO_LANGUAGE,
        "causes": NO_LANGUAGE,
        "outputs": NO_TRANSDUCTION,
    }
    """Properties that this kind lacks, with the reason, a predicate of a task."""

    @abstractmethod
    def num_outputs(self, task: Task) -> int:
        """Number of outputs of a model's head for a string."""

    def targets(self, task: Any, strings: TokenStrings) -> Targets:
        """Returns the target of each string."""
        targets: Targets = task.targets(strings)
        return targets

    def network(self, task: Task, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the settings of a network that a task determines: tokens, head and outputs.

        Args:
            task: one of this kind.
            fields: those of the configuration.
        """
        return {"num_letters": len(task.alphabet), "num_outputs": self.num_outputs(task)}

    def reading(self, task: Task, examples: Examples) -> TokenStrings:
        """Returns the tokens that models read in training, without a special token of a readout."""
        return examples.strings

    def lengths_read(self, examples: Examples) -> Int64[np.ndarray, " string"]:
        """Number of tokens that `reading` has for each example."""
        return examples.strings.lengths

    def prompt_length(self, length: int) -> int:
        """Number of tokens that are read before the answer to a string of that length."""
        return length

    def longest_reading(self, task: Any, length: int) -> int:
        """The largest number of tokens that are read for a string of up to that length."""
        return length

    def encoded(self, task: Task, examples: Examples, network: NetworkConfig) -> np.ndarray:
        """Encodes the targets for `losses`, a row for each string."""
        return examples.targets

    def units(self, targets: "Tensor") -> int:
        """The divisor of a batch's summed losses in training, given encoded targets."""
        return len(targets)

    @abstractmethod
    def are_right(self, outputs: "Tensor", targets: "Tensor") -> "Bool[Tensor, '*member string']":
        """A mask of the strings that are answered right, by the outputs of their targets."""

    @abstractmethod
    def losses(
        self, outputs: "Tensor", targets: "Tensor", train_loss: str
    ) -> "Float[Tensor, '*member string']":
        """Computes each string's loss in nats.

        Args:
            outputs: the head's outputs, (*member, string) or (*member, string, output); for a head
                that answers token by token (*member, token, output), the tokens of all strings
                concatenated.
            targets: encoded, of the same strings: (string,).
            train_loss: the field of the configuration.
        """

    @abstractmethod
    def ask(self, models: TrainedModels, questions: Questions) -> Iterator[Answers]:
        """Yields each model's answers to strings."""

    @abstractmethod
    def margins(self, outputs: Outputs, targets: Targets) -> Float[np.ndarray, " string"]:
        """Computes the number that scores each answer, which is stored and which patching moves.

        Args:
            outputs: one model's outputs, in the form that `losses` takes.
            targets: those of the same strings.
        """

    @abstractmethod
    def texts(self, task: Task, answers: np.ndarray) -> Sequence[str] | None:
        """Returns answers or targets as text; None if they are bits."""

    def error_columns(self) -> Mapping[str, str]:
        """Titles, by name, of the columns of a table of misclassified strings."""
        return {"target": "Target", "logit": "Margin"}
