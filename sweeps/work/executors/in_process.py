"""Training in this very process."""

from collections.abc import Sequence

from seqcls.errors import named
from seqcls.results import EpochLosses
from sweeps.work.executors.interface import GroupEnded, OnJobProgress, is_of_machine
from sweeps.work.jobs import Job, run_job


class _AbandonedError(Exception):
    """Leads out of the training of a group that was abandoned."""


class _ReportError(Exception):
    """Leads out of the training of a group whose progress could not be reported."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


class InThisProcess:
    """Trains one group after another, right here."""

    def __init__(self, on_progress: OnJobProgress) -> None:
        self._on_progress = on_progress
        self._waiting: list[Job] = []
        self._abandoned: set[int] = set()

    @property
    def free(self) -> int:
        return 1 - len(self._waiting)

    def expect(self, engines: Sequence[str]) -> None:
        """There is nothing to get ready: what groups need is imported as they are trained."""

    def begin(self, job: Job) -> None:
        self._waiting.append(job)

    def ended(self) -> list[GroupEnded]:
        if not self._waiting:
            return []
        job = self._waiting.pop()
        # What was abandoned before is over: one at a time is trained here.
        self._abandoned.clear()

        def report(done: float, epochs: Sequence[EpochLosses]) -> None:
            try:
                self._on_progress(job, done, epochs)
            except Exception as error:
                raise _ReportError(error) from error
            if job.number in self._abandoned:
                raise _AbandonedError

        try:
            return [GroupEnded(job, run_job(job, report))]
        except _AbandonedError:
            return []
        except _ReportError as led_out:
            raise led_out.reason from None
        except Exception as error:
            # As in a pool: what one group dies of does not end the others.
            return [GroupEnded(job, [], named(error), is_of_machine(error))]

    def abandon(self, job: Job) -> None:
        self._abandoned.add(job.number)
        self._waiting = [waiting for waiting in self._waiting if waiting.number != job.number]

    def close(self) -> None:
        """Nothing is left running: training is over when `ended` returns."""
