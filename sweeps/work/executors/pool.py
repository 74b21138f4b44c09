"""Training in processes of this machine, each with one thread, since processes use the cores.

One that the system kills takes only its own group with it, and is replaced; the pools of Python and
of loky give up all that is running when one process dies. Each is Python started anew, so a script
that trains needs no main guard, and messages go over a connection of `multiprocessing`. A thread
for each process waits for it, so that one that is stopped in the middle of a message blocks nobody.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from seqcls.engines.choice import engine_named
from seqcls.errors import MachineError, Parameter, describe_error
from seqcls.results import EpochLosses
from sweeps.processes import SIGNALS, collect_seldom, keep_freed_memory, python
from sweeps.work.executors import POLL_SECONDS, GroupEnded, OnJobProgress, is_of_machine
from sweeps.work.jobs import Job, run_job

REPORT_SECONDS = 0.5
"""Between two reports of a group's progress and losses; an epoch may take a thousandth of it."""

DEATH_SECONDS = 5.0
"""How long the end of a killed process is waited for; one that hangs in the kernel takes longer."""

Heard = SimpleQueue[tuple["_Process", tuple[Any, ...]]]
"""Messages of processes: `went on`, `ended`, `unable` to train anything, or `gone`."""


class ProcessPool:
    """Trains as many groups at once as it has processes."""

    def __init__(self, workers: int, on_progress: OnJobProgress) -> None:
        self._workers = workers
        self._on_progress = on_progress
        self._idle: list[_Process] = []
        self._busy: dict[_Process, Job] = {}
        self._heard: Heard = SimpleQueue()

    @property
    def free(self) -> int:
        return self._workers - len(self._busy)

    def expect(self, engines: Sequence[str]) -> None:
        # Processes import what they need while this one still makes the first groups ready.
        idle = len(self._idle)
        self._idle += [_Process(name, self._heard) for name in engines[idle : self.free]]

    def begin(self, job: Job) -> None:
        self._idle = [process for process in self._idle if not process.was_killed()]
        process = self._idle.pop() if self._idle else _Process(job.engine.name, self._heard)
        self._busy[process] = job
        process.jobs.put(job)

    def take_ended(self) -> list[GroupEnded]:
        try:
            process, (what, *told) = self._heard.get(timeout=POLL_SECONDS)
        except Empty:
            return []
        if what == "unable":
            raise _startup_error(*told)
        if what == "gone" and process.did_not_start():
            raise _startup_error(process.kill())
        job = self._busy.get(process)
        if job is None:
            # It ended while it had nothing to do, or spoke of a group that was abandoned.
            self._idle = [idle for idle in self._idle if idle is not process]
            return []
        if what == "went on":
            self._on_progress(job, *told)
            return []
        del self._busy[process]
        if what == "gone":
            return [GroupEnded(job, [], process.kill())]
        self._idle.append(process)
        return [GroupEnded(job, *told)]

    def abandon(self, job: Job) -> None:
        for process, running in list(self._busy.items()):
            if running.number == job.number:
                del self._busy[process]
                process.kill()

    def close(self) -> None:
        for process in [*self._idle, *self._busy]:
            process.kill()
        self._idle, self._busy = [], {}


class _Process:
    """A training process, which trains one group at a time.

    Args:
        engine: what it imports before it is ready; it trains groups of others too.
        heard: where its messages go.
    """

    def __init__(self, engine: str, heard: Heard) -> None:
        self.jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._heard = heard
        self._is_ready = False
        self._pipe, theirs = Pipe()
        # Else the end of the process would never be seen here.
        with theirs:
            self._process = _start(theirs.fileno(), engine)
        Thread(target=self._talk, daemon=True).start()

    def _talk(self) -> None:
        """Hands over groups and takes what is said of them, until the process is gone."""
        with self._pipe, suppress(EOFError, OSError):
            while True:
                message = self._pipe.recv()
                if message[0] == "ready":
                    self._is_ready = True
                else:
                    self._heard.put((self, message))
                if message[0] in ("ready", "ended"):
                    self._pipe.send(self.jobs.get())
        self._heard.put((self, ("gone",)))

    def was_killed(self) -> bool:
        """Whether it was killed, perhaps while it had nothing to do."""
        return (self._process.poll() or 0) < 0

    def did_not_start(self) -> bool:
        """Whether it ended by itself before it was ready."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DEATH_SECONDS)
        status = self._process.returncode
        return not self._is_ready and status is not None and status >= 0

    def kill(self) -> str:
        """Ends it, whatever it is at; how it ended."""
        self._process.kill()
        self.jobs.put(None)
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DEATH_SECONDS)
        status = self._process.returncode
        if status is not None and status >= 0:
            return f"its process ended by itself, with status {status}"
        if status in (None, -signal.SIGKILL):
            return "its process was killed, perhaps for lack of memory"
        return f"its process was ended by {signal.Signals(-status).name}"


def _start(pipe: int, engine: str) -> "subprocess.Popen[bytes]":
    # Signals reach every process of a terminal; the one that hands out groups decides. A process
    # inherits what is blocked while it is made, and never unblocks it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        command = python("sweeps.work.executors.pool", str(pipe), engine)
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[pipe])
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _startup_error(reason: str) -> MachineError:
    return MachineError(
        f"training processes exit at startup ({reason}); fix the cause, or train in this process "
        "instead (",
        Parameter("workers", 0),
        ")",
    )


# What a training process does: `python -m sweeps.work.executors.pool PIPE ENGINE`.
#
# It trains the groups that come through the pipe, one after another, and answers each. It ends with
# the process at the other end, however that one ends.


def _train(pipe: Connection, engine: str) -> None:
    collect_seldom()
    keep_freed_memory()
    try:
        engine_named(engine).load()
    except Exception as error:
        return _send(pipe, "unable", describe_error(error))
    _send(pipe, "ready")
    jobs: SimpleQueue[Job] = SimpleQueue()
    Thread(target=_receive, args=(pipe, jobs), daemon=True).start()
    while True:
        job = jobs.get()
        try:
            _send(pipe, "ended", run_job(job, _Reporter(pipe)))
        except Exception as error:
            _send(pipe, "ended", [], describe_error(error), is_of_machine(error))


def _send(pipe: Connection, *message: object) -> None:
    try:
        pipe.send(message)
    except OSError:
        # The process that would take it is gone.
        os._exit(1)


def _receive(pipe: Connection, jobs: "SimpleQueue[Job]") -> None:
    try:
        while True:
            jobs.put(pipe.recv())
    finally:
        os._exit(1)


class _Reporter:
    """Reports the progress of one group, now and then; the engine calls it after every epoch."""

    def __init__(self, pipe: Connection) -> None:
        self._pipe = pipe
        self._due = time.monotonic() + REPORT_SECONDS
        self._losses: list[EpochLosses] = []

    def __call__(self, done: float, epochs: Sequence[EpochLosses]) -> None:
        self._losses += epochs
        if time.monotonic() >= self._due:
            _send(self._pipe, "went on", done, self._losses)
            self._losses, self._due = [], time.monotonic() + REPORT_SECONDS


if __name__ == "__main__":
    _train(Connection(int(sys.argv[1])), sys.argv[2])
