"""The minimal automaton of a model's answers, learned from answers alone.

By the classification trees of Kearns & Vazirani (1994), as AALpy has them. A hypothesis is held
against all short strings, the model's test set, the earlier queries, the shortest string on
which it and the language differ, and random walks that take each of its transitions.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
from jaxtyping import Bool

from seqcls.cancellation import check
from seqcls.errors import ConfigError
from seqcls.evaluation import distinct_test_strings
from seqcls.interpretability.automaton import LearnedAutomaton, LearningBudget, Round, obstacle
from seqcls.interpretability.automaton_answers import Codes, EndedError, ModelAnswers
from seqcls.interpretability.domains import shortest_of
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.monoids import shortest_words
from seqcls.strings.token_strings import TokenStrings
from seqcls.tasks.automaton import Automaton, language_automaton, minimize
from seqcls.tasks.places import AtEveryPlace

# Longer strings on which a hypothesis is held against a model.


WALKS = 1_024
"""Random walks for a hypothesis, shared out over its transitions; at least one each."""


def walks(automaton: Automaton, answers: ModelAnswers) -> TokenStrings:
    """Strings longer than the short ones, in which every transition of an automaton is taken.

    As many continue at random, are drawn by the automaton's answer, or repeat a few tokens. Half of
    those drawn have one token replaced: of many languages a random string is hardly ever near one
    that is accepted.
    """
    letters = answers.model.num_letters
    # Seeded by the size: a larger hypothesis meets other walks than the one before.
    rng = np.random.default_rng(len(automaton.table))
    longest = min(answers.longest, answers.model.problem.test.lengths[-1])
    shortest = answers.tried_length + 1
    strings: list[Letters] = []
    times = max(WALKS // automaton.table.size, 1)
    for access in shortest_words(automaton.table, automaton.start).values():
        least = max(len(access) + 1, shortest)
        for letter in range(letters) if least <= longest else ():
            for length in rng.integers(least, longest + 1, size=times).tolist():
                after = rng.integers(letters, size=length - len(access) - 1).tolist()
                strings.append((*access, letter, *after))
    if shortest <= longest:
        strings += _draw(automaton, rng, rng.integers(shortest, longest + 1, size=WALKS))
        strings += _repeating(letters, rng, rng.integers(shortest, longest + 1, size=WALKS))
    return TokenStrings.of_lists(letters, list(dict.fromkeys(strings)))


def _repeating(letters: int, rng: np.random.Generator, lengths: np.ndarray) -> list[Letters]:
    """Strings of two parts, in which a few tokens each are repeated: what counts is found out."""
    strings: list[Letters] = []
    for length in lengths.tolist():
        # Where the first part ends is drawn, so either of the two may be empty.
        end = int(rng.integers(length + 1))
        parts = [rng.integers(letters, size=size).tolist() for size in rng.integers(1, 4, size=2)]
        first, second = (part * length for part in parts)
        strings.append((*first[:end], *second[: length - end]))
    return strings


def _draw(automaton: Automaton, rng: np.random.Generator, lengths: np.ndarray) -> list[Letters]:
    """Uniform strings of some lengths that are accepted, or rejected; every other one is edited."""
    strings: list[Letters] = []
    for positive in (False, True):
        # Of some lengths no string is accepted, or none is rejected.
        having = [x for x in lengths[positive::2].tolist() if automaton.has(x, positive)]
        drawn = automaton.draw(rng, np.array(having, dtype=np.int64), positive)
        for row, length in enumerate(having):
            letters = drawn[row, :length]
            if row % 2:
                letters[rng.integers(length)] = rng.integers(automaton.table.shape[1])
            strings.append(tuple(letters.tolist()))
    return strings


# Where two automata, or a model and its language, first differ.


Rows = Bool[np.ndarray, " string"]
Differ = Callable[[TokenStrings, Codes], Rows]
"""True for strings to which the answer is wrong."""


def shortest_difference(one: Automaton, other: Automaton, *, empty: bool = True) -> Letters | None:
    """The shortest string that one automaton accepts and the other does not; None if there is none.

    Args:
        one: over the same letters as the other.
    """
    # Pairs of states, and one more that begins the empty string alone.
    pairs = one.table[:, None] * len(other.table) + other.table
    pairs = pairs.reshape(-1, one.table.shape[1])
    start = one.start * len(other.table) + other.start
    differ = np.not_equal.outer(one.says, other.says).ravel().tolist()
    words = shortest_words(np.vstack([pairs, pairs[start]]), len(pairs))
    differ.append(empty and differ[start])
    return next((word for state, word in words.items() if differ[state]), None)


def differences(answers: ModelAnswers, differ: Differ, shortest: int = 0) -> Iterator[Letters]:
    """Strings whose answers differ, the shortest of each part: of the short ones of each length
    from `shortest`, then of each of the longer ones that were queried.
    """
    for strings, predicted in chain(answers.batches[shortest:], [answers.singles]):
        if (found := shortest_of(strings, differ(strings, predicted))) is not None:
            yield found


OnRound = Callable[[Round], None]


def learn(
    model: TrainedModel,
    budget: LearningBudget | None = None,
    on_round: OnRound | None = None,
) -> LearnedAutomaton:
    """Learns a model's automaton.

    Args:
        model: of a language over at most `MOST_LETTERS` tokens.

    Raises:
        ConfigError: there is no automaton to learn, or nothing may be queried.
    """
    if reason := obstacle(model.problem):
        raise ConfigError(reason)
    budget = budget or LearningBudget()
    try:
        answers = ModelAnswers(model, budget)
    except EndedError as reason:
        advice = "" if "NaN" in str(reason) else ": raise the seconds or lower the strings"
        raise ConfigError(f"{reason} before the first hypothesis{advice}") from None
    task = model.task
    language = task.machine if isinstance(task, AtEveryPlace) else language_automaton(task)
    oracle = _Oracle(answers, budget, language, on_round)
    # Imported where it is used: help is fast.
    from aalpy import run_KV

    letters, kind = list(range(model.num_letters)), "moore" if model.problem.at_places else "dfa"
    # `ModelAnswers` remembers answers itself, and a model answers a string the same each time.
    options = {"cache_and_non_det_check": False, "print_level": 0}
    try:
        run_KV(letters, _System(answers), oracle, kind, **options)
    except EndedError as reason:
        return _result(oracle, str(reason))
    return _result(oracle, None)


@dataclass(frozen=True)
class _System:
    """The model as AALpy queries it: only the answer to the whole string is looked at."""

    answers: ModelAnswers
    # AALpy reads these counters for its report, which nobody reads.
    num_queries = num_steps = num_cached_queries = 0

    def query(self, word: Letters) -> list[int]:
        return [self.answers.ask_one(tuple(word))]


@dataclass
class _Oracle:
    """Looks for a string on which a hypothesis and the model differ, the short ones first."""

    answers: ModelAnswers
    budget: LearningBudget
    language: Automaton | None
    on_round: OnRound | None
    rounds: list[Round] = field(default_factory=list)
    num_queries = num_steps = 0

    def find_cex(self, hypothesis: Any) -> Letters | None:
        """A string on which they differ, of which no prefix is one; None where none was found.

        Raises:
            EndedError: there is one, and the budget allows no further hypothesis.
        """
        automaton = _automaton(hypothesis, self.answers.model)
        letters = range(self.answers.model.num_letters)
        self.answers.transitions = {
            (*state.prefix, letter): None for state in hypothesis.states for letter in letters
        }
        # The hypothesis before is the last round: one this large is not tried any more.
        if len(automaton.table) > self.budget.states:
            raise EndedError(f"it grew beyond {self.budget.states} states")
        difference = self._difference(automaton)
        text = None if difference is None else self.answers.model.text(difference)
        # The round counts even where the budget allows none after it.
        last = Round(automaton, self.answers.num_asked, *_on_test(automaton, self.answers), text)
        self.rounds.append(last)
        if self.on_round is not None:
            self.on_round(last)
        if difference is not None and len(self.rounds) >= self.budget.rounds:
            raise EndedError(f"{self.budget.rounds} rounds are over")
        return difference

    def _difference(self, automaton: Automaton) -> Letters | None:
        check()

        def differ(strings: TokenStrings, predicted: Codes) -> Rows:
            return np.asarray(automaton.says[automaton.states(strings)] != predicted)

        # Earlier queries cost nothing, so they are looked at first; walks are queried last.
        difference = next(differences(self.answers, differ), None)
        if difference is None and self.language is not None:
            # Where it agrees with the language instead, the hypothesis is wrong there.
            difference = _shortest(automaton, self.language, self.answers)
            if difference is not None and not self._is_otherwise(automaton, difference):
                difference = None
        if difference is None and len(longer := walks(automaton, self.answers)):
            difference = shortest_of(longer, differ(longer, self.answers.ask(longer)))
        return None if difference is None else self._shorten(automaton, difference)

    def _is_otherwise(self, automaton: Automaton, letters: Letters) -> bool:
        """True if the model, where it can be queried, gives another answer to a string."""
        if len(letters) > self.answers.longest:
            return False
        return self.answers.ask_one(letters) != int(automaton.says[automaton.path(letters)[-1]])

    def _shorten(self, automaton: Automaton, letters: Letters) -> Letters:
        """The shortest prefix on which they differ."""
        predicted = self.answers.prefixes(letters)
        differs = predicted != automaton.says[automaton.path(letters)]
        return letters[: int(differs.argmax())]


def _automaton(hypothesis: Any, model: TrainedModel) -> Automaton:
    """AALpy's as ours, minimal."""
    # `minimize` starts at state 0.
    states = sorted(hypothesis.states, key=lambda state: state is not hypothesis.initial_state)
    numbers = {id(state): number for number, state in enumerate(states)}
    table = [
        [numbers[id(state.transitions[letter])] for letter in range(model.num_letters)]
        for state in states
    ]
    if isinstance(model.task, AtEveryPlace):
        outputs = np.array([state.output for state in states], dtype=np.int64)
        return minimize(np.array(table), model.task.accepts(outputs), outputs=outputs)
    return minimize(np.array(table), np.array([bool(state.is_accepting) for state in states]))


