"""Claim, train, evaluate, commit, until nothing is queued; and what happens when it is stopped."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TypeVar

from seqcls.cancellation import Cancelled, cancelled_when
from seqcls.config import RunConfig
from seqcls.engines.choice import choose_engine
from seqcls.errors import (
    ConfigError,
    MachineError,
    PluginMissingError,
    StoreBusyError,
    StoreError,
)
from seqcls.problem import resolve
from seqcls.results import EpochLosses
from sweeps.grid.grouping import PlannedRun, RunGroup, make_groups, split_by_packages
from sweeps.processes import Interruption, OnProgress, gentle_interruption
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.reads.workers import queued_runs, runs_that_go_on
from sweeps.work import executors
from sweeps.work.executors import Executor, GroupEnded
from sweeps.work.jobs import Job, make_job
from sweeps.work.machine import Preparation, WorkOptions, WorkSummary, check_device
from sweeps.work.more_seeds import grow

BEAT_SECONDS = 10.0

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
    _check(how)
    with gentle_interruption() as interruption:
        worker = _Worker(store, sweep_ids, how, interruption, on_progress, when_idle)
        executor = executors.start(how.workers, how.dask, worker.group_went_on)
        with closing(executor), store.kept_open():
            return worker.work(executor)


def _check(how: WorkOptions) -> None:
    """Refuses invalid options before anything is claimed."""
    if how.workers < 0:
        raise ConfigError(f"workers={how.workers}: expected 0 or more processes")
    check_device(how.device)
    choose_engine(resolve(RunConfig()), how.engine, how.device)


def _patiently(write: Callable[[], Written], interruption: Interruption) -> Written:
    """Repeats a write while the database is busy: results are worth a wait."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            return write()
        except StoreBusyError as error:
            if time.monotonic() > give_up or interruption.signal is not None:
                raise
            _log.warning("%s; waiting for it", error)
            time.sleep(LOOK_SECONDS)


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
    done: float = 0.0
    """How many members' worth of its training is done, parts included."""
    losses: list[EpochLosses] = field(default_factory=list)
    """Those that are not stored yet."""
    due: float = field(default_factory=lambda: time.monotonic() + LOSSES_SECONDS)
    """When they are to be."""


