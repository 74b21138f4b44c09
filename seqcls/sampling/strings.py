"""Labelled strings, held both as padded token ids and as letter counts."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, Self, runtime_checkable

import numpy as np
from jaxtyping import Bool, Int64, UInt8

from seqcls.tasks.contains_all import ContainsAll
from seqcls.tokenizer import CLS, FIRST_LETTER, PAD

if TYPE_CHECKING:
    from seqcls.config import RunConfig


@dataclass(frozen=True, eq=False)
class Strings:
    """Strings in the order in which they were drawn."""

    ids: UInt8[np.ndarray, "string position"]
    counts: Int64[np.ndarray, "string letter"]
    positive: Bool[np.ndarray, " string"]

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def lengths(self) -> Int64[np.ndarray, " string"]:
        """Letters of each string."""
        return np.asarray(self.counts.sum(axis=1))

    @classmethod
    def of_counts(
        cls, language: ContainsAll, counts: Int64[np.ndarray, "string letter"]
    ) -> "Strings":
        """The strings with these counts whose letters are in order."""
        ends = counts.cumsum(axis=1)
        positions = np.arange(ends[:, -1].max(initial=0))
        # A position's letter is the number of letters whose last occurrence lies before it.
        letters = (positions >= ends[:, :, None]).sum(axis=1)
        ids = np.where(letters < counts.shape[1], letters + FIRST_LETTER, PAD)
        return cls(_after_cls(ids), counts, language.positive(counts))

    @classmethod
    def of_letters(
        cls, language: ContainsAll, letters: Int64[np.ndarray, "string position"]
    ) -> "Strings":
        """Strings of one length, each given by the numbers of its letters."""
        counts = np.stack([(letters == x).sum(axis=1) for x in range(language.num_letters)], axis=1)
        return cls(_after_cls(letters + FIRST_LETTER), counts, language.positive(counts))

    @classmethod
    def of_ids(cls, language: ContainsAll, ids: UInt8[np.ndarray, "string position"]) -> "Strings":
        """Strings given as padded token ids."""
        letters = range(FIRST_LETTER, FIRST_LETTER + language.num_letters)
        counts = np.stack([(ids == x).sum(axis=1) for x in letters], axis=1)
        return cls(ids, counts, language.positive(counts))

    def take(self, rows: slice | Int64[np.ndarray, " row"]) -> "Strings":
        """Some of the strings."""
        return Strings(self.ids[rows], self.counts[rows], self.positive[rows])


@runtime_checkable
class Sampler(Protocol):
    """All that determines a stream of strings; hashable, so that a stream is drawn once."""

    def __hash__(self) -> int: ...

    @property
    def language(self) -> ContainsAll: ...

    @property
    def batch_size(self) -> int: ...

    @classmethod
    def of_part(cls, config: "RunConfig", part: str) -> Self:
        """The sampler of a configuration's part: `train`, `validation` or `test`."""
        ...

    def epochs(self) -> Iterator[Strings]:
        """The stream: one epoch after another, without end.

        An epoch's batches are its strings in order, `batch_size` at a time; the last may be short.
        """
        ...


def _after_cls(ids: Int64[np.ndarray, "string position"]) -> UInt8[np.ndarray, "string position+1"]:
    return np.insert(ids, 0, CLS, axis=1).astype(np.uint8)
