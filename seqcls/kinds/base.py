"""What every kind of answer says of itself: targets, loss, judgment, what is shown of errors."""

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
"""What is right for each string: of a language its label, of shape (string); of a transduction the
letters of its output, `NO_LETTER` after their end: (string, target_position)."""

Outputs = np.ndarray
"""The numbers that a model's head gives for each string: (string), or (string, output)."""


DRAWN = ("positive", "uniform", "edited", "near", "border")
"""Ways in which strings of languages are drawn: positive ones, three of negative ones, and pairs of
one of each (`seqcls.sampling.border`)."""

ErrorKind = Literal[
    "stopped early", "went on", "repeats", "wrong token", "too much", "too little", "wrong answer"
]
"""How a wrong output of a transduction differs from its target, the first that holds: a proper
prefix of it, a continuation of it, a loop at its end, or anything else. Of answers at every place
the first wrong one: more than is right, less, or neither."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Strings in the order in which they were drawn, with what is right of each."""

    strings: TokenStrings
    targets: Targets
    drawn: "UInt8[np.ndarray, ' string'] | None" = field(default=None, kw_only=True)
    """The place in `DRAWN` of how each was drawn; None where the sampler does not
    say."""

    @property
    def labels(self) -> Bool[np.ndarray, " string"]:
        """The targets of a language: which strings are in it."""
        return self.targets

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: "slice | Int64[np.ndarray, ' row']") -> "Examples":
        """Some of the strings."""
        drawn = None if self.drawn is None else self.drawn[rows]
        return Examples(self.strings.take(rows), self.targets[rows], drawn=drawn)


def are_unanswered(outputs: Outputs) -> Bool[np.ndarray, " string"]:
    """The strings of which a model's head gives a number that is none, NaN: that is no answer."""
    # One NaN among a string's numbers is enough: no comparison with it means anything.
    return np.asarray(np.isnan(outputs).any(axis=tuple(range(1, outputs.ndim))))


@dataclass(frozen=True, eq=False)
class Questions(Examples):
    """Strings that models are asked about, and what is right of each as far as that is known."""

    has_target: Bool[np.ndarray, " string"]
    """For which strings it is known. Of the others the targets mean nothing."""
    is_input: Bool[np.ndarray, " string"]
    """Which strings are answered, with a target or, as those that a file lacks, without."""

    @classmethod
    def about(cls, examples: Examples) -> "Questions":
        """Strings whose targets are all known."""
        every = np.ones(len(examples), dtype=bool)
        return cls(examples.strings, examples.targets, every, every)

    @classmethod
    def without_targets(cls, strings: TokenStrings) -> "Questions":
        """Inputs of which nothing is asked but what models say."""
        every = np.ones(len(strings), dtype=bool)
        # Nothing reads these targets: they need a row for each string, and no columns.
        return cls(strings, np.zeros((len(strings), 0), dtype=np.uint8), ~every, every)


class TrainedModels(Protocol):
    """Trained models of one shape, as a kind asks them; their dropout is off."""

    @property
    def places(self) -> float:
        """Tokens that they have places for; infinity for any number."""
        ...

    @property
    def writes_likeliest(self) -> bool:
        """Whether the likeliest token is written everywhere, as teacher forcing foretells."""
        ...

    def members(self) -> "Iterator[TrainedModels]":
        """Each of them by itself."""
        ...

    def outputs(self, strings: TokenStrings) -> Float[np.ndarray, "member string *output"]:
        """The head's outputs for strings; NaN for those that they have no places for.

        Of a head that answers at every place (member, string, place, output), with NaN after each
        string's end.
        """
        ...

    def score(self, examples: Examples) -> "Iterator[Scored]":
        """Each member's scores of targets that are read with their strings."""
        ...

    def write(self, member: int, inputs: TokenStrings) -> "list[Written]":
        """One member's outputs for inputs, by the decoding of its configuration."""
        ...


@dataclass(frozen=True, eq=False)
class Scored:
    """What teacher forcing says of each string's target."""

    right: Bool[np.ndarray, " string"]
    right_length_given: Bool[np.ndarray, " string"]
    log_probability: Float[np.ndarray, " string"]

    def without_nan(self) -> "Scored":
        """The same, with nothing right where the log-probability is NaN: that is no answer."""
        known = ~np.isnan(self.log_probability)
        return Scored(self.right & known, self.right_length_given & known, self.log_probability)


