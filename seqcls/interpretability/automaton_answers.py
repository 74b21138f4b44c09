"""A model's answers to strings, each computed once, many together where they are known before."""

import time
from collections.abc import Mapping, Sequence

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.interpretability.automaton import LearningBudget
from seqcls.interpretability.domains import (
    affordable_length,
    strings_of_length,
    tested_strings,
)
from seqcls.interpretability.trained_model import MAX_LENGTH, Answer, Letters, TrainedModel
from seqcls.models.positions import longest_readable
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.places import AtEveryPlace

Codes = Int64[np.ndarray, " string"]
"""Answers to strings: 0 or 1; or those at their ends, where every place has one."""


class EndedError(Exception):
    """The budget is spent, or the model has no answer that is needed; its text names which."""


class ModelAnswers:
    """A model's answers to all short strings, to its test set and to all other queries."""

    def __init__(self, model: TrainedModel, budget: LearningBudget) -> None:
        self.model = model
        test = model.problem.test.lengths[-1]
        longest_input = longest_readable(model.problem.network)
        self.longest = min(budget.length or 2 * test, MAX_LENGTH, longest_input or MAX_LENGTH)
        """Tokens of the longest string that may be queried."""
        self.tried_length = affordable_length(model.num_letters, budget.strings, self.longest)
        """All strings up to this length are tried."""
        self._task = model.task if isinstance(model.task, AtEveryPlace) else None
        self.empty_given = self._task is None and not model.problem.tries_empty
        """True if the language answers for the model where the string is empty."""
        self._budget = budget
        self._end = time.monotonic() + budget.seconds
        self._single: dict[Letters, int] = {}
        self.transitions: dict[Letters, None] = {}
        """A string for each transition of the last hypothesis, to its end."""
        self.batches: list[tuple[TokenStrings, Codes]] = []
        """Strings that were queried together, and their answers: for each length from 0 all strings
        in the order of the alphabet, as far as all are tried; then the test set's, and others."""
        self._ask_all_short()
        strings = tested_strings(model.problem).strings
        self.test = strings.take(np.flatnonzero(strings.lengths <= self.longest))
        self.test_answers = self._ask(self.test)
        longer = np.flatnonzero(self.test.lengths > self.tried_length)
        # The shorter test strings are queried already.
        self.batches.append((self.test.take(longer), self.test_answers[longer]))

    @property
    def num_asked(self) -> int:
        """Strings queried, each counted as often as it is in a batch."""
        return sum(len(strings) for strings, _ in self.batches) + len(self._single)

    def check_time(self) -> None:
        """Ends the learning where its seconds are over."""
        if time.monotonic() > self._end:
            raise EndedError(f"{self._budget.seconds:g} seconds are over")

    def ask_one(self, letters: Letters) -> int:
        """The answer to one string.

        Raises:
            EndedError: it is too long to be queried, or the strings or the time are used up.
        """
        if len(letters) <= self.tried_length:
            # All of a length are in the order of the alphabet: letters are a row number's digits.
            number = 0
            for letter in letters:
                number = number * self.model.num_letters + letter
            return int(self.batches[len(letters)][1][number])
        if letters not in self._single:
            self.check_time()
            if len(self._single) >= self._budget.single:
                raise EndedError(f"{self._budget.single:,} strings have been asked one by one")
            if len(letters) > self.longest:
                raise EndedError(
                    f"a string of {len(letters)} tokens would have to be asked, of at most "
                    f"{self.longest}"
                )
            self._ask_alike(letters)
        return self._single[letters]

    def ask(self, strings: TokenStrings) -> Codes:
        """The answers to strings at once; none of them is empty or too long."""
        self.check_time()
        answers = self._ask(strings)
        self.batches.append((strings, answers))
        return answers

    @property
    def singles(self) -> tuple[TokenStrings, Codes]:
        """The longer strings that were queried one by one."""
        strings = TokenStrings.of_lists(self.model.num_letters, list(self._single))
        return strings, np.array(list(self._single.values()), dtype=np.int64)

    def prefixes(self, letters: Letters) -> Codes:
        """The answers to all prefixes of a string, the empty one first."""
        every = [letters[:end] for end in range(len(letters) + 1)]
        self._ask_new(every)
        return np.array(list(map(self.ask_one, every)), dtype=np.int64)

    def names(self, answers: Sequence[int]) -> Mapping[int, str]:
        """The names of answers, but those of a language."""
        if self._task is None:
            return {}
        machine = self._task.machine
        # The language's own outputs are named too, for the texts of errors.
        codes = np.unique([*answers, *(() if machine is None else machine.says)])
        texts = self.model.decode(codes.astype(np.int64)[:, None])
        return dict(zip(codes.tolist(), map(str, texts), strict=True))

    def answer(self, letters: Letters) -> Answer:
        """Label and answer of a string that was queried."""
        if self._task is None:
            return self.model.answer(letters)
        strings = TokenStrings.of_lists(self.model.num_letters, [letters])
        right, predicted = int(self._task.at_ends(strings)[0]), self.ask_one(letters)
        names, text = self.names([right, predicted]), self.model.text(letters)
        tokenizer = self.model.tokenizer
        # Several outputs have no single logit, and 0 is never shown for one.
        return Answer(text, len(letters), names[right], 0.0, names[predicted], tokenizer)

    def wrong(self, strings: TokenStrings, answers: Codes) -> Bool[np.ndarray, " string"]:
        """True for answers that are not the language's; where no label is known, none is wrong."""
        if self._task is not None:
            return np.asarray(answers != self._task.at_ends(strings))
        return np.asarray(answers != self.model.problem.targets_or(strings, answers), dtype=bool)

    def _ask(self, strings: TokenStrings) -> Codes:
        if not len(strings):
            return np.zeros(0, dtype=np.int64)
        answers = self.model.ask(strings)
        if len(rows := np.flatnonzero(answers.unanswered)):
            first = answers.strings.take(rows[:1])
            string = self.model.text(first.letters[0, : first.lengths[0]].tolist())
            raise EndedError(f"{string[:60]!r} has no answer: its logit is NaN")
        if self._task is None:
            return np.asarray(answers.predicted, dtype=np.int64)
        # Position 0 answers the empty prefix, so the whole string is answered at its length.
        ends = answers.predicted[np.arange(len(strings)), answers.strings.lengths]
        # Nothing is queried after a string with which none of the language begins.
        return np.where(self._task.can_go_on(strings), ends, self._task.at_ends(strings))

    def _ask_alike(self, letters: Letters) -> None:
        """Asks a string, and those that end alike after the other transitions, which come next."""
        end = next((n for n in range(len(letters), 0, -1) if letters[:n] in self.transitions), 0)
        alike = ((*access, *letters[end:]) for access in self.transitions) if end else ()
        self._ask_new([letters, *(x for x in alike if len(x) <= self.longest)])

    def _ask_new(self, strings: Sequence[Letters]) -> None:
        """Asks those of some strings that are not answered yet, all at once."""
        known, short = self._single, self.tried_length
        if new := [x for x in dict.fromkeys(strings) if len(x) > short and x not in known]:
            answers = self._ask(TokenStrings.of_lists(self.model.num_letters, new))
            known.update(zip(new, answers.tolist(), strict=True))

    def _ask_all_short(self) -> None:
        empty = TokenStrings.of_lists(self.model.num_letters, [()])
        # Where the empty string's label is unknown, it is rejected.
        rejected, given = np.zeros(1, dtype=np.int64), self.model.problem.targets_or
        first = given(empty, rejected) if self.empty_given else self._ask(empty)
        self.batches.append((empty, np.asarray(first, dtype=np.int64)))
        for length in range(1, self.tried_length + 1):
            self.ask(strings_of_length(self.model.num_letters, length))
