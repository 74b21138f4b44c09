"""Deterministic automata: run them, count the strings that they accept, draw uniform ones.

`explore` builds an automaton from a start state and a step function, `minimize` the smallest one of
a language. `RegularLanguage` is the base class of languages decided by an automaton.
"""

from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, ClassVar, TypeVar

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64, UInt64

from seqcls.cache import MEMORY
from seqcls.errors import ConfigError
from seqcls.monoids import distances_to
from seqcls.strings.automata import MAX_STATES
from seqcls.strings.token_strings import NO_LETTER, Lengths, Letters, TokenStrings, Truths
from seqcls.tasks.base import DEFECT, BulkTask, Task, Worded

MAX_CELLS = 30_000_000
"""States times lengths whose strings are counted at most: 12 bytes each, twice."""

_LOOKING = Lock()
"""Held by the thread that looks for lengths; shared by all automata, since locks do not pickle."""

NOTHING = -(2**30)
"""The exponent of zero: below all others."""


BAND = 900
"""Numbers whose exponents differ by less than this are added as floats: none underflows."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Numbers of strings, which exceed what a float holds: mantissas times powers of two.

    Made of sums and powers of two alone, they are the same on every machine.
    """

    mantissas: Float64[np.ndarray, "*cell"]
    exponents: Int32[np.ndarray, "*cell"]
    """Exponents of two; `NOTHING` where a number is zero."""

    @classmethod
    def of_floats(cls, floats: np.ndarray, scale: Any = 0) -> "Numbers":
        """Floats times powers of two."""
        mantissas, exponents = np.frexp(floats)
        return cls(mantissas, np.where(floats > 0, exponents + scale, NOTHING).astype(np.int32))

    def __getitem__(self, index: Any) -> "Numbers":
        return Numbers(self.mantissas[index], self.exponents[index])

    def __setitem__(self, index: Any, numbers: "Numbers") -> None:
        self.mantissas[index], self.exponents[index] = numbers.mantissas, numbers.exponents

    def __add__(self, other: "Numbers") -> "Numbers":
        top = np.maximum(self.exponents, other.exponents)
        sums = [np.ldexp(x.mantissas, x.exponents - top) for x in (self, other)]
        # A sum may carry past 1, so it is brought to a mantissa and an exponent again.
        added = Numbers.of_floats(sums[0] + sums[1])
        # Of two zeros the exponents would add up to one below that of all others.
        return Numbers(added.mantissas, np.maximum(added.exponents + top, NOTHING))

    def sums(self, add: Callable[[np.ndarray], np.ndarray]) -> "Numbers":
        """Apply a function that adds up some of the floats that it is given."""
        there = self.exponents[self.mantissas > 0]
        scales = range(int(there.max()), int(there.min()) - 1, -BAND) if len(there) else range(1)
        parts = []
        for scale in scales:
            fits = (self.exponents <= scale) & (self.exponents > scale - BAND)
            # Numbers of other bands are zero here, and their exponents too, so that `ldexp` cannot
            # overflow.
            shares = np.ldexp(self.mantissas * fits, np.where(fits, self.exponents - scale, 0))
            parts.append(Numbers.of_floats(add(shares), scale))
        return sum(parts[1:], start=parts[0])

    def running_sums(self) -> Float64[np.ndarray, "row column"]:
        """Running sums over the columns, each row in a scale of its own."""
        # Whoever sets a mantissa to zero leaves its exponent (`seqcls.sampling.border`).
        exponents = np.where(self.mantissas > 0, self.exponents, NOTHING)
        top = exponents.max(axis=1, keepdims=True)
        sums: np.ndarray = np.cumsum(np.ldexp(self.mantissas, exponents - top), axis=1)
        return sums


def choose(
    rng: np.random.Generator, sums: Float64[np.ndarray, "row column"]
) -> Int64[np.ndarray, " row"]:
    """A column of each row, with a probability proportional to its number, by running sums."""
    # A product that was rounded up to the whole sum would be past the last column.
    chosen = np.minimum(rng.random(len(sums)) * sums[:, -1], np.nextafter(sums[:, -1], 0))
    return np.asarray((sums <= chosen[:, None]).sum(axis=1))


def zeros(*shape: int) -> Numbers:
    """Numbers that are all zero."""
    return Numbers(np.zeros(shape), np.full(shape, NOTHING, dtype=np.int32))


Says = Bool[np.ndarray, " state"] | Int64[np.ndarray, " state"]