class Written(NamedTuple):
    """One output: token ids without `END`, and its log-probability, in nats."""

    tokens: list[int]
    ended: bool
    """Whether `END` came; without, the output was cut off at its limit."""
    log_probability: float
    """The log-probability of the tokens, and of `END` where it came."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What is right of strings and what a model says of them, in the precision of its test."""

    strings: TokenStrings
    targets: np.ndarray
    """What is right: of languages their labels; where nobody knows it, what is predicted."""
    predicted: np.ndarray
    """What the model says, as targets are written; of a language never the label where the model
    has no answer."""
    score: Float[np.ndarray, " string"]
    """The logits, or the margins of another kind; of outputs the targets' log-probabilities.

    NaN where there is no answer.
    """
    known: Bool[np.ndarray, " string"]
    """Which strings are answered."""
    unanswered: Bool[np.ndarray, " string"]
    """For which strings the model computes NaN: they are wrong.

    Strings that are no inputs, or so long that the model has no places for them, are neither right
    nor wrong.
    """

    @property
    def judged(self) -> Bool[np.ndarray, " string"]:
        """Which strings are right or wrong."""
        return np.asarray(self.known | self.unanswered)

    @property
    def wrong(self) -> Bool[np.ndarray, " string"]:
        # What is predicted of an unanswered string is a placeholder that may equal the target.
        return np.asarray((self.known & self._differ) | self.unanswered)

    @property
    def right(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.known & ~self._differ)

    @property
    def error_counts(self) -> dict[str, int]:
        """How many strings are wrong, by kind of error: of a language, by the answer."""
        # A wrong answer is the opposite of its label, so it alone tells the two kinds apart.
        positive = self.predicted[self.wrong]
        number = int(np.count_nonzero(positive))
        return {"false positive": number, "false negative": len(positive) - number}

    def are_predicted(self, answer: np.ndarray) -> Bool[np.ndarray, " string"]:
        """Which strings the model says this of, a row of the predictions of others."""
        # What another model says may be longer than anything said here, or shorter.
        predicted, answer = pad_to_one_width(self.predicted, answer[None])
        return ~_rows_differ(predicted, answer)

    @property
    def _differ(self) -> Bool[np.ndarray, " string"]:
        return _rows_differ(self.predicted, self.targets)


def pad_to_one_width(*answers: np.ndarray) -> list[np.ndarray]:
    """Outputs with as many positions as the longest; answers that have none are left alone."""
    if answers[0].ndim == 1:
        return list(answers)
    width = max(some.shape[1] for some in answers)
    # After the end of what is no letters stands -1.
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
    # Labels have no further axis; over no axes `any` leaves the comparison as it is.
    return np.asarray(differ.any(axis=tuple(range(1, differ.ndim))))


@dataclass(frozen=True)
class Measure:
    """One number of a model by length, that charts can draw."""

    name: str
    """As a column is called."""
    title: str
    """As a chart is labeled."""
    meaning: str
    """In a sentence."""
    is_error: bool = False
    """Whether less of it is better."""


ACCURACY = Measure(
    "accuracy", "Accuracy", "Share of a model's test strings that it classifies correctly."
)


@dataclass(frozen=True)
class ErrorColumn:
    """What a table of misclassified strings shows beside the string."""

    name: str
    title: str
    meaning: str


@dataclass(frozen=True)
class Words:
    """What errors are called: a model `misclassifies a string`, or `gets an input wrong`."""

    string: str
    miss: str
    """What several models miss, in braces."""
    misses: str
    """What one model misses."""
    missed: str
    """What is said of a string that is missed."""
    task: str
    """What its strings belong to."""
    right: str
    """What is right of a string."""
    hit: str = "correctly classified"
    """What is said of a string that is not missed."""

    @property
    def one(self) -> str:
        """A string, with its article."""
        return f"{'an' if self.string[0] in 'aeiou' else 'a'} {self.string}"

    def plural(self, what: str) -> str:
        """Strings of some sort, such as `test strings`."""
        return f"{what} {self.string}s".strip()


MISCLASSIFIED = Words(
    "string", "misclassify {}", "misclassifies {}", "misclassified", "language", "label"
)


Ability = Literal["labels", "outputs", "prefixes", "causes"]
"""What questions may need of a kind: answers that are yes or no, answers that are strings, answers
to all prefixes of a string, and errors that are known to have causes."""


NO_LANGUAGE = " is not a language: its answers are not yes or no"
"""Said of a task of another kind where a question is about languages."""

NO_TRANSDUCTION = " is not a transduction: its models write no outputs"


