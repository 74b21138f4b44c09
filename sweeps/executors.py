"""Where groups are trained: in this process, or on this machine's cores."""

import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from sweeps.grouping import RunGroup
from sweeps.jobs import Job, run_job
from sweeps.outcome import Outcome

POLL_SECONDS = 0.1

OnProgress = Callable[[RunGroup, float], None]
"""Told a group and how many members' worth of its training is done, parts included."""


@dataclass(frozen=True)
class GroupEnded:
    """A group is trained and tested, or was lost with its process, for the reason `lost`."""

    group: RunGroup
    outcomes: list[Outcome]
    lost: str | None = None


class Executor(Protocol):
    """Trains groups, some at a time."""

    @property
    def free(self) -> int:
        """How many groups more it can begin at once."""
        ...

    def begin(self, job: Job) -> None:
        """Takes a group to train."""
        ...

    def ended(self) -> list[GroupEnded]:
        """The groups that have ended since the last call; it may wait a while for one."""
        ...


@contextmanager
def local_executor(workers: int, on_progress: OnProgress) -> Iterator[Executor]:
    """Trains in this process with one worker, else in that many processes of one thread each."""
    if workers == 1:
        yield InThisProcess(on_progress)
        return
    pool = ProcessPool(workers, on_progress)
    try:
        yield pool
    finally:
        pool.kill()


class InThisProcess:
    """Trains one group after another, right here."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._waiting: list[Job] = []

    @property
    def free(self) -> int:
        return 1 - len(self._waiting)

    def begin(self, job: Job) -> None:
        self._waiting.append(job)

    def ended(self) -> list[GroupEnded]:
        job = self._waiting.pop()
        report = partial(self._on_progress, job.group)
        try:
            return [GroupEnded(job.group, run_job(job, report))]
        except Exception as error:
            # As in a pool: what one group dies of does not end the others.
            return [GroupEnded(job.group, [], _named(error))]


class ProcessPool:
    """Trains groups in worker processes, each with one thread, since processes use the cores."""

    def __init__(self, workers: int, on_progress: OnProgress) -> None:
        # Spawned: a forked child would inherit the locks of PyTorch's threads.
        self._context = multiprocessing.get_context("spawn")
        self._reports: multiprocessing.Queue[tuple[int, float]] = self._context.Queue()
        self._workers = workers
        self._on_progress = on_progress
        self._running: dict[Future[list[Outcome]], RunGroup] = {}
        self._pool = self._new_pool()

    @property
    def free(self) -> int:
        return self._workers - len(self._running)

    def begin(self, job: Job) -> None:
        try:
            future = self._pool.submit(_in_process, job)
        except BrokenProcessPool:
            self._pool = self._new_pool()
            future = self._pool.submit(_in_process, job)
        self._running[future] = job.group

    def ended(self) -> list[GroupEnded]:
        done = wait(self._running, POLL_SECONDS, FIRST_COMPLETED).done
        self._pass_reports_on()
        ended = []
        broken = False
        for future in done:
            group = self._running.pop(future)
            error = future.exception()
            broken = broken or isinstance(error, BrokenProcessPool)
            if error is None:
                ended.append(GroupEnded(group, future.result()))
            else:
                ended.append(GroupEnded(group, [], _named(error)))
        if broken and not self._running:
            # A process that the system killed takes the whole pool with it.
            self._pool = self._new_pool()
        return ended

    def kill(self) -> None:
        """Ends the processes now, in the middle of whatever they train."""
        # Python 3.14 has ProcessPoolExecutor.kill_workers(); until then there is no public way.
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()

    def _new_pool(self) -> ProcessPoolExecutor:
        return ProcessPoolExecutor(self._workers, self._context, _begin_process, (self._reports,))

    def _pass_reports_on(self) -> None:
        groups = {group[0].id: group for group in self._running.values()}
        while True:
            try:
                first, done = self._reports.get_nowait()
            except queue.Empty:
                return
            if first in groups:
                self._on_progress(groups[first], done)


_reports: "multiprocessing.Queue[tuple[int, float]] | None" = None
"""In a worker process: where its epochs are reported to."""


def _begin_process(reports: "multiprocessing.Queue[tuple[int, float]]") -> None:
    global _reports
    _reports = reports
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # Ctrl-C reaches every process of a terminal; the one that hands out groups decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _end_with_parent() -> None:
    """Ends this process when the one that hands out groups is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _in_process(job: Job) -> list[Outcome]:
    assert _reports is not None
    put = _reports.put
    return run_job(job, lambda done: put((job.group[0].id, done)))