class _Worker:
    """One worker's loop."""

    def __init__(
        self,
        store: Store,
        sweep_ids: Sequence[int] | None,
        how: WorkOptions,
        interruption: Interruption,
        on_progress: OnProgress | None,
        when_idle: Callable[[], None] | None,
    ) -> None:
        self._store = store
        self._reader = store.reader()
        self._sweep_ids = sweep_ids
        self._how = how
        self._interruption = interruption
        self._on_progress = on_progress
        self._when_idle = when_idle
        self._executor: Executor
        self._worker_id: int
        self._worked: WorkSummary
        self._waiting: list[RunGroup] = []
        self._held: dict[int, _Held] = {}
        self._told = set[str]()
        self._preparation = Preparation(how)
        self._looked = self._planned = 0.0
        self._total = self._ended = 0
        """Runs that are to be trained, and of these the ones that are recorded."""

    def work(self, executor: Executor) -> WorkSummary:
        """Registers this worker, trains with an executor, and says that it has ended."""
        self._executor = executor
        # A number that was given, of which the answer was lost, is that of a worker without runs.
        self._worker_id = self._patiently(partial(writer.register_worker, self._store))
        self._worked = WorkSummary(self._worker_id)
        try:
            with heartbeat(self._store, self._worker_id):
                self._run()
        except BaseException:
            self._end_quietly()
            raise
        self._preparation.end()
        self._patiently(partial(writer.end_worker, self._store, self._worker_id))
        return self._worked

    def group_went_on(self, job: Job, done: float, epochs: Sequence[EpochLosses]) -> None:
        """Takes note of how far a group is, and of losses of epochs that have ended."""
        held = self._held.get(job.number)
        if held is None:
            return
        held.done = done
        held.losses += epochs
        self._tell()
        # Where this very process trains, it takes all the time there is: it looks from within.
        self._look()

    def _tell(self) -> None:
        if self._on_progress is not None:
            self._on_progress(self._ended + sum(x.done for x in self._held.values()), self._total)

    def _end_quietly(self) -> None:
        """Gives back what is claimed, if that can be done at once; else the next worker does."""
        try:
            writer.end_worker(self._store.without_waiting(), self._worker_id)
        except Exception as error:
            _log.debug("worker %s could not give its runs back: %s", self._worker_id, error)

    def _run(self) -> None:
        self._plan()
        while self._goes_on():
            while self._executor.free > 0 and (group := self._next_group()) is not None:
                self._begin(group)
            if self._held:
                self._end_some()
            elif self._waiting:
                self._preparation.wait()
            self._look()
            if not self._waiting and not self._is_ending() and self._should_plan():
                self._plan()
        self._worked.signal = self._interruption.signal

    def _next_group(self) -> RunGroup | None:
        """The first waiting group whose engine has what it needs; None while there is none."""
        for place, group in enumerate(self._waiting):
            if self._preparation.is_ready(group[0].problem):
                return self._waiting.pop(place)
        return None

    def _goes_on(self) -> bool:
        if self._is_ending():
            return bool(self._held)
        if self._waiting or self._held:
            return True
        if self._how.watch:
            self._use_idle_time()
            time.sleep(WATCH_SECONDS)
        return self._how.watch

    def _use_idle_time(self) -> None:
        if self._when_idle is None:
            return
        with suppress(Cancelled), cancelled_when(lambda: self._interruption.signal is not None):
            self._patiently(self._when_idle)

    def _is_ending(self) -> bool:
        if self._interruption.signal is None:
            return False
        self._waiting = []
        return True

    def _should_plan(self) -> bool:
        """Others may have queued runs, or given some back, since this worker looked."""
        return not self._held or time.monotonic() - self._planned > WATCH_SECONDS

    def _plan(self) -> None:
        self._planned = time.monotonic()
        self._patiently(partial(writer.release_dead, self._store, self._worker_id))
        queued = self._patiently(partial(queued_runs, self._reader, self._sweep_ids))
        if not (queued or self._held) and self._patiently(
            partial(grow, self._store, self._sweep_ids)
        ):
            queued = self._patiently(partial(queued_runs, self._reader, self._sweep_ids))
        queued = self._trainable(queued)
        self._waiting = make_groups(queued, self._how.engine, self._how.device)
        if queued:
            self._preparation.begin({run.config.key: run.problem for run in queued}.values())
            engine, device = self._how.engine, self._how.device
        choices = [choose_engine(group[0].problem, engine, device) for group in self._waiting]
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
            job = make_job(claimed.runs, self._how.engine, self._how.device)
            self._held[job.number] = _Held(claimed, job)
            self._executor.begin(job)

    def _claim(self, group: RunGroup, tries: Iterator[int]) -> writer.Claim | None:
        """Claims a group; before every further try, takes back what the last may have done.

        Where a connection breaks, the claim may have been made and the answer been lost.
        """
        if next(tries):
            writer.release(self._store, self._worker_id, [run.id for run in group])
        return writer.claim(self._store, self._worker_id, group)

    def _end_some(self) -> None:
        for ended in self._executor.take_ended():
            held = self._held.pop(ended.job.number)
            if ended.lost is not None and self._interruption.signal is not None:
                # The signal that ends this program may have ended the process too: the runs are
                # not at fault.
                self._give_back(held)
                continue
            if ended.of_machine:
                self._give_back(held)
                raise MachineError(
                    f"training is not possible on this machine: {ended.lost}; the runs stay "
                    "queued, and no attempt is counted"
                )
            recorded = self._patiently(partial(self._store_ended, held.claim, ended))
            self._ended += recorded
            self._tell()
            if ended.lost is not None:
                _log.warning("%d runs were lost: %s", len(ended.job.group), ended.lost)
                self._worked.lost += len(ended.job.group)
                self._plan()

    def _store_ended(self, claimed: writer.Claim, ended: GroupEnded) -> int:
        if ended.lost is not None:
            writer.record_lost(self._store, claimed, ended.lost)
            return 0
        recorded = writer.record(self._store, claimed, ended.outcomes)
        self._worked.recorded += recorded
        return recorded

    def _look(self) -> None:
        """Stores losses of groups in training; abandons stopped ones."""
        self._store_losses()
        now = time.monotonic()
        if now - self._looked < LOOK_SECONDS and self._interruption.signal is None:
            return
        self._looked = now
        for held in self._stopped_groups():
            del self._held[held.job.number]
            self._executor.abandon(held.job)
            self._give_back(held)

    def _store_losses(self) -> None:
        now = time.monotonic()
        due = [held for held in self._held.values() if held.losses and now >= held.due]
        if not due:
            return
        # They are only looked at: those that cannot be stored at once are kept for the next time.
        with suppress(StoreError):
            losses = [(held.claim, held.losses) for held in due]
            writer.record_losses(self._store.without_waiting(), losses)
            for held in due:
                held.losses = []
        for held in due:
            held.due = time.monotonic() + LOSSES_SECONDS

    def _stopped_groups(self) -> list[_Held]:
        held = list(self._held.values())
        if self._interruption.signal is not None:
            return held
        ids = [run.id for group in held for run in group.claim.runs]
        try:
            going_on = runs_that_go_on(self._reader, ids) if ids else set()
        except StoreBusyError:
            # Whether anything is stopped can wait until the database answers.
            return []
        return [group for group in held if not going_on.intersection(group.claim.attempts)]

    def _give_back(self, held: _Held) -> None:
        self._worked.abandoned += len(held.claim.runs)
        self._tell()
        ids = list(held.claim.attempts)
        self._patiently(partial(writer.release, self._store, self._worker_id, ids))

    def _patiently(self, write: Callable[[], Written]) -> Written:
        return _patiently(write, self._interruption)
