"""Rules of growing sweeps: seeds are added until a share is known, or two shares differ."""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sweeps.results import OutcomeCounts

if TYPE_CHECKING:
    from sweeps.statistics.intervals import ConfidenceInterval, PairTable
    from sweeps.statistics.sequences import Floats

_RULE = re.compile(
    r"(?P<share>share|learned|generalizes)\s*"
    r"(?:(?:±|\+/?-)\s*(?P<within>\d{1,3}(?:\.\d{1,6})?)\s*%|(?P<apart>apart))"
)

EXPECTED = "'share ± 10 %', 'learned ± 10 %', 'generalizes ± 10 %' or one of these shares 'apart'"

HOPELESS = 30
"""Number of seeds without any that learned after which the share that generalizes is given up."""


@dataclass(frozen=True)
class Until:
    """A rule for when a sweep has enough seeds."""

    share: str
    """`learned`, of all seeds, or `generalizes`, of those that learned."""
    within: float | None
    """The maximum distance of the limits of each configuration's interval from its share; None
    where the shares of two must differ."""

    @classmethod
    def parse(cls, text: str) -> "Until":
        """Reads a rule.

        Raises:
            ValueError: it is none; the message has the expected form.
        """
        if not (match := _RULE.fullmatch(text.strip())):
            raise ValueError(f"expected {EXPECTED}")
        share = "learned" if match["share"] == "learned" else "generalizes"
        if match["apart"]:
            return cls(share, None)
        within = float(match["within"])
        if not 0 < within < 50:
            raise ValueError("expected more than ± 0 % and less than ± 50 %, such as ± 10 %")
        return cls(share, within / 100)

    def fraction(self, counts: OutcomeCounts) -> tuple[int, int]:
        """Returns the numerator and the denominator of the share, in seeds."""
        if self.share == "learned":
            return counts.learned, counts.judged
        return counts.generalize, counts.judged_beyond

    def intervals(
        self, counts: Sequence[OutcomeCounts], pairs: "PairTable | None" = None
    ) -> "list[ConfidenceInterval]":
        """Returns the confidence sequence of each configuration's share; where two must differ,
        that of their difference.

        Args:
            pairs: where two must differ, the outcomes of their pairs of seeds; None where the same
                seed makes no pair.
        """
        # Imported where they are used: reading a specification needs no statistics.
        from sweeps.statistics import sequences

        shares = [self.fraction(seed_counts) for seed_counts in counts]
        if self.within is not None:
            return [sequences.share_sequence(*share) for share in shares]
        if pairs is not None:
            return [sequences.paired_difference_sequence(pairs)]
        return [sequences.difference_sequence(shares[0], shares[1])]

    def seeds_needed(
        self, counts: Sequence[OutcomeCounts], most: int, pairs: "PairTable | None" = None
    ) -> list[int]:
        """Returns the next number of seeds of each configuration; the present one if it suffices.

        Args:
            most: maximum number of seeds.
            pairs: as in `intervals`.
        """
        if self.within is None:
            apart = self.intervals(counts, pairs)[0]
            enough = apart.low > 0 or apart.high < 0
            return [x.models if enough else _next(x, 0, most) for x in counts]
        return [self._estimate_seeds(seed_counts, self.within, most) for seed_counts in counts]

    def _estimate_seeds(self, counts: OutcomeCounts, within: float, most: int) -> int:
        count, n = self.fraction(counts)
        is_known = bool(n) and float(_reach(count / n, np.asarray(float(n)))) <= within
        if is_known or (not n and counts.judged >= HOPELESS):
            return counts.models
        # The present share is extrapolated.
        further = np.arange(n + 1, most + 1, dtype=np.float64)
        # Without any observation a share of 1 is assumed, whose interval is the narrowest.
        narrow = np.flatnonzero(_reach(count / n if n else 1.0, further) <= within)
        needed = int(further[narrow[0]]) if len(narrow) else most
        # Scaled up, since only some of a configuration's seeds count for the share.
        return _next(counts, math.ceil(needed * counts.models / max(n, 1)), most)


def _reach(share: float, n: "Floats") -> "Floats":
    """Returns the greater distance of a limit of a share's confidence sequence from the share."""
    from sweeps.statistics.sequences import share_limits

    low, high = share_limits(n * share, n)
    return np.maximum(share - low, high - share)


def _next(counts: OutcomeCounts, needed: int, most: int) -> int:
    """Returns a number of seeds larger by half to twice: estimates from few seeds are rough."""
    if counts.judged * 2 < counts.models:
        # Where most fail in training, or are not judged, more seeds would not help.
        return counts.models
    seeds = counts.models
    proposed = min(max(needed, seeds + math.ceil(seeds / 2)), 2 * seeds + 2)
    return max(seeds, min(proposed, most))
