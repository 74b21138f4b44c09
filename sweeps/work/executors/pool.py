"""Training in processes of this machine, each with one thread, since processes use the cores.

A killed process loses only its own group and is replaced; the pools of Python and of loky give up
all running groups when one process dies. Each is a new Python interpreter, so that a script needs
no main guard, and communicates by a connection of `multiprocessing`. One thread for each group
waits for its process, so that a process stopped in the middle of a message blocks no other.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from threading import Thread

from seqcls.engines.base import Progress
from seqcls.engines.choice import engine_named
from seqcls.errors import MachineError, Parameter, describe_error
from seqcls.results import EpochLosses
from sweeps.processes import collect_seldom, keep_freed_memory, python
from sweeps.results import RunResult
from sweeps.work.executors import Executor, OnJobProgress, Results
from sweeps.work.jobs import GroupLostError, Job, try_job

REPORT_SECONDS = 0.5
"""Time between two reports of a group's progress and losses; an epoch may take a thousandth of it.
"""

DEATH_SECONDS = 5.0
"""Time to wait for the end of a process; one that hangs in the kernel takes longer."""


class ProcessPool(Executor):
    """Trains one group at a time in each of its processes."""

    def __init__(self, workers: int, on_progress: OnJobProgress) -> None:
        super().__init__(on_progress)
        self._workers, self._threads = workers, ThreadPoolExecutor(workers)
        self._idle: list[_Process] = []
        self._busy: dict[int, _Process] = {}

    @property
    def slots(self) -> int:
        return self._workers

    def expect(self, engines: Sequence[str]) -> None:
        # Processes import their modules while this one still prepares the first groups.
        more = engines[len(self._idle) : self._workers - len(self._busy)]
        self._idle += [_Process(engine) for engine in more]

    def begin(self, job: Job) -> Results:
        # An idle process may have been killed.
        self._idle = [process for process in self._idle if process.status is None]
        process = self._idle.pop() if self._idle else _Process(job.engine.name)
        self._busy[job.number] = process
        return self._threads.submit(self._train, process, job)

    def _train(self, process: "_Process", job: Job) -> list[RunResult]:
        try:
            return process.train(job, partial(self._on_progress, job))
        finally:
            del self._busy[job.number]
            # Even a dead one, which `begin` skips.
            self._idle.append(process)

    def abandon(self, job: Job) -> None:
        if process := self._busy.get(job.number):
            process.kill()

    def close(self) -> None:
        for process in [*self._idle, *self._busy.values()]:
            process.kill()
        # Last, since it waits for the threads, which wait for their processes.
        self._threads.shutdown()


class _Process:
    """A training process, which trains one group at a time.

    Args:
        engine: the engine that it imports before it is ready; it also trains groups of others.
    """

    def __init__(self, engine: str) -> None:
        self._is_ready = False
        self._pipe, theirs = Pipe()
        command = python("sweeps.work.executors.pool", str(theirs.fileno()), engine)
        # Its end of the pipe is closed here: else its death would go unnoticed. It has a session of
        # its own, since a terminal's signals are handled by the process that hands out groups.
        try:
            with theirs:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        except OSError as error:
            raise _startup_error(describe_error(error)) from None

    def train(self, job: Job, report: Progress) -> list[RunResult]:
        """Sends a group and waits for its results.

        Raises:
            GroupLostError: the process ended, or the training did.
            MachineError: it ended by itself before it could train.
        """
        try:
            if not self._is_ready and (trouble := self._pipe.recv()) is not None:
                raise _startup_error(trouble)
            self._is_ready = True
            self._pipe.send(job)
            while isinstance(answer := self._pipe.recv(), tuple):
                report(*answer)
        except (EOFError, OSError):
            reason = self.kill(DEATH_SECONDS)
            # A negative status is a signal, for which the machine is not at fault.
            if not self._is_ready and self.status is not None and self.status >= 0:
                raise _startup_error(reason) from None
            raise GroupLostError(reason) from None
        if isinstance(answer, GroupLostError):
            raise answer
        results: list[RunResult] = answer
        return results

    @property
    def status(self) -> int | None:
        """The exit status, as by `Popen.poll`; None while it runs."""
        return self._process.poll()

    def kill(self, after: float = 0.0) -> str:
        """Kills it if it has not ended after so many seconds; returns a clause on its end."""
        # Waits for its own end first, then for its death.
        for seconds in (after, DEATH_SECONDS):
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(seconds)
            self._process.kill()
        if self.status in (None, -signal.SIGKILL):
            return "its process was killed, perhaps for lack of memory"
        return f"its process ended with status {self.status}"


def _startup_error(reason: str) -> MachineError:
    return MachineError(
        f"training processes exit at startup ({reason}); fix the cause, or train in this process "
        "instead (",
        Parameter("workers", 0),
        ")",
    )


def _answer(pipe: Connection, engine: str) -> None:
    """Runs a training process: receives jobs through the pipe, and sends reports and results."""
    collect_seldom()
    keep_freed_memory()
    trouble = None
    try:
        engine_named(engine).load()
    except Exception as error:
        trouble = describe_error(error)
    jobs: SimpleQueue[Job] = SimpleQueue()
    # Sending fails only if the parent process is gone.
    with suppress(OSError):
        pipe.send(trouble)
        # A separate thread detects that the parent is gone, even during training.
        Thread(target=_receive, args=(pipe, jobs), daemon=True).start()
        while True:
            try:
                pipe.send(try_job(jobs.get(), _Reporter(pipe)))
            except GroupLostError as lost:
                pipe.send(lost)


def _receive(pipe: Connection, jobs: "SimpleQueue[Job]") -> None:
    try:
        while True:
            jobs.put(pipe.recv())
    finally:
        # The pipe is closed, so the parent is gone, and nobody needs the results.
        os._exit(1)


class _Reporter:
    """Sends the progress of one group at intervals; the engine calls it after every epoch."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe, self._due = pipe, time.monotonic() + REPORT_SECONDS
        self._losses: list[EpochLosses] = []

    def __call__(self, done: float, epochs: Sequence[EpochLosses]) -> None:
        self._losses += epochs
        if time.monotonic() >= self._due:
            self._pipe.send((done, self._losses))
            self._losses, self._due = [], time.monotonic() + REPORT_SECONDS


if __name__ == "__main__":
    _answer(Connection(int(sys.argv[1])), sys.argv[2])
