"""One process that trains, as the process that hands out groups sees it.

The two share a socket, of whose other end this process keeps no copy: when the training process
dies, even in the middle of a message, the stream ends here. Nothing here waits for it, so a process
that is stopped in the middle of a message blocks nothing.
"""

import os
import selectors
import signal
import socket
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import suppress

from seqcls.errors import MachineError, Parameter
from seqcls.results import EpochLosses
from sweeps.processes import SIGNALS, python
from sweeps.results import RunResult
from sweeps.work.executors import POLL_SECONDS, GroupEnded, OnJobProgress
from sweeps.work.executors.messages import CHUNK_BYTES, READY, Channel, ClosedError, read_report
from sweeps.work.jobs import Job

_TRAIN_HERE = "sweeps.work.executors.train_here"

DEATH_SECONDS = 5.0
"""How long the end of a killed process is waited for; one that hangs in the kernel takes longer."""

Answer = tuple[list[RunResult], str | None, bool]
"""The outcomes of a group, or none and the reason why it was lost; and whether the machine, not the
group, is at fault."""


MAX_LAST_WORDS = 10_000


class TrainingProcess:
    """Trains one group at a time.

    Args:
        engine: what it imports before it is ready; it trains groups of others too.
    """

    def __init__(self, engine: str) -> None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        self._channel = Channel(ours)
        self._progress, progress = os.pipe()
        # Output before it is ready is a traceback, of which one line is shown.
        self._last_words = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the others)
        try:
            self._process = _start(theirs.fileno(), progress, self._last_words.fileno(), engine)
        except BaseException:
            self._close()
            raise
        finally:
            # Else neither this process nor the next that is started would ever see the end of it.
            theirs.close()
            os.close(progress)
        os.set_blocking(self._progress, False)
        self._done = 0.0
        self._is_ready = False

    def fileno(self) -> int:
        return self._channel.fileno()

    @property
    def pid(self) -> int:
        """Its number, as the system knows it."""
        return self._process.pid

    @property
    def events(self) -> int:
        """What is waited for: an answer, and that it takes the rest of a group."""
        return selectors.EVENT_READ | (selectors.EVENT_WRITE if self._channel.is_sending else 0)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def did_not_start(self) -> bool:
        """Whether it ended by itself before it was ready; `go_on` raises the reason."""
        return not self._is_ready and (self._process.poll() or 0) > 0

    def begin(self, job: Job) -> None:
        """Hands it a group to train; what does not go through at once goes with `go_on`."""
        self.progress()
        self._done = 0.0
        self._channel.put(job)
        # Where it is dead already, `go_on` finds that out.
        with suppress(ClosedError):
            self._channel.send()

    def go_on(self) -> Answer | None:
        """Takes and gives what is ready to be; the answer once it is there.

        Raises:
            ClosedError: there will be none: the process is gone, and with it what it trained.
            MachineError: it ended before it was ready for any group.
        """
        try:
            self._channel.send()
            self._channel.receive()
        except ClosedError:
            self._take_ready()
            if not self._is_ready and (reason := self._why_it_did_not_start()) is not None:
                raise MachineError(
                    f"training processes exit at startup ({reason}); fix the cause, or train in "
                    "this process instead (",
                    Parameter("workers", 0),
                    ")",
                ) from None
            raise
        self._take_ready()
        answer: Answer | None = self._channel.next() if self._is_ready else None
        return answer

    def _take_ready(self) -> None:
        if not self._is_ready:
            self._is_ready = self._channel.next() == READY

    def _why_it_did_not_start(self) -> str | None:
        """Its last line of output if it ended by itself; None if it was killed."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DEATH_SECONDS)
        if self._process.returncode is None or self._process.returncode < 0:
            return None
        size = self._last_words.seek(0, os.SEEK_END)
        self._last_words.seek(max(0, size - MAX_LAST_WORDS))
        said = self._last_words.read().decode(errors="replace").strip().splitlines()
        return " ".join((said or ["it said nothing"])[-1].split())[:300]

    def progress(self) -> tuple[float, list[EpochLosses]]:
        """How many members' worth of training of the current group is done, and the losses that
        arrived since the last call.
        """
        epochs: list[EpochLosses] = []
        with suppress(BlockingIOError):
            while piece := os.read(self._progress, CHUNK_BYTES):
                self._done, losses = read_report(piece)
                epochs += losses
        return self._done, epochs

    def kill(self) -> str:
        """Ends it, whatever it is at; how it ended."""
        self._process.kill()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(DEATH_SECONDS)
        self._close()
        return _end(self._process.returncode)

    def _close(self) -> None:
        self._channel.close()
        self._last_words.close()
        os.close(self._progress)


def _start(channel: int, progress: int, last_words: int, engine: str) -> "subprocess.Popen[bytes]":
    # Signals reach every process of a terminal; the one that hands out groups decides. A process
    # inherits what is blocked while it is made, and never unblocks it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    errors = _standard_error()
    try:
        return subprocess.Popen(
            python(_TRAIN_HERE, str(channel), str(progress), str(errors), engine),
            stdin=subprocess.DEVNULL,
            stderr=last_words,
            pass_fds=(channel, progress, errors),
        )
    finally:
        os.close(errors)
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def _standard_error() -> int:
    """Another number of this process's standard error, for the one that it starts."""
    try:
        return os.dup(2)
    except OSError:
        # This process was started without one.
        return os.open(os.devnull, os.O_WRONLY)


