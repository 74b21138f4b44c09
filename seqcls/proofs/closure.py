"""Boxes that grow until letters lead from boxes into boxes, and the answer is right in each.

From a box affine forms follow every letter, as far as it takes until they lie in the box of the
region where they are: one letter where states come together, dozens where they spread before. A
form that lies in no box after the most letters is joined to that of the region where it ends.
"""

import time
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.cancellation import check
from seqcls.proofs.cells import Cells, boxes, rows_of
from seqcls.proofs.checker import Forms, RejectedError
from seqcls.proofs.regions import BEGINNING, SATURATED, Regions, widths_of

DIGITS = 6
"""Decimals of a box's ends."""

NUMBERS_AT_ONCE = 2**22
"""Numbers in the generators of the forms that are carried at once."""

MARGIN, LEAST_MARGIN = 0.2, 0.02
"""The margin of a box around the states that were seen: shares of each unit's width, and of the
width that boxes may have at first.
"""

STEPS = 10.0 ** np.arange(1, 8)
"""Ends of a box for cells that still grow: in the end what is forgotten of a cell at each letter is
as much as what is added.
"""

PADDING = 0.5
"""The share of what a region lacks that it is given besides, each time."""

MAX_CARRIED = 24
"""Forms that are carried further, of each region on average, at most."""

MOST_ROUNDS = 60
"""Rounds of growth after which regions that still grow are given up."""


@dataclass(frozen=True, eq=False)
class Ended:
    """The result of growing."""

    why: str
    """Empty where every letter leads into boxes, and the answer is right everywhere."""
    growing: Int64[np.ndarray, " region"]
    """Regions from which the answer is open, or that grew in the last round."""
    overflows: bool = False
    """True if it ended since numbers may overflow."""


