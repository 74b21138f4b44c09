"""A model's answers to strings, each asked once, many at once wherever they are known before."""

import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int64
from torch import Tensor

from seqcls.interpretability.automaton import LearningBudget
from seqcls.interpretability.domains import (
    affordable_length,
    strings_of_length,
    tested_strings,
)
from seqcls.interpretability.readable_model import plain_model
from seqcls.interpretability.trained_model import MAX_LENGTH, Answer, Letters, TrainedModel
from seqcls.models.base import Classifier
from seqcls.models.forms import Cached, form, map_cached
from seqcls.models.positions import longest_readable
from seqcls.models.recurrent import Recurrent
from seqcls.strings.token_strings import TokenStrings
from seqcls.strings.tokenizer import CLS, FIRST_LETTER
from seqcls.tasks.places import AtEveryPlace

# A recurrent model's states after prefixes: each is one step from that of the prefix before.


MAX_CACHED_PREFIXES = 20_000
"""Prefixes whose states are kept; beyond, those kept so far are forgotten."""


class PrefixStates:
    """Steps of a network that begins with nothing, and reads its answer off the last state."""

    def __init__(self, network: Classifier, num_letters: int) -> None:
        self.num_letters = num_letters
        self._network = network
        self._by_prefix: dict[Letters, Cached] = {}

    @classmethod
    def from_model(cls, model: TrainedModel) -> "PrefixStates | None":
        """The steps of a model; None where its answers are no function of states after prefixes."""
        config = model.problem.network
        network = plain_model(model)
        # A recurrent network keeps what its head reads; where others end, a token is read.
        ends_with_letters = config.readout == "last_letter" and config.head == "string"
        if config.readout != "last" and not (ends_with_letters and isinstance(network, Recurrent)):
            return None
        # Without a state of the empty prefix, or steps from it, whole strings have to be run.
        if form(network, "nothing") is None or form(network, "step") is None:
            return None
        return cls(network, model.num_letters)

    @property
    def start(self) -> Cached:
        """What is kept of the empty prefix."""
        return form(self._network, "nothing")(1)

    def step(self, cached: Cached, letters: Sequence[int]) -> Cached:
        """What is kept of prefixes after one more letter each."""
        return self._read(cached, torch.tensor(letters) + FIRST_LETTER)[1]

    def logits(self, cached: Cached, prefixes: int) -> Float[Tensor, " string"]:
        """The answers to so many prefixes as strings of their own."""
        # The answer is read off the last layer; no further token is read for it.
        if isinstance(self._network, Recurrent) and self._network.config.readout == "last_letter":
            with torch.no_grad():
                return self._network.head(cached.states[-1])
        return self._read(cached, torch.full((prefixes,), CLS))[0]

    def after(self, letters: Letters) -> Cached:
        """What is kept of a prefix, from the longest one of it that was stepped before."""
        # Strings that are asked about mostly begin as others did.
        end = next((n for n in range(len(letters), 0, -1) if letters[:n] in self._by_prefix), 0)
        cached = self._by_prefix[letters[:end]] if end else self.start
        if len(self._by_prefix) + len(letters) - end > MAX_CACHED_PREFIXES:
            # What is needed again is stepped again; only the memory has to stay bounded.
            self._by_prefix.clear()
        for place in range(end, len(letters)):
            cached = self.step(cached, letters[place : place + 1])
            self._by_prefix[letters[: place + 1]] = cached
        return cached

    @torch.no_grad()
    def _read(self, cached: Cached, ids: Tensor) -> tuple[Tensor, Cached]:
        read: tuple[Tensor, Cached] = form(self._network, "step")(ids, cached)
        return read


DOUBTFUL = 1e-3
"""Logits that are stepped in double precision decide where they are larger; else the model that
was tested is asked."""

STEPPED_BELOW = 2.0**20
"""Models with larger weights are asked themselves: numbers that double precision holds may overflow
in them."""

Bits = Bool[np.ndarray, " string"] | Int64[np.ndarray, " string"]
"""Whether strings are in the language; or the answers at their ends, where every place has one."""


class EndedError(Exception):
    """The budget is spent, or the model has no answer that is needed; its text says which."""


