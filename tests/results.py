"""Results that no model gave, and sweeps that have them: what tests of the store record."""

from collections.abc import Callable
from typing import Any

import numpy as np

from seqcls.config import RunConfig
from seqcls.evaluation import drawn_test_set
from seqcls.problem import resolve
from seqcls.results import Evaluation, StringErrors
from sweeps.grid.grouping import PlannedRun, RunGroup, make_groups
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.reads import workers
from tests.databases import spec


def outcome(number: int, run: PlannedRun | None = None) -> RunResult:
    """Results that only a test could get, different for every number; of a run where one is named.

    An odd number's misclassifies a string that a default configuration is tested on.
    """
    test_set = drawn_test_set(resolve(run.config if run else RunConfig()))
    wrong = np.flatnonzero((test_set.lengths == 10) & test_set.labels)[: number % 2]
    made = RunResult(
        train_losses=[3.0, 2.0 + number],
        validation_losses=[2.0, 1.0 + number],
        train_seconds=0.25,
        engine="torch",
        engine_reason="asked for",
        best_epoch=2,
        evaluation=Evaluation(
            lengths=np.array([1, 10]),
            tested_by_length=np.array([5, number % 2 + 4]),
            wrong_by_length=np.array([0, number % 2]),
            cells=np.array([[5, 0, 0, 0], [0, 0, number % 2, 4]]),
            errors=StringErrors(wrong, np.full(len(wrong), -0.5 - number)),
            solved_length=9 if len(wrong) else 200,
            test_set=test_set.digest,
        ),
        checkpoints={2: b"weights"},
    )
    return made.seal(run.config.key, run.model_seed) if run else made


def outcomes(claim: writer.Claim, first: int = 0) -> list[RunResult]:
    """One for each run of a claim, numbered on from the first."""
    return [outcome(first + n, run) for n, run in enumerate(claim.runs)]


def groups(store: Store, *sweep_ids: int) -> list[RunGroup]:
    """The queued groups of some sweeps or of all."""
    return make_groups(workers.queued_runs(store, sweep_ids or None))


def claimed(store: Store, sweep_id: int) -> tuple[int, writer.Claim]:
    """A new worker, and its claim of a sweep's only group."""
    worker_id = writer.register_worker(store)
    (group,) = groups(store, sweep_id)
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    return worker_id, claim


def record_all(
    store: Store, sweep_id: int, results_of: Callable[[writer.Claim], list[RunResult]]
) -> None:
    """Records results of all runs of a sweep, as a worker does."""
    worker_id = writer.register_worker(store)
    for group in groups(store, sweep_id):
        claim = writer.claim(store, worker_id, group)
        assert claim is not None
        writer.record(store, claim, results_of(claim))


def filled(store: Store, first: int = 0, **changes: Any) -> Store:
    """A sweep of three seeds whose runs are finished, with results that depend on `first`."""
    record_all(store, writer.submit(store, spec(**changes)), lambda x: outcomes(x, first))
    return store
