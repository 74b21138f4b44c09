"""Training in worker processes, each with one thread, since processes use the cores.

Every process is a pool of its own: one that the system kills takes only its own group with it, and
is replaced.
"""

import multiprocessing
import os
import signal
import threading
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from sweeps.executors.interface import POLL_SECONDS, GroupEnded, OnProgress, named
from sweeps.interruption import SIGNALS
from sweeps.jobs import Job, run_job
from sweeps.outcome import Outcome


class ProcessPool:
    """Trains as many groups at once as it has processes."""

    def __init__(self, workers: int, on_progress: OnProgress) -> None:
        self._workers = workers
        self._on_progress = on_progress
        self._idle: list[_Process] = []
        self._busy: dict[Future[list[Outcome]], tuple[Job, _Process]] = {}

    @property
    def free(self) -> int:
        return self._workers - len(self._busy)

    def begin(self, job: Job) -> None:
        process = self._idle.pop() if self._idle else _Process()
        try:
            future = process.submit(job)
        except BrokenProcessPool:
            # It died while it had nothing to do.
            process = _Process()
            future = process.submit(job)
        self._busy[future] = (job, process)

    def ended(self) -> list[GroupEnded]:
        done = wait(self._busy, POLL_SECONDS, FIRST_COMPLETED).done
        for future, (job, process) in list(self._busy.items()):
            if future not in done:
                self._on_progress(job, process.progress())
        # What was told of the progress may have led to a group being abandoned.
        return [self._end(future) for future in done if future in self._busy]

    def abandon(self, job: Job) -> None:
        for future, (own, process) in list(self._busy.items()):
            if own.number == job.number:
                del self._busy[future]
                process.kill()

    def close(self) -> None:
        for process in [*self._idle, *(process for _, process in self._busy.values())]:
            process.kill()
        self._idle, self._busy = [], {}

    def _end(self, future: Future[list[Outcome]]) -> GroupEnded:
        job, process = self._busy.pop(future)
        error = future.exception()
        if isinstance(error, BrokenProcessPool):
            process.kill()
            return GroupEnded(job, [], "its process was killed, perhaps for lack of memory")
        self._idle.append(process)
        if error is not None:
            return GroupEnded(job, [], named(error))
        return GroupEnded(job, future.result())


class _Process:
    """One worker process, and how far it is."""

    def __init__(self) -> None:
        # Spawned: a forked child would inherit the locks of PyTorch's threads.
        context = multiprocessing.get_context("spawn")
        # Without a lock: a process that is killed while it holds one would block this one.
        self._done = context.Value("d", 0.0, lock=False)
        self._pool = ProcessPoolExecutor(1, context, _begin_process, (self._done,))

    def submit(self, job: Job) -> Future[list[Outcome]]:
        self._done.value = 0.0
        # Signals reach every process of a terminal; the one that hands out groups decides. A
        # process inherits what is blocked while it is made, and never unblocks it.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
        try:
            return self._pool.submit(_in_process, job)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def progress(self) -> float:
        return float(self._done.value)

    def kill(self) -> None:
        # Python 3.14 has ProcessPoolExecutor.kill_workers(); until then there is no public way.
        processes = list((self._pool._processes or {}).values())
        self._pool.shutdown(wait=False, cancel_futures=True)
        for process in processes:
            process.kill()


_done: Any = None
"""In a worker process: where it says how far it is, shared with the one that hands out groups."""


def _begin_process(done: Any) -> None:
    global _done
    _done = done
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """Ends this process when the one that hands out groups is gone, however it went."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _in_process(job: Job) -> list[Outcome]:
    def report(done: float) -> None:
        _done.value = done

    return run_job(job, report)
