"""Where groups are trained: in this process, on this machine's cores, or on a Dask cluster."""

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from seqcls.errors import MachineError, describe_error
from seqcls.results import EpochLosses
from sweeps.results import RunResult
from sweeps.work.jobs import Job, run_job

__all__ = ["Executor", "GroupEnded", "OnJobProgress", "start"]

POLL_SECONDS = 0.1
"""How long a call of `take_ended` waits for something to end."""

OnJobProgress = Callable[[Job, float, Sequence[EpochLosses]], None]
"""Told a job, how many members' worth of its training is done, parts included, and losses of epochs
that have ended; of a group that is soon done it may be told none."""


@dataclass(frozen=True)
class GroupEnded:
    """A group is trained and tested, or was lost with its process, for the reason `lost`."""

    job: Job
    outcomes: list[RunResult]
    lost: str | None = None
    of_machine: bool = False
    """Whether the machine is at fault, so that the group would be lost again."""


class Executor(Protocol):
    """Trains groups, some at a time."""

    @property
    def free(self) -> int:
        """How many groups more it can begin at once."""
        ...

    def expect(self, engines: Sequence[str]) -> None:
        """Groups are about to come, and these are the engines that train them, in their order."""
        ...

    def begin(self, job: Job) -> None:
        """Takes a group to train."""
        ...

    def take_ended(self) -> list[GroupEnded]:
        """The groups that have ended since the last call; it may wait a while for one.

        Raises:
            ClusterError: the cluster is lost, and with it every group.
            MachineError: no process can be started that trains.
        """
        ...

    def abandon(self, job: Job) -> None:
        """Trains a group no further, and never says that it has ended."""
        ...

    def close(self) -> None:
        """Ends now, in the middle of whatever is trained."""
        ...


def is_of_machine(error: BaseException) -> bool:
    """Whether an error is the machine's, by which every group would be lost alike."""
    full = isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
    return full or isinstance(error, MachineError | ImportError)


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

    def take_ended(self) -> list[GroupEnded]:
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
            return [GroupEnded(job, [], describe_error(error), is_of_machine(error))]

    def abandon(self, job: Job) -> None:
        self._abandoned.add(job.number)
        self._waiting = [waiting for waiting in self._waiting if waiting.number != job.number]

    def close(self) -> None:
        """Nothing is left running: training is over when `take_ended` returns."""


# Which executor trains: this process, processes of this machine, or a Dask cluster.


def start(workers: int, dask: str | None, on_progress: OnJobProgress) -> Executor:
    """The executor that these arguments choose; to be closed by the caller.

    Args:
        workers: processes of this machine to train in; with 0, this process trains itself.
        dask: the address of a Dask scheduler, whose workers train instead.
        on_progress: called with the progress of groups, if the executor knows it.

    Raises:
        ClusterError: the cluster cannot be reached.
    """
    # Each is imported where it is used: Dask takes half a second to load, and may be missing.
    if dask is not None:
        from sweeps.work.executors.dask_cluster import DaskCluster

        return DaskCluster(dask)
    if workers == 0:
        return InThisProcess(on_progress)
    from sweeps.work.executors.pool import ProcessPool

    return ProcessPool(workers, on_progress)
