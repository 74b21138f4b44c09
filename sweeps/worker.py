"""Claim, train, evaluate, commit, until nothing is queued; and what happens when it is stopped."""

from collections.abc import Callable, Sequence
from functools import partial

from sweeps.executors import Executor, local_executor
from sweeps.grouping import RunGroup, make_groups
from sweeps.jobs import Job, make_job
from sweeps.store import queries, writer
from sweeps.store.engine import Store

OnProgress = Callable[[float, int], None]
"""Told how many runs' worth of training is done, parts included, and of how many."""


def work(
    store: Store,
    sweep_ids: Sequence[int],
    *,
    workers: int,
    engine: str = "auto",
    device: str = "auto",
    on_progress: OnProgress | None = None,
) -> None:
    """Trains every queued run of these sweeps and stores each group's results as it ends.

    However it ends, what is committed stays, and what it had claimed beyond that is queued again:
    at once where this process can still do it, else by the next worker on this machine.

    Args:
        store: the database, open for writing.
        sweep_ids: the sweeps whose runs are meant.
        workers: processes to train in; 1 trains in this one.
        engine: `auto`, `fused` or `torch`.
        device: `auto`, `cpu` or `cuda`.
        on_progress: called as training goes on.
    """
    writer.release_dead(store)
    worker_id = writer.register_worker(store)
    progress = _Progress(on_progress)
    try:
        with local_executor(workers, progress.group_went_on) as executor:
            make = partial(make_job, engine=engine, device=device)
            _Work(store, sweep_ids, worker_id, executor, make, progress).run()
    finally:
        writer.release(store, worker_id)


class _Progress:
    """Adds up what is done of every group."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self._on_progress = on_progress
        self._total = 0
        self._done: dict[int, float] = {}

    def expect(self, runs: int) -> None:
        self._total = runs
        self._tell()

    def group_went_on(self, group: RunGroup, done: float) -> None:
        self._done[group[0].id] = done
        self._tell()

    def group_ended(self, group: RunGroup) -> None:
        self._done[group[0].id] = len(group)
        self._tell()

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(sum(self._done.values()), self._total)


class _Work:
    """One worker's loop."""

    def __init__(
        self,
        store: Store,
        sweep_ids: Sequence[int],
        worker_id: int,
        executor: Executor,
        make_job: Callable[[RunGroup], Job],
        progress: _Progress,
    ) -> None:
        self._store = store
        self._sweep_ids = sweep_ids
        self._worker_id = worker_id
        self._executor = executor
        self._make_job = make_job
        self._progress = progress
        self._claims: dict[int, writer.Claim] = {}

    def run(self) -> None:
        waiting = self._plan()
        self._progress.expect(sum(map(len, waiting)))
        while waiting or self._claims:
            while waiting and self._executor.free > 0:
                self._begin(waiting.pop(0))
            if self._claims and self._commit_ended():
                waiting = self._plan()

    def _plan(self) -> list[RunGroup]:
        return make_groups(queries.queued_runs(self._store, self._sweep_ids))

    def _begin(self, group: RunGroup) -> None:
        claimed = writer.claim(self._store, self._worker_id, group)
        if claimed is not None:
            self._claims[claimed.runs[0].id] = claimed
            self._executor.begin(self._make_job(claimed.runs))

    def _commit_ended(self) -> bool:
        """Stores what has ended; True where a group was lost, so that runs are queued again."""
        lost = False
        for ended in self._executor.ended():
            claimed = self._claims.pop(ended.group[0].id)
            if ended.lost is None:
                writer.record(self._store, claimed, ended.outcomes)
                self._progress.group_ended(ended.group)
            else:
                writer.record_lost(self._store, claimed, ended.lost)
                lost = True
        return lost
