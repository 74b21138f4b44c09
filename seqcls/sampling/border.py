"""Border pairs: two strings at edit distance 1, one in a language and the other outside.

They are counted, so that all pairs of a length are drawn alike, however few of the language's
strings have a partner. A token is replaced, or one string has one more; after that place both go on
alike, and the pair of states that the automaton has then reached with them says how many
continuations lead to acceptance of the one and not of the other. Where one string has one token
more, several tokens may be it: either `a` of `aab`, beside `ab`. It is the first of such a run, so
that each pair counts once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from jaxtyping import Float64, Int32, Int64, UInt8

from seqcls.cache import MEMORY
from seqcls.cancellation import check
from seqcls.errors import ConfigError
from seqcls.strings.token_strings import NO_LETTER
from seqcls.tasks.automaton import MAX_CELLS, NOTHING, Automaton, language_automaton
from seqcls.tasks.base import LanguageTask

Lengths = Int64[np.ndarray, " pair"]
Letters = UInt8[np.ndarray, "string pair position"]
Rows = Int64[np.ndarray, " row"]
Numbers = tuple[Float64[np.ndarray, "*cell"], Int32[np.ndarray, "*cell"]]
"""Mantissas and exponents of two: numbers of strings exceed what a float holds."""

REPLACED, LONGER, SHORTER = range(3)
"""How the first string of a pair differs from the second: by another token, by one more, or by one
less."""

GROWTH = np.array([0, -1, 1])
"""By how many tokens the second string is longer."""

BAND = 900
"""Numbers whose exponents are within so many are added up as floats: none of them underflows."""

BLOCK = 2**15
"""Pairs of states that are looked at together: few enough for a processor's cache."""


@dataclass(frozen=True, eq=False)
class _Tables:
    """How many pairs there are, by how many tokens of the first string are to come."""

    before: Numbers
    """Before the change: (tokens, change, state, kind of the letter before)."""
    replaced: Numbers
    """With the next token, of a kind, replaced: (tokens, state, kind)."""
    after: Numbers
    """After the change: (tokens, pair of states); the last pair stands for all that have none."""


