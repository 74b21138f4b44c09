"""Training on a Dask cluster. Only this process writes to the database, so SQLite is enough."""

import logging
import re
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TYPE_CHECKING

from seqcls import __version__
from seqcls.errors import ClusterError, ConfigError, describe_error
from sweeps.results import RunResult
from sweeps.work.executors import POLL_SECONDS, GroupEnded
from sweeps.work.jobs import Job, run_job

if TYPE_CHECKING:
    from distributed import Client

CONNECT_SECONDS = 10
COUNT_SECONDS = 2.0
"""How often the cluster is asked for its size."""

GROUPS_A_THREAD = 2
"""So many groups a cluster's thread has in hand, so that none waits for this process."""


_log = logging.getLogger(__name__)


class DaskCluster:
    """Trains groups on the workers of a Dask scheduler."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._client = _connect(address)
        # pure=False: equal jobs are jobs of their own, never answered from the cluster's memory.
        self._executor = self._client.get_executor(pure=False)
        self._running: dict[Future[list[RunResult]], Job] = {}
        self._threads = 0
        self._said_empty = False
        self._counted = -COUNT_SECONDS

    @property
    def free(self) -> int:
        if time.monotonic() - self._counted > COUNT_SECONDS:
            self._threads = self._ask_for_threads()
            self._counted = time.monotonic()
            self._say_whether_it_has_workers()
        return max(1, GROUPS_A_THREAD * self._threads) - len(self._running)

    def expect(self, engines: Sequence[str]) -> None:
        """There is nothing to get ready: the cluster's workers run already."""

    def begin(self, job: Job) -> None:
        try:
            self._running[self._executor.submit(_on_cluster, job)] = job
        except Exception as error:
            raise self._lost_error() from error

    def take_ended(self) -> list[GroupEnded]:
        done = wait(self._running, POLL_SECONDS, FIRST_COMPLETED).done
        if self._client.status not in ("running", "connecting"):
            raise self._lost_error()
        return [self._end(future) for future in done]

    def abandon(self, job: Job) -> None:
        for future, running in list(self._running.items()):
            if running.number == job.number:
                del self._running[future]
                future.cancel()

    def close(self) -> None:
        if self._client.status == "running":
            for future in self._running:
                future.cancel()
        self._client.close(timeout=CONNECT_SECONDS)

    def _end(self, future: "Future[list[RunResult]]") -> GroupEnded:
        job = self._running.pop(future)
        try:
            return GroupEnded(job, future.result())
        except (CancelledError, OSError):
            # The scheduler has forgotten it, as a new one at the same address would.
            raise self._lost_error() from None
        except Exception as error:
            return GroupEnded(job, [], describe_error(error))

    def _say_whether_it_has_workers(self) -> None:
        if self._threads == 0 and not self._said_empty:
            _log.warning("the Dask cluster at %s has no workers; waiting for some", self._address)
        self._said_empty = self._threads == 0

    def _ask_for_threads(self) -> int:
        try:
            return sum(self._client.nthreads().values())
        except OSError:
            # The connection is lost; whether for good, the client is finding out.
            return 0

    def _lost_error(self) -> ClusterError:
        return ClusterError(
            f"the Dask scheduler at {self._address} is gone; what was trained is stored, and the "
            "same command continues with the rest"
        )


_ADDRESS = re.compile(r"(tcp|tls|ws|wss|ucx)://[^\s/]+:\d{1,5}")

_QUIET = dict.fromkeys(
    ("distributed", "distributed.client", "distributed.core", "tornado", "tornado.application"),
    "critical",
)
"""Dask tells what it loses with tracebacks; here a lost cluster is told in one line."""


def check_address(address: str) -> None:
    """Refuses what is no address of a scheduler.

    Raises:
        ConfigError: as said.
    """
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
    except ModuleNotFoundError:
        raise ClusterError(
            "a Dask cluster needs the package distributed; install it with: "
            "pip install 'seqcls[dask]'"
        ) from None
    try:
        client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise ClusterError(
            f"no Dask scheduler answers at {address!r}; is it started? ({describe_error(error)})"
        ) from None
    _check_versions(client)
    return client


def _check_versions(client: "Client") -> None:
    """Another version of the program might train other models."""
    try:
        versions = client.run(_version)
    except Exception as error:
        client.close()
        raise ClusterError(
            f"the cluster's workers cannot load seqcls {__version__}; install it there "
            f"({describe_error(error)})"
        ) from None
    for worker, version in versions.items():
        if version != __version__:
            client.close()
            raise ClusterError(
                f"the Dask worker {worker} has seqcls {version}, expected {__version__} as here; "
                "install the same version there"
            )


def _version() -> str:
    return __version__


def _on_cluster(job: Job) -> list[RunResult]:
    return run_job(job, lambda _done, _epochs: None)
