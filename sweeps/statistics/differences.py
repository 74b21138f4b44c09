"""How two groups of configurations differ over their seeds, and how sure that is.

A configuration weighs the same however many seeds it has. Of one configuration on either side this
is what `seqcls compare` prints.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property, lru_cache

import numpy as np
import numpy.typing as npt
import pandas as pd

from sweeps.statistics.intervals import CONFIDENCE, Interval, Table, newcombe, paired_newcombe
from sweeps.statistics.median_intervals import FEWEST, RESAMPLES

MOST_KEPT = 100
"""Seeds whose draws are kept for other configurations of the same: 400 kB, of 64 such sets."""

MOST_AT_ONCE = 500_000
"""Numbers of draws in memory at a time: those of 20,000 seeds would take 320 MB."""


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The outcome of each seed of a configuration."""

    seeds: tuple[int, ...]
    values: npt.NDArray[np.float64]

    @classmethod
    def of(cls, runs: pd.DataFrame, column: str) -> "Outcomes":
        """A column of a configuration's runs, by model_seed."""
        by_seed = runs.sort_values("model_seed")
        return cls(
            tuple(by_seed["model_seed"].astype(int)), by_seed[column].to_numpy(dtype=np.float64)
        )

    @property
    def share(self) -> float:
        return float(self.values.mean())

    @property
    def median(self) -> float:
        return float(np.median(self.values))

    @cached_property
    def medians(self) -> npt.NDArray[np.float64]:
        """The medians of bootstrap resamples: the same seeds are drawn wherever there are such."""
        order = np.argsort(self.values, kind="stable")
        last = len(order) - 1
        ranked = self.values[order]
        medians = []
        for drawn in _times_drawn(self.seeds):
            up_to = np.cumsum(drawn[:, order], axis=1, dtype=np.int32)
            middle = [(up_to <= rank).sum(axis=1) for rank in (last // 2, (last + 1) // 2)]
            medians.append((ranked[middle[0]] + ranked[middle[1]]) / 2)
        return np.concatenate(medians)


def failing_difference(a: Sequence[Outcomes], b: Sequence[Outcomes], *, paired: bool) -> Interval:
    """The mean failing share of the first configurations less that of the second, by Newcombe.

    Args:
        a: whether each seed fails (0 or 1).
        b: likewise.
        paired: whether each configuration has the same seeds as the one at its place in the other.
    """
    if paired:
        pairs = [table_of(*pair) for pair in zip(a, b, strict=True)]
        return paired_newcombe(_together(pairs))
    return newcombe(_counted(a), _counted(b))


def median_difference(a: Sequence[Outcomes], b: Sequence[Outcomes]) -> Interval:
    """The mean median of the first configurations less that of the second, by bootstrap.

    Seeds are drawn, the same in configurations that have the same, so that those are compared seed
    by seed. The same values give the same interval (percentiles); a configuration of fewer than
    `FEWEST` seeds gives none.
    """
    value = float(np.mean([x.median for x in a]) - np.mean([x.median for x in b]))
    if min(len(x.seeds) for x in (*a, *b)) < FEWEST:
        return Interval(value, np.nan, np.nan)
    first, second = (np.mean([x.medians for x in side], axis=0) for side in (a, b))
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(first - second, [outside, 1 - outside])
    return Interval(value, float(low), float(high))


def table_of(a: Outcomes, b: Outcomes) -> Table:
    """In how many seeds both fail, only the first, only the second, and none."""
    first, second = a.values > 0, b.values > 0
    return Table(
        both=int((first & second).sum()),
        only_first=int((first & ~second).sum()),
        only_second=int((~first & second).sum()),
        none=int((~first & ~second).sum()),
    )


def _together(tables: Sequence[Table]) -> Table:
    n = _seeds_worth([x.pairs for x in tables])
    return Table(
        *(
            n * float(np.mean([getattr(x, cell.name) / x.pairs for x in tables]))
            for cell in fields(Table)
        )
    )


def _counted(outcomes: Sequence[Outcomes]) -> tuple[float, float]:
    n = _seeds_worth([len(x.seeds) for x in outcomes])
    return n * float(np.mean([x.share for x in outcomes])), n


def _seeds_worth(counts: Sequence[float]) -> float:
    """How many seeds tell as much as a mean over configurations; of equal numbers, their sum."""
    return len(counts) ** 2 / sum(1 / n for n in counts)


def _times_drawn(seeds: tuple[int, ...]) -> Iterable[npt.NDArray[np.integer]]:
    """How often each seed is in each resample, some resamples at a time: (resample, seed)."""
    return _kept_draws(seeds) if len(seeds) <= MOST_KEPT else _draws(seeds)


@lru_cache(maxsize=64)
def _kept_draws(seeds: tuple[int, ...]) -> tuple[npt.NDArray[np.integer], ...]:
    # Of so few seeds none is drawn more often than two bytes can say.
    return tuple(drawn.astype(np.uint16) for drawn in _draws(seeds))


def _draws(seeds: tuple[int, ...]) -> Iterator[npt.NDArray[np.integer]]:
    n = len(seeds)
    generator = np.random.default_rng(seeds)
    at_once = max(1, MOST_AT_ONCE // n)
    for start in range(0, RESAMPLES, at_once):
        # However they are divided, the same are drawn.
        size = min(at_once, RESAMPLES - start)
        yield generator.multinomial(n, np.full(n, 1 / n), size=size)
