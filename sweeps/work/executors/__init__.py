"""Where groups are trained: in this process, on this machine's cores, or on a Dask cluster."""

from sweeps.work.executors.interface import Executor, GroupEnded, OnJobProgress
from sweeps.work.executors.starting import start

__all__ = ["Executor", "GroupEnded", "OnJobProgress", "start"]
