"""Training in processes of this machine, each with one thread, since processes use the cores.

One that the system kills takes only its own group with it, and is replaced; the pools of Python and
of loky give up all that is running when one process dies. Each is Python started anew, so a script
that trains needs no main guard, and messages go over a connection of `multiprocessing`. A thread
for each group waits for its process, so that one that is stopped in the middle of a message blocks
nobody.
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
"""Between two reports of a group's progress and losses; an epoch may take a thousandth of it."""

DEATH_SECONDS = 5.0
"""How long the end of a process is waited for; one that hangs in the kernel takes longer."""


class ProcessPool(Executor):
    """Trains as many groups at once as it has processes."""

    def __init__(self, workers: int, on_progress: OnJobProgress) -> None:
        super().__init__(on_progress)
        self._workers, self._threads = workers, ThreadPoolExecutor(workers)
        self._idle: list[_Process] = []
        self._busy: dict[int, _Process] = {}

    @property
    def slots(self) -> int:
        return self._workers

    def expect(self, engines: Sequence[str]) -> None:
        # Processes import what they need while this one still makes the first groups ready.
        more = engines[len(self._idle) : self._workers - len(self._busy)]
        self._idle += [_Process(engine) for engine in more]

    def begin(self, job: Job) -> Results:
        # One may have been killed while it had nothing to do.
        self._idle = [process for process in self._idle if process.status is None]
        process = self._idle.pop() if self._idle else _Process(job.engine.name)
        self._busy[job.number] = process
        return self._threads.submit(self._train, process, job)

    def _train(self, process: "_Process", job: Job) -> list[RunResult]:
        try:
            return process.train(job, partial(self._on_progress, job))
        finally:
            del self._busy[job.number]
            # One that has died goes back, too: `begin` passes over it.
            self._idle.append(process)

    def abandon(self, job: Job) -> None:
        if process := self._busy.get(job.number):
            process.kill()

    def close(self) -> None:
        for process in [*self._idle, *self._busy.values()]:
            process.kill()
        # Only now, since it waits for the threads, and these for their processes.
        self._threads.shutdown()


class _Process:
    """A training process, which trains one group at a time.

    Args:
        engine: what it imports before it is ready; it trains groups of others too.
    """

    def __init__(self, engine: str) -> None:
        self._is_ready = False
        self._pipe, theirs = Pipe()
        command = python("sweeps.work.executors.pool", str(theirs.fileno()), engine)
        # Closed here: else the end of the process would never be seen. Signals reach every process
        # of a terminal's session; the one that hands out groups decides, so this has its own.
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
        """Hands over a group and waits for its results.

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
            # A negative status is a signal, which says nothing of the machine.
            if not self._is_ready and self.status is not None and self.status >= 0:
                raise _startup_error(reason) from None
            raise GroupLostError(reason) from None
        if isinstance(answer, GroupLostError):
            raise answer
        results: list[RunResult] = answer
        return results

    @property
    def status(self) -> int | None:
        """How it ended, as of `Popen.poll`; None where it goes on."""
        return self._process.poll()

    def kill(self, after: float = 0.0) -> str:
        """Ends it, whatever it is at, where it has not ended after so many seconds; how it did."""
        # First whether it ends by itself, then whether it is dead.
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
    """What a training process does: jobs come through the pipe, reports and results go back."""
    collect_seldom()
    keep_freed_memory()
    trouble = None
    try:
        engine_named(engine).load()
    except Exception as error:
        trouble = describe_error(error)
    jobs: SimpleQueue[Job] = SimpleQueue()
    # Where nobody takes an answer any longer, the process that would is gone.
    with suppress(OSError):
        pipe.send(trouble)
        # A thread of its own notices that the parent is gone, even during training.
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
        # The pipe is closed, so its reader is gone: what is trained is for nobody.
        os._exit(1)


class _Reporter:
    """Reports the progress of one group, now and then; the engine calls it after every epoch."""

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
