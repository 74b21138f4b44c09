"""A language of which some strings and their labels are known: those of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, UInt8

from seqcls.errors import InvalidStringError
from seqcls.tasks.files.lookup import rows_of, rows_of_length
from seqcls.tasks.files.rows import OfRows
from seqcls.tasks.letters import letter_counts
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import Tokenizer

MOST_COMPARED = 20_000
"""Strings of a file among which a pair is looked for that shows that order matters."""


@dataclass(frozen=True)
class File(OfRows):
    """Strings of a file with their labels; of other strings no label is known.

    Whether the order of tokens matters is not known either, so it may.
    """

    name: ClassVar[str] = "file"
    order_sensitive: ClassVar[bool] = True

    def knows(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        """Of which strings the file says the label."""
        return np.asarray(rows_of(self.dataset, strings) >= 0)

    def labels(self, strings: TokenStrings) -> Bool[np.ndarray, " string"]:
        """The labels of strings of the file.

        Raises:
            InvalidStringError: one of them is not in it.
        """
        rows = rows_of(self.dataset, strings)
        labels = self.content.labels
        assert labels is not None
        refuse_unknown(self.alphabet, strings, rows, "label")
        return np.asarray(labels[rows], dtype=bool)

    def labels_or(
        self, strings: TokenStrings, others: Bool[np.ndarray, " string"]
    ) -> Bool[np.ndarray, " string"]:
        """The labels of strings of the file, and these of strings that are not in it.

        A model's own answers, say: of such a string nobody knows that it is wrong.
        """
        rows = rows_of(self.dataset, strings)
        labels = self.content.labels
        assert labels is not None
        return np.asarray(np.where(rows < 0, others, labels[rows]), dtype=bool)

    @property
    def order_pair(self) -> tuple[str, str] | None:
        """Two strings of the file with the same letter counts and not the same label."""
        content, labels = self.content, self.content.labels
        assert labels is not None
        strings = content.strings.take(slice(MOST_COMPARED))
        first: dict[bytes, int] = {}
        for row, counts in enumerate(strings.counts):
            before = first.setdefault(counts.tobytes(), row)
            if labels[before] != labels[row]:
                spelled = Tokenizer(self.alphabet).decode
                one, other = (
                    spelled(strings.ids[x, : strings.lengths[x]].tolist()) for x in (before, row)
                )
                return one, other
        return None

    def has(self, length: int, positive: bool) -> bool:
        """Whether any string of the file has that length and label."""
        return bool(len(rows_of_length(self.dataset, length, positive)))

    def draw(
        self, rng: np.random.Generator, length: int, positive: bool
    ) -> UInt8[np.ndarray, " position"]:
        """A string of the file."""
        row = rng.choice(rows_of_length(self.dataset, length, positive))
        return np.array(self.content.strings.letters[row, :length])

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """How often each token occurs."""
        return letter_counts(self.alphabet, strings)

    def describe(self) -> str:
        """The language in one sentence."""
        return f"Strings that the file {self.content.name!r} labels 1 are positive."


def refuse_unknown(
    alphabet: Sequence[str], strings: TokenStrings, rows: np.ndarray, answer: str
) -> None:
    """Refuses strings that are no row of a file.

    Raises:
        InvalidStringError: there is one.
    """
    for number in np.flatnonzero(rows < 0)[:1]:
        row = strings.letters[number, : strings.lengths[number]].tolist()
        text = Tokenizer(alphabet).spelled(row)
        raise InvalidStringError(
            f"string {text[:60]!r} is not in the file, so its {answer} is not known"
        )
