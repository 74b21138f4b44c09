"""Claim, train, evaluate, commit, until nothing is queued; and what happens when it is stopped."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import TypeVar

from seqcls.cancellation import Cancelled, cancelled_when
from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine, engine_named
from seqcls.errors import (
    ConfigError,
    MachineError,
    PluginMissingError,
    StoreBusyError,
    StoreError,
    describe_error,
)
from seqcls.problem import resolve
from seqcls.results import EpochLosses
from sweeps.grid.grouping import PlannedRun, RunGroup, make_groups, split_by_packages
from sweeps.processes import Interruption, OnProgress, gentle_interruption
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.reads.workers import queued_runs, runs_that_go_on
from sweeps.work import executors
from sweeps.work.executors import Executor, Results, lost_cluster
from sweeps.work.jobs import GroupLostError, Job, make_job
from sweeps.work.machine import WorkOptions, WorkSummary, check_device, prepare
from sweeps.work.more_seeds import grow

BEAT_SECONDS = 10.0

POLL_SECONDS = 0.1
"""How long a worker waits at a time for a group to end, or for machine code."""

LOSSES_SECONDS = 5.0
"""How often losses of a group in training are stored, so that a page can draw them meanwhile."""

LOOK_SECONDS = 1.0
"""How often a worker looks whether its sweeps were stopped."""

WATCH_SECONDS = 2.0
"""How often a worker that waits for work looks for it."""

PATIENCE_SECONDS = 600.0
"""How long results that are trained wait for a database that is locked or does not answer."""

Written = TypeVar("Written")

_log = logging.getLogger(__name__)


def work(
    store: Store,
    sweep_ids: Sequence[int] | None = None,
    how: WorkOptions | None = None,
    on_progress: OnProgress | None = None,
    when_idle: Callable[[], None] | None = None,
) -> WorkSummary:
    """Trains every queued run of these sweeps and stores each group's results as it ends.

    However it ends, what is committed stays, and what it had claimed beyond that is queued again:
    at once where this process can still do it, else by the next worker. The first Ctrl-C leaves
    what is in training; the second raises KeyboardInterrupt.

    Args:
        when_idle: called again and again while it waits for runs.

    Raises:
        ConfigError: fewer than no workers.
        EngineError, DeviceError: unknown, or not to be had on this machine.
        StoreUnavailableError: the database cannot be written any longer.
        ClusterError: the Dask cluster cannot be reached or was lost.
        MachineError: this machine cannot train; no run is charged with that.
    """
    how = how or WorkOptions()
    # Invalid options are refused before anything is claimed.
    if how.workers < 0:
        raise ConfigError(f"workers={how.workers}: expected 0 or more processes")
    check_device(how.device)
    choose_engine(resolve(RunConfig()), how.engine, how.device)
    with gentle_interruption() as interruption:
        worker = _Worker(store, sweep_ids, how, interruption, on_progress, when_idle)
        executor = executors.start(how.workers, how.dask, worker.group_went_on)
        with closing(executor), store.kept_open(), ThreadPoolExecutor(1) as preparing:
            return worker.work(executor, preparing)


@contextmanager
def heartbeat(store: Store, worker_id: int) -> Iterator[None]:
    """Beats for this worker until the block ends, however long one step of training takes."""
    over = threading.Event()

    def beat() -> None:
        while not over.wait(BEAT_SECONDS):
            # A missed beat is no harm; a database that stays away is the worker's to report.
            with suppress(StoreError):
                writer.beat(store, worker_id)

    thread = threading.Thread(target=beat, daemon=True, name="heartbeat")
    thread.start()
    try:
        yield
    finally:
        over.set()
        # Not joined: a beat that waits for a lock would hold up the end of the program.


@dataclass
class _Held:
    """A group in training."""

    claim: writer.Claim
    job: Job
    results: Results = field(default_factory=Future)
    done: float = 0.0
    """How many members' worth of its training is done, parts included."""
    losses: list[EpochLosses] = field(default_factory=list)
    """Those that are not stored yet."""
    due: float = field(default_factory=lambda: time.monotonic() + LOSSES_SECONDS)
    """When they are to be."""


