"""Executors, which train groups in this process, on this machine's cores, or on a Dask cluster.

All return futures: of a group's results, of `GroupLostError` if it was lost, or of another error,
which ends the worker.
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
"""A callback with a job, its progress as a number of members (with fractions), and the losses of
epochs that have ended. It may be called in any thread, or never for a short job.
"""


class Executor:
    """Trains one group at a time in this process, until it ends or a callback abandons it.

    The subclasses train several groups at a time elsewhere.
    """

    def __init__(self, on_progress: OnJobProgress) -> None:
        self._on_progress = on_progress
        self._abandoned: Job | None = None

    @property
    def slots(self) -> int:
        """Number of groups that it can hold at a time."""
        return 1

    def expect(self, engines: Sequence[str]) -> None:
        """Prepares for coming groups, given their engines in order."""

    def begin(self, job: Job) -> Results:
        """Begins to train a group.

        Raises:
            ClusterError: the cluster is lost, and with it every group.
        """
        results = Results()

        def report(done: float, epochs: Sequence[EpochLosses]) -> None:
            try:
                self._on_progress(job, done, epochs)
            except Exception as error:
                # An error in the callback must not be charged to the runs.
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
        """Ends the training of a group."""
        # Training ends at its next report.
        self._abandoned = job

    def close(self) -> None:
        """Ends at once, even during training."""


def lost_cluster(address: str) -> ClusterError:
    """The error for a scheduler that is gone, or has lost its jobs."""
    return ClusterError(
        f"the Dask scheduler at {address} is gone; what was trained is stored, and the same "
        "command continues with the rest"
    )


def start(workers: int, dask: str | None, on_progress: OnJobProgress) -> Executor:
    """Starts the executor that these arguments choose, which the caller closes.

    Args:
        workers: the number of processes of this machine; with 0, this process trains.
        dask: the address of a Dask scheduler, whose workers train instead.
        on_progress: called with the progress of groups, except on Dask.

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
