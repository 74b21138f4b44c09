"""Base classes of transductions, tasks whose target is a string."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
from jaxtyping import Int64, UInt8
from pydantic import Field

from seqcls.declarations import About, Fields
from seqcls.errors import InvalidStringError
from seqcls.strings.token_strings import NO_LETTER, TokenStrings
from seqcls.strings.tokenizer import LETTERS, Tokenizer
from seqcls.tasks.base import InputTask, LetterRow, Worded

Places = Int64[np.ndarray, " position"]
TargetRow = UInt8[np.ndarray, " target_position"]
TargetPlaces = Int64[np.ndarray, " target_position"]

MOST_COUNTED = 8
"""The largest alphabet of which the number of each token is a feature."""

INPUT, NEIGHBORS = "the input itself", "the token at the same place and its neighbors"
"""The inputs of shortcut readers that may decide an output."""


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


class NumberedTokens(Tokens):
    """Tokens are lowercase letters, or numbers from 0 if there are not enough."""

    @property
    def alphabet(self) -> Sequence[str]:
        number = self.num_tokens
        return LETTERS[:number] if number <= len(LETTERS) else tuple(map(str, range(number)))


class Transduction(Fields, Worded, InputTask):
    """A task given by three methods: `has_input` of a length, `draw_input`, and its `target`.

    Inputs and outputs are strings over one alphabet. Some strings over it may be no inputs: `3+=`
    is no sum.
    """

    kind: ClassVar[str] = "transduction"
    order_sensitive: ClassVar[bool] = True

    @abstractmethod
    def target(self, letters: LetterRow) -> TargetRow:
        """The target of one input.

        Raises:
            InvalidStringError: it is no input; the message describes inputs, without this one.
        """

    def has_input(self, length: int) -> bool:
        """True if any input has that many tokens."""
        return length >= 1

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        """The letters of a uniform input of that length, which must exist (`has_input`)."""
        return rng.integers(len(self.alphabet), size=length, dtype=np.uint8)

    def longest_target(self, length: int) -> int:
        """The most tokens of the target of an input of up to that length."""
        return length

    def targets(self, strings: TokenStrings) -> UInt8[np.ndarray, "string target_position"]:
        """The target of each input: letters, `NO_LETTER` after each end.

        Raises:
            InvalidStringError: one of them is no input.
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
        """The number of each token; of a large alphabet, how much tokens repeat."""
        if len(self.alphabet) <= MOST_COUNTED:
            return super().features(strings)
        longest = run = np.zeros(len(strings), dtype=np.int64)
        before = np.full(len(strings), NO_LETTER, dtype=np.uint8)
        for letters in strings.letters.T:
            # Padding must not be a run.
            run = np.where(letters == NO_LETTER, 0, np.where(letters == before, run + 1, 1))
            longest, before = np.maximum(longest, run), letters
        return {"distinct tokens": (strings.counts > 0).sum(axis=1), "longest run": longest}

    @property
    def decided_by(self) -> str | None:
        """The input of a shortcut reader that decides the targets, `INPUT` or `NEIGHBORS`; None
        where none does, or it is not known.
        """
        return None

    def coupling_obstacle(self) -> str | None:
        """Why `couples` returns None; None where it does not."""
        return "the task does not say which tokens of its inputs and outputs belong together"

    def couples(
        self, input_letters: LetterRow, target_letters: TargetRow
    ) -> tuple[Places, TargetPlaces] | None:
        """Numbers of places, shared by tokens that belong together (Cho et al. 2024).

        Args:
            target_letters: of its target, or of an output so far; only their number counts, so
                that a place is known before its token.

        Returns:
            A number from 1 for each token of input and target, or 0 for a token without a partner;
            None where there is a `coupling_obstacle`.
        """
        return None

    def separator_place(self, input_letters: LetterRow) -> int:
        """The place one step before that of an output's first token, on the scale of `couples`.

        It is 0, the place of marks, for an output in the order of the input's places.
        """
        return 0


class OneToken(Transduction):
    """A transduction whose outputs are one token."""

    def longest_target(self, length: int) -> int:
        return min(length, 1)


class FormTransduction(Transduction):
    """A transduction given by the form of its inputs, and by the target of one of that form."""

    @property
    @abstractmethod
    def form(self) -> str:
        """The form of inputs, for error messages."""

    @abstractmethod
    def answer(self, letters: list[int]) -> Sequence[int] | TargetRow | None:
        """The target of a string that is not empty; None where it is no input."""

    def target(self, letters: LetterRow) -> TargetRow:
        answer = self.answer(letters.tolist()) if len(letters) else None
        if answer is None:
            raise InvalidStringError(f"expected {self.form}")
        return np.array(answer, dtype=np.uint8)


class TextTransduction(FormTransduction):
    """A transduction of texts whose tokens are one character each."""

    @abstractmethod
    def write(self, text: str) -> str | None:
        """The target of a text that is not empty; None where it is no input."""

    def answer(self, letters: list[int]) -> list[int] | None:
        # Tokens have one character each: letters index the text.
        alphabet = "".join(self.alphabet)
        written = self.write("".join([alphabet[letter] for letter in letters]))
        return None if written is None else [alphabet.index(token) for token in written]
