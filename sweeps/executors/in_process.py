"""Training in this very process."""

from sweeps.executors.interface import GroupEnded, OnProgress, named
from sweeps.grouping import RunGroup
from sweeps.jobs import Job, run_job


class _AbandonedError(Exception):
    """Leads out of the training of a group that was abandoned."""


class InThisProcess:
    """Trains one group after another, right here."""

    def __init__(self, on_progress: OnProgress) -> None:
        self._on_progress = on_progress
        self._waiting: list[Job] = []
        self._abandoned: set[int] = set()

    @property
    def free(self) -> int:
        return 1 - len(self._waiting)

    def begin(self, job: Job) -> None:
        self._waiting.append(job)

    def ended(self) -> list[GroupEnded]:
        job = self._waiting.pop()

        def report(done: float) -> None:
            self._on_progress(job.group, done)
            if job.group[0].id in self._abandoned:
                raise _AbandonedError

        try:
            return [GroupEnded(job.group, run_job(job, report))]
        except _AbandonedError:
            return []
        except Exception as error:
            # As in a pool: what one group dies of does not end the others.
            return [GroupEnded(job.group, [], named(error))]

    def abandon(self, group: RunGroup) -> None:
        self._abandoned.add(group[0].id)
        self._waiting = [job for job in self._waiting if job.group != group]

    def close(self) -> None:
        """Nothing is left running: training is over when `ended` returns."""
