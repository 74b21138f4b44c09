"""A Dask cluster that loses a worker or its scheduler: it costs time and no result."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

import sweeps.work.executors.dask_cluster
from sweeps.store.opening import open_reader
from tests import plugins
from tests.chaos.conftest import long_alone
from tests.chaos.contents import contents
from tests.chaos.sending import last_words
from tests.chaos.swept import assert_whole, sweep, written
from tests.commands import SEQCLS, run_main
from tests.conftest import ROOT
from tests.databases import rows


@dataclass
class Cluster:
    """A scheduler and two workers in separate processes, where a plug-in is installed."""

    address: str
    scheduler: "subprocess.Popen[bytes]"
    workers: list["subprocess.Popen[bytes]"]
    start_worker: Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    path = folder / "scheduler.json"
    here = ("--host", "127.0.0.1")
    with ExitStack() as stack:

        def start(*arguments: str) -> "subprocess.Popen[bytes]":
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *arguments],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": plugins.PYTHONPATH},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start(
            "scheduler", *here, "--port", "0", "--no-dashboard", "--scheduler-file", str(path)
        )
        worker = ("worker", *here, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        files = ("--scheduler-file", str(path), "--local-directory", str(folder))
        start_worker = partial(start, *worker, *files)
        workers = [start_worker() for _ in range(2)]
        deadline = time.monotonic() + 60
        while not path.exists() or not path.stat().st_size:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        address = json.loads(path.read_text())["address"]
        yield Cluster(address, scheduler, workers, start_worker)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written("many", tmp_path_factory.mktemp("clustered"))


def on_cluster(cluster: Cluster, file: Path, db: Path) -> "subprocess.Popen[str]":
    """The sweep as the cluster trains it."""
    command = [*SEQCLS, "sweep", str(file), "--db", str(db), "--dask", cluster.address]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def wait_for_results(db: Path, at_least: int) -> None:
    """Waits until at least so many of the 48 runs are done."""
    done = 0
    while done < at_least:
        time.sleep(0.02)
        if db.exists() and rows(db, "SELECT name FROM sqlite_master WHERE name = 'run'"):
            ((done,),) = rows(db, "SELECT count(*) FROM run WHERE state = 'done'")
    assert done < 48


@pytest.mark.cases(10)
def test_a_killed_dask_worker_costs_no_result(
    cluster: Cluster, file: Path, tmp_path: Path, seed: int
) -> None:
    db = tmp_path / "x.db"
    with on_cluster(cluster, file, db) as process:
        wait_for_results(db, 1 + seed * 12 % 40)
        cluster.workers.pop(0).kill()
        cluster.workers.append(cluster.start_worker())
        message = last_words(process)
    assert process.returncode == 0, message
    assert "Traceback" not in message
    assert_whole(db, "many")


@long_alone
def test_parts_from_outside_are_trained_on_a_cluster(
    cluster: Cluster,
    trained_by_processes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", plugins.PYTHONPATH)
    there = plugins.swept(tmp_path, "there", "--dask", cluster.address)
    assert contents(open_reader(str(there))) == contents(open_reader(str(trained_by_processes)))


@long_alone
def test_a_killed_scheduler_is_reported_and_the_sweep_resumes_without_it(
    cluster: Cluster, file: Path, tmp_path: Path
) -> None:
    db = tmp_path / "x.db"
    with on_cluster(cluster, file, db) as process:
        wait_for_results(db, 1)
        cluster.scheduler.send_signal(signal.SIGKILL)
        message = last_words(process)
    assert process.returncode == 3, message
    assert f"the Dask scheduler at {cluster.address} is gone" in message
    assert "Traceback" not in message
    sweep(db, "many")
    assert_whole(db, "many")


def test_an_address_without_a_scheduler_is_refused_in_one_line(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps.work.executors.dask_cluster, "CONNECT_SECONDS", 1)
    for address, status, line in (
        ("tcp://127.0.0.1:1", 3, "no Dask scheduler answers at 'tcp://127.0.0.1:1'"),
        ("nonsense://x", 2, "cannot read the Dask address 'nonsense://x'"),
    ):
        command = ("sweep", str(file), "--db", str(tmp_path / "x.db"), "--dask", address)
        completed = run_main(*command)
        # Before it stands what is known of the strings.
        *_, message = completed.stderr.splitlines()
        assert completed.returncode == status
        assert message.startswith(f"seqcls: {line}")
