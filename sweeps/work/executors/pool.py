"""Training in worker processes, each with one thread, since processes use the cores.

One that the system kills takes only its own group with it, and is replaced.
"""

import selectors
from collections.abc import Sequence

from sweeps.work.executors.interface import POLL_SECONDS, GroupEnded, OnJobProgress
from sweeps.work.executors.training_process import ProcessDiedError, TrainingProcess
from sweeps.work.jobs import Job


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

    def ended(self) -> list[GroupEnded]:
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
        except ProcessDiedError:
            del self._busy[number]
            return GroupEnded(job, [], process.kill())
        if answer is None:
            return None
        del self._busy[number]
        self._idle.append(process)
        return GroupEnded(job, *answer)
