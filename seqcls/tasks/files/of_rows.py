"""What tasks have in common whose strings are the rows of a file."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool

from seqcls.datasets import Dataset
from seqcls.datasets.known import dataset_of
from seqcls.errors import ConfigError
from seqcls.tasks.base import Task
from seqcls.tasks.files.lookup import rows_of
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True)
class OfRows:
    """A task whose answers are known for the strings of a file, and of no others."""

    dataset: str
    """The digest of the file's content."""

    name: ClassVar[str]
    """The task's name, by which files are told apart."""
    reads: ClassVar[frozenset[str]] = frozenset({"dataset"})
    sampler: ClassVar[str] = "dataset_rows"
    """What alone draws its strings."""

    def __post_init__(self) -> None:
        if self.content.task != self.name:
            has = "labels" if self.content.task == "file" else "targets"
            raise ConfigError(
                f"dataset={self.content.name!r}: its rows have {has}; "
                f"use task={self.content.task!r}"
            )

    @property
    def content(self) -> Dataset:
        """The rows."""
        return dataset_of(self.dataset)

    def known_strings(self) -> TokenStrings:
        """The rows of the file."""
        return self.content.strings

    @property
    def alphabet(self) -> Sequence[str]:
        """The tokens of the rows, as `Task.alphabet`."""
        return self.content.alphabet

    def knows(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        """Which strings' label or target the file says."""
        return np.asarray(rows_of(self.dataset, strings) >= 0)


def rows_only(task: Task) -> str | None:
    """Why only one sampler draws the strings of a task; None where others do."""
    if isinstance(task, OfRows):
        return f"its strings are those of a file; use {task.sampler}"
    return None
