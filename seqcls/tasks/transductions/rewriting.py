"""Replace what a pattern matches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from seqcls.errors import ConfigError, InvalidStringError
from seqcls.functions.rewriting import Rewriter
from seqcls.tasks.language import LetterRow
from seqcls.tasks.transductions.base import TargetRow, Transduction
from seqcls.tokens.alphabets import check_alphabet, tokens_of
from seqcls.tokens.strings import TokenStrings


@dataclass(frozen=True)
class Rewrite(Transduction):
    r"""`cabb` becomes `cbba` with the pattern `a(b+)` and the replacement `\1a`."""

    alphabet: Sequence[str] = ""
    pattern: str = ""
    replacement: str = ""

    reads: ClassVar[frozenset[str]] = frozenset({"alphabet", "pattern", "replacement"})

    def __post_init__(self) -> None:
        check_alphabet(self.alphabet, "rewrite")
        object.__setattr__(self, "alphabet", tokens_of(self.alphabet))
        if not self.pattern:
            raise ConfigError(
                "pattern='': task 'rewrite' expects a regular expression over the alphabet, such "
                f"as '{self.alphabet[0]}+'"
            )
        assert self._rewriter

    @cached_property
    def _rewriter(self) -> Rewriter:
        return Rewriter(self.alphabet, self.pattern, self.replacement)

    def _spelled(self, letters: LetterRow) -> list[str]:
        return [self.alphabet[letter] for letter in letters.tolist()]

    def target(self, letters: LetterRow) -> TargetRow:
        if not len(letters):
            raise InvalidStringError("expected at least one token")
        numbers = {token: number for number, token in enumerate(self.alphabet)}
        tokens = self._rewriter.rewritten(self._spelled(letters))
        return np.array([numbers[token] for token in tokens], dtype=np.uint8)

    def has_input(self, length: int) -> bool:
        return length >= 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return rng.integers(len(self.alphabet), size=length, dtype=np.uint8)

    def longest_target(self, length: int) -> int:
        return self._rewriter.longest(length)

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """As of every task, and how many matches are replaced."""
        rows = zip(strings.letters, strings.lengths.tolist(), strict=True)
        matches = [self._rewriter.num_matches(self._spelled(row[:length])) for row, length in rows]
        return {**super().features(strings), "matches": np.array(matches, dtype=np.int64)}

    def describe(self) -> str:
        what = self.replacement or "nothing"
        return f"The output is the input with {what} for every leftmost match of {self.pattern}."
