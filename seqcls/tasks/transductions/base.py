"""What transductions have in common that say of one input which string is right."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np
from jaxtyping import UInt8

from seqcls.errors import InvalidStringError
from seqcls.tasks.letters import letter_counts
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import Tokenizer

LetterRow = UInt8[np.ndarray, " position"]


class Transduction(ABC):
    """A task from three answers: which inputs there are, one such, and what is right of it.

    Inputs and outputs are strings over one alphabet. Of some strings over it nothing may be right:
    `3+=` is no sum.
    """

    kind: ClassVar[str] = "transduction"
    order_sensitive: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset()

    @property
    @abstractmethod
    def alphabet(self) -> Sequence[str]:
        """The tokens: text, one character each, or a tuple; a letter's number is its place here."""

    @abstractmethod
    def target(self, letters: LetterRow) -> LetterRow:
        """What is right of one input.

        Raises:
            InvalidStringError: nothing is; the message says what an input is, without the input.
        """

    @abstractmethod
    def has_input(self, length: int) -> bool:
        """Whether any input has that many tokens."""

    @abstractmethod
    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The letters of a uniform input of that length; the caller has asked `has_input`."""

    @abstractmethod
    def describe(self) -> str:
        """The task in one sentence."""

    def longest_target(self, length: int) -> int:
        """Tokens that the target of an input of up to that length may have at most."""
        return length

    def targets(self, strings: TokenStrings) -> UInt8[np.ndarray, "string position"]:
        """What is right of each input: letters, `NO_LETTER` after each end.

        Raises:
            InvalidStringError: nothing is, of one of them.
        """
        rows = zip(strings.letters, strings.lengths.tolist(), strict=True)
        found = []
        for row, length in rows:
            try:
                found.append(self.target(row[:length]).tolist())
            except InvalidStringError as error:
                text = Tokenizer(self.alphabet).spelled(row[:length].tolist())
                raise InvalidStringError(f"input {text[:60]!r}: {error}") from None
        return TokenStrings.of_lists(len(self.alphabet), found).letters

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """How often each token occurs in the input."""
        return letter_counts(self.alphabet, strings)


def numbered_tokens(num_tokens: int) -> Sequence[str]:
    """So many tokens: lowercase letters, or numbers from 0 where these do not suffice."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    if num_tokens <= len(letters):
        return letters[:num_tokens]
    return tuple(map(str, range(num_tokens)))
