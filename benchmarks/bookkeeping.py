"""The cost of a run without its training: submitting, claiming, storing; and its growth."""

import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from seqcls.config import RunConfig
from sweeps.grid.grouping import make_groups
from sweeps.grid.spec import parse_spec
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads.workers import queued_runs
from sweeps.work.jobs import make_job, run_job
from sweeps.work.progress import progress

Result = TypeVar("Result")

RUNS = (100, 1_000, 10_000)


@dataclass(frozen=True)
class Cost:
    """Seconds of a sweep's book-keeping."""

    submit: float
    plan: float
    claim: float
    record: float
    progress: float


def main() -> None:
    """Prints the cost of a run's book-keeping in sweeps of different sizes."""
    outcome = _outcome()
    print("book-keeping, with the results of one trained model stored for every run (SQLite)")
    print("    runs   submit s   plan s   claim ms/run   store ms/run   status ms   in all x")
    first = None
    for runs in RUNS:
        with tempfile.TemporaryDirectory() as folder:
            cost = _cost(open_writer(str(Path(folder) / "bench.db")), runs, outcome)
        per_run = (cost.submit + cost.plan + cost.claim + cost.record) / runs
        # Ratios are to the smallest sweep: book-keeping should not grow with the number of runs.
        first = first or per_run
        print(
            f"  {runs:>6,} {cost.submit:>10.2f} {cost.plan:>8.2f} {cost.claim / runs * 1e3:>14.3f} "
            f"{cost.record / runs * 1e3:>14.2f} {cost.progress * 1e3:>11.1f} "
            f"{per_run / first:>10.2f}",
            flush=True,
        )


def _cost(store: Store, runs: int, outcome: RunResult) -> Cost:
    spec = parse_spec({"name": "bench", "model_seeds": f"0..{runs - 1}"})
    submit, sweep_id = _timed(partial(writer.submit, store, spec))
    plan, queued = _timed(partial(queued_runs, store, [sweep_id]))
    worker_id = writer.register_worker(store)
    claim = record = 0.0
    for group in make_groups(queued):
        seconds, claimed = _timed(partial(writer.claim, store, worker_id, group))
        claim += seconds
        assert claimed is not None
        sealed = [outcome.seal(run.config.key, run.model_seed) for run in group]
        seconds, _ = _timed(partial(writer.record, store, claimed, sealed))
        record += seconds
    status, _ = _timed(partial(progress, store))
    return Cost(submit, plan, claim, record, status)


def _timed(call: "partial[Result]") -> tuple[float, Result]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def _outcome() -> RunResult:
    """The results of the default configuration with seed 0: 30 epochs, 200 lengths, its errors."""
    with tempfile.TemporaryDirectory() as folder:
        store = open_writer(str(Path(folder) / "one.db"))
        writer.submit(store, parse_spec({"name": "one", "model_seeds": [0]}))
        (group,) = make_groups(queued_runs(store))
    assert group[0].config == RunConfig()
    (outcome,) = run_job(make_job(group, "auto", "cpu"), lambda *_: None)
    return outcome


if __name__ == "__main__":
    main()