@dataclass(eq=False)
class Growth:
    """Regions that grow by what letters make of them."""

    cells: Cells
    regions: Regions
    """Each with the box of what was seen."""
    accepting: Bool[np.ndarray, " state"]
    asks_empty: bool
    """True if the answer to the empty string must be right; no other leads to the first region."""
    width: float
    """The greatest width of boxes at first."""
    most_letters: int
    """Letters that a form is carried over at most."""
    deadline: float
    """The time that this thread may have computed by then, in seconds."""

    def __post_init__(self) -> None:
        # Whoever grows the same regions otherwise finds them as they were.
        self.regions = regions = replace(
            self.regions, low=self.regions.low.copy(), high=self.regions.high.copy()
        )
        low, high = (np.clip(x, -SATURATED, SATURATED) for x in (regions.low, regions.high))
        width = np.maximum(high - low, 0)
        margin = MARGIN * width + LEAST_MARGIN * self.width
        # One string has one state, and where it leads is followed as it is.
        margin[[BEGINNING in suffix for suffix in regions.suffixes]] = 0
        self._set(np.arange(len(regions)), regions.low - margin, regions.high + margin)
        # What is carried, after the regions: where it is, and where letters lead from each.
        self._at = list(range(len(regions)))
        self._next = [[0] * regions.next.shape[1] for _ in self._at]
        self._carried = np.zeros(len(regions), dtype=np.int64)

    def grow(self) -> Ended:
        """Grows the regions until they are closed, or cannot be."""
        try:
            self.cells.network.bound_tokens()
            return self._grow()
        except RejectedError as error:
            return Ended(str(error), np.zeros(0, dtype=np.int64), overflows=True)

    def _grow(self) -> Ended:
        regions, pending = self.regions, np.zeros(1, dtype=np.int64)
        done = np.zeros(len(regions), dtype=bool)
        given_up = np.maximum(8 * self._widths(), 1.5)
        for _ in range(MOST_ROUNDS):
            low, high = regions.low.copy(), regions.high.copy()
            reached, wrong, joined = self._carry(pending, low, high)
            if len(wrong):
                return Ended("the answer is open", wrong)
            if self._too_many:
                often = np.flatnonzero(self._carried > MAX_CARRIED)
                return Ended("too many forms are carried", often)
            if time.thread_time() > self.deadline:
                return Ended("the seconds are over", pending)
            done[pending] = True
            # A box that grew has to be followed again, from all of its states.
            grown = np.flatnonzero(((low < regions.low) | (high > regions.high)).any(axis=1))
            done[grown] = False
            self._pad(grown, low[grown], high[grown])
            endless = np.isinf(regions.low) | np.isinf(regions.high)
            beyond = grown[((self._widths() > given_up) | endless)[grown].any(axis=1)]
            # Boxes from which forms were joined to these are named too, and so split as well.
            if len(beyond):
                leads = joined[np.isin(joined[:, 1], beyond), 0]
                return Ended("they grow without end", np.union1d(beyond, leads))
            # What was reached before and has not grown since is done.
            again = np.zeros(len(regions), dtype=bool)
            again[grown] = again[reached] = True
            pending = np.flatnonzero(again & ~done)
            if not len(pending):
                return Ended("", pending)
        return Ended(f"they still grow after {MOST_ROUNDS} rounds", pending)

    def closed_regions(self) -> Regions:
        """The regions that letters lead to, with those between them that have no box."""
        # Numbered as they are met from the empty string; what nothing leads to is left out.
        numbers, order = {0: 0}, [0]
        for node in order:
            for after in self._next[node]:
                if after not in numbers:
                    numbers[after] = len(order)
                    order.append(after)
        regions, at = self.regions, np.array(self._at)[order]
        return Regions(
            regions.state[at],
            [regions.suffixes[x] for x in at],
            np.array([[numbers[x] for x in self._next[node]] for node in order]),
            regions.low[at],
            regions.high[at],
            np.array(order) < len(regions),
        )

    def _set(self, numbers: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        # Outward, as rounding must never cut off a part of a box.
        self.regions.low[numbers] = np.floor(low * 10**DIGITS) / 10**DIGITS
        self.regions.high[numbers] = np.ceil(high * 10**DIGITS) / 10**DIGITS

    def _pad(self, grown: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
        """Takes new boxes over, a little larger than they must be, so that growing ends."""
        before, after = self.regions.low[grown], self.regions.high[grown]
        fresh = ~np.isfinite(before)
        before, after = np.where(fresh, low, before), np.where(fresh, high, after)
        least, most = low - PADDING * (before - low), high + PADDING * (high - after)
        cells = self.cells.cells
        for ends, new, old, sign in ((least, low, before, -1), (most, high, after, 1)):
            # A saturated cell that still grows would take many rounds, so its end jumps ahead.
            far = cells & (sign * new > SATURATED) & (sign * (new - old) > 0)
            steps = np.append(STEPS, np.inf)[np.searchsorted(STEPS, sign * new)]
            ends[far] = sign * steps[far]
        self._set(grown, least, most)

    def _inside(
        self, to: np.ndarray, least: np.ndarray, most: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The forms that lie in a region's box, and those that would if cells had no more than
        saturated values.
        """
        low, high = self.regions.low[to], self.regions.high[to]
        inside = ((least >= low) & (most <= high)).all(axis=1)
        cells = self.cells.cells
        enough = (least >= low) | cells & (least > SATURATED) | cells & (low <= -SATURATED)
        enough &= (most <= high) | cells & (most < -SATURATED) | cells & (high >= SATURATED)
        return inside, enough.all(axis=1) & ~inside

    @property
    def _too_many(self) -> bool:
        return int(self._carried.sum()) > MAX_CARRIED * len(self.regions)

    def _widths(self) -> np.ndarray:
        regions = self.regions
        width = widths_of(regions.low, regions.high, self.cells.cells)
        return np.where(np.isfinite(regions.low), width, 0)

    def _right(self, numbers: np.ndarray, forms: Forms) -> np.ndarray:
        """True where the answer is right on all of a form."""
        least, most = self.cells.logits(forms)
        right = np.where(self.accepting[self.regions.state[numbers]], least > 0, most < 0)
        return right if self.asks_empty else right | (numbers == 0)

    def _carry(
        self, numbers: np.ndarray, low: np.ndarray, high: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Follows letters from some boxes into boxes, and joins what lies in none in the end.

        Returns:
            The regions that were reached, boxes from which the answer is open, and pairs of a box
            and a region to which was joined what followed from it.
        """
        regions, units = self.regions, self.cells.network.units
        forms = boxes(regions.low[numbers], regions.high[numbers])
        reached, joined = [numbers[:0]], [np.zeros((0, 2), dtype=np.int64)]
        right = self._right(numbers, forms)
        wrong = [numbers[~right]]
        # Where letters lead from, the region there, the box where it began, and over how many.
        some = numbers[right]
        self._carried[some] = 0
        pending = [(some, some, some, 0, rows_of(forms, right))]
        while pending:
            check()
            nodes, at, begun, letters, forms = pending.pop()
            # Four, as an LSTM computes four gates of each form.
            rows = max(NUMBERS_AT_ONCE // ((forms.generators.shape[1] + units) * units * 4), 1)
            if len(at) > rows:
                halves = slice(rows), slice(rows, None)
                # The stack gives the last one first, hence the reverse order.
                pending += [
                    (nodes[x], at[x], begun[x], letters, rows_of(forms, x))
                    for x in reversed(halves)
                ]
                continue
            if self._too_many or time.thread_time() > self.deadline:
                break
            for letter in range(regions.next.shape[1]):
                after = self.cells.after_letter(forms, letter)
                to, (least, most) = regions.next[at, letter], after.ends
                inside, saturated = self._inside(to, least, most)
                # Another cell of the same sign, however large, is joined at once.
                np.minimum.at(low, to[saturated], least[saturated])
                np.maximum.at(high, to[saturated], most[saturated])
                inside |= saturated
                out = np.flatnonzero(~inside)
                target = to.copy()
                if letters + 1 < self.most_letters and len(out):
                    target[out] = len(self._at) + np.arange(len(out))
                    self._at += to[out].tolist()
                    self._next += [[0] * regions.next.shape[1] for _ in out]
                    further = rows_of(after, out)
                    right = self._right(to[out], further)
                    wrong.append(begun[out[~right]])
                    out = out[right]
                    np.add.at(self._carried, begun[out], 1)
                    # Where answers are open already, what is at hand is looked at and no more.
                    if not any(map(len, wrong)):
                        pending.append(
                            (target[out], to[out], begun[out], letters + 1, rows_of(further, right))
                        )
                    reached.append(to[inside])
                else:
                    np.minimum.at(low, to[out], least[out])
                    np.maximum.at(high, to[out], most[out])
                    reached.append(to)
                    joined.append(np.stack([begun[out], to[out]], axis=1))
                # Kept for the certificate, which names where each letter leads.
                for node, goal in zip(nodes.tolist(), target.tolist(), strict=True):
                    self._next[node][letter] = goal
        return (
            np.unique(np.concatenate(reached)),
            np.unique(np.concatenate(wrong)),
            np.concatenate(joined),
        )
