"""Border pairs: two strings at edit distance 1, one in a language and the other outside.

Pairs are counted, so that all pairs of a length are equally likely, however few strings of the
language have a partner. A token is replaced, or one string has one more; after that place both
strings are equal, and the two states that the automaton has reached determine the number of
continuations that are accepted from the one and not from the other. An inserted token may be any
of a run, either `a` of `aab` beside `ab`; the first of the run is chosen, so that each pair counts
once.
"""

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Int64, UInt8

from seqcls.cache import MEMORY
from seqcls.cancellation import check
from seqcls.errors import ConfigError
from seqcls.strings.token_strings import NO_LETTER
from seqcls.tasks.automaton import (
    MAX_CELLS,
    Automaton,
    Numbers,
    choose,
    language_automaton,
    zeros,
)
from seqcls.tasks.base import LanguageTask

REPLACED, LONGER, SHORTER = range(3)
"""Difference of a pair's first string from the second: another token, one more, or one less."""

GROWTH = np.array([0, -1, 1])
"""Tokens that the second string has more, by difference."""

BLOCK = 2**15
"""Pairs of states processed together, which fit a processor's cache."""


class _Tables(NamedTuple):
    """Numbers of pairs, by row: one more than the remaining tokens of the first string."""

    before: Numbers
    """Before the change: (row, change, state, kind of the letter before)."""
    replaced: Numbers
    """With the next token, of a kind, replaced: (row, state, kind)."""
    after: Numbers
    """After the change: (row, state of the first string, state of the second)."""


