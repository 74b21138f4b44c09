"""A trained model of any architecture, and its answers to strings."""

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import chain, compress, islice, product
from typing import Any

import numpy as np

from seqcls.config import RunConfig
from seqcls.errors import InvalidStringError
from seqcls.evaluation import TrainedGroup
from seqcls.interpretability.wording import EMPTY, score_text, sign
from seqcls.kinds import Examples
from seqcls.kinds.base import Answers
from seqcls.models.positions import longest_readable
from seqcls.notebook import MOST_ROWS, table
from seqcls.problem import Problem
from seqcls.results import Weights
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer, unpack_array
from seqcls.tasks import Task

Letters = tuple[int, ...]
"""One string by the numbers of its letters."""

Given = str | Sequence[str] | Sequence[int] | Any
"""One string as text, as its tokens or as its letters' numbers; all else is refused."""

MAX_LENGTH = 2_000
"""Tokens of a string that is worked on token by token: attention between all pairs still fits."""


@dataclass(frozen=True)
class Answer:
    """The target of one string and the model's answer to it."""

    string: str
    length: int
    label: bool | str | None
    """The label of a language, else the target as text; None where it is not known."""
    logit: float
    """The logit, or the margin of another kind."""
    predicted: bool | str
    """The model's answer, in the same form."""
    tokenizer: Tokenizer = field(repr=False, compare=False)
    """The alphabet's tokenizer: it writes texts as they are shown."""

    number: str = field(default="margin", repr=False, compare=False)
    """The name of `logit` where it is no logit."""

    @property
    def is_answered(self) -> bool:
        """True if the model has an answer: NaN is none, and counts as wrong."""
        return not math.isnan(self.logit)

    @property
    def is_wrong(self) -> bool:
        """True if the model misclassifies it."""
        return self.label is not None and (self.predicted != self.label or not self.is_answered)

    @property
    def name(self) -> str:
        """The string as it is shown; the empty one needs a name."""
        return self.tokenizer.display(self.string) or "the empty string"

    @property
    def verdict(self) -> str:
        """The target of the string, and the model's answer."""
        if self.label is None:
            right = f"{'target' if isinstance(self.predicted, str) else 'label'} not known"
        else:
            right = f"is {self._show(self.label)}"
        if not self.is_answered:
            return f"{right}, and has no answer: what the model computes for it is NaN"
        number = f"{self.number} {score_text(self.logit)}"
        return f"{right}, predicted {self._show(self.predicted)} ({number})"

    @property
    def text(self) -> str:
        """The string with its verdict."""
        return f"{self.name}: {self.verdict}"

    def _show(self, answer: bool | str) -> str:
        if isinstance(answer, str):
            return self.tokenizer.display(answer) or EMPTY
        return sign(answer)

    def record(self) -> dict[str, Any]:
        """The answer as programs read it: its texts as they are stored."""
        how_shown = ("tokenizer", "number")
        record = {name: value for name, value in vars(self).items() if name not in how_shown}
        return record if self.is_answered else {**record, "logit": None, "predicted": None}


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A configured problem and trained weights. It answers as in its test: dropout is off."""

    problem: Problem
    weights: Weights

    def __repr__(self) -> str:
        changed = ", ".join(f"{name}={value!r}" for name, value in self.config.changed.items())
        return f"<TrainedModel {changed or 'of the default configuration'}>"

    def _repr_html_(self) -> str:
        """Its settings, and its answers to the shortest strings."""
        changed = [(name, f"{value}") for name, value in self.config.changed.items()]
        # Notebooks show this in place of `__repr__`.
        html = table(["setting", "value"], changed)
        if shortest := self._shortest_inputs():
            answers = self.ask_all(shortest)
            columns = (map(str, self.decode(x)) for x in (answers.targets, answers.predicted))
            numbers = (f"{x:.3g}" for x in answers.score)
            heads = ["string", "right", "the model", self.problem.kind.score_name]
            rows = zip(map(self.display, shortest), *columns, numbers, strict=True)
            html += table(heads, rows, answers.wrong.tolist())
        return html

    def _shortest_inputs(self) -> list[Letters]:
        """Those among the shortest strings whose target is known."""
        # A notebook shows a few rows, which are mostly found among the first 500 strings.
        lengths = range(0 if self.problem.tries_empty else 1, 10)
        every = chain(*(product(range(self.num_letters), repeat=x) for x in lengths))
        tried = list(islice(every, 500))
        known = self.problem.questions(TokenStrings.of_lists(self.num_letters, tried)).has_target
        return list(islice(compress(tried, known), MOST_ROWS))

    @property
    def name(self) -> str:
        """The name of the model in sentences."""
        return "the model"

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

    def is_input(self, letters: Sequence[int]) -> bool:
        """True if the target of a string is known."""
        return self.why_no_input(letters) is None

    def why_no_input(self, letters: Sequence[int]) -> str | None:
        """The reason why no target of a string is known: it is no input, or not in the file."""
        if self.problem.kind.every_string and self.problem.known_strings is None:
            return None
        string = TokenStrings.of_lists(self.num_letters, [letters])
        targets = self.problem.targets_or_reason(string)
        return targets if isinstance(targets, str) else None

    def refuse_no_input(self, letters: Sequence[int]) -> str | None:
        """Refuses a string that is no input; one that a file lacks is an input all the same.

        Returns:
            The reason why no target of it is known; None where one is.

        Raises:
            InvalidStringError: it is none.
        """
        reason = self.why_no_input(letters)
        if reason is not None and self.problem.known_strings is None:
            raise InvalidStringError(reason)
        return reason

    def letters(self, string: Given) -> Letters:
        """The letters of a string in the usual notation, or of a list of its tokens.

        Raises:
            InvalidStringError: it is not of this alphabet, or longer than `MAX_LENGTH`.
        """
        text = self.tokenizer.notation(string)
        # Counted before a notation such as `a{1000000}` is spelled out.
        length = sum(count for _, count in self.tokenizer.pieces(text))
        if length > MAX_LENGTH:
            raise InvalidStringError(
                f"{text[:60]!r} has {length:,} tokens, more than the {MAX_LENGTH:,} that are "
                "looked at one by one; shorten it"
            )
        # The first id is `CLS`.
        return tuple(x - FIRST_LETTER for x in self.tokenizer.encode(text)[1:])

    def text(self, letters: Sequence[int]) -> str:
        """The string with these letters, in the notation in which strings are stored."""
        return self.tokenizer.decode([FIRST_LETTER + letter for letter in letters])

    def display(self, letters: Sequence[int]) -> str:
        """The same as it is shown; no string is looked up by it."""
        return self.tokenizer.display(self.text(letters))

    def ask(self, strings: TokenStrings) -> Answers:
        """Targets and answers of strings; the answer is the target of one that a file lacks."""
        models = TrainedGroup(self.problem.without_dropout, [self.weights])
        (answers,) = models.ask(self.problem.questions(strings))
        return answers

    def ask_all(self, strings: str | Sequence[Given]) -> Answers:
        """Labels and answers of strings: as text, or by their tokens or the letters' numbers.

        Raises:
            InvalidStringError: one is not of this alphabet.
        """
        every = [strings] if isinstance(strings, str) else strings
        return self.ask(TokenStrings.of_lists(self.num_letters, list(map(self._numbers, every))))

    def answer(self, string: Given) -> Answer:
        """Target and answer of one string: text, its tokens, or the numbers of its letters.

        Raises:
            InvalidStringError: it is not of this alphabet, no input of the task, or longer than the
                model has places for.
        """
        # A batch of one, as it refuses numbers that are of no letter.
        (row,) = TokenStrings.of_lists(self.num_letters, [self._numbers(string)]).letters.tolist()
        letters = tuple(row)
        unknown = self.refuse_no_input(letters)
        answers = self.ask_all([letters])
        kind = self.problem.kind
        if not answers.judged[0]:
            tokens = int(kind.lengths_read(Examples(answers.strings, answers.targets))[0])
            # Of a model that writes the target is read after the input.
            what = " with SEP and its target" if tokens > len(letters) else ""
            raise InvalidStringError(
                f"{self.display(letters)[:60]!r} has {tokens:,} tokens{what}, more than the "
                f"{longest_readable(self.problem.network)} places that the model has "
                f"(positions={self.config.positions!r}); shorten it"
            )
        return Answer(
            self.text(letters),
            len(letters),
            None if unknown else self.decode(answers.targets)[0],
            float(answers.score[0]),
            self.decode(answers.predicted)[0],
            self.tokenizer,
            kind.unjudged_score_name if unknown else kind.score_name,
        )

    def _numbers(self, string: Given) -> Sequence[int]:
        """The letters of text or of its tokens; numbers as they are given, whatever they are."""
        # Most calls come with letters, and searches make many of them.
        if isinstance(string, tuple) and string and type(string[0]) is int:
            return string
        given = unpack_array(string)
        # These can be iterated over too, but not for tokens in their order.
        if isinstance(given, str | bytes | Mapping | Set) or not isinstance(given, Iterable):
            return self.letters(given)
        tokens: list[Any] = list(map(unpack_array, given))
        return self.letters(tokens) if any(isinstance(x, str) for x in tokens) else tokens

    def decode(self, answers: np.ndarray) -> Sequence[bool | str]:
        """Decodes targets or answers: booleans of a language, else text."""
        texts = self.problem.kind.texts(self.task, answers)
        bits: list[bool] = answers.tolist()
        return bits if texts is None else texts
