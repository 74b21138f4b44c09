"""Which executor trains: this process, processes of this machine, or a Dask cluster."""

from sweeps.work.executors.interface import Executor, OnJobProgress


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
        from sweeps.work.executors.in_process import InThisProcess

        return InThisProcess(on_progress)
    from sweeps.work.executors.pool import ProcessPool

    return ProcessPool(workers, on_progress)
