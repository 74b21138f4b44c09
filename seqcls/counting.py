"""Decide whether the state of a regular language is a function of counts: find a program that
counts, or two states that no counting distinguishes.

A counter adds a weight for each letter. In a strongly connected part of the minimal automaton it
depends on the state alone if its weights sum to zero over every cycle: then each state has one
value, its potential. All such weights are the solutions of linear equations, which are solved in
whole numbers. Where these do not distinguish all states of a part, counters of the next level
weigh a letter by the values of the lower levels before it, until no level distinguishes more.
Letters that leave a part do not count: a run never returns to a part.

The regular languages whose states are distinguished in this way are those that programs of C-RASP
recognize (arXiv 2608.13433, Algebraic Decomposition Theory for Transformer Length Generalization).
The level is the number of levels of counters; at level 0 every part is one state, and the language
is R-trivial (Brzozowski & Fich 1980).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from jaxtyping import Int64

from seqcls.errors import ConfigError
from seqcls.monoids import Table, components, shortest_words
from seqcls.strings.tokenizer import Tokenizer

MAX_PART = 2_000
"""The most states of a strongly connected part in which counting is decided."""

MAX_DESCRIBED = 4
"""The most parts, and states of a part, that are described."""

SAFE = 2**30
"""Whole numbers up to this are multiplied in 64 bits; larger ones are Python's, without limit."""

Values = tuple[int, ...]
Reading = tuple[int, Values]
"""The number of a part, and the values of its counters."""


@dataclass(frozen=True)
class Counters:
    """The counters of one level."""

    weights: Mapping[tuple[Values, int], Values]
    """The weight that each counter adds, by the values of all lower levels before the letter, and
    the letter."""
    values: Mapping[int, Values]
    """The value of each counter in each state of the part."""


@dataclass(frozen=True)
class Part:
    """A strongly connected part of the minimal automaton, with its counters."""

    states: tuple[int, ...]
    levels: tuple[Counters, ...]
    """Empty for a part of one state."""
    exits: Mapping[tuple[Values, int], int]
    """The state entered by a letter that leaves the part, by the values of all levels before it."""

    def values(self, state: int) -> Values:
        """The values of all levels in a state, the lowest level first."""
        return sum((level.values[state] for level in self.levels), ())

    def add(self, values: Values, letter: int) -> Values:
        """The values of all levels after a letter that stays in the part."""
        added: Values = ()
        for level in self.levels:
            added += level.weights[values[: len(added)], letter]
        return tuple(map(sum, zip(values, added, strict=True)))


@dataclass(frozen=True)
class CountingProgram:
    """Computes the state of a language's minimal automaton by counters, without its transitions.

    Within a part the counters determine the state; a letter that leaves it starts the counters of
    the next part at their values for the state that is entered.
    """

    alphabet: Sequence[str]
    start: int
    accepting: tuple[bool, ...]
    parts: tuple[Part, ...]

    @cached_property
    def _part_of(self) -> Mapping[int, int]:
        return {state: number for number, part in enumerate(self.parts) for state in part.states}

    def enter(self, state: int) -> Reading:
        """The part of a state, and the values of its counters there."""
        number = self._part_of[state]
        return number, self.parts[number].values(state)

    def read(self, reading: Reading, letter: int) -> Reading:
        """The part and the values after one more letter."""
        number, values = reading
        entered = self.parts[number].exits.get((values, letter))
        if entered is not None:
            return self.enter(entered)
        return number, self.parts[number].add(values, letter)

    def state(self, letters: Iterable[int]) -> int:
        """The state after a string of numbered letters."""
        number, values = reduce(self.read, letters, self.enter(self.start))
        part = self.parts[number]
        return next(state for state in part.states if part.values(state) == values)

    def accepts(self, letters: Iterable[int]) -> bool:
        """True if a string of numbered letters is in the language."""
        return self.accepting[self.state(letters)]

    def describe(self, spell: Mapping[int, str]) -> Iterator[str]:
        """The counters of each part in words, such as: keep x = #a - #b; x is 0 at the empty
        string, 1 at a.

        Args:
            spell: a shortest string to each state.
        """
        counting = [part for part in self.parts if part.levels]
        for part in counting[:MAX_DESCRIBED]:
            names = _counter_names(len(part.values(part.states[0])))
            counters: list[str] = []
            for level in part.levels:
                below, width = len(counters), len(level.values[part.states[0]])
                counters += [
                    f"{names[below + column]} = {_weigh(level, column, names, self.alphabet)}"
                    for column in range(width)
                ]
            shown = [
                f"{', '.join(map(str, part.values(state)))} after {spell[state]}"
                for state in part.states[:MAX_DESCRIBED]
            ]
            if more := len(part.states) - len(shown):
                shown.append(f"and so on, {more:,} more")
            written = " and ".join(counters)
            yield f"keep {written}; the state is {', '.join(names)}: {', '.join(shown)}"
        if len(counting) > MAX_DESCRIBED:
            yield f"and likewise in {len(counting) - MAX_DESCRIBED} more parts"

    def record(self) -> dict[str, Any]:
        """The program for JSON: each part with its states, counters and exits."""
        token = self.alphabet.__getitem__

        def rows(changes: Mapping[tuple[Values, int], Any], name: str) -> list[dict[str, Any]]:
            return [{"at": at, "token": token(x), name: y} for (at, x), y in changes.items()]

        return {
            "start": self.start,
            "accepting": [state for state, accepts in enumerate(self.accepting) if accepts],
            "parts": [
                {
                    "states": part.states,
                    "levels": [
                        {
                            "weights": rows(level.weights, "add"),
                            "values": [[state, level.values[state]] for state in part.states],
                        }
                        for level in part.levels
                    ],
                    "exits": rows(part.exits, "state"),
                }
                for part in self.parts
            ],
        }


