"""A transduction of which some inputs and their targets are known: those of a file."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqcls.tasks.files.file import refuse_unknown
from seqcls.tasks.files.lookup import rows_of, rows_of_length
from seqcls.tasks.files.of_rows import OfRows
from seqcls.tasks.language import LetterRow
from seqcls.tasks.transductions.base import TargetRow, Transduction
from seqcls.tokens.strings import NO_LETTER, TokenStrings


@dataclass(frozen=True)
class Pairs(OfRows, Transduction):
    """Inputs of a file with their targets; of other inputs no target is known."""

    name: ClassVar[str] = "pairs"

    @property
    def _targets(self) -> np.ndarray:
        targets = self.content.targets
        assert targets is not None
        return targets

    def target(self, letters: LetterRow) -> TargetRow:
        target = self.targets(TokenStrings.of_letters(len(self.alphabet), letters[None, :]))[0]
        return np.asarray(target[target != NO_LETTER])

    def targets(self, strings: TokenStrings) -> np.ndarray:
        rows = rows_of(self.dataset, strings)
        refuse_unknown(self.alphabet, strings, rows, "target")
        targets = self._targets[rows]
        longest = int((targets != NO_LETTER).sum(axis=1).max(initial=0))
        return np.asarray(targets[:, :longest])

    def longest_target(self, length: int) -> int:
        return int(self._lengths_of_targets(length).max(initial=0))

    def _lengths_of_targets(self, length: int) -> np.ndarray:
        # An input may be shorter than all of the file, and its output is as long as theirs.
        lengths = self.content.strings.lengths
        rows = lengths <= max(length, int(lengths.min()))
        return np.asarray((self._targets[rows] != NO_LETTER).sum(axis=1))

    def has_input(self, length: int) -> bool:
        return bool(len(rows_of_length(self.dataset, length, None)))

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        row = rng.choice(rows_of_length(self.dataset, length, None))
        return np.array(self.content.strings.letters[row, :length])

    def describe(self) -> str:
        return f"The output is what the file {self.content.name!r} pairs with the input."