class ModelAnswers:
    """What a model says of all short strings, of its test set and of whatever else is asked."""

    def __init__(
        self, model: TrainedModel, budget: LearningBudget, *, stepped: bool = True
    ) -> None:
        self.model = model
        test = model.problem.test.lengths[-1]
        longest_input = longest_readable(model.problem.network)
        self.longest = min(budget.length or 2 * test, MAX_LENGTH, longest_input or MAX_LENGTH)
        """Tokens of the longest string that may be asked."""
        self.tried_length = affordable_length(model.num_letters, budget.strings, self.longest)
        """All strings up to this length are tried."""
        self._task = model.task if isinstance(model.task, AtEveryPlace) else None
        self.empty_given = self._task is None and not model.problem.tries_empty
        """Whether the language answers for the model where the string is empty."""
        largest = max((np.abs(x).max(initial=0) for x in model.weights.values()), default=0)
        stepped = stepped and bool(largest < STEPPED_BELOW)
        self._steps = PrefixStates.from_model(model) if stepped else None
        self._budget = budget
        self._end = time.monotonic() + budget.seconds
        self._single: dict[Letters, int] = {}
        self.transitions: dict[Letters, None] = {}
        """A string for each transition of the last hypothesis, to its end."""
        self.levels = self._all_short()
        """For each length from 0, the answers to all strings in the order of the alphabet."""
        self.batches: list[tuple[TokenStrings, Bits]] = []
        """Longer strings that were asked together, and their answers; the test set's first."""
        strings = tested_strings(model.problem).strings
        self.test = strings.take(np.flatnonzero(strings.lengths <= self.longest))
        self.test_answers = self._ask(self.test)
        longer = np.flatnonzero(self.test.lengths > self.tried_length)
        # The shorter test strings are in `levels` already.
        self.batches.append((self.test.take(longer), self.test_answers[longer]))

    @property
    def num_asked(self) -> int:
        """Strings asked, each counted as often as it is in a batch."""
        batches = sum(len(strings) for strings, _ in self.batches)
        return sum(map(len, self.levels)) + batches + len(self._single)

    def check_time(self) -> None:
        """Ends the learning where its seconds are over."""
        if time.monotonic() > self._end:
            raise EndedError(f"{self._budget.seconds:g} seconds are over")

    def ask_one(self, letters: Letters) -> int:
        """The answer to one string.

        Raises:
            EndedError: it is too long to be asked, or the strings or the time are used up.
        """
        if len(letters) < len(self.levels):
            # Levels are in the order of the alphabet: letters are the digits of a row number.
            number = 0
            for letter in letters:
                number = number * self.model.num_letters + letter
            return int(self.levels[len(letters)][number])
        if letters not in self._single:
            self.check_time()
            if len(self._single) >= self._budget.single:
                raise EndedError(f"{self._budget.single:,} strings have been asked one by one")
            if len(letters) > self.longest:
                raise EndedError(
                    f"a string of {len(letters)} tokens would have to be asked, of at most "
                    f"{self.longest}"
                )
            if self._steps is None:
                self._ask_alike(letters)
            else:
                self._single[letters] = self._answer_by_steps(self._steps, letters)
        return self._single[letters]

    def ask(self, strings: TokenStrings) -> Bits:
        """The answers to strings at once; none of them is empty or too long."""
        self.check_time()
        answers = self._ask(strings)
        self.batches.append((strings, answers))
        return answers

    @property
    def singles(self) -> tuple[TokenStrings, Bits]:
        """The longer strings that were asked one by one."""
        strings = TokenStrings.of_lists(self.model.num_letters, list(self._single))
        return strings, np.array(list(self._single.values()), dtype=self._dtype)

    def prefixes(self, letters: Letters) -> Bits:
        """The answers to all prefixes of a string, the empty one first."""
        ends = range(len(self.levels), len(letters) + 1)
        unanswered = [letters[:end] for end in ends if letters[:end] not in self._single]
        if unanswered:
            answers = self._ask(TokenStrings.of_lists(self.model.num_letters, unanswered))
            self._single.update(zip(unanswered, answers.tolist(), strict=True))
        codes = [self.ask_one(letters[:end]) for end in range(len(letters) + 1)]
        return np.array(codes, dtype=self._dtype)

    @property
    def _dtype(self) -> Any:
        return bool if self._task is None else np.int64

    def names(self, answers: Sequence[int]) -> Mapping[int, str]:
        """How answers are written, but those of a language."""
        if self._task is None:
            return {}
        machine = self._task.machine
        # The language's own outputs are named too, for the texts of errors.
        codes = np.unique([*answers, *(() if machine is None else machine.says)])
        texts = self.model.decode(codes.astype(np.int64)[:, None])
        return dict(zip(codes.tolist(), map(str, texts), strict=True))

    def answer(self, letters: Letters) -> Answer:
        """Label and answer of a string that was asked."""
        if self._task is None:
            return self.model.answer(letters)
        strings = TokenStrings.of_lists(self.model.num_letters, [letters])
        right, predicted = int(self._task.at_ends(strings)[0]), self.ask_one(letters)
        names, text = self.names([right, predicted]), self.model.text(letters)
        tokenizer = self.model.tokenizer
        # Several outputs have no single logit, and 0 is never shown for one.
        return Answer(text, len(letters), names[right], 0.0, names[predicted], tokenizer)

    def wrong(self, strings: TokenStrings, answers: Bits) -> Bits:
        """Which answers are not the language's; where no label is known, none is wrong."""
        if self._task is not None:
            return np.asarray(answers != self._task.at_ends(strings))
        return np.asarray(answers != self.model.problem.targets_or(strings, answers), dtype=bool)

    def _ask(self, strings: TokenStrings) -> Bits:
        if not len(strings):
            return np.zeros(0, dtype=self._dtype)
        answers = self.model.ask(strings)
        if len(rows := np.flatnonzero(answers.unanswered)):
            first = answers.strings.take(rows[:1])
            string = self.model.text(first.letters[0, : first.lengths[0]].tolist())
            raise EndedError(f"{string[:60]!r} has no answer: its logit is NaN")
        if self._task is None:
            return np.asarray(answers.predicted, dtype=bool)
        # Position 0 answers the empty prefix, so the whole string is answered at its length.
        ends = answers.predicted[np.arange(len(strings)), answers.strings.lengths]
        # Nothing is asked after what no string of the language begins with.
        return np.where(self._task.can_go_on(strings), ends, self._task.at_ends(strings))

    def _answer_by_steps(self, steps: PrefixStates, letters: Letters) -> int:
        logit = float(steps.logits(steps.after(letters), 1)[0])
        # Near 0 the tested model's own rounding decides the sign.
        if abs(logit) > DOUBTFUL:
            return logit > 0
        return bool(self._ask(TokenStrings.of_lists(self.model.num_letters, [letters]))[0])

    def _ask_alike(self, letters: Letters) -> None:
        """Asks a string, and those that end alike after the other transitions, which come next."""
        end = next((n for n in range(len(letters), 0, -1) if letters[:n] in self.transitions), 0)
        alike = {(*access, *letters[end:]): None for access in self.transitions} if end else {}
        strings = [letters]
        for string in alike:
            known = string in self._single or string == letters
            if not known and len(self.levels) <= len(string) <= self.longest:
                strings.append(string)
        answers = self._ask(TokenStrings.of_lists(self.model.num_letters, strings))
        self._single.update(zip(strings, answers.tolist(), strict=True))

    def _all_short(self) -> list[Bits]:
        empty = TokenStrings.of_lists(self.model.num_letters, [()])
        rejected = np.zeros(1, dtype=bool)
        # Where nobody knows the empty string's label, it is rejected.
        given = self.model.problem.targets_or
        first = given(empty, rejected) if self.empty_given else self._ask(empty)
        steps, lengths = self._steps, range(1, self.tried_length + 1)
        levels: list[Bits] = [np.asarray(first, dtype=self._dtype)]
        longer = map(self._run_level, lengths) if steps is None else self._stepped_levels(steps)
        for _ in lengths:
            self.check_time()
            levels.append(next(longer))
        return levels

    def _run_level(self, length: int) -> Bits:
        return self._ask(strings_of_length(self.model.num_letters, length))

    def _stepped_levels(self, steps: PrefixStates) -> Iterator[Bits]:
        """All strings of one length after another, each a step from one that is a token shorter."""
        cached, letters = steps.start, self.model.num_letters
        for length in count(1):
            before = letters ** (length - 1)
            # Each prefix stands in as many rows as there are letters that may follow it.
            repeated = map_cached(lambda values: values.repeat_interleave(letters, dim=0), cached)
            cached = steps.step(repeated, list(range(letters)) * before)
            yield self._resolve(length, steps.logits(cached, letters * before).numpy())

    def _resolve(self, length: int, logits: np.ndarray) -> Bits:
        """The answers that logits stand for; where they are near 0 the model is asked anew."""
        answers = np.asarray(logits > 0)
        # Those that are no numbers too.
        doubtful = np.flatnonzero(~(np.abs(logits) > DOUBTFUL))
        if len(doubtful):
            # The digits of a row number are the letters of its string.
            powers = self.model.num_letters ** np.arange(length - 1, -1, -1)
            letters = doubtful[:, None] // powers % self.model.num_letters
            answers[doubtful] = self._ask(TokenStrings.of_letters(self.model.num_letters, letters))
        return answers
