"""Many seeds of the default configuration, trained, tested and stored, as a user runs it.

python -m benchmarks.seeds [SEEDS ...]

For comparison, the same processes train and test the same seeds and store nothing: the ratio is the
cost of storing. The ratio of processor times holds on a busy machine too.
"""

import os
import resource
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from seqcls.config import RunConfig
from sweeps.grid.grouping import PlannedRun, make_groups
from sweeps.work import executors
from sweeps.work.jobs import make_job

SPEC = 'name = "seeds"\nmodel_seeds = "0..{last}"\n'
SEEDS = 1000


@dataclass(frozen=True)
class Cost:
    """The time of a command with all its processes: seconds, and processor seconds."""

    wall: float
    processor: float

    def __str__(self) -> str:
        return f"{self.wall:.1f} s, {self.processor:.1f} s of processors"


def main(seeds: Sequence[int] = (SEEDS,)) -> None:
    """Prints what each number of seeds costs, in seconds, as ratios and in bytes."""
    for number in seeds:
        stored(number)


def stored(seeds: int) -> None:
    """Prints what so many seeds cost, stored and not stored."""
    alone = _run([sys.executable, "-m", "benchmarks.seeds", "--alone", str(seeds)])
    with tempfile.TemporaryDirectory() as folder:
        spec, db = Path(folder) / "seeds.toml", Path(folder) / "seeds.db"
        spec.write_text(SPEC.format(last=seeds - 1))
        both = _run([sys.executable, "-m", "sweeps", "sweep", str(spec), "--db", str(db)])
        with closing(sqlite3.connect(db)) as connection:
            (done,) = connection.execute("SELECT count(*) FROM run WHERE state='done'").fetchone()
            (errors,) = connection.execute("SELECT count(*) FROM string_error").fetchone()
        megabytes = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        print(f"{done:,} seeds of the default configuration, tested on 9,984 strings each")
        print(f"  trained and tested          {alone}")
        print(f"  trained, tested and stored  {both}")
        print(
            f"  ratio {both.wall / alone.wall:.2f}, of processors "
            f"{both.processor / alone.processor:.2f}; {both.wall / seeds * 1e3:.1f} ms a seed"
        )
        print(f"  {errors:,} misclassified strings; {db.stat().st_size / 1e6:.1f} MB")
        print(f"  the largest process took {megabytes:.0f} MB")


def alone(seeds: int) -> None:
    """Trains and tests so many seeds on all cores, and stores nothing."""
    runs = [PlannedRun(seed, RunConfig(), seed, False, False) for seed in range(seeds)]
    waiting = [make_job(group, "auto", "auto") for group in make_groups(runs)]
    training = set[executors.Results]()
    with closing(executors.start(os.cpu_count() or 1, None, lambda *_: None)) as executor:
        while waiting or training:
            while waiting and len(training) < executor.slots:
                training.add(executor.begin(waiting.pop(0)))
            training = wait(training, return_when=FIRST_COMPLETED).not_done


def _run(command: list[str]) -> Cost:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(wall, processor)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--alone"]:
        alone(int(sys.argv[2]))
    else:
        main([int(x) for x in sys.argv[1:]] or (SEEDS,))