def _end(status: int | None) -> str:
    if status is not None and status >= 0:
        return f"its process ended by itself, with status {status}"
    if status in (None, -signal.SIGKILL):
        return "its process was killed, perhaps for lack of memory"
    return f"its process was ended by {signal.Signals(-status).name}"


# Training in worker processes, each with one thread, since processes use the cores.
#
# One that the system kills takes only its own group with it, and is replaced.


class ProcessPool:
    """Trains as many groups at once as it has processes."""

    def __init__(self, workers: int, on_progress: OnJobProgress) -> None:
        self._workers = workers
        self._on_progress = on_progress
        self._idle: list[TrainingProcess] = []
        self._busy: dict[int, tuple[Job, TrainingProcess]] = {}

    @property
    def free(self) -> int:
        return self._workers - len(self._busy)

    def expect(self, engines: Sequence[str]) -> None:
        # Processes import what they need while this one still makes the first groups ready.
        idle = len(self._idle)
        self._idle += [TrainingProcess(name) for name in engines[idle : self.free]]

    def begin(self, job: Job) -> None:
        process = self._idle_one() or TrainingProcess(job.engine.name)
        self._busy[job.number] = (job, process)
        process.begin(job)

    def take_ended(self) -> list[GroupEnded]:
        ready = self._ready()
        for number, (job, process) in list(self._busy.items()):
            # The reports of progress may have led to groups being abandoned.
            if number in self._busy:
                self._on_progress(job, *process.progress())
        answers = [self._answer(number) for number in ready if number in self._busy]
        return [answer for answer in answers if answer is not None]

    def abandon(self, job: Job) -> None:
        _, process = self._busy.pop(job.number, (None, None))
        if process is not None:
            process.kill()

    def close(self) -> None:
        for process in [*self._idle, *(process for _, process in self._busy.values())]:
            process.kill()
        self._idle, self._busy = [], {}

    def _idle_one(self) -> TrainingProcess | None:
        while self._idle:
            process = self._idle.pop()
            if process.is_alive() or process.did_not_start():
                return process
            # It was killed while it had nothing to do.
            process.kill()
        return None

    def _ready(self) -> list[int]:
        """The jobs of processes that have something to say, or take more; it waits for one."""
        with selectors.DefaultSelector() as selector:
            for number, (_, process) in self._busy.items():
                selector.register(process, process.events, number)
            return [key.data for key, _ in selector.select(POLL_SECONDS)]

    def _answer(self, number: int) -> GroupEnded | None:
        job, process = self._busy[number]
        try:
            answer = process.go_on()
        except ClosedError:
            del self._busy[number]
            return GroupEnded(job, [], process.kill())
        if answer is None:
            return None
        del self._busy[number]
        self._idle.append(process)
        return GroupEnded(job, *answer)
