"""Workers, which claim, train, evaluate and commit until nothing is queued, or they are stopped."""

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from queue import SimpleQueue
from typing import Any, TypeVar

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
from sweeps.grid.grouping import RunGroup, make_groups, split_by_packages
from sweeps.processes import Interruption, OnProgress, gentle_interruption
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.reads.workers import queued_runs, runs_that_go_on
from sweeps.work import executors
from sweeps.work.executors import lost_cluster
from sweeps.work.jobs import GroupLostError, Job, make_job
from sweeps.work.machine import WorkOptions, WorkSummary, check_device, prepare
from sweeps.work.more_seeds import grow

BEAT_SECONDS = 10.0

POLL_SECONDS = 0.1
"""Time that a worker waits at a time for a group to end, or for machine code."""

LOSSES_SECONDS = 5.0
"""Interval at which losses of groups in training are stored, for pages to draw."""

LOOK_SECONDS = 1.0
"""Interval at which a worker checks whether its sweeps were stopped."""

WATCH_SECONDS = 2.0
"""Interval at which a waiting worker looks for runs."""

PATIENCE_SECONDS = 600.0
"""Time that results wait for a database that is locked or does not answer."""

Answer = TypeVar("Answer")

_log = logging.getLogger(__name__)


def work(
    store: Store,
    sweep_ids: Sequence[int] | None = None,
    how: WorkOptions | None = None,
    on_progress: OnProgress | None = None,
    when_idle: Callable[[], None] | None = None,
) -> WorkSummary:
    """Trains every queued run of these sweeps and stores each group's results as it ends.

    However it ends, committed results stay, and other claimed runs are queued again: at once if
    this process can still do it, else by the next worker. The first Ctrl-C abandons runs in
    training; the second raises KeyboardInterrupt.

    Args:
        when_idle: called again and again while it waits for runs.

    Raises:
        ConfigError: a negative number of workers.
        EngineError, DeviceError: unknown, or not available on this machine.
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
        return _Worker(store, sweep_ids, how, interruption, on_progress, when_idle).work()


@dataclass
class _Held:
    """A group in training, the number of members done (with fractions), and losses to be stored."""

    claim: writer.Claim
    job: Job
    results: Future[list[RunResult]] = field(default_factory=Future)
    done: float = 0.0
    losses: list[EpochLosses] = field(default_factory=list)


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
        self._thread = threading.get_ident()
        # Written by any thread, and read only by the worker's own.
        self._reports = SimpleQueue[tuple[Job, float, Sequence[EpochLosses]]]()
        self._waiting: list[RunGroup] = []
        self._held: dict[int, _Held] = {}
        self._missing_packages = set[str]()
        self._last_calls = dict[str, float]()
        self._total = 0

    def work(self) -> WorkSummary:
        """Registers this worker, trains, and stores that it has ended."""
        how, over = self.how, threading.Event()
        self._executor = executors.start(how.workers, how.dask, self._receive_progress)
        # Compiles engines while models whose engines are ready are trained.
        self._preparing = ThreadPoolExecutor(1)
        with closing(self._executor), self.store.kept_open(), self._preparing:
            # If an answer is lost and this is repeated, the first id is that of an idle worker.
            self._summary = WorkSummary(self._retry_while_busy(writer.register_worker, self.store))
            self._me = self.store, self._summary.worker_id
            # Not joined: a heartbeat that waits for a lock would delay the end of the program.
            threading.Thread(target=self._beat, args=(over,), daemon=True, name="heartbeat").start()
            try:
                self._run()
            except BaseException:
                # Claimed runs are released now if possible, else by the next worker.
                with suppress(Exception):
                    writer.end_worker(self.store.without_waiting(), self._summary.worker_id)
                raise
            finally:
                over.set()
            self._retry_while_busy(writer.end_worker, *self._me)
        return self._summary

    def _beat(self, over: threading.Event) -> None:
        """Stores heartbeats until the event, independently of training."""
        while not over.wait(BEAT_SECONDS):
            # A missed heartbeat is harmless; the worker itself reports a database that is gone.
            with suppress(StoreError):
                writer.beat(*self._me)

    def _receive_progress(self, job: Job, done: float, epochs: Sequence[EpochLosses]) -> None:
        """Receives the progress of a group, and losses of epochs that have ended; in any thread."""
        self._reports.put((job, done, epochs))
        if threading.get_ident() == self._thread:
            # The worker's own thread trains, so its loop does not run meanwhile.
            self._check_groups()

    def _run(self) -> None:
        self._plan()
        while self._should_continue():
            while len(self._held) < self._executor.slots and (group := self._next_group()):
                self._begin(group)
            if self._held:
                ends = [held.results for held in self._held.values()]
                wait(ends, POLL_SECONDS, FIRST_COMPLETED)
            elif self._waiting:
                wait([self._prepared], POLL_SECONDS)
            self._check_groups()
            for held in [held for held in self._held.values() if held.results.done()]:
                self._end(held)
            # Others may have queued or released runs since the last plan.
            if not self._waiting and self.interruption.signal is None:
                self._call_at_intervals(WATCH_SECONDS if self._held else 0.0, self._plan)
        self._summary.signal = self.interruption.signal

    def _should_continue(self) -> bool:
        if self.interruption.signal is not None:
            self._waiting = []
        elif self.how.watch and not (self._waiting or self._held):
            if self.when_idle is not None:
                # Fitting the readers of a test takes seconds, and Ctrl-C ends it.
                has_left = partial(getattr, self.interruption, "signal")
                with suppress(Cancelled), cancelled_when(lambda: has_left() is not None):
                    self._retry_while_busy(self.when_idle)
            time.sleep(WATCH_SECONDS)
            return True
        return bool(self._waiting or self._held)

    def _call_at_intervals(self, seconds: float, act: Callable[[], None]) -> None:
        """Calls a method if its last call is so many seconds ago."""
        if time.monotonic() - self._last_calls.get(act.__name__, 0.0) >= seconds:
            self._last_calls[act.__name__] = time.monotonic()
            act()

    def _plan(self) -> None:
        self._last_calls["_plan"] = time.monotonic()
        self._retry_while_busy(writer.release_dead, *self._me)
        queued = self._retry_while_busy(queued_runs, self.store, self.sweep_ids)
        # Sweeps with `until` grow once all their runs are done.
        if not (queued or self._held) and self._retry_while_busy(grow, self.store, self.sweep_ids):
            queued = self._retry_while_busy(queued_runs, self.store, self.sweep_ids)
        queued, lacking = split_by_packages(queued)
        for reason in lacking.keys() - self._missing_packages:
            if not (queued or self._held):
                raise PluginMissingError(reason)
            _log.warning("%d runs left queued: %s", lacking[reason], reason)
            self._missing_packages.add(reason)
        self._waiting = make_groups(queued, self.how.engine, self.how.device)
        # The machines of a Dask cluster compile for themselves.
        here = {run.config.key: run.problem for run in queued if self.how.dask is None}.values()
        self._prepared = self._preparing.submit(prepare, here, self.how)
        if self.how.workers == 0:
            wait([self._prepared])
        self._executor.expect([self._engine_of(group) for group in self._waiting])
        in_training = sum(len(held.claim.runs) for held in self._held.values())
        self._total = self._summary.recorded + len(queued) + in_training
        self._report()

    def _engine_of(self, group: RunGroup) -> str:
        return choose_engine(group[0].problem, self.how.engine, self.how.device).name

    def _next_group(self) -> RunGroup | None:
        """The first waiting group whose engine is ready; None while there is none.

        Raises:
            MachineError: an engine could not be compiled.
        """
        if is_prepared := self._prepared.done():
            self._prepared.result()
        for place, group in enumerate(self._waiting):
            if is_prepared or engine_named(self._engine_of(group)).is_ready(group[0].problem):
                return self._waiting.pop(place)
        return None

    def _begin(self, group: RunGroup) -> None:
        claimed = self._retry_while_busy(partial(self._claim, group, count()))
        if claimed is not None:
            held = _Held(claimed, make_job(claimed.runs, self.how.engine, self.how.device))
            self._held[held.job.number] = held
            held.results = self._executor.begin(held.job)

    def _claim(self, group: RunGroup, tries: Iterator[int]) -> writer.Claim | None:
        """Claims a group; before every further try, releases the runs of the last one.

        If a connection breaks, the claim may have been made and the answer lost.
        """
        if next(tries):
            writer.release(*self._me, [run.id for run in group])
        return writer.claim(*self._me, group)

    def _end(self, held: _Held) -> None:
        """Stores the outcome of a group."""
        lost: GroupLostError
        try:
            outcomes = held.results.result()
        except GroupLostError as error:
            lost = error
        # Ends this worker, which releases all its runs.
        except MachineError:
            raise
        except (CancelledError, OSError):
            # Only a cluster's futures end so: its scheduler has lost the group.
            raise lost_cluster(str(self.how.dask)) from None
        except Exception as error:
            lost = GroupLostError(describe_error(error))
        else:
            del self._held[held.job.number]
            self._summary.recorded += self._retry_while_busy(
                writer.record, self.store, held.claim, outcomes
            )
            self._report()
            return
        # The runs are not at fault if a signal, which may have ended the process too, or the
        # machine is.
        if self.interruption.signal is not None:
            self._release(held)
        elif lost.of_machine:
            self._release(held)
            raise MachineError(
                f"training is not possible on this machine: {lost.reason}; the runs stay queued, "
                "and no attempt is counted"
            )
        else:
            del self._held[held.job.number]
            self._retry_while_busy(writer.record_lost, self.store, held.claim, lost.reason)
            _log.warning("%d runs were lost: %s", len(held.claim.runs), lost.reason)
            self._summary.lost += len(held.claim.runs)
            self._plan()

    def _check_groups(self) -> None:
        """Processes progress, stores losses of groups in training, and abandons stopped ones."""
        while not self._reports.empty():
            job, done, epochs = self._reports.get()
            if held := self._held.get(job.number):
                held.done = done
                held.losses += epochs
                self._report()
        self._call_at_intervals(LOSSES_SECONDS, self._store_losses)
        if self.interruption.signal is not None:
            self._abandon_others(set())
        elif self._held:
            self._call_at_intervals(LOOK_SECONDS, self._abandon_stopped)

    def _store_losses(self) -> None:
        # Losses that cannot be stored now are stored at the next time: pages alone need them.
        with suppress(StoreError):
            with_losses = [held for held in self._held.values() if held.losses]
            if with_losses:
                losses = [(held.claim, held.losses) for held in with_losses]
                writer.record_losses(self.store.without_waiting(), losses)
            for held in with_losses:
                held.losses = []

    def _abandon_stopped(self) -> None:
        ids = [run.id for held in self._held.values() for run in held.claim.runs]
        # The check can wait until the database answers.
        with suppress(StoreBusyError):
            self._abandon_others(runs_that_go_on(self.store, ids))

    def _abandon_others(self, going_on: set[int]) -> None:
        for held in list(self._held.values()):
            if not going_on.intersection(held.claim.attempts):
                self._executor.abandon(held.job)
                self._release(held)

    def _release(self, held: _Held) -> None:
        del self._held[held.job.number]
        self._summary.abandoned += len(held.claim.runs)
        self._report()
        self._retry_while_busy(writer.release, *self._me, list(held.claim.attempts))

    def _report(self) -> None:
        if self.on_progress is not None:
            done = self._summary.recorded + sum(held.done for held in self._held.values())
            self.on_progress(done, self._total)

    def _retry_while_busy(self, act: Callable[..., Answer], *arguments: Any) -> Answer:
        """Repeats a read or a write while the database is busy, so that no results are lost."""
        give_up = time.monotonic() + PATIENCE_SECONDS
        while True:
            try:
                return act(*arguments)
            except StoreBusyError as error:
                # After an interruption the worker does not wait for the database.
                if time.monotonic() > give_up or self.interruption.signal is not None:
                    raise
                _log.warning("%s; waiting for it", error)
                time.sleep(LOOK_SECONDS)
