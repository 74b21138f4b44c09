"""Regions of states: boxes for (state of the automaton, last letters), and where each letter leads.

One box for each state of the automaton is hopeless: its states fall into clusters that the last
letters separate. How many letters matter differs, so suffixes are leaves of a tree, of which only
those are split whose states are far apart. A leaf with its state knows the leaf after every letter:
where a suffix ending in a letter is split, what it ends in before that letter is split too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from seqcls.tasks.automaton import Automaton

BEGINNING = -1
"""The mark before a string's first letter."""

PATIENCE = 8
"""More letters of a suffix after which its states should have come nearer to each other."""

Suffix = tuple[int, ...]
"""Last letters, the last of all first; `BEGINNING` ends one that is the whole string."""


SATURATED = 9.0
"""The size of a cell beyond which its hyperbolic tangent is 1 in float32: growing changes no more
than how long it takes to come back.
"""


CELL_WEIGHT = 0.2
"""The weight of a cell's width, next to that of a state."""


def widths_of(low: np.ndarray, high: np.ndarray, cells: Bool[np.ndarray, " unit"]) -> np.ndarray:
    """The widths of boxes, unit by unit: as they are near 0, in proportion where cells are larger,
    and up to where these are saturated.
    """
    # arcsinh is the identity near 0 and a logarithm far from it.
    ends = (np.arcsinh(np.clip(x, -SATURATED, SATURATED)) for x in (high, low))
    return np.asarray((next(ends) - next(ends)) * np.where(cells, CELL_WEIGHT, 1))


@dataclass(frozen=True, eq=False)
class Refined:
    """An automaton whose states split those of another by what a model remembers besides."""

    automaton: Automaton
    states: Int64[np.ndarray, " state"]
    """The state of the other automaton that each state refines."""

    def mark(self, letters: np.ndarray | int, after: np.ndarray | int) -> Any:
        """Letters, each with the state after it, as one number: what went before may matter."""
        return letters + self.automaton.table.shape[1] * after

    def letters(self, suffix: Suffix) -> list[int]:
        """The letters of a suffix, in their order."""
        return [x % self.automaton.table.shape[1] for x in reversed(suffix) if x != BEGINNING]


class Samples(NamedTuple):
    """States that the model was seen in."""

    values: Float64[np.ndarray, "sample unit"]
    states: Int64[np.ndarray, " sample"]
    """The automaton's states."""
    last: Int64[np.ndarray, "sample back"]
    """The last letters as `Refined.mark` has them, the last of all first, then `BEGINNING`."""


class SuffixTree:
    """The suffixes that are split, of each state of an automaton."""

    def __init__(self, refined: Refined) -> None:
        self._refined = refined
        automaton = refined.automaton
        self._split: set[tuple[int, Suffix]] = set()
        states, letters = automaton.table.shape
        # From which states a letter leads to a state: their suffixes are one letter shorter.
        self._before: dict[tuple[int, int], list[int]] = {}
        for state in range(states):
            for letter in range(letters):
                after = int(automaton.table[state, letter])
                mark = int(refined.mark(letter, after))
                self._before.setdefault((after, mark), []).append(state)

    def split(self, state: int, suffix: Suffix) -> None:
        """Tells strings with that suffix apart by the letter before it, and what that needs."""
        if (state, suffix) in self._split:
            return
        if suffix:
            # Its parent is split, and the suffixes that lead to it are distinguished as far.
            self.split(state, suffix[:-1])
            for before in self._before.get((state, suffix[0]), ()):
                self.split(before, suffix[1:])
        self._split.add((state, suffix))

    def leaf(self, state: int, letters: Sequence[int]) -> Suffix:
        """The leaf of a string, by its last letters, the last of all first."""
        length = 0
        while (state, tuple(letters[:length])) in self._split:
            length += 1
        return tuple(letters[:length])

    def leaves(
        self, samples: Samples
    ) -> tuple[list[tuple[int, Suffix]], Int64[np.ndarray, " sample"]]:
        """The leaves of samples, and the number of each sample's."""
        table = self._refined.automaton.table
        keys: list[tuple[int, Suffix]] = [(state, ()) for state in range(len(table))]
        numbers, done = samples.states.copy(), np.zeros(len(samples.states), dtype=bool)
        for back in range(samples.last.shape[1]):
            splits = np.array([key in self._split for key in keys])
            rows = np.flatnonzero(~done & splits[numbers])
            if not len(rows):
                break
            # A leaf stays one; only samples of split suffixes go a letter further back.
            done[:] = True
            done[rows] = False
            # `BEGINNING` is -1, so one more number than there are marks has to fit.
            choices = int(samples.last.max()) + 2
            codes = numbers[rows] * choices + samples.last[rows, back] - BEGINNING
            distinct, inverse = np.unique(codes, return_inverse=True)
            numbers[rows] = len(keys) + inverse
            pairs = [divmod(code, choices) for code in distinct.tolist()]
            keys += [(keys[n][0], (*keys[n][1], rest + BEGINNING)) for n, rest in pairs]
        return keys, numbers

    def fit(
        self,
        samples: Samples,
        cells: Bool[np.ndarray, " unit"],
        widest: dict[tuple[int, Suffix], float],
        most: int,
    ) -> bool:
        """Splits leaves until the states of none are further apart than they may be.

        Args:
            cells: which numbers of a state are an LSTM's cells.
            widest: how far apart those of some suffixes, and of all that end in these, may be.

        Returns:
            Whether there are no more than `most` leaves; else it ended before.
        """
        seen: dict[tuple[int, Suffix], float] = {}
        for _ in range(samples.last.shape[1] - 1):
            keys, numbers = self.leaves(samples)
            low, high = hulls(samples.values, numbers, len(keys))
            widths = widths_of(low, high, cells).max(axis=1)
            wide = []
            for number in np.flatnonzero(widths > min(widest.values())).tolist():
                state, suffix = keys[number]
                # The longest suffix with a width of its own decides.
                ends = ((state, suffix[:length]) for length in range(len(suffix), -1, -1))
                if widths[number] <= next((widest[x] for x in ends if x in widest), np.inf):
                    continue
                seen[state, suffix] = width = float(widths[number])
                # More letters do not help where they have not helped for long.
                before = (
                    seen.get((state, suffix[:-PATIENCE]), np.inf) if suffix[PATIENCE:] else np.inf
                )
                if len(suffix) < samples.last.shape[1] - 1 and width < 0.9 * before:
                    wide.append(number)
            if not wide:
                return True
            # Suffixes that were split are counted too, so there are more keys than leaves.
            if len(keys) > 3 * most:
                return False
            for number in wide:
                self.split(*keys[number])
        return True


