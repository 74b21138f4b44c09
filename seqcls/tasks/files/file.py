"""A language of which some strings and their labels are known: those of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Bool, UInt8

from seqcls.errors import InvalidStringError
from seqcls.tasks.files.lookup import rows_of, rows_of_length
from seqcls.tasks.files.of_rows import OfRows
from seqcls.tasks.letters import letter_counts
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import Tokenizer


@dataclass(frozen=True)
class File(OfRows):
    """Strings of a file with their labels; of other strings no label is known.

    Whether the order of tokens matters is not known either, so it may.
    """

    name: ClassVar[str] = "file"
    order_sensitive: ClassVar[bool] = True

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
