"""Tasks whose answer is a string: what they have in common that say of one input which is right."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Int64, UInt8
from pydantic import Field

from seqcls.declarations import About, Fields
from seqcls.errors import InvalidStringError
from seqcls.strings.token_strings import NO_LETTER, Lengths, TokenStrings
from seqcls.strings.tokenizer import Tokenizer
from seqcls.tasks.base import InputTask, LetterRow, Worded

Places = Int64[np.ndarray, " position"]
TargetRow = UInt8[np.ndarray, " target_position"]
TargetPlaces = Int64[np.ndarray, " target_position"]

MOST_COUNTED = 8
"""Tokens of an alphabet that are features each."""

INPUT, NEIGHBORS = "the input itself", "the token at the same place and its neighbors"
"""What shortcut readers look at that may decide an output."""


@dataclass(frozen=True)
class Tokens(Fields):
    """num_tokens: Tokens that inputs of `copy`, `reverse`, `duplicate`, `sort`, `write_odds_first`,
    `retrieval` and, beside noise, `selective_copy` may hold; keys of `associative_recall` and
    `consistent_pairs`, which have as many values.
    """

    num_tokens: Annotated[int, Field(ge=1, le=200), About("Task", 12)] = 2


@dataclass(frozen=True)
class DistinctTokens(Tokens):
    """distinct: Whether no input of the first five holds a token twice, and none of
    `associative_recall` a key.
    """

    distinct: Annotated[bool, About("Task", 13)] = False


class Transduction(Fields, Worded, InputTask):
    """A task from three answers: which inputs there are, one such, and what is right of it.

    Inputs and outputs are strings over one alphabet. Of some strings over it nothing may be right:
    `3+=` is no sum.
    """

    kind: ClassVar[str] = "transduction"
    order_sensitive: ClassVar[bool] = True

    @abstractmethod
    def target(self, letters: LetterRow) -> TargetRow:
        """What is right of one input.

        Raises:
            InvalidStringError: nothing is; the message says what an input is, without the input.
        """

    def has_input(self, length: int) -> bool:
        """Whether any input has that many tokens."""
        return length >= 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The letters of a uniform input of that length; the caller has asked `has_input`."""
        return rng.integers(len(self.alphabet), size=length, dtype=np.uint8)

    def longest_target(self, length: int) -> int:
        """Tokens that the target of an input of up to that length may have at most."""
        return length

    def targets(self, strings: TokenStrings) -> UInt8[np.ndarray, "string target_position"]:
        """What is right of each input: letters, `NO_LETTER` after each end.

        Raises:
            InvalidStringError: nothing is, of one of them.
        """
        rows = zip(strings.letters, strings.lengths.tolist(), strict=True)
        targets = []
        for row, length in rows:
            try:
                targets.append(self.target(row[:length]).tolist())
            except InvalidStringError as error:
                text = Tokenizer(self.alphabet).spell(row[:length].tolist())
                raise InvalidStringError(f"input {text[:60]!r}: {error}") from None
        return TokenStrings.of_lists(len(self.alphabet), targets).letters

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """How often each token occurs in the input; of a large alphabet, how much they repeat."""
        if len(self.alphabet) <= MOST_COUNTED:
            return super().features(strings)
        return {
            "distinct tokens": (strings.counts > 0).sum(axis=1),
            "longest run": longest_runs(strings),
        }

    @property
    def decided_by(self) -> str | None:
        """What decides the targets, where a shortcut reader looks at just that: `INPUT`, or
        `NEIGHBORS`; None where none does, or it is not known.
        """
        return None

    def coupling_obstacle(self) -> str | None:
        """Why `couples` does not say which tokens belong together; None where it does."""
        return "the task does not say which tokens of its inputs and outputs belong together"

    def couples(
        self, input_letters: LetterRow, target_letters: TargetRow
    ) -> tuple[Places, TargetPlaces] | None:
        """Numbers of places, which tokens that belong together share (Cho et al. 2024).

        Args:
            target_letters: of its target, or of what has been written of an output; only their
                number counts, so that a place is known before its token.

        Returns:
            For each token of input and target a number from 1, or 0 where it stands alone; None
            where there is a `coupling_obstacle`.
        """
        return None

    def separator_place(self, input_letters: LetterRow) -> int:
        """The place one step before that of an output's first token, on the scale of `couples`.

        Of an output that goes through the input's places in their order it is 0, where marks stand.
        """
        return 0


class OneToken(Transduction):
    """A transduction whose outputs are one token."""

    def longest_target(self, length: int) -> int:
        return min(length, 1)


class TextTransduction(Transduction):
    """A transduction of texts whose tokens are one character each."""

    @property
    @abstractmethod
    def form(self) -> str:
        """What an input is, for the message about a string that is none."""

    @abstractmethod
    def answer(self, text: str) -> str | None:
        """What is right of an input that is not empty; None where the text is no input."""

    def target(self, letters: LetterRow) -> TargetRow:
        # Tokens have one character each, so that a text can be indexed by letters.
        alphabet = "".join(self.alphabet)
        text = "".join([alphabet[letter] for letter in letters.tolist()])
        answer = self.answer(text) if text else None
        if answer is None:
            raise InvalidStringError(f"expected {self.form}")
        return np.array([alphabet.index(token) for token in answer], dtype=np.uint8)


def longest_runs(strings: TokenStrings) -> Lengths:
    """How many equal tokens stand in a row, at most, in each string."""
    longest = run = np.zeros(len(strings), dtype=np.int64)
    before = np.full(len(strings), NO_LETTER, dtype=np.uint8)
    for letters in strings.letters.T:
        # What fills up short strings must not be their longest run.
        run = np.where(letters == NO_LETTER, 0, np.where(letters == before, run + 1, 1))
        longest, before = np.maximum(longest, run), letters
    return longest


def numbered_tokens(num_tokens: int) -> Sequence[str]:
    """So many tokens: lowercase letters, or numbers from 0 where these do not suffice."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    if num_tokens <= len(letters):
        return letters[:num_tokens]
    return tuple(map(str, range(num_tokens)))
