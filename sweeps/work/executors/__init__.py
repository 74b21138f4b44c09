"""Where groups are trained: in this process, on this machine's cores, or on a Dask cluster.

All answer with futures: a group's results, `GroupLostError` where it was lost, or another error
that ends the worker.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from seqcls.cancellation import Cancelled
from seqcls.errors import ClusterError
from seqcls.results import EpochLosses
from sweeps.results import RunResult
from sweeps.work.jobs import GroupLostError, Job, try_job

Results = Future[list[RunResult]]

OnJobProgress = Callable[[Job, float, Sequence[EpochLosses]], None]
"""Told a job, how many members' worth of its training is done, parts included, and losses of epochs
that have ended; of a group that is soon done it may be told none. It may be called in any thread.
"""


class Executor:
    """Trains a group right here, until it ends or is abandoned by whoever hears of its progress.

    Other executors train elsewhere, some at a time.
    """

    def __init__(self, on_progress: OnJobProgress) -> None:
        self._on_progress = on_progress
        self._abandoned: Job | None = None

    @property
    def slots(self) -> int:
        """How many groups it can have in hand at once."""
        return 1

    def expect(self, engines: Sequence[str]) -> None:
        """Groups are about to come, and these are the engines that train them, in their order."""

    def begin(self, job: Job) -> Results:
        """Takes a group to train.

        Raises:
            ClusterError: the cluster is lost, and with it every group.
        """
        results = Results()

        def report(done: float, epochs: Sequence[EpochLosses]) -> None:
            try:
                self._on_progress(job, done, epochs)
            except Exception as error:
                # What is wrong with the report is no fault of the runs.
                raise Cancelled from error
            if self._abandoned is job:
                raise Cancelled

        try:
            results.set_result(try_job(job, report))
        except GroupLostError as lost:
            results.set_exception(lost)
        except Cancelled as left:
            if left.__cause__ is not None:
                raise left.__cause__ from None
        return results

    def abandon(self, job: Job) -> None:
        """Trains a group no further."""
        # Training hears of it at its next report, which then ends it.
        self._abandoned = job

    def close(self) -> None:
        """Ends now, in the middle of whatever is trained."""


def lost_cluster(address: str) -> ClusterError:
    """What is said of a scheduler that has gone, or has forgotten what it was given."""
    return ClusterError(
        f"the Dask scheduler at {address} is gone; what was trained is stored, and the same "
        "command continues with the rest"
    )


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
        return Executor(on_progress)
    from sweeps.work.executors.pool import ProcessPool

    return ProcessPool(workers, on_progress)