class Automaton:
    """A complete deterministic automaton over numbered letters; a Moore machine where its states
    have outputs.
    """

    def __init__(
        self,
        table: Int64[np.ndarray, "state letter"],
        accepting: Bool[np.ndarray, " state"],
        start: int = 0,
        outputs: Int64[np.ndarray, " state"] | None = None,
    ) -> None:
        self.table = table
        self.accepting = accepting
        self.start = start
        self.says: Says = accepting if outputs is None else outputs
        """The output of each state; without outputs, whether it accepts."""
        self._reached = np.arange(len(table)) == start
        self._has: list[tuple[bool, bool]] = []
        """By length: whether any string is rejected, and whether any is accepted."""

    def walk(self, strings: TokenStrings) -> Iterator[Int64[np.ndarray, " string"]]:
        """The states of all strings before the first token and after each; at its end a string's
        state stays.
        """
        states = np.full(len(strings), self.start, dtype=np.int64)
        yield states
        # Columns are read one by one, each of them together in memory once they are rows.
        for letters in np.ascontiguousarray(strings.letters.T):
            # NO_LETTER reads the last column.
            states = self._steps[states, np.minimum(letters, self.table.shape[1])]
            yield states

    def states(self, strings: TokenStrings) -> Int64[np.ndarray, " string"]:
        """The state after each string."""
        (last,) = deque(self.walk(strings), maxlen=1)
        return last

    def path(self, letters: Sequence[int]) -> Int64[np.ndarray, " prefix"]:
        """The states after each prefix of one string, the empty one first."""
        states = [self.start]
        for letter in letters:
            states.append(int(self.table[states[-1], letter]))
        return np.array(states, dtype=np.int64)

    def sound_lengths(self, strings: TokenStrings) -> Lengths:
        """Tokens of each string's longest prefix with which an accepted string begins."""
        sound = np.zeros(len(strings), dtype=np.int64)
        for place, states in enumerate(self.walk(strings)):
            # No continuation mends a defect, so sound prefixes are the first ones, and counting
            # them is enough.
            sound += (strings.lengths >= place) & self.sound[states] & (place > 0)
        return sound

    @cached_property
    def sound(self) -> Bool[np.ndarray, " state"]:
        """The states from which an accepting one can be reached."""
        return np.asarray(distances_to(self.table, self.accepting) >= 0)

    def neighbors(self) -> Bool[np.ndarray, "before after"]:
        """Pairs of letters that are neighbors in some accepted string.

        The last row is the beginning of strings, the last column their end.
        """
        letters = self.table.shape[1]
        occur = np.zeros((letters + 1, letters + 1), dtype=bool)
        reached, before = np.arange(len(self.table)) == self.start, None
        # The table may have states that no string reaches: their letters are no neighbors.
        while before is None or (reached != before).any():
            before = reached.copy()
            reached[self.table[before]] = True
        after = [np.unique(self.table[reached, letter]) for letter in range(letters)]
        for letter, states in enumerate([*after, np.array([self.start])]):
            occur[letter, :letters] = self.sound[self.table[states]].any(axis=0)
            occur[letter, letters] = self.accepting[states].any()
        return occur

    @cached_property
    def _steps(self) -> Int64[np.ndarray, "state letter_or_end"]:
        if self.table.shape[1] >= NO_LETTER:
            raise ConfigError(f"expected fewer than {NO_LETTER} letters")
        # The last column, read after a string's end, leaves every state as it is.
        return np.column_stack([self.table, np.arange(len(self.table))])

    def has(self, length: int, positive: bool) -> bool:
        """True if any string of that length is accepted (positive), or rejected."""
        # Threads share an automaton: one length after another, each once.
        with _LOOKING:
            while len(self._has) <= length:
                accepted = self.accepting[self._reached]
                self._has.append((not accepted.all(), bool(accepted.any())))
                following = np.zeros(len(self.table), dtype=bool)
                following[self.table[self._reached]] = True
                self._reached = following
        return self._has[length][positive]

    def draw(self, rng: np.random.Generator, lengths: Lengths, positive: bool) -> Letters:
        """The letters of uniform strings of these lengths, all accepted or all rejected.

        Strings of each length must exist (`has`). `NO_LETTER` follows each string's end.

        Raises:
            ConfigError: there are too many states to count strings of that length.
        """
        longest = int(lengths.max(initial=0))
        ways = self._count_ways(positive, longest)
        letters = np.full((len(lengths), longest), NO_LETTER, dtype=np.uint8)
        # A stable order is the same on every machine, and so are the strings.
        order = np.argsort(-lengths, kind="stable")
        states = np.full(len(lengths), self.start, dtype=np.int64)
        # The longest begin first, so that all strings have as many tokens left.
        for remaining in range(longest - 1, -1, -1):
            active = order[: np.count_nonzero(lengths > remaining)]
            active_states = states[: len(active)]
            # A letter weighs as much as there are ways on from where it leads: so all strings are
            # alike likely.
            drawn = choose(rng, ways[remaining][self.table].running_sums()[active_states])
            letters[active, lengths[active] - remaining - 1] = drawn
            states[: len(active)] = self.table[active_states, drawn]
        return letters

    def _count_ways(self, positive: bool, length: int) -> Numbers:
        """Numbers of accepted (positive) or rejected strings that follow each state.

        By length, from 0 to at least this one, and by state.
        """
        key = (self, positive)
        first = (self.accepting == positive)[None].astype(float)
        before: Numbers = MEMORY.get(key) or Numbers.of_floats(first)
        known, states = before.mantissas.shape
        if length < known:
            return before
        # Twice as far as before, so that one length after another costs no more than the last.
        lengths = max(length + 1, min(2 * known, MAX_CELLS // states))
        if lengths * states > MAX_CELLS:
            raise ConfigError(
                f"strings of up to {length:,} tokens cannot be counted for an automaton of "
                f"{states:,} states; lower max_length or simplify the language"
            )
        ways = zeros(lengths, states)
        ways[:known] = before
        for row in range(known, lengths):
            following = ways[row - 1][self.table]
            # Strings of a letter more are those of all states that letters lead to, together.
            ways[row] = Numbers.of_floats(
                following.running_sums()[:, -1], following.exponents.max(axis=1)
            )
        MEMORY.keep(key, ways)
        return ways


State = TypeVar("State", bound=Hashable)


def explore(
    num_letters: int,
    start: State,
    step: Callable[[State, int], State],
    accepts: Callable[[State], bool],
) -> Automaton:
    """The automaton of all states that can be reached, the first of them the start.

    Raises:
        ConfigError: there are more than `MAX_STATES`.
    """
    numbers = {start: 0}
    states = [start]
    table = []
    # The list grows while it is walked: it is the queue, and its order numbers the states.
    for state in states:
        following = [step(state, letter) for letter in range(num_letters)]
        for reached in following:
            if reached not in numbers:
                numbers[reached] = len(states)
                states.append(reached)
        if len(states) > MAX_STATES:
            raise ConfigError(f"its automaton has more than {MAX_STATES:,} states")
        table.append([numbers[reached] for reached in following])
    return Automaton(np.array(table, dtype=np.int64), np.array([accepts(x) for x in states]))


def follow_silent(sets: Sequence[int], silent: Mapping[int, Collection[int]]) -> list[int]:
    """The sets of states that each state reaches without a letter, itself included.

    Args:
        sets: each state's bit as a whole number; 0 for states that are left out.
        silent: the states that each state leads to without a letter.
    """
    closed, order = list(sets), list(silent)
    changed = True
    while changed:
        changed = False
        # In alternating order a long chain takes few rounds, whichever way it is numbered.
        order.reverse()
        for state in order:
            reached = closed[state]
            for after in silent[state]:
                reached |= closed[after]
            changed |= reached != closed[state]
            closed[state] = reached
    return closed


def determinize(
    moves: Sequence[Mapping[int, int]],
    start: int,
    accepting: int,
    num_letters: int,
    steps: int,
) -> Automaton:
    """A complete automaton whose states are sets of others (Rabin & Scott 1959).

    Args:
        moves: the set that each letter leads to, by state. A set is a whole number, a bit for each
            state, and includes the states that its members reach without a letter.

    Raises:
        ConfigError: there are more, or it takes longer.
    """
    size = len(moves) // 8 + 1

    # The letters of one state follow each other.
    @lru_cache(maxsize=1)
    def row(state: int) -> list[int]:
        nonlocal steps
        # NumPy unpacks the bits of a set faster than a loop shifts them out.
        bits = np.frombuffer(state.to_bytes(size, "little"), dtype=np.uint8)
        row = [0] * num_letters
        for member in np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist():
            for letter, reached in moves[member].items():
                row[letter] |= reached
            # Work is counted and not timed: every machine refuses the same automata.
            steps -= 1 + len(moves[member])
        if steps < 0:
            raise ConfigError("its automaton is too large to be made deterministic")
        return row

    def step(state: int, letter: int) -> int:
        return row(state)[letter]

    return explore(num_letters, start, step, lambda state: bool(state & accepting))


def minimize(
    table: Int64[np.ndarray, "state letter"],
    accepting: Bool[np.ndarray, " state"],
    start: int = 0,
    outputs: Int64[np.ndarray, " state"] | None = None,
) -> Automaton:
    """The minimal automaton of the same language, or machine of the same outputs, its states
    numbered in breadth-first order from the start, 0.
    """
    classes = _equivalent(table, accepting if outputs is None else outputs)
    # Any state of a class represents it.
    _, members = np.unique(classes, return_index=True)
    following = classes[table[members]]
    numbers = {int(classes[start]): 0}
    states = list(numbers)
    for state in states:
        for reached in following[state].tolist():
            if reached not in numbers:
                numbers[reached] = len(numbers)
                states.append(reached)
    # Classes that are not reached keep 0, and no row of those that are leads to them.
    renumbered = np.zeros(len(members), dtype=np.int64)
    renumbered[states] = np.arange(len(states))
    representatives = members[states]
    says = None if outputs is None else outputs[representatives]
    return Automaton(renumbered[following[states]], accepting[representatives], outputs=says)


def _equivalent(
    table: Int64[np.ndarray, "state letter"], says: Says
) -> Int64[np.ndarray, " state"]:
    """The number of each state's class: states with the same outputs on all strings (Moore 1956).

    In every round a state's hash is computed from its own and those of the states that it leads
    to, starting from its distances to each output, which separate long chains. Equivalent states
    have equal hashes; chance collisions of others are checked for.
    """
    # The first column is the state itself; letters that do the same are looked at once.
    columns = np.column_stack([np.arange(len(table)), np.unique(table, axis=1)])
    far = np.column_stack([distances_to(columns, says == output) for output in np.unique(says)])
    rng = np.random.default_rng(0)
    while True:
        factors = rng.integers(2**63, size=columns.shape[1:], dtype=np.uint64)
        hashes = far.astype(np.uint64) @ rng.integers(2**63, size=far.shape[1], dtype=np.uint64)
        found, rounds = 0, 1
        # Until no class is split; states that differ never become equal again.
        while len(numbers := np.unique(hashes)) > found:
            found = len(numbers)
            for _ in range(rounds):
                hashes = _mix(hashes)[columns] @ factors
            # Hashes are compared after 1, 2, 4, ... rounds, as a long chain takes many.
            rounds *= 2
        classes = np.searchsorted(numbers, hashes)
        _, members, places = np.unique(classes, return_index=True, return_inverse=True)
        # Equal hashes of states that differ would merge them: each has to step as its class does.
        same = classes[columns] == classes[columns[members]][places]
        if same.all() and (says == says[members][places]).all():
            return np.asarray(classes)


def _mix(hashes: UInt64[np.ndarray, "*any"]) -> UInt64[np.ndarray, "*any"]:
    """Spread every bit over many others."""
    # The factor is 2**64 over the golden ratio, made odd, whose bits are well spread.
    hashes = (hashes ^ (hashes >> np.uint64(31))) * np.uint64(0x9E3779B97F4A7C15)
    return np.asarray(hashes ^ (hashes >> np.uint64(29)))


class RegularLanguage(Worded, BulkTask):
    """A language that its minimal automaton decides."""

    order_sensitive: ClassVar[bool] = True

    @property
    @abstractmethod
    def automaton(self) -> Automaton:
        """The minimal automaton, its letters those of `alphabet`."""

    def labels(self, strings: TokenStrings) -> Truths:
        return np.asarray(self.automaton.accepting[self.automaton.states(strings)])

    def has(self, length: int, positive: bool) -> bool:
        return self.automaton.has(length, positive)

    def draw_many(self, rng: np.random.Generator, lengths: Lengths, positive: bool) -> Letters:
        return self.automaton.draw(rng, lengths, positive)

    def features(self, strings: TokenStrings) -> Mapping[str, np.ndarray]:
        """The number of each token, and the length before the first defect."""
        return {**super().features(strings), DEFECT: self.automaton.sound_lengths(strings)}


def language_automaton(task: Task) -> Automaton | None:
    """The task's attribute `automaton`; None where it has none, or one of too many states."""
    try:
        automaton: Automaton | None = getattr(task, "automaton", None)
    except ConfigError:
        return None
    return automaton
