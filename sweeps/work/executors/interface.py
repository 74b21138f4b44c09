"""What every executor can do, and what it says of a group that ended."""

import errno
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from seqcls.errors import MachineError
from seqcls.results import EpochLosses
from sweeps.results.run_result import RunResult
from sweeps.work.jobs import Job

POLL_SECONDS = 0.1
"""How long a call of `ended` waits for something to end."""

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

    def ended(self) -> list[GroupEnded]:
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
