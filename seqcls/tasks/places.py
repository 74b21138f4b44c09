"""Languages with a target at every place of a string: for each prefix, the empty one first.

The target at a place is one number: the label of the prefix, 0 or 1; the set of tokens that may
follow, token ids as bits; or the state of the minimal automaton.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from jaxtyping import Bool, Int64, Integer

from seqcls.declarations import About, Fields
from seqcls.errors import ConfigError, InvalidStringError
from seqcls.strings.token_strings import TokenStrings, Truths
from seqcls.strings.tokenizer import FIRST_LETTER, Tokenizer
from seqcls.tasks.automaton import Automaton, language_automaton, minimize
from seqcls.tasks.base import LanguageTask, LetterRow, PartlyKnown, Task

Answered = Literal["string", "prefixes", "next_symbols", "states"]

NO_ANSWER = -1
"""The target at the places after a string's end."""

# A set is one whole number of 64 bits, with its sign.
MOST_BITS = 62
"""The most token ids in a set, `SEP` and `END` included."""

MOST_STATES = 4096
"""The most states that a head classifies."""

_QUESTIONS: Mapping[str, str] = {
    "prefixes": "whether the string so far is in the language",
    "next_symbols": "which tokens may follow, END among them",
    "states": "in which state of the minimal automaton the string so far is",
}


def samplers_of(answers: Answered) -> Sequence[str]:
    """The samplers of strings; those for next symbols draw strings in the language only."""
    language_samplers = ("balanced_strings", "fixed_length")
    return ("uniform_inputs",) if answers == "next_symbols" else language_samplers


class AnswersFields(Fields):
    """answers: What is asked of a language: whether the string is in it, or at every place whether
    the prefix is (`prefixes`), which tokens may follow (`next_symbols`), or in which state its
    automaton is (`states`).
    """

    answers: Annotated[Answered, About("Task", 29)] = "string"


