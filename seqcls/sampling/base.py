"""Labelled strings, and what every way of drawing them answers."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.tasks.base import Task
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True, eq=False)
class LabelledStrings:
    """Strings in the order in which they were drawn, with their labels."""

    strings: TokenStrings
    labels: Bool[np.ndarray, " string"]

    @classmethod
    def of(cls, task: Task, strings: TokenStrings) -> "LabelledStrings":
        """The strings with the labels that the task gives them."""
        return cls(strings, task.labels(strings))

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: slice | Int64[np.ndarray, " row"]) -> "LabelledStrings":
        """Some of the strings."""
        return LabelledStrings(self.strings.take(rows), self.labels[rows])


@runtime_checkable
class Sampler(Protocol):
    """All that determines a stream of strings; hashable, so that a stream is drawn once."""

    reads: ClassVar[frozenset[str]]
    """The settings that it takes beside the task: `max_length` stands for the part's own,
    such as `test_max_length`, where there is such a field, else for the field of that name;
    `part` is the part's name."""
    reads_of_part: ClassVar[Mapping[str, frozenset[str]]]
    """What it takes besides of one part alone."""

    def __hash__(self) -> int: ...

    @property
    def task(self) -> Task: ...

    @property
    def batch_size(self) -> int: ...

    @property
    def lengths(self) -> range:
        """From the tokens of the shortest string that it may draw to those of the longest."""
        ...

    @property
    def epoch_size(self) -> int:
        """Strings of one epoch."""
        ...

    @property
    def repeats(self) -> bool:
        """Whether every epoch holds the strings of the first."""
        ...

    @classmethod
    def obstacle(cls, task: Task) -> str | None:
        """Why it cannot draw the strings of a task; None where it can."""
        ...

    def epochs(self) -> Iterator[LabelledStrings]:
        """The stream: one epoch after another, without end.

        An epoch's batches are its strings in order, `batch_size` at a time; the last may be short.
        """
        ...