def hulls(
    values: Float64[np.ndarray, "sample unit"], numbers: Int64[np.ndarray, " sample"], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """The boxes around the values of each number; of a number without any (inf, -inf)."""
    low = np.full((count, values.shape[1]), np.inf)
    high = -low
    order = np.argsort(numbers, kind="stable")
    # `reduceat` works on runs of equal numbers, hence the sorting.
    present, starts = np.unique(numbers[order], return_index=True)
    low[present] = np.minimum.reduceat(values[order], starts, axis=0)
    high[present] = np.maximum.reduceat(values[order], starts, axis=0)
    return low, high


@dataclass(eq=False)
class Regions:
    """A refinement of an automaton, and a box of states for each of its states."""

    state: Int64[np.ndarray, " region"]
    """The automaton's states."""
    suffixes: list[Suffix]
    next: Int64[np.ndarray, "region letter"]
    low: Float64[np.ndarray, "region unit"]
    high: Float64[np.ndarray, "region unit"]
    boxed: np.ndarray
    """True for regions with a box; through the others forms are carried."""

    def __len__(self) -> int:
        return len(self.state)

    @classmethod
    def from_tree(
        cls, refined: Refined, tree: SuffixTree, samples: Samples, most: int
    ) -> "Regions | None":
        """The leaves that strings get to; None where there are more than `most`.

        The first is that of the empty string. Boxes are those around samples.
        """
        automaton = refined.automaton
        start = (automaton.start, tree.leaf(automaton.start, (BEGINNING,)))
        known = {start: 0}
        table: list[list[int]] = []
        order = [start]
        # The list grows on the way: a walk of the regions, the nearest to the start first.
        for state, suffix in order:
            row = []
            for letter in range(automaton.table.shape[1]):
                after = int(automaton.table[state, letter])
                key = (after, tree.leaf(after, (int(refined.mark(letter, after)), *suffix)))
                if key not in known:
                    if len(known) >= most:
                        return None
                    known[key] = len(order)
                    order.append(key)
                row.append(known[key])
            table.append(row)
        keys, numbers = tree.leaves(samples)
        # The last box is that of leaves in which no sample is.
        low, high = hulls(samples.values, numbers, len(keys) + 1)
        place = {key: number for number, key in enumerate(keys)}
        rows = np.array([place.get(key, -1) for key in order])
        return cls(
            np.array([state for state, _ in order]),
            [suffix for _, suffix in order],
            np.array(table),
            low[rows],
            high[rows],
            np.ones(len(order), dtype=bool),
        )
