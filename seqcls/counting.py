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
from dataclasses import dataclass, field
from functools import reduce
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
"""The number of a part, and the values of its counters, the lowest level first."""

Changes = Mapping[tuple[Values, int], Any]
"""Changes by the values of counters before a letter, and the letter."""


@dataclass(frozen=True)
class Counting:
    """The decision on counting in a language, and a program of counters where there is one.

    The program computes the state of the minimal automaton without its transitions. Within a
    strongly connected part the counters determine the state; a letter that leaves the part starts
    the counters of the next one at their values for the state that is entered.
    """

    alphabet: Sequence[str] = field(repr=False)
    start: int
    accepting: tuple[bool, ...] = field(repr=False)
    words: Mapping[int, tuple[int, ...]] = field(repr=False)
    """A shortest string to each state."""
    readings: Mapping[int, Reading] = field(repr=False)
    """The part of each state, and the values of its counters there."""
    levels: tuple[Sequence[Changes], ...] = field(repr=False)
    """The levels of counters of each part, none for a part of one state: the weight that each
    counter adds, by the values of all lower levels and the letter."""
    exits: tuple[Changes, ...] = field(repr=False)
    """The state entered by a letter that leaves each part, by the values of all levels."""
    states: tuple[int, int] | None
    """The first two states that no counting distinguishes; None where it distinguishes all."""

    @property
    def level(self) -> int | None:
        """Levels of counters; None where no counting distinguishes all states."""
        return max(map(len, self.levels)) if self.states is None else None

    @property
    def name(self) -> str:
        """The level in two words, such as `level 1`, or `outside`."""
        return "outside" if self.level is None else f"level {self.level}"

    def read(self, reading: Reading, letter: int) -> Reading:
        """The part and the values after one more letter."""
        number, values = reading
        entered = self.exits[number].get((values, letter))
        if entered is not None:
            return self.readings[entered]
        added: Values = ()
        for weights in self.levels[number]:
            added += weights[values[: len(added)], letter]
        return number, tuple(map(sum, zip(values, added, strict=True)))

    def state(self, letters: Iterable[int]) -> int:
        """The state after a string of numbered letters."""
        last = reduce(self.read, letters, self.readings[self.start])
        return next(state for state, reading in self.readings.items() if reading == last)

    def accepts(self, letters: Iterable[int]) -> bool:
        """True if a string of numbered letters is in the language."""
        return self.accepting[self.state(letters)]

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
        else:
            yield f"counting, level {self.level}: the state is a function of counts"
            yield from (f"  {line}" for line in self._describe_parts())

    def _describe_parts(self) -> Iterator[str]:
        """The counters of each part in words, such as: keep x = #a - #b; x is 0 at the empty
        string, 1 at a.
        """
        counting = [part for part in zip(self.levels, self._values, strict=True) if part[0]]
        for levels, values in counting[:MAX_DESCRIBED]:
            columns = [(weights, x) for weights in levels for x in range(_width(weights))]
            numbered = [f"x{place}" for place in range(1, len(columns) + 1)]
            names = numbered if len(columns) > 3 else "xyz"[: len(columns)]
            counters = [
                f"{name} = {_weigh(*column, names, self.alphabet)}"
                for name, column in zip(names, columns, strict=True)
            ]
            shown = [
                f"{', '.join(map(str, own))} after {self.spell(state)}"
                for state, own in list(values.items())[:MAX_DESCRIBED]
            ]
            if more := len(values) - len(shown):
                shown.append(f"and so on, {more:,} more")
            written = " and ".join(counters)
            yield f"keep {written}; the state is {', '.join(names)}: {', '.join(shown)}"
        if len(counting) > MAX_DESCRIBED:
            yield f"and likewise in {len(counting) - MAX_DESCRIBED} more parts"

    @property
    def _values(self) -> list[dict[int, Values]]:
        """The values of each part's counters, by state."""
        values: list[dict[int, Values]] = [{} for _ in self.levels]
        for state, (number, own) in self.readings.items():
            values[number][state] = own
        return values

    def record(self) -> dict[str, Any]:
        """The decision for JSON; the program with the states, counters and exits of each part."""
        spell = Tokenizer(self.alphabet).spell
        witness = self.states and {
            "states": list(self.states),
            "strings": [spell(self.words[x]) for x in self.states],
        }
        parts = zip(self.levels, self._values, self.exits, strict=True)
        program = {
            "start": self.start,
            "accepting": [state for state, accepts in enumerate(self.accepting) if accepts],
            "parts": [self._record_part(*part) for part in parts],
        }
        return {
            "level": self.level,
            "program": None if witness else program,
            "witness": witness,
            "words": list(self.describe()),
        }

    def _record_part(
        self, levels: Sequence[Changes], values: Mapping[int, Values], exits: Changes
    ) -> dict[str, Any]:
        def rows(changes: Changes, name: str) -> list[dict[str, Any]]:
            return [
                {"at": at, "token": self.alphabet[x], name: y} for (at, x), y in changes.items()
            ]

        recorded, end = list[dict[str, Any]](), 0
        for weights in levels:
            own = slice(end, end := end + _width(weights))
            values_here = [[state, x[own]] for state, x in values.items()]
            recorded.append({"weights": rows(weights, "add"), "values": values_here})
        return {"states": [*values], "levels": recorded, "exits": rows(exits, "state")}


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
    members = (np.flatnonzero(strong == number) for number in range(count))
    # States are numbered from the start, so that its part comes first.
    parts = sorted(((own, *_count(own, table)) for own in members), key=lambda part: part[0][0])
    readings: dict[int, Reading] = {}
    exits: list[dict[tuple[Values, int], int]] = []
    for number, (own, _, values) in enumerate(parts):
        exits.append({})
        for state, x in zip(own.tolist(), values, strict=True):
            readings[state] = number, x
            for letter in np.flatnonzero(strong[table[state]] != strong[state]).tolist():
                exits[-1][x, letter] = int(table[state, letter])
    nearest: dict[Reading, int] = {}
    alike = ((nearest.setdefault(readings[state], state), state) for state in words)
    return Counting(
        alphabet,
        automaton.start,
        tuple(automaton.accepting.tolist()),
        words,
        readings,
        tuple(levels for _, levels, _ in parts),
        tuple(exits),
        next((pair for pair in alike if pair[0] != pair[1]), None),
    )


def _count(
    states: Int64[np.ndarray, " state"], table: Int64[np.ndarray, "state letter"]
) -> tuple[list[Changes], list[Values]]:
    """The levels of counters of a part, as long as each distinguishes more states; and the values
    of all levels in each state.
    """
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
    levels: list[Changes] = []
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
        values = map(tuple, chosen.T.tolist())
        levels.append(dict(zip(edges_by_label, added, strict=True)))
        below = [under + value for under, value in zip(below, values, strict=True)]
    return levels, below


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


def _width(weights: Changes) -> int:
    """The number of a level's counters."""
    return len(next(iter(weights.values())))


def _weigh(changes: Changes, column: int, names: Sequence[str], alphabet: Sequence[str]) -> str:
    """A counter as a sum of counts, such as: #a - 2 #(b at x = 1)."""
    weights_by_letter: dict[int, dict[Values, int]] = defaultdict(dict)
    for (at, letter), weights in changes.items():
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