@dataclass
class _Worker:
    """One worker's loop."""

    store: Store
    sweep_ids: Sequence[int] | None
    how: WorkOptions
    interruption: Interruption
    on_progress: OnProgress | None
    when_idle: Callable[[], None] | None

    def __post_init__(self) -> None:
        self._store = self.store
        self._thread = threading.get_ident()
        self._news = SimpleQueue[tuple[Job, float, Sequence[EpochLosses]]]()
        self._waiting: list[RunGroup] = []
        self._held: dict[int, _Held] = {}
        self._told = set[str]()
        self._looked = self._planned = 0.0
        self._total = self._ended = 0
        """Runs that are to be trained, and of these the ones that are recorded."""

    def work(self, executor: Executor, preparing: ThreadPoolExecutor) -> WorkSummary:
        """Registers this worker, trains with an executor, and says that it has ended.

        Args:
            preparing: makes what engines need here, beside the training of models whose engines
                are ready.
        """
        self._executor, self._preparing = executor, preparing
        self._prepared = preparing.submit(prepare, (), self.how)
        # A number that was given, of which the answer was lost, is that of a worker without runs.
        self._worker_id = self._patiently(partial(writer.register_worker, self.store))
        self._worked = WorkSummary(self._worker_id)
        try:
            with heartbeat(self.store, self._worker_id):
                self._run()
        except BaseException:
            # What is claimed is given back if that can be done at once; else the next worker does.
            try:
                writer.end_worker(self.store.without_waiting(), self._worker_id)
            except Exception as error:
                _log.debug("worker %s could not give its runs back: %s", self._worker_id, error)
            raise
        self._patiently(partial(writer.end_worker, self.store, self._worker_id))
        return self._worked

    def group_went_on(self, job: Job, done: float, epochs: Sequence[EpochLosses]) -> None:
        """Hears how far a group is, and of losses of epochs that have ended; in any thread."""
        self._news.put((job, done, epochs))
        if threading.get_ident() == self._thread:
            # Where this very thread trains, it takes all the time there is: it looks from within.
            self._look()

    def _run(self) -> None:
        self._plan()
        while self._goes_on():
            while len(self._held) < self._executor.slots and (group := self._next_group()):
                self._begin(group)
            if self._held:
                ends = [held.results for held in self._held.values()]
                wait(ends, POLL_SECONDS, FIRST_COMPLETED)
            elif self._waiting:
                wait([self._prepared], POLL_SECONDS)
            self._look()
            for held in [held for held in self._held.values() if held.results.done()]:
                self._end(held)
            # Others may have queued runs, or given some back, since this worker looked.
            is_due = not self._held or time.monotonic() - self._planned > WATCH_SECONDS
            if is_due and not self._waiting and self.interruption.signal is None:
                self._plan()
        self._worked.signal = self.interruption.signal

    def _goes_on(self) -> bool:
        if self.interruption.signal is not None:
            self._waiting = []
        elif self.how.watch and not (self._waiting or self._held):
            if self.when_idle is not None:
                has_left = partial(getattr, self.interruption, "signal")
                with suppress(Cancelled), cancelled_when(lambda: has_left() is not None):
                    self._patiently(self.when_idle)
            time.sleep(WATCH_SECONDS)
            return True
        return bool(self._waiting or self._held)

    def _next_group(self) -> RunGroup | None:
        """The first waiting group whose engine has what it needs; None while there is none.

        Raises:
            MachineError: what it needs could not be made.
        """
        is_prepared = self._prepared.done()
        if is_prepared:
            self._prepared.result()
        for place, group in enumerate(self._waiting):
            problem = group[0].problem
            choice = choose_engine(problem, self.how.engine, self.how.device)
            if is_prepared or engine_named(choice.name).is_ready(problem):
                return self._waiting.pop(place)
        return None

    def _plan(self) -> None:
        self._planned = time.monotonic()
        self._patiently(partial(writer.release_dead, self.store, self._worker_id))
        list_queued = partial(queued_runs, self._store, self.sweep_ids)
        queued = self._patiently(list_queued)
        if not (queued or self._held) and self._patiently(
            partial(grow, self.store, self.sweep_ids)
        ):
            queued = self._patiently(list_queued)
        queued = self._trainable(queued)
        engine, device = self.how.engine, self.how.device
        self._waiting = make_groups(queued, engine, device)
        problems = {run.config.key: run.problem for run in queued}.values()
        choices = [choose_engine(group[0].problem, engine, device) for group in self._waiting]
        if queued and self.how.dask is None:
            # A Dask cluster's machines see to themselves.
            self._prepared = self._preparing.submit(prepare, problems, self.how)
            if self.how.workers == 0:
                wait([self._prepared])
        self._executor.expect([choice.name for choice in choices])
        in_training = sum(len(held.claim.runs) for held in self._held.values())
        self._total = self._ended + len(queued) + in_training
        self._tell()

    def _trainable(self, queued: Sequence[PlannedRun]) -> list[PlannedRun]:
        """Those whose packages are here; of the others it is said once what they wait for.

        Raises:
            PluginMissingError: there is none, and nothing is in training.
        """
        left, waiting = split_by_packages(queued)
        for reason, number in waiting.items():
            if reason in self._told:
                continue
            if not (left or self._held):
                raise PluginMissingError(reason)
            _log.warning("%d run%s left queued: %s", number, "s" * (number > 1), reason)
            self._told.add(reason)
        return left

    def _begin(self, group: RunGroup) -> None:
        claimed = self._patiently(partial(self._claim, group, count()))
        if claimed is not None:
            held = _Held(claimed, make_job(claimed.runs, self.how.engine, self.how.device))
            self._held[held.job.number] = held
            held.results = self._executor.begin(held.job)

    def _claim(self, group: RunGroup, tries: Iterator[int]) -> writer.Claim | None:
        """Claims a group; before every further try, takes back what the last may have done.

        Where a connection breaks, the claim may have been made and the answer been lost.
        """
        if next(tries):
            writer.release(self.store, self._worker_id, [run.id for run in group])
        return writer.claim(self.store, self._worker_id, group)

    def _end(self, held: _Held) -> None:
        """Stores what came of a group."""
        outcomes, lost = list[RunResult](), None
        try:
            outcomes = held.results.result()
        except GroupLostError as error:
            lost = error
        except MachineError:
            raise
        except (CancelledError, OSError):
            # Only a cluster's futures end so: its scheduler has forgotten the group.
            raise lost_cluster(str(self.how.dask)) from None
        except Exception as error:
            lost = GroupLostError(describe_error(error))
        if lost is not None and (lost.of_machine or self.interruption.signal is not None):
            # The signal that ends this program may have ended the process too: the runs are not at
            # fault.
            self._give_back(held)
            if self.interruption.signal is not None:
                return
            raise MachineError(
                f"training is not possible on this machine: {lost.reason}; the runs stay queued, "
                "and no attempt is counted"
            )
        del self._held[held.job.number]
        if lost is not None:
            self._patiently(partial(writer.record_lost, self.store, held.claim, lost.reason))
            _log.warning("%d runs were lost: %s", len(held.claim.runs), lost.reason)
            self._worked.lost += len(held.claim.runs)
            self._plan()
            return
        recorded = self._patiently(partial(writer.record, self.store, held.claim, outcomes))
        self._worked.recorded += recorded
        self._ended += recorded
        self._tell()

    def _look(self) -> None:
        """Takes note of progress, stores losses of groups in training; abandons stopped ones."""
        while not self._news.empty():
            job, done, epochs = self._news.get()
            if held := self._held.get(job.number):
                held.done = done
                held.losses += epochs
                self._tell()
        self._store_losses()
        is_ending, now = self.interruption.signal is not None, time.monotonic()
        if not is_ending and (not self._held or now - self._looked < LOOK_SECONDS):
            return
        self._looked = now
        ids = [run.id for held in self._held.values() for run in held.claim.runs]
        try:
            going_on = set[int]() if is_ending else runs_that_go_on(self._store, ids)
        except StoreBusyError:
            # Whether anything is stopped can wait until the database answers.
            return
        for held in list(self._held.values()):
            if not going_on.intersection(held.claim.attempts):
                self._executor.abandon(held.job)
                self._give_back(held)

    def _store_losses(self) -> None:
        now = time.monotonic()
        due = [held for held in self._held.values() if held.losses and now >= held.due]
        # They are only looked at: those that cannot be stored at once are kept for the next time.
        with suppress(StoreError):
            if due:
                losses = [(held.claim, held.losses) for held in due]
                writer.record_losses(self.store.without_waiting(), losses)
            for held in due:
                held.losses = []
        for held in due:
            held.due = now + LOSSES_SECONDS

    def _give_back(self, held: _Held) -> None:
        del self._held[held.job.number]
        self._worked.abandoned += len(held.claim.runs)
        self._tell()
        ids = list(held.claim.attempts)
        self._patiently(partial(writer.release, self.store, self._worker_id, ids))

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self._ended + sum(x.done for x in self._held.values()), self._total)

    def _patiently(self, write: Callable[[], Written]) -> Written:
        """Repeats a write while the database is busy: results are worth a wait."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return write()
            except StoreBusyError as error:
                if time.monotonic() > give_up or self.interruption.signal is not None:
                    raise
                _log.warning("%s; waiting for it", error)
                time.sleep(LOOK_SECONDS)
