"""What every way of drawing strings answers."""

from collections.abc import Iterator, Mapping
from typing import ClassVar, Protocol, runtime_checkable

from seqcls.kinds.base import Examples
from seqcls.tasks.base import Task


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

    def epochs(self) -> Iterator[Examples]:
        """The stream: one epoch after another, without end.

        An epoch's batches are its strings in order, `batch_size` at a time; the last may be short.
        """
        ...
