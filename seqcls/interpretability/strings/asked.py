"""A trained model of any architecture, asked about strings of its language."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from seqcls.config import RunConfig
from seqcls.errors import InvalidStringError
from seqcls.evaluation import logits_of
from seqcls.exhaustive import tries_empty
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.tasks import Task
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import FIRST_LETTER, Tokenizer

Letters = tuple[int, ...]
"""One string by the numbers of its letters."""

MAX_LENGTH = 2_000
"""Tokens of a string that is worked on token by token: attention between all pairs still fits."""


@dataclass(frozen=True)
class Answer:
    """What the language and the model say of one string."""

    string: str
    length: int
    label: bool
    logit: float

    @property
    def predicted(self) -> bool:
        return self.logit > 0

    @property
    def is_wrong(self) -> bool:
        """Whether the model misclassifies it."""
        return self.predicted != self.label


@dataclass(frozen=True, eq=False)
class Answers:
    """What the language and the model say of many strings."""

    strings: TokenStrings
    labels: Bool[np.ndarray, " string"]
    logits: Float[np.ndarray, " string"]
    """NaN where the model has no places for so long a string: it is neither right nor wrong."""

    @property
    def predicted(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.logits > 0)

    @property
    def known(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(~np.isnan(self.logits))

    @property
    def wrong(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.known & (self.predicted != self.labels))

    @property
    def right(self) -> Bool[np.ndarray, " string"]:
        return np.asarray(self.known & (self.predicted == self.labels))


@dataclass(frozen=True, eq=False)
class AskedModel:
    """What a model was trained for, and its weights. It answers as in its test: dropout is off."""

    problem: Problem
    weights: Weights

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self.config.changed.items())
        return f"<AskedModel {changed or 'of the default configuration'}>"

    @property
    def config(self) -> RunConfig:
        return self.problem.config

    @property
    def task(self) -> Task:
        return self.problem.task

    @property
    def tokenizer(self) -> Tokenizer:
        return self.problem.tokenizer

    @property
    def num_letters(self) -> int:
        return self.tokenizer.num_letters

    @property
    def knows_the_empty_string(self) -> bool:
        """Whether the empty string may be in a test, and so counts as a string here."""
        return tries_empty(self.problem)

    def letters(self, text: str) -> Letters:
        """The letters of a string in the usual notation.

        Raises:
            InvalidStringError: it is not of this alphabet, or longer than `MAX_LENGTH`.
        """
        length = sum(count for _, count in self.tokenizer.pieces(text))
        if length > MAX_LENGTH:
            raise InvalidStringError(
                f"{text[:60]!r} has {length:,} tokens, more than the {MAX_LENGTH:,} that are "
                "looked at one by one; shorten it"
            )
        return tuple(x - FIRST_LETTER for x in self.tokenizer.encode(text)[1:])

    def text(self, letters: Sequence[int]) -> str:
        """The string with these letters, in the usual notation."""
        return self.tokenizer.decode([FIRST_LETTER + letter for letter in letters])

    def ask(self, strings: TokenStrings) -> Answers:
        """Labels and answers of strings."""
        logits = logits_of(self.problem.without_dropout, [self.weights], strings)[0]
        return Answers(strings, self.task.labels(strings), logits.astype(np.float64))

    def ask_all(self, strings: Sequence[Sequence[int]]) -> Answers:
        """Labels and answers of strings given by their letters."""
        return self.ask(TokenStrings.of_lists(self.num_letters, strings))

    def answer(self, letters: Sequence[int]) -> Answer:
        """Label and answer of one string.

        Raises:
            InvalidStringError: the model has no places for so long a string.
        """
        answers = self.ask_all([letters])
        if not answers.known[0]:
            raise InvalidStringError(
                f"{self.text(letters)[:60]!r} is longer than the model has places for "
                f"(positions={self.config.positions!r}); shorten it"
            )
        logit, label = float(answers.logits[0]), bool(answers.labels[0])
        return Answer(self.text(letters), len(letters), label, logit)