@dataclass(frozen=True)
class Counting:
    """The decision on counting in a language."""

    level: int | None
    """Levels of counters; None where no counting distinguishes all states."""
    program: CountingProgram | None = field(repr=False)
    """The program; None without a level."""
    states: tuple[int, int] | None
    """Without a level, the first two states that no counting distinguishes."""
    words: Mapping[int, tuple[int, ...]] = field(repr=False)
    """A shortest string to each state."""
    alphabet: Sequence[str] = field(repr=False)

    @property
    def name(self) -> str:
        """The level in two words, such as `level 1`, or `outside`."""
        return "outside" if self.level is None else f"level {self.level}"

    def spell(self, state: int) -> str:
        """A shortest string to a state."""
        return Tokenizer(self.alphabet).spell(self.words[state]) or "the empty string"

    def describe(self) -> Iterator[str]:
        """The level, and the program or the two states, line by line."""
        if self.states is not None:
            one, other = map(self.spell, self.states)
            yield f"outside counting: no counting tells the states after {one} and {other} apart"
        elif self.level == 0:
            yield "counting, level 0: R-trivial, no state is met again after it has been left"
        elif self.program is not None:
            yield f"counting, level {self.level}: the state is a function of counts"
            spelled = {state: self.spell(state) for state in self.words}
            yield from (f"  {line}" for line in self.program.describe(spelled))

    def record(self) -> dict[str, Any]:
        """The decision for JSON."""
        witness = self.states and {
            "states": list(self.states),
            "strings": [Tokenizer(self.alphabet).spell(self.words[x]) for x in self.states],
        }
        program = None if self.program is None else self.program.record()
        words = list(self.describe())
        return {"level": self.level, "program": program, "witness": witness, "words": words}


def decide_counting(automaton: Table, alphabet: Sequence[str]) -> Counting:
    """Decide whether the state is a function of counts, and at which level.

    Args:
        automaton: minimal, with every state reached from the start.

    Raises:
        ConfigError: a strongly connected part is too large.
    """
    table = automaton.table.astype(np.int64)
    words = shortest_words(table, automaton.start)
    count, strong = components(table)
    parts = []
    for number in range(count):
        states = np.flatnonzero(strong == number)
        levels = tuple(_count(states, table))
        part = Part(tuple(states.tolist()), levels, {})
        exits = {
            (part.values(state), letter): int(table[state, letter])
            for state in part.states
            for letter in np.flatnonzero(strong[table[state]] != number).tolist()
        }
        parts.append(replace(part, exits=exits))
    # States are numbered from the start, so that its part comes first.
    parts.sort(key=lambda part: part.states[0])
    pair = _find_alike(parts, words)
    if pair is not None:
        return Counting(None, None, pair, words, alphabet)
    accepting = tuple(automaton.accepting.tolist())
    program = CountingProgram(alphabet, automaton.start, accepting, tuple(parts))
    level = max(len(part.levels) for part in parts)
    return Counting(level, program, None, words, alphabet)


def _find_alike(parts: Sequence[Part], words: Iterable[int]) -> tuple[int, int] | None:
    """The two states nearest to the start with the same values of the counters of one part."""
    part_of = {state: part for part in parts for state in part.states}
    met: dict[tuple[int, Values], int] = {}
    for state in words:
        # Counters of different parts may have the same values.
        key = id(part_of[state]), part_of[state].values(state)
        if key in met:
            return met[key], state
        met[key] = state
    return None