class BorderPairs:
    """The pairs of strings of which an automaton accepts the first and not the second."""

    def __init__(self, automaton: Automaton) -> None:
        self._automaton, self._table = automaton, automaton.table
        # Letters that lead to the same states are of one kind, and counted together.
        self._next, kind = np.unique(self._table, axis=1, return_inverse=True)
        self._kind = kind.ravel()
        self._times = np.bincount(self._kind).astype(np.float64)

    def check_length(self, length: int) -> None:
        """Refuse a length whose pairs would take too much memory to count.

        Raises:
            ConfigError: there are too many pairs of states to count strings of that length.
        """
        states, kinds = self._next.shape
        # Cells of a row of `_Tables`: 3 (kinds + 1) and kinds for each state, and all pairs of
        # states.
        most = MAX_CELLS // (states * (states + 4 * kinds + 3)) - 2
        if length > most:
            lower = f"lower max_length to {most:,} or " if most > 0 else ""
            raise ConfigError(
                f"border pairs of up to {length:,} tokens cannot be counted for an automaton of "
                f"{states:,} states, which has {states**2:,} pairs of states; {lower}simplify the "
                "language"
            )

    def draw(
        self,
        rng: np.random.Generator,
        lengths: Int64[np.ndarray, " pair"],
        partners: range,
    ) -> UInt8[np.ndarray, "string pair position"]:
        """The letters of uniform pairs, `NO_LETTER` after each string's end.

        Args:
            lengths: tokens of the first strings; each length must have a pair.
            partners: the allowed lengths of second strings.

        Raises:
            ConfigError: there are too many pairs of states to count strings of that length.
        """
        longest, num_letters = int(lengths.max(initial=0)), self._table.shape[1]
        # As far as any draw with these limits may need, so that pairs are counted once.
        tables = self._up_to(max(longest, partners.stop - 1))
        allowed = np.isin(lengths[:, None] + GROWTH, partners)
        numbers = tables.before[lengths + 1, :, self._automaton.start, -1]
        allowed_ones = Numbers(numbers.mantissas * allowed, numbers.exponents)
        changes = choose(rng, allowed_ones.running_sums())
        letters = np.full((2, len(lengths), longest + 1), NO_LETTER, dtype=np.uint8)
        written = np.zeros((2, len(lengths)), dtype=np.int64)
        states = np.full((2, len(lengths)), self._automaton.start)
        changed = np.zeros(len(lengths), dtype=bool)

        def write(rows: np.ndarray, chosen: np.ndarray, *strings: int) -> None:
            for string in strings:
                letters[string, rows, written[string, rows]] = chosen
                written[string, rows] += 1
                states[string, rows] = self._table[states[string, rows], chosen]

        # The longest begin first, so that all first strings have as many tokens left.
        for row in range(longest + 1, 0, -1):
            check()
            active = np.flatnonzero(lengths - written[0] == row - 1)
            for change in range(3):
                rows = active[~changed[active] & (changes[active] == change)]
                own, to = states[0, rows, None], self._table[states[0, rows]]
                here = self._ways(tables, row, change, own, to, self._kind)
                if change != REPLACED:
                    # Of a run of the same letter the first is the inserted one.
                    run = np.flatnonzero(written[0, rows])
                    last = letters[0, rows[run], written[0, rows[run]] - 1]
                    here.mantissas[run, last] = 0
                ways = zeros(len(rows), 2 * num_letters)
                ways[:, :num_letters] = tables.before[row - 1, change, to, self._kind]
                ways[:, num_letters:] = here
                chosen = choose(rng, ways.running_sums())
                same = chosen < num_letters
                write(rows[same], chosen[same], 0, 1)
                rows, chosen, to = rows[~same], chosen[~same] - num_letters, to[~same]
                changed[rows] = True
                write(rows, chosen, int(change == SHORTER))
                if change == REPLACED:
                    # The same letter is excluded: a state with itself has no pairs.
                    others = tables.after[row - 1, states[0, rows, None], to]
                    write(rows, choose(rng, others.running_sums()), 1)
            # A token that only the second string has comes with one that both have.
            rows = np.flatnonzero(changed & (lengths - written[0] == row - 1))
            if row > 1:
                ways = tables.after[row - 1, *self._table[states[:, rows]]]
                write(rows, choose(rng, ways.running_sums()), 0, 1)
        return letters

    def _ways(
        self, tables: _Tables, row: int, change: int, own: Any, to: Any, kinds: Any
    ) -> Numbers:
        """Numbers of pairs if the next token is the change, by state and by that token."""
        if change == REPLACED:
            return tables.replaced[row, own, kinds]
        return tables.after[row - 1, to, own] if change == LONGER else tables.after[row, own, to]

    def _up_to(self, length: int) -> _Tables:
        """Numbers of pairs whose first string has up to `length` tokens."""
        cached: _Tables | None = MEMORY.get(self)
        if cached is not None and len(cached.after.mantissas) > length + 1:
            return cached
        self.check_length(length)
        (states, kinds), rows = self._next.shape, length + 2
        tables = _Tables(
            zeros(rows, 3, states, kinds + 1),
            zeros(rows, states, kinds),
            zeros(rows, states, states),
        )
        accepting, own = self._automaton.accepting, np.arange(states)[:, None]
        tables.after[1] = Numbers.of_floats((accepting[:, None] & ~accepting).astype(float))
        for row in range(1, rows):
            check()
            if row > 1:
                found = tables.after[row - 1].sums(self._step)
                tables.after[row], tables.replaced[row] = found[:, :states], found[:, states:]
            for change in range(3):
                here = self._ways(tables, row, change, own, self._next, np.arange(kinds))
                here = here.sums(self._any if change == REPLACED else self._others)
                goes_on = tables.before[row - 1, change].sums(self._go_on)
                tables.before[row, change] = goes_on + here
        MEMORY.keep(self, tables)
        return tables

    # The functions below add up numbers of one scale.

    def _step(self, after: np.ndarray) -> np.ndarray:
        """By pair of states, with one token more to come; then by state and kind, replaced."""
        total, columns = np.zeros_like(after), np.ascontiguousarray(self._next.T)
        block = max(1, BLOCK // len(after))
        for rows in (slice(i, i + block) for i in range(0, len(after), block)):
            for column, times in zip(columns, self._times, strict=True):
                moved = after.take(column[rows], axis=0).take(column, axis=1)
                total[rows] += moved if times == 1 else times * moved
        flat, first = after.ravel(), columns[:, :, None] * len(after)
        return np.hstack([total, *(self._any(flat.take(x + self._next)) for x in first)])

    def _any(self, shares: np.ndarray) -> np.ndarray:
        """By state, with any letter next."""
        total: np.ndarray = (shares * self._times).sum(axis=1, keepdims=True)
        return total

    def _others(self, shares: np.ndarray) -> np.ndarray:
        """By state and kind of the letter before, or of none, with any other letter next."""
        by_kind = shares * self._times
        others = np.zeros((len(shares), len(self._times) + 1))
        # Nothing is subtracted, so that zeros stay zero.
        np.cumsum(by_kind, axis=1, out=others[:, 1:])
        others[:, :-2] += np.cumsum(by_kind[:, :0:-1], axis=1)[:, ::-1]
        # Other letters of the same kind count too.
        others[:, :-1] += shares * (self._times - 1)
        return others

    def _go_on(self, before: np.ndarray) -> np.ndarray:
        """By state, with any letter that both have next."""
        return self._any(before[self._next, np.arange(len(self._times))])


@lru_cache(maxsize=8)
def pairs_of(task: LanguageTask, positive: bool = True) -> BorderPairs:
    """The border pairs of a language whose first string is positive, or negative.

    Raises:
        ConfigError: the language has no automaton, or one of too many states.
    """
    automaton = language_automaton(task)
    if automaton is None:
        raise ConfigError(
            "border pairs are counted by an automaton, and this language has none; leave it out"
        )
    accepting = automaton.accepting == positive
    return BorderPairs(Automaton(automaton.table, accepting, automaton.start))
