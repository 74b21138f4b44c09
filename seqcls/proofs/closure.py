"""Boxes that grow until letters lead from boxes into boxes, and the answer is right in each."""

import time
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from seqcls.cancellation import check
from seqcls.proofs.arithmetic import Forms
from seqcls.proofs.cells import Cells
from seqcls.proofs.regions import Regions, widths_of

DIGITS = 6
"""Decimals of a box's ends."""

ROWS_AT_ONCE = 2**22
"""Numbers in the generators of the forms that are carried at once."""

PADDING = 0.5
"""The share of what a region lacks that it is given besides, each time."""

MOST_ROUNDS = 60
"""Rounds of growth after which regions that still grow are given up."""


@dataclass(frozen=True, eq=False)
class Ended:
    """How growing ended."""

    closed: bool
    """Whether every letter leads into boxes, and the answer is right everywhere."""
    why: str
    growing: Int64[np.ndarray, " region"]
    """Regions that grew in the last rounds, or on which the answer is open; the worst first."""


@dataclass(eq=False)
class Growth:
    """Regions that grow by what letters make of them."""

    cells: Cells
    regions: Regions
    accepting: Bool[np.ndarray, " state"]
    asks_empty: bool
    """Whether the answer to the empty string, the first region's, must be right."""
    deadline: float
    """By the monotonic clock."""

    def grow(self) -> Ended:
        """Grows the regions until they are closed, or cannot be."""
        regions, none = self.regions, np.zeros(0, dtype=np.int64)
        changed = np.flatnonzero(regions.boxed & np.isfinite(regions.low[:, 0]))
        widths = self._widths()
        given_up = np.maximum(8 * np.nan_to_num(widths, posinf=0, neginf=0), 1.5)
        grown_last = none
        for number in range(MOST_ROUNDS):
            check()
            if time.monotonic() > self.deadline:
                return Ended(False, "the seconds are over", grown_last)
            wrong = self._open(changed)
            if len(wrong):
                return Ended(False, "the answer is open", wrong)
            low, high = regions.low.copy(), regions.high.copy()
            open_carried = self._carry(changed, low, high)
            if len(open_carried):
                return Ended(False, "the answer is open", open_carried)
            grown = (low < regions.low) | (high > regions.high)
            changed = np.flatnonzero(grown.any(axis=1))
            if not len(changed):
                return Ended(True, "", none)
            self._pad(changed, low, high, PADDING if number < 12 else 2 * PADDING)
            grown_last = changed
            widths = self._widths()
            beyond = np.flatnonzero((widths > given_up).any(axis=1) & regions.boxed)
            if len(beyond):
                return Ended(False, "they grow without end", beyond)
        return Ended(False, f"they still grow after {MOST_ROUNDS} rounds", grown_last)

    def _pad(self, changed: np.ndarray, low: np.ndarray, high: np.ndarray, padding: float) -> None:
        """Takes new boxes over, a little larger than they must be, so that growing ends."""
        regions = self.regions
        low, high, before = low[changed], high[changed], regions.low[changed]
        fresh = ~np.isfinite(before)
        before = np.where(fresh, low, before)
        after = np.where(fresh, high, regions.high[changed])
        least, most = low - padding * (before - low), high + padding * (high - after)
        regions.low[changed] = np.floor(least * 10**DIGITS) / 10**DIGITS
        regions.high[changed] = np.ceil(most * 10**DIGITS) / 10**DIGITS

    def _widths(self) -> np.ndarray:
        regions = self.regions
        return np.where(np.isfinite(regions.low), widths_of(regions.low, regions.high), 0)

    def _open(self, numbers: np.ndarray) -> np.ndarray:
        regions = self.regions
        forms = Forms.boxes(regions.low[numbers], regions.high[numbers])
        return np.asarray(numbers[~self._right(numbers, forms)])

    def _right(self, numbers: np.ndarray, forms: Forms) -> np.ndarray:
        """Whether the answer is right on all of each form."""
        least, most = self.cells.logits(forms)
        right = np.where(self.accepting[self.regions.state[numbers]], least > 0, most < 0)
        return right if self.asks_empty else right | (numbers == 0)

    def _carry(self, numbers: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Joins to boxes what letters make of some of them; carried regions on whose forms the
        answer is open.
        """
        regions, wrong = self.regions, list[np.ndarray]()
        boxes = Forms.boxes(regions.low[numbers], regions.high[numbers])
        pending = [(numbers, boxes)]
        while pending:
            at, forms = pending.pop()
            units = self.cells.units
            rows = max(ROWS_AT_ONCE // ((forms.generators.shape[1] + units) * units * 4), 1)
            for start in range(0, len(at), rows):
                part = slice(start, start + rows)
                for letter in range(regions.next.shape[1]):
                    after = self.cells.after_letter(forms.rows(part), letter)
                    to = regions.next[at[part], letter]
                    ends = after.ends
                    is_box = regions.boxed[to]
                    np.minimum.at(low, to[is_box], ends[0][is_box])
                    np.maximum.at(high, to[is_box], ends[1][is_box])
                    carried = np.flatnonzero(~is_box)
                    if len(carried):
                        further = after.rows(carried)
                        right = self._right(to[carried], further)
                        wrong.append(to[carried][~right])
                        pending.append((to[carried], further))
        return np.unique(np.concatenate(wrong)) if wrong else np.zeros(0, dtype=np.int64)
