"""Where groups are trained: in this process, or on this machine's cores."""

import multiprocessing
import queue
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol

from sweeps.grouping import RunGroup
from sweeps.jobs import run_group
from sweeps.outcome import Outcome

POLL_SECONDS = 0.1

OnEpoch = Callable[[RunGroup, int, int], None]
"""Told a group, the epoch that it ended, and how many of its members are left to train."""


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

    def begin(self, group: RunGroup) -> None:
        """Takes a group to train."""
        ...

    def ended(self) -> list[GroupEnded]:
        """The groups that have ended since the last call; it may wait a while for one."""
        ...


@contextmanager
def local_executor(workers: int, device: str, on_epoch: OnEpoch) -> Iterator[Executor]:
    """Trains in this process with one worker, else in that many processes of one thread each."""
    if workers == 1:
        yield InThisProcess(device, on_epoch)
        return
    pool = ProcessPool(workers, device, on_epoch)
    try:
        yield pool
    finally:
        pool.kill()


class InThisProcess:
    """Trains one group after another, right here."""

    def __init__(self, device: str, on_epoch: OnEpoch) -> None:
        self._device = device
        self._on_epoch = on_epoch
        self._waiting: list[RunGroup] = []

    @property
    def free(self) -> int:
        return 1 - len(self._waiting)

    def begin(self, group: RunGroup) -> None:
        self._waiting.append(group)

    def ended(self) -> list[GroupEnded]:
        group = self._waiting.pop()

        def report(epoch: int, left: int) -> None:
            self._on_epoch(group, epoch, left)

        return [GroupEnded(group, run_group(group, self._device, report))]


class ProcessPool:
    """Trains groups in worker processes, each with one thread, since processes use the cores."""

    def __init__(self, workers: int, device: str, on_epoch: OnEpoch) -> None:
        # Spawned: a forked child would inherit the locks of PyTorch's threads.
        self._context = multiprocessing.get_context("spawn")
        self._reports: multiprocessing.Queue[tuple[int, int, int]] = self._context.Queue()
        self._workers = workers
        self._device = device
        self._on_epoch = on_epoch
        self._running: dict[Future[list[Outcome]], RunGroup] = {}
        self._pool = self._new_pool()

    @property
    def free(self) -> int:
        return self._workers - len(self._running)

    def begin(self, group: RunGroup) -> None:
        self._running[self._pool.submit(_in_process, group, self._device)] = group

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
                ended.append(GroupEnded(group, [], f"{type(error).__name__}: {error}"))
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
                first, epoch, left = self._reports.get_nowait()
            except queue.Empty:
                return
            if first in groups:
                self._on_epoch(groups[first], epoch, left)


_reports: "multiprocessing.Queue[tuple[int, int, int]] | None" = None
"""In a worker process: where its epochs are reported to."""


def _begin_process(reports: "multiprocessing.Queue[tuple[int, int, int]]") -> None:
    global _reports
    _reports = reports
    # Ctrl-C reaches every process of a terminal; the one that hands out groups decides.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _in_process(group: RunGroup, device: str) -> list[Outcome]:
    assert _reports is not None
    put = _reports.put
    return run_group(group, device, lambda epoch, left: put((group[0].id, epoch, left)))
