"""Training on a Dask cluster. Only this process writes to the database, so SQLite is enough."""

import logging
import re
import time
from typing import TYPE_CHECKING, Any

from seqcls import __version__
from seqcls.engines.choice import engine_named
from seqcls.errors import ClusterError, ConfigError, describe_error
from sweeps.results import RunResult
from sweeps.work.executors import Executor, Results, lost_cluster
from sweeps.work.jobs import Job, try_job

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10
COUNT_SECONDS = 2.0
"""Time between two queries of the cluster's size."""

_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d{1,5}")

_QUIET = dict.fromkeys(
    ("distributed", "distributed.client", "distributed.core", "tornado", "tornado.application"),
    "critical",
)
"""Dask's loggers, which would report a lost cluster with tracebacks instead of one line."""

_log = logging.getLogger(__name__)


class DaskCluster(Executor):
    """Trains groups on the workers of a Dask scheduler."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = _connect(address)
        # pure=False: equal jobs are never answered from the cluster's memory.
        self._executor = self._client.get_executor(pure=False)
        self._running: dict[int, Results] = {}
        # Long ago, so that the first access counts them.
        self._threads, self._counted = 1, -COUNT_SECONDS

    @property
    def slots(self) -> int:
        if self._client.status not in ("running", "connecting"):
            raise lost_cluster(self._address)
        if time.monotonic() - self._counted > COUNT_SECONDS:
            self._counted, before = time.monotonic(), self._threads
            try:
                self._threads = sum(self._client.nthreads().values())
            except OSError:
                # The connection is lost, and the client tries to restore it.
                self._threads = 0
            if before and not self._threads:
                _log.warning("the Dask cluster at %s has no workers; waiting", self._address)
        # Two groups a thread, so that none waits for this process.
        return max(1, 2 * self._threads)

    def begin(self, job: Job) -> Results:
        try:
            results: Results = self._executor.submit(_on_cluster, job)
        except Exception as error:
            raise lost_cluster(self._address) from error
        self._running[job.number] = results
        results.add_done_callback(lambda _: self._running.pop(job.number, None))
        return results

    def abandon(self, job: Job) -> None:
        if results := self._running.get(job.number):
            results.cancel()

    def close(self) -> None:
        if self._client.status == "running":
            # A copy, since canceled futures remove themselves.
            for results in [*self._running.values()]:
                results.cancel()
        self._client.close(timeout=CONNECT_SECONDS)


def check_address(address: str) -> None:
    """Raises ConfigError for a text that is no address of a scheduler."""
    if not _ADDRESS.fullmatch(address):
        raise ConfigError(
            f"cannot read the Dask address {address!r}: expected one such as tcp://host:8786"
        )


def _connect(address: str) -> "Client":
    check_address(address)
    try:
        import dask.config

        dask.config.set({"logging": _QUIET})
        from distributed import Client

        # The default client of other code in this process is not changed.
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except ModuleNotFoundError:
        raise ClusterError(
            "a Dask cluster needs the package distributed; install it with: "
            "pip install 'seqcls[dask]'"
        ) from None
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r}; is it started? ({describe_error(error)})"
        ) from None
    # Another version of the program might train other models.
    versions: Any = client.get_versions(packages=["seqcls"])
    for worker, found in versions["workers"].items():
        if (version := found["packages"]["seqcls"]) != __version__:
            client.close()
            raise ClusterError(
                f"the Dask worker {worker} has seqcls {version}, expected {__version__} as here; "
                "install the same version there"
            )
    return client


def _on_cluster(job: Job) -> list[RunResult]:
    if not engine_named(job.engine.name).is_compiled:
        import torch

        # Never reset, since the threads of a Dask worker share the setting.
        torch.set_num_threads(1)
    return try_job(job, lambda _done, _epochs: None)