def _shortest(automaton: Automaton, language: Automaton, answers: ModelAnswers) -> Letters | None:
    return shortest_difference(automaton, language, empty=not answers.empty_given)


def _result(oracle: _Oracle, ended: str | None) -> LearnedAutomaton:
    answers, model = oracle.answers, oracle.answers.model
    longer, longest = _longer(answers)
    error = _error(oracle, ended)
    test = distinct_test_strings(model.problem.test)
    answer = None if error is None else answers.answer(error)
    return LearnedAutomaton(
        alphabet=tuple(model.tokenizer.alphabet),
        names=answers.names([x for made in oracle.rounds for x in made.automaton.says.tolist()]),
        rounds=tuple(oracle.rounds),
        ended=ended,
        budget=oracle.budget,
        tried_length=answers.tried_length,
        empty_given=answers.empty_given,
        empty_known=bool(model.problem.knows(TokenStrings.of_lists(model.num_letters, [()]))[0]),
        asked=answers.num_asked,
        longer=longer,
        longest=longest,
        language=oracle.language,
        error=answer,
        error_is_tested=answer is not None and answer.string in set(test.texts),
        wrong=int(answers.wrong(answers.test, answers.test_answers).sum()),
    )


def _error(oracle: _Oracle, ended: str | None) -> Letters | None:
    """The first string on which the automaton that was found and the language differ, or else the
    shortest that the model is wrong on, of all queries.
    """
    answers = oracle.answers
    if ended is None and oracle.language is not None:
        differs = _shortest(oracle.rounds[-1].automaton, oracle.language, answers)
        # A string too long to be queried is no known error of the model.
        if differs is None or len(differs) <= answers.longest:
            return differs
    errors = differences(answers, answers.wrong, int(answers.empty_given))
    return min(errors, key=len, default=None)


def _longer(answers: ModelAnswers) -> tuple[int, int]:
    """Distinct queries beyond the short strings, and the length of the longest."""
    # Batches are padded to widths of their own, so only the letters are compared, a byte each.
    distinct = {
        row[:length].tobytes()
        for strings, _ in chain(answers.batches[answers.tried_length + 1 :], [answers.singles])
        for row, length in zip(strings.letters, strings.lengths.tolist(), strict=True)
    }
    return len(distinct), max(map(len, distinct), default=0)


def _on_test(automaton: Automaton, answers: ModelAnswers) -> tuple[float, int]:
    """The share of the test strings on which its answer is the model's, and the number of the
    model's errors that it makes.
    """
    outputs = automaton.says[automaton.states(answers.test)]
    same = outputs == answers.test_answers
    wrong = answers.wrong(answers.test, answers.test_answers)
    return float(same.mean()) if len(same) else 1.0, int((wrong & same).sum())