@dataclass(frozen=True)
class AtEveryPlace:
    """The task of predicting a target for every prefix of a string.

    Raises:
        ConfigError: the language does not determine these targets.
    """

    language: LanguageTask
    kind: Answered
    """The targets: one of `_QUESTIONS`."""
    name: str
    """The name of the language's task."""

    order_sensitive: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        if reason := self._obstacle():
            raise ConfigError(f"answers={self.kind!r} with task={self.name!r}: {reason}")

    def _obstacle(self) -> str | None:
        if isinstance(self.language, PartlyKnown):
            return "of prefixes that are not in the file nobody knows the label; use 'string'"
        if self.kind == "prefixes":
            return None
        if self.automaton is None:
            return "its language has no minimal automaton here; use 'prefixes' or 'string'"
        if self.kind == "states":
            if 1 < (states := len(self.automaton.table)) <= MOST_STATES:
                return None
            return f"expected an automaton of 2 to {MOST_STATES:,} states, and it has {states:,}"
        if (ids := self.end + 1) > MOST_BITS:
            most = MOST_BITS - ids + len(self.alphabet)
            return f"expected at most {most} tokens, and there are {len(self.alphabet)}"
        return None

    @property
    def alphabet(self) -> Sequence[str]:
        return self.language.alphabet

    @property
    def end(self) -> int:
        """The token id of `END`, after those of the letters and `SEP`."""
        return FIRST_LETTER + len(self.alphabet) + 1

    @cached_property
    def automaton(self) -> Automaton | None:
        """The language's minimal automaton; None where it has none, or one too large."""
        return language_automaton(self.language)

    @cached_property
    def _answers_by_state(self) -> Int64[np.ndarray, " state"]:
        """The target at a place, by the automaton's state."""
        assert self.automaton is not None
        accepting = self.automaton.accepting.astype(np.int64)
        if self.kind == "prefixes":
            return accepting
        if self.kind == "states":
            return np.arange(len(accepting))
        goes_on = self.automaton.sound[self.automaton.table].astype(np.int64)
        # Only letters may follow: `SEP`, whose id is between theirs and that of `END`, never does.
        follow = goes_on @ (1 << np.arange(FIRST_LETTER, self.end - 1))
        return np.asarray(follow + (accepting << self.end))

    @cached_property
    def machine(self) -> Automaton | None:
        """The Moore machine of the target at a string's end; None without an automaton."""
        if self.automaton is None:
            return None
        table, accepting = self.automaton.table, self.automaton.accepting
        return minimize(table, accepting, self.automaton.start, self._answers_by_state)

    def at_ends(self, strings: TokenStrings) -> Int64[np.ndarray, " string"]:
        """The target at the end of each string, whether or not it is in the language."""
        if self.automaton is None:
            return self._labels_of_prefixes(strings, int(strings.lengths.max(initial=0)))
        return np.asarray(self._answers_by_state[self.automaton.states(strings)])

    def can_go_on(self, strings: TokenStrings) -> Truths:
        """True for the prefixes of inputs."""
        if self.kind != "next_symbols":
            return np.ones(len(strings), dtype=bool)
        assert self.automaton is not None
        return np.asarray(self.automaton.sound[self.automaton.states(strings)])

    def accepts(self, answers: Int64[np.ndarray, " state"]) -> Bool[np.ndarray, " state"]:
        """True for the targets at a string's end that mean that it is in the language."""
        if self.kind == "states":
            assert self.automaton is not None
            return np.asarray(self.automaton.accepting[answers])
        bit = self.end if self.kind == "next_symbols" else 0
        return np.asarray(answers >> bit & 1 == 1)

    def targets(self, strings: TokenStrings) -> Integer[np.ndarray, "string place"]:
        """The target at each place of each string, `NO_ANSWER` after its end.

        Raises:
            InvalidStringError: a string is not in the language, where next symbols are the targets.
        """
        if not (are := self.are_inputs(strings)).all():
            row = int(np.argmin(are))
            letters = strings.letters[row, : strings.lengths[row]].tolist()
            text = Tokenizer(self.alphabet).spell(letters)
            raise InvalidStringError(
                f"input {text[:60]!r}: expected a string of the language ({self.describe()})"
            )
        if self.automaton is None:
            places = range(int(strings.lengths.max(initial=0)) + 1)
            columns = [self._labels_of_prefixes(strings, place) for place in places]
        else:
            columns = [self._answers_by_state[states] for states in self.automaton.walk(strings)]
        # The smallest integer type, since epochs stay in memory.
        greatest = int(max((column.max(initial=0) for column in columns), default=0))
        # A negative number selects a signed type, in which `NO_ANSWER` fits.
        targets = np.stack(columns, axis=1).astype(np.min_scalar_type(-greatest - 1))
        targets[np.arange(targets.shape[1]) > strings.lengths[:, None]] = NO_ANSWER
        return targets

    def _labels_of_prefixes(
        self, strings: TokenStrings, place: int
    ) -> Int64[np.ndarray, " string"]:
        letters = strings.letters[:, :place]
        lengths = np.minimum(strings.lengths, place)
        prefixes = TokenStrings(strings.num_letters, lengths, letters)
        return self.language.labels(prefixes.with_a_place()).astype(np.int64)

    def are_inputs(self, strings: TokenStrings) -> Truths:
        """True for the inputs: all strings, or for next symbols those in the language."""
        if self.kind != "next_symbols":
            return np.ones(len(strings), dtype=bool)
        return self.language.labels(strings.with_a_place())

    def inputs_of_length(self, length: int, most: int) -> TokenStrings:
        """The strings of a length in the language, in the order of the alphabet.

        At least one more than `most` where there are more.
        """
        assert self.automaton is not None
        table = self.automaton.table
        rows, states = np.zeros((1, 0), dtype=np.int64), np.array([self.automaton.start])
        # By tokens to come, the states from which some string of just so many is accepted.
        reaches = [self.automaton.accepting]
        for _ in range(length):
            reaches.append(reaches[-1][table].any(axis=1))
        for left in range(length - 1, -1, -1):
            # Each prefix that goes on leads to a different string.
            row, letter = (x[: most + 1] for x in np.nonzero(reaches[left][table[states]]))
            rows, states = np.column_stack([rows[row], letter]), table[states[row], letter]
        return TokenStrings.of_letters(len(self.alphabet), rows[reaches[0][states]])

    def has_input(self, length: int) -> bool:
        return self.language.has(length, True)

    def draw_input(self, rng: np.random.Generator, length: int) -> LetterRow:
        return self.language.draw(rng, length, True)

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        return self.language.features(strings)

    def describe(self) -> str:
        """The language and the targets, in two sentences."""
        return f"{self.language.describe()} At every place it is asked {_QUESTIONS[self.kind]}."


def at_every_place(task: Task, answers: Answered, name: str) -> Task:
    """The task with a configuration's `answers`; a task that is no language is returned unchanged.

    Raises:
        ConfigError: as `AtEveryPlace`.
    """
    if answers == "string" or not isinstance(task, LanguageTask):
        return task
    return AtEveryPlace(task, answers, name)