class BorderPairs:
    """The pairs of strings of which an automaton accepts the first and not the second."""

    def __init__(self, automaton: Automaton) -> None:
        reached = np.flatnonzero(automaton.reachable)
        states = len(reached)
        if states**2 > MAX_CELLS:
            raise ConfigError(
                f"border pairs are counted over pairs of states; an automaton of {states:,} states "
                f"has {states**2:,} of them, expected at most {MAX_CELLS:,}; simplify the language"
            )
        self._table = np.searchsorted(reached, automaton.table[reached])
        self._accepting = automaton.accepting[reached]
        self._start = int(np.searchsorted(reached, automaton.start))
        # Letters that lead to the same states are of one kind: they are counted together.
        self._next, kind = np.unique(self._table, axis=1, return_inverse=True)
        self._times = np.bincount(kind.ravel()).astype(np.float64)
        self._kind = kind.ravel()
        self._pairs = self._reachable_pairs()
        self._place = np.full((states, states), len(self._pairs), dtype=np.int32)
        self._place.flat[self._pairs] = np.arange(len(self._pairs))

    def check_length(self, length: int) -> None:
        """Refuses a length whose pairs would take too much memory to count.

        Raises:
            ConfigError: there are too many pairs of states to count strings of that length.
        """
        states, kinds = self._next.shape
        cells = len(self._pairs) + 1 + states * (4 * kinds + 3)
        if (length + 1) * cells > MAX_CELLS:
            raise ConfigError(
                f"border pairs of up to {length:,} tokens cannot be counted for an automaton of "
                f"{states:,} states, of which {len(self._pairs):,} pairs are reached; lower "
                f"max_length to {MAX_CELLS // cells - 1:,} or simplify the language"
            )

    def draw(self, rng: np.random.Generator, lengths: Lengths, partners: range) -> Letters:
        """The letters of uniform pairs; after each string's end stands `NO_LETTER`.

        Args:
            rng: draws.
            lengths: tokens of the first strings; there is a pair of each.
            partners: how many tokens the second strings may have.

        Raises:
            ConfigError: there are too many pairs of states to count strings of that length.
        """
        longest, num_letters = int(lengths.max(initial=0)), self._table.shape[1]
        tables = self._up_to(longest)
        mantissas, exponents = (x[lengths, :, self._start, -1] for x in tables.before)
        fits = np.isin(lengths[:, None] + GROWTH, partners)
        changes = _choose(rng, (mantissas * fits, exponents))
        letters = np.full((2, len(lengths), longest + 1), NO_LETTER, dtype=np.uint8)
        written = np.zeros((2, len(lengths)), dtype=np.int64)
        states = np.full((2, len(lengths)), self._start)
        changed = np.zeros(len(lengths), dtype=bool)

        def write(which: Sequence[int], rows: Rows, chosen: Rows) -> None:
            for string in which:
                letters[string, rows, written[string, rows]] = chosen
                written[string, rows] += 1
                states[string, rows] = self._table[states[string, rows], chosen]

        order = np.argsort(-lengths, kind="stable")
        # The longest begin first, so that all first strings have as many tokens left.
        for left in range(longest, -1, -1):
            check()
            active = order[: np.count_nonzero(lengths >= left)]
            rows = active[~changed[active]]
            last = np.where(written[0, rows] > 0, letters[0, rows, written[0, rows] - 1], NO_LETTER)
            ways = self._ways_before(tables, left, changes[rows], states[0, rows], last)
            chosen = _choose(rng, ways)
            goes_on = chosen < num_letters
            write((0, 1), rows[goes_on], chosen[goes_on])
            rows, chosen = rows[~goes_on], chosen[~goes_on] - num_letters
            changed[rows] = True
            is_replaced, before = changes[rows] == REPLACED, states[0, rows]
            first = changes[rows] != SHORTER
            write((0,), rows[first], chosen[first])
            write((1,), rows[~first], chosen[~first])
            rows = rows[is_replaced]
            # The same letter is no other: both would be in the same state, a pair that has none.
            pairs = states[0, rows, None], self._table[before[is_replaced]]
            write((1,), rows, _choose(rng, self._ways(tables.after, left - 1, *pairs)))
            # A token that only the second string has stands beside one that both have.
            rows = active[changed[active] & (lengths[active] - written[0, active] == left)]
            if left:
                following = self._table[states[:, rows]]
                write((0, 1), rows, _choose(rng, self._ways(tables.after, left - 1, *following)))
        return letters

    def _ways(self, after: Numbers, left: int, first: np.ndarray, second: np.ndarray) -> Numbers:
        """How many pairs follow from pairs of states."""
        mantissas, exponents = after
        place = self._place[first, second]
        return mantissas[left, place], exponents[left, place]

    def _ways_before(
        self, tables: _Tables, left: int, changes: Rows, states: Rows, last: Rows
    ) -> Numbers:
        """How many pairs follow if both strings go on with each letter, and if each is the change.

        Args:
            tables: numbers of pairs.
            left: tokens of the first string that are to come.
            changes: of each pair.
            states: of both strings.
            last: the letters before, `NO_LETTER` for none.
        """
        following, num_letters = self._table[states], self._table.shape[1]
        mantissas = np.zeros((len(states), 2 * num_letters))
        exponents = np.zeros(mantissas.shape, dtype=np.int32)
        if left:
            index = (left - 1, changes[:, None], following, self._kind)
            for ways, table in zip((mantissas, exponents), tables.before, strict=True):
                ways[:, :num_letters] = table[index]
        for change in range(3):
            rows = np.flatnonzero(changes == change)
            own, to = states[rows, None], following[rows]
            if change == SHORTER:
                found = self._ways(tables.after, left, own, to)
            elif not left:
                continue
            elif change == LONGER:
                found = self._ways(tables.after, left - 1, to, own)
            else:
                found = tuple(x[left, own, self._kind] for x in tables.replaced)
            for ways, table in zip((mantissas, exponents), found, strict=True):
                ways[rows, num_letters:] = table
            if change != REPLACED:
                # Of a run of the same letter the first is the one more.
                run = rows[last[rows] != NO_LETTER]
                mantissas[run, num_letters + last[run]] = 0
        return mantissas, exponents

    def _up_to(self, length: int) -> _Tables:
        """Numbers of pairs of which the first string has at most so many tokens."""
        kept: _Tables | None = MEMORY.get(self)
        if kept is not None and len(kept.before[0]) > length:
            return kept
        self.check_length(length)
        (states, kinds), number = self._next.shape, len(self._pairs)
        before, replaced = (
            _empty(length + 1, *x) for x in ((3, states, kinds + 1), (states, kinds))
        )
        after = _empty(length + 1, number + 1)
        _put(after, np.s_[:, -1], _NONE)
        first, second = np.divmod(self._pairs, states)
        is_pair = self._accepting[first] & ~self._accepting[second]
        _put(after, np.s_[0, :-1], (is_pair * 0.5, np.where(is_pair, 1, NOTHING)))
        own = np.arange(states)[:, None]
        for row in range(length + 1):
            check()
            change = _empty(3, states, kinds + 1)
            _put(change, ..., _NONE)
            if row:
                found = _add([x[row - 1] for x in after], self._step)
                _put(after, np.s_[row, :-1], [x[:number] for x in found])
                _put(replaced, row, [x[number:].reshape(states, kinds) for x in found])
                any_kind = _add([x[row] for x in replaced], self._add_kinds)
                _put(change, REPLACED, [x[:, None] for x in any_kind])
                one_more = self._ways(after, row - 1, self._next, own)
                _put(change, LONGER, _add(one_more, self._add_others))
            one_less = self._ways(after, row, own, self._next)
            _put(change, SHORTER, _add(one_less, self._add_others))
            if row:
                change = _plus(_add([x[row - 1] for x in before], self._go_on), change)
            _put(before, row, change)
        tables = _Tables(before, replaced, after)
        MEMORY.keep(self, tables)
        return tables

    # What follows adds up numbers of one scale.

    def _step(self, after: np.ndarray) -> np.ndarray:
        """By pair of states, with one token more to come; then by state, with a token replaced."""
        shares = np.append(after[:-1], 0.0)[self._place]
        total, columns = np.zeros_like(shares), np.ascontiguousarray(self._next.T)
        block = max(1, BLOCK // len(shares))
        for rows in (slice(i, i + block) for i in range(0, len(shares), block)):
            for column, times in zip(columns, self._times, strict=True):
                total[rows] += times * shares[column[rows]].take(column, axis=1)
        flat, first = shares.ravel(), columns[:, :, None] * len(shares)
        replaced = [self._add_kinds(flat.take(x + self._next)) for x in first]
        return np.concatenate([total.flat[self._pairs], np.stack(replaced, axis=1).ravel()])

    def _add_kinds(self, shares: np.ndarray) -> np.ndarray:
        """By state, with any letter next."""
        total: np.ndarray = (shares * self._times).sum(axis=1)
        return total

    def _add_others(self, shares: np.ndarray) -> np.ndarray:
        """By state and kind of the letter before, with any other letter next."""
        each = shares * self._times
        others = np.zeros((len(shares), len(self._times) + 1))
        np.cumsum(each, axis=1, out=others[:, 1:])
        # All, which no letter is before, less none: nothing is subtracted, so that zeros stay zero.
        others[:, :-2] += np.cumsum(each[:, :0:-1], axis=1)[:, ::-1]
        others[:, :-1] += shares * (self._times - 1)
        return others

    def _go_on(self, before: np.ndarray) -> np.ndarray:
        """By change and state, with any letter that both have next."""
        following = before[:, self._next, np.arange(len(self._times))]
        total: np.ndarray = (following * self._times).sum(axis=2, keepdims=True)
        return total

    def _reachable_pairs(self) -> Int64[np.ndarray, " pair"]:
        """The pairs of different states that a change and what follows lead to, as one number."""
        states, kinds = self._next.shape
        own = np.arange(states)[:, None]
        found = [self._next[:, kind, None] * states + self._next for kind in range(kinds)]
        found += [self._next * states + own, own * states + self._next]
        # From the same state both strings come to the same.
        reached = np.eye(states, dtype=bool).ravel()
        while found:
            new = []
            for pairs in found:
                fresh = np.unique(pairs[~reached[pairs]])
                reached[fresh] = True
                new.append(fresh)
            first, second = np.divmod(np.concatenate(new), states)
            each = range(kinds if len(first) else 0)
            found = [self._next[first, x] * states + self._next[second, x] for x in each]
        reached[:: states + 1] = False
        return np.flatnonzero(reached)


_NONE = (0.0, NOTHING)


def _empty(*shape: int) -> Numbers:
    return np.empty(shape), np.empty(shape, dtype=np.int32)


def _put(numbers: Numbers, index: Any, values: Sequence[Any]) -> None:
    for part, value in zip(numbers, values, strict=True):
        part[index] = value


def _add(numbers: Sequence[np.ndarray], add: Callable[[np.ndarray], np.ndarray]) -> Numbers:
    """What a function makes of numbers of any size, which adds up some of them."""
    mantissas, exponents = numbers
    there = exponents[mantissas > 0]
    top, least = (int(there.max()), int(there.min())) if len(there) else (0, 0)
    total = None
    for scale in range(top, least - 1, -BAND):
        fits = (exponents <= scale) & (exponents > scale - BAND)
        scaled = np.ldexp(mantissas * fits, np.where(fits, exponents - scale, 0))
        sums, shifts = np.frexp(add(scaled))
        part = sums, np.where(sums > 0, shifts + scale, NOTHING).astype(np.int32)
        total = part if total is None else _plus(total, part)
    assert total is not None
    return total


def _plus(one: Numbers, other: Numbers) -> Numbers:
    top = np.maximum(one[1], other[1])
    total = np.ldexp(one[0], one[1] - top) + np.ldexp(other[0], other[1] - top)
    mantissas, shifts = np.frexp(total)
    return mantissas, np.where(total > 0, shifts + top, NOTHING).astype(np.int32)


def _choose(rng: np.random.Generator, ways: Numbers) -> Rows:
    """A column of each row, with a probability proportional to its number."""
    mantissas, exponents = ways
    exponents = np.where(mantissas > 0, exponents, NOTHING)
    sums = np.cumsum(np.ldexp(mantissas, exponents - exponents.max(axis=1, keepdims=True)), axis=1)
    # A product that was rounded up to the whole sum would be past the last column.
    chosen = np.minimum(rng.random(len(sums)) * sums[:, -1], np.nextafter(sums[:, -1], 0))
    return np.asarray((sums <= chosen[:, None]).sum(axis=1))


@lru_cache(maxsize=8)
def pairs_of(task: LanguageTask, positive: bool = True) -> BorderPairs:
    """The border pairs of a language, of which the first string is positive, or is negative.

    Raises:
        ConfigError: the language has no automaton, or one of too many states.
    """
    automaton = language_automaton(task)
    if automaton is None:
        raise ConfigError("border pairs are counted by an automaton, and this language has none")
    accepting = automaton.accepting == positive
    return BorderPairs(Automaton(automaton.table, accepting, automaton.start))
