"""Time to draw near negatives, beside edited ones.

python -m benchmarks.negatives
"""

import statistics
import time

import numpy as np

from benchmarks.shortcuts import LANGUAGES, LONGEST_TRAINED, problem_of
from seqcls.results import DRAWN
from seqcls.sampling.balanced import BalancedStrings

STRINGS = 10_000
REPEATS = 3


def main() -> None:
    """Prints milliseconds for 10,000 negatives of each language with near ones, and the ratio."""
    print(f"{STRINGS:,} negatives of 1 to {LONGEST_TRAINED} tokens: milliseconds edited, near (x)")
    for name, fields in LANGUAGES.items():
        drawn = problem_of(fields, "near").train
        if not isinstance(drawn, BalancedStrings) or drawn.near_obstacle is not None:
            continue
        edited, near = (_milliseconds(drawn, DRAWN.index(way)) for way in ("edited", "near"))
        print(f"  {name:<20} {edited:>7.0f} {near:>7.0f} {near / edited:>6.1f}x", flush=True)


def _milliseconds(drawn: BalancedStrings, way: int) -> float:
    """Median milliseconds of a few draws, after one that fills the caches."""
    seconds = []
    for repeat in range(REPEATS + 1):
        rng = np.random.default_rng(repeat)
        started = time.perf_counter()
        # Strings are drawn and checked, and put nowhere.
        drawn._put_negative(rng, lambda *_: None, np.arange(STRINGS), way)
        seconds.append(time.perf_counter() - started)
    return statistics.median(seconds[1:]) * 1e3


if __name__ == "__main__":
    main()
