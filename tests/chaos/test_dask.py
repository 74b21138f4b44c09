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
from typer.testing import CliRunner

import sweeps.work.executors.dask_cluster
from seqcls.errors import ClusterError, ConfigError
from sweeps.cli.app import app
from sweeps.grid.spec import read_spec
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests import plugins
from tests.chaos.contents import contents
from tests.commands import SEQCLS
from tests.conftest import ROOT, SHORT
from tests.databases import rows

SPEC = "\n".join(
    [
        'name = "clustered"\nmodel_seeds = "0..7"\n[fixed]',
        *(f"{name} = {value}" for name, value in {**SHORT, "train_size": 8192}.items()),
        f"[axes]\ntrain_seed = {list(range(1, 21))}\n",
    ]
)
"""160 runs in 20 groups."""


@dataclass
class Cluster:
    """A scheduler and two workers, each a process of its own, where a plug-in is installed."""

    address: str
    scheduler: "subprocess.Popen[bytes]"
    workers: list["subprocess.Popen[bytes]"]
    start_worker: Callable[[], "subprocess.Popen[bytes]"]


def dask(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "dask", *arguments]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("cluster")
    said = folder / "scheduler.json"
    here = ("--host", "127.0.0.1")
    with ExitStack() as stack:

        def start(*arguments: str) -> "subprocess.Popen[bytes]":
            process = subprocess.Popen(
                dask(*arguments),
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": plugins.PYTHONPATH},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start(
            "scheduler", *here, "--port", "0", "--no-dashboard", "--scheduler-file", str(said)
        )
        worker = ("worker", *here, "--nthreads", "1", "--no-nanny", "--no-dashboard")
        files = ("--scheduler-file", str(said), "--local-directory", str(folder))
        start_worker = partial(start, *worker, *files)
        workers = [start_worker() for _ in range(2)]
        deadline = time.monotonic() + 60
        while not said.exists() or not said.stat().st_size:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        address = json.loads(said.read_text())["address"]
        yield Cluster(address, scheduler, workers, start_worker)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    folder = tmp_path_factory.mktemp("clustered")
    spec = folder / "clustered.toml"
    spec.write_text(SPEC)
    return spec, contents(swept_here(spec, folder / "undisturbed.db"))


def swept_here(spec: Path, db: Path) -> Store:
    """The sweep to its end, or what is left of it, in this process."""
    store = open_writer(str(db))
    work(store, [writer.submit(store, read_spec(spec))], WorkOptions(0))
    return store


def on_cluster(cluster: Cluster, spec: Path, db: Path) -> "subprocess.Popen[str]":
    """The sweep as the cluster trains it."""
    command = [*SEQCLS, "sweep", str(spec), "--db", str(db), "--dask", cluster.address]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT)


def wait_for_results(db: Path, at_least: int) -> None:
    """Until so many of the 160 runs are done."""
    done = 0
    while done < at_least:
        time.sleep(0.02)
        if db.exists() and rows(db, "SELECT name FROM sqlite_master WHERE name = 'run'"):
            ((done,),) = rows(db, "SELECT count(*) FROM run WHERE state = 'done'")
    assert done < 160


@pytest.mark.cases(10)
def test_a_killed_dask_worker_costs_no_result(
    cluster: Cluster, undisturbed: tuple[Path, dict[str, str]], tmp_path: Path, seed: int
) -> None:
    spec, wanted = undisturbed
    db = tmp_path / "x.db"
    with on_cluster(cluster, spec, db) as process:
        wait_for_results(db, 1 + seed * 12 % 140)
        cluster.workers.pop(0).kill()
        cluster.workers.append(cluster.start_worker())
        _, said = process.communicate()
    assert process.returncode == 0, said
    assert "Traceback" not in said
    assert contents(open_reader(str(db))) == wanted


def test_parts_from_outside_are_trained_on_a_cluster(
    cluster: Cluster,
    trained_by_processes: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PYTHONPATH", plugins.PYTHONPATH)
    there = plugins.swept(tmp_path, "there", "--dask", cluster.address)
    assert contents(open_reader(str(there))) == contents(open_reader(str(trained_by_processes)))


def test_a_killed_scheduler_is_said_and_the_sweep_goes_on_without_it(
    cluster: Cluster, undisturbed: tuple[Path, dict[str, str]], tmp_path: Path
) -> None:
    spec, wanted = undisturbed
    db = tmp_path / "x.db"
    with on_cluster(cluster, spec, db) as process:
        wait_for_results(db, 1)
        cluster.scheduler.send_signal(signal.SIGKILL)
        _, said = process.communicate()
    assert process.returncode == 3, said
    assert f"the Dask scheduler at {cluster.address} is gone" in said
    assert "Traceback" not in said
    assert contents(swept_here(spec, db)) == wanted


def test_an_address_where_no_scheduler_is_gets_one_line(
    undisturbed: tuple[Path, dict[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, _ = undisturbed
    monkeypatch.setattr(sweeps.work.executors.dask_cluster, "CONNECT_SECONDS", 1)
    for address, error, line in (
        ("tcp://127.0.0.1:1", ClusterError, "no Dask scheduler answers at 'tcp://127.0.0.1:1'"),
        ("nonsense://x", ConfigError, "cannot read the Dask address 'nonsense://x'"),
    ):
        command = ["sweep", str(spec), "--db", str(tmp_path / "x.db"), "--dask", address]
        said = CliRunner().invoke(app, command)
        assert isinstance(said.exception, error)
        assert str(said.exception).startswith(line)
        assert "\n" not in str(said.exception)