class Kind(Fields, ABC):
    """One kind of answer. Its constructor takes nothing; it holds no state.

    What a kind need not say itself is as of one whose models read a string and answer it at once;
    such a kind is a subclass of `seqcls.kinds.membership.OneAnswer`.
    """

    sampler: ClassVar[str] = "uniform_inputs"
    """What draws its strings where a configuration names none."""
    shortcut_readers: ClassVar[tuple[str, ...]] = ()
    """Readers of `seqcls.shortcuts` that can answer it without knowing the task."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Fields whose value, where a configuration gives none, is another than for languages."""
    words: ClassVar[Words] = MISCLASSIFIED
    """What its errors are called."""
    answer_columns: ClassVar[tuple[ErrorColumn, ErrorColumn]] = (
        ErrorColumn("predicted", "Predicted", "The model's answer."),
        ErrorColumn(
            "margin", "Margin", "By how much the model prefers its answer to the next best one."
        ),
    )
    """How an answer is shown, and how sure it is; of what is no language."""
    cells: ClassVar[tuple[str, ...]] = ()
    """Columns of counts that are stored beside `tested` and `wrong`; may be none."""
    score_name: ClassVar[str] = "margin"
    """What the one number of an answer is, such as `logit`."""
    unjudged_score_name: ClassVar[str] = "margin"
    """The same where nobody knows what is right."""
    every_string: ClassVar[bool] = True
    """Whether every string over the alphabet is an input of every task."""
    absent: ClassVar[Mapping[Ability, str]] = {
        "labels": NO_LANGUAGE,
        "causes": NO_LANGUAGE,
        "outputs": NO_TRANSDUCTION,
    }
    """What questions may need and this kind has not, with the reason, said of a task."""

    @abstractmethod
    def num_outputs(self, task: Task) -> int:
        """How many numbers a model's head gives of a string."""

    def targets(self, task: Any, strings: TokenStrings) -> Targets:
        """What is right of each string."""
        targets: Targets = task.targets(strings)
        return targets

    def network(self, task: Task, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a task asks of a network: its tokens, its head and what the head gives.

        Args:
            task: one of this kind.
            fields: of the configuration.
        """
        return {"num_letters": len(task.alphabet), "num_outputs": self.num_outputs(task)}

    def reading(self, task: Task, examples: Examples) -> TokenStrings:
        """What models read of examples in training, a special token before or after left out."""
        return examples.strings

    def lengths_read(self, examples: Examples) -> Int64[np.ndarray, " string"]:
        """How many tokens `reading` has of each."""
        return examples.strings.lengths

    def prompt_length(self, length: int) -> int:
        """Tokens that are read of a string of that length before anything is answered."""
        return length

    def longest_reading(self, task: Any, length: int) -> int:
        """Tokens that are read at most of a string of up to that length."""
        return length

    def encoded(self, task: Task, examples: Examples, network: NetworkConfig) -> np.ndarray:
        """The targets as `losses` takes them, a row for each string."""
        return examples.targets

    def units(self, targets: "Tensor") -> int:
        """By what the summed losses of a batch are divided to be trained on; targets encoded."""
        return len(targets)

    @abstractmethod
    def are_right(self, outputs: "Tensor", targets: "Tensor") -> "Bool[Tensor, '*member string']":
        """Which strings are answered right, by the outputs of their targets."""

    @abstractmethod
    def losses(
        self, outputs: "Tensor", targets: "Tensor", train_loss: str
    ) -> "Float[Tensor, '*member string']":
        """Each string's loss in nats.

        Args:
            outputs: of the head: (*member, string), with one more axis where there are several;
                of a head that answers token by token (*member, token, output), of all strings
                one after another.
            targets: encoded, of the same strings: (string).
            train_loss: the field of the configuration.
        """

    @abstractmethod
    def ask(self, models: TrainedModels, questions: Questions) -> Iterator[Answers]:
        """What each of some models says of strings."""

    @abstractmethod
    def margins(self, outputs: Outputs, targets: Targets) -> Float[np.ndarray, " string"]:
        """The one number of each answer that is stored, and that interventions move.

        Args:
            outputs: of the head, as `losses` takes them; of one model.
            targets: of the same strings.
        """

    @abstractmethod
    def are_wrong(self, outputs: Outputs, targets: Targets) -> Bool[np.ndarray, " string"]:
        """Which strings are answered wrongly, by the outputs of their targets; NaN is wrong."""

    @abstractmethod
    def texts(self, task: Task, answers: np.ndarray) -> Sequence[str] | None:
        """Answers, or targets, as text; None where a bit says it all."""

    def measures(self) -> tuple[Measure, ...]:
        """What charts can draw by length, accuracy first."""
        return (ACCURACY,)

    def error_columns(self) -> tuple[ErrorColumn, ...]:
        """What a table of misclassified strings shows."""
        return (
            ErrorColumn("target", "Target", "What is right of the string."),
            ErrorColumn("logit", "Margin", "Of the right answer over the next best one."),
        )
