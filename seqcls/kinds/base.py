"""What every kind of answer says of itself: targets, loss, judgment, what is shown of errors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int64

from seqcls.config import NetworkConfig
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.base import Task

if TYPE_CHECKING:
    from torch import Tensor

Targets = np.ndarray
"""What is right for each string: of a language its label, of shape (string); of a transduction the
letters of its output, `NO_LETTER` after their end: (string, target_position)."""

Outputs = np.ndarray
"""The numbers that a model's head gives for each string: (string), or (string, output)."""


@dataclass(frozen=True, eq=False)
class Examples:
    """Strings in the order in which they were drawn, with what is right of each."""

    strings: TokenStrings
    targets: Targets

    @property
    def labels(self) -> Bool[np.ndarray, " string"]:
        """The targets of a language: which strings are in it."""
        return self.targets

    def __len__(self) -> int:
        return len(self.targets)

    def take(self, rows: "slice | Int64[np.ndarray, ' row']") -> "Examples":
        """Some of the strings."""
        return Examples(self.strings.take(rows), self.targets[rows])


def are_unanswered(outputs: Outputs) -> Bool[np.ndarray, " string"]:
    """The strings of which a model's head gives a number that is none, NaN: that is no answer."""
    return np.asarray(np.isnan(outputs).any(axis=tuple(range(1, outputs.ndim))))


@dataclass(frozen=True)
class Measure:
    """One number of a model by length, that charts can draw."""

    name: str
    """As a column is called."""
    title: str
    """As a chart is labelled."""
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


@runtime_checkable
class Kind(Protocol):
    """One kind of answer. Its constructor takes nothing; it holds no state.

    One whose models read a string and answer it at once is a subclass of
    `seqcls.kinds.membership.OneAnswer`, which says so.
    """

    reads: ClassVar[frozenset[str]]
    """Fields of a configuration that it reads; none where it is fixed."""
    sampler: ClassVar[str]
    """What draws its strings where a configuration names none."""
    defaults: ClassVar[Mapping[str, Any]]
    """Fields whose value, where a configuration gives none, is another than for languages."""
    words: ClassVar[Words]
    """What its errors are called."""
    answer_columns: ClassVar[tuple[ErrorColumn, ErrorColumn]]
    """How an answer is shown, and how sure it is; of what is no language."""
    cells: ClassVar[tuple[str, ...]]
    """Columns of counts that are stored beside `tested` and `wrong`; may be none."""

    def num_outputs(self, task: Task) -> int:
        """How many numbers a model's head gives of a string."""
        ...

    def targets(self, task: Task, strings: TokenStrings) -> Targets:
        """What is right of each string."""
        ...

    def network(self, task: Task, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a task asks of a network: its tokens, its head and what the head gives.

        Args:
            task: one of this kind.
            fields: of the configuration.
        """
        ...

    def reading(self, task: Task, examples: Examples) -> TokenStrings:
        """What models read of examples in training, a special token before or after left out."""
        ...

    def longest_reading(self, task: Task, length: int) -> int:
        """Tokens that are read at most of a string of up to that length."""
        ...

    def encoded(self, task: Task, examples: Examples, network: NetworkConfig) -> np.ndarray:
        """The targets as `losses` takes them, a row for each string."""
        ...

    def units(self, targets: "Tensor") -> int:
        """By what the summed losses of a batch are divided to be trained on; targets encoded."""
        ...

    def are_right(self, outputs: "Tensor", targets: "Tensor") -> "Bool[Tensor, '*member string']":
        """Which strings are answered right, by the outputs of their targets."""
        ...

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
        ...

    def answers(self, outputs: Outputs) -> np.ndarray:
        """What a model says of each string, comparable with the targets."""
        ...

    def cell(self, answers: np.ndarray, targets: Targets) -> Int64[np.ndarray, " string"]:
        """Which of `cells` each string counts in; asked only where there are some."""
        ...

    def margins(self, outputs: Outputs, targets: Targets) -> Float[np.ndarray, " string"]:
        """The one number of each answer that is stored, and that interventions move."""
        ...

    def texts(self, task: Task, answers: np.ndarray) -> Sequence[str] | None:
        """Answers, or targets, as text; None where a bit says it all."""
        ...

    def measures(self) -> tuple[Measure, ...]:
        """What charts can draw by length, accuracy first."""
        ...

    def error_columns(self) -> tuple[ErrorColumn, ...]:
        """What a table of misclassified strings shows."""
        ...