def _count(
    states: Int64[np.ndarray, " state"], table: Int64[np.ndarray, "state letter"]
) -> list[Counters]:
    """The levels of counters of a part, as long as each distinguishes more states."""
    if len(states) > MAX_PART:
        raise ConfigError(
            f"{len(states):,} states lead to each other, and counting is worked out for at most "
            f"{MAX_PART:,}"
        )
    number = {state: place for place, state in enumerate(states.tolist())}
    edges = [
        (number[state], letter, number[after])
        for state in number
        for letter, after in enumerate(table[state].tolist())
        if after in number
    ]
    levels: list[Counters] = []
    below: list[Values] = [()] * len(states)
    while len(set(below)) < len(states):
        edges_by_label: dict[tuple[Values, int], list[tuple[int, int]]] = defaultdict(list)
        for state, letter, after in edges:
            edges_by_label[below[state], letter].append((state, after))
        chosen = _choose(_potentials(len(states), list(edges_by_label.values())), below)
        if not len(chosen):
            break
        firsts = np.array([same[0] for same in edges_by_label.values()])
        added = map(tuple, (chosen[:, firsts[:, 1]] - chosen[:, firsts[:, 0]]).T.tolist())
        values = list(map(tuple, chosen.T.tolist()))
        weights = dict(zip(edges_by_label, added, strict=True))
        levels.append(Counters(weights, dict(zip(number, values, strict=True))))
        below = [under + value for under, value in zip(below, values, strict=True)]
    return levels


def _potentials(
    states: int, labels: Sequence[Sequence[tuple[int, int]]]
) -> Int64[np.ndarray, "parameter state"]:
    """A basis of the values of states that grow equally on all edges of one label, with value 0 of
    the first state.

    Every state starts as one parameter; each equation eliminates one, without divisions.
    """
    rows = np.eye(states, dtype=np.int64)
    # Only differences between states are determined, so that one value is free.
    rows[0] = 0
    # Letters with the same edges give the same equations.
    for edges in dict.fromkeys(map(tuple, labels)):
        first, then = edges[0]
        for state, after in edges[1:]:
            equation = rows[:, after] - rows[:, state] - rows[:, then] + rows[:, first]
            used = np.flatnonzero(equation)
            if not len(used):
                continue
            # The smallest pivot keeps the numbers of all rows small.
            pivot = used[np.argmin(np.abs(equation[used]))]
            others = used[used != pivot]
            if max(np.abs(rows[used]).max(), np.abs(equation).max()) > SAFE:
                rows, equation = rows.astype(object), equation.astype(object)
            rows[others] = equation[pivot] * rows[others] - equation[others][:, None] * rows[pivot]
            rows[pivot] = 0
            # Without common factors, numbers grow less from equation to equation.
            rows[others] //= np.maximum(np.gcd.reduce(rows[others], axis=1), 1)[:, None]
    return np.asarray(rows[(rows != 0).any(axis=1)])


def _choose(
    rows: Int64[np.ndarray, "parameter state"], below: Sequence[Values]
) -> Int64[np.ndarray, "counter state"]:
    """The rows, smallest first, that with the lower levels distinguish all that the basis does."""
    chosen = []
    classes = np.unique(np.array(below), axis=0, return_inverse=True)[1].ravel()
    for row in sorted(rows, key=lambda x: int(np.abs(x).sum())):
        # Values may be Python's large numbers: their ranks can be combined.
        finer = np.unique(row, return_inverse=True)[1] + classes * len(classes)
        finer = np.unique(finer, return_inverse=True)[1]
        if finer.max() > classes.max():
            classes = finer
            # A counter and its negative are equivalent: the first nonzero value is made positive.
            chosen.append(row * np.sign(row[np.flatnonzero(row)[0]]))
    return np.array(chosen, dtype=rows.dtype).reshape(len(chosen), len(classes))


def _counter_names(number: int) -> Sequence[str]:
    return "xyz"[:number] if number <= 3 else [f"x{place}" for place in range(1, number + 1)]


def _weigh(level: Counters, column: int, names: Sequence[str], alphabet: Sequence[str]) -> str:
    """A counter as a sum of counts, such as: #a - 2 #(b at x = 1)."""
    weights_by_letter: dict[int, dict[Values, int]] = defaultdict(dict)
    for (at, letter), weights in level.weights.items():
        weights_by_letter[letter][at] = weights[column]
    terms: list[tuple[int, str]] = []
    for letter, weights_by_values in sorted(weights_by_letter.items()):
        if len(same := set(weights_by_values.values())) == 1:
            terms.append((same.pop(), f"#{alphabet[letter]}"))
            continue
        for at, weight in weights_by_values.items():
            when = ", ".join(f"{name} = {x}" for name, x in zip(names, at, strict=False))
            terms.append((weight, f"#({alphabet[letter]} at {when})"))
    # A positive term first: there always is one, since the weights of a cycle sum to zero.
    terms.sort(key=lambda term: term[0] <= 0)
    text = ""
    for weight, counted in terms:
        if weight:
            sign = " - " if weight < 0 else " + " if text else ""
            text += f"{sign}{'' if abs(weight) == 1 else f'{abs(weight)} '}{counted}"
    return text
