"""Workers that are silent for longer than they may be, and those that go on then."""

import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from dashboard.training import running
from seqcls.engines.base import Progress
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import workers
from sweeps.store.verification import verify
from sweeps.store.writes import claiming, recording
from sweeps.work import jobs
from sweeps.work.jobs import Job, run_job
from sweeps.work.machine import WorkOptions
from sweeps.work.progress import progress
from sweeps.work.worker import work
from tests.commands import run_main
from tests.conftest import SHORT
from tests.databases import change, rows, spec

LONG_AGO = "2020-01-01T00:00:00.000+00:00"


def queued(path: Path) -> Store:
    """Six runs in two groups."""
    store = open_writer(str(path))
    writer.submit(store, spec(fixed=SHORT, axes={"hidden_size": [2, 3]}))
    return store


def test_late_results_of_reassigned_runs_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = queued(tmp_path / "x.db")
    trained: list[int] = []

    def robbed(job: Job, report: Progress) -> list[RunResult]:
        if not trained:
            # As if its machine had slept until now.
            change(store, f"UPDATE worker SET heartbeat_at = '{LONG_AGO}'")
            assert claiming.release_dead(store) == len(job.group)
        trained.append(len(job.group))
        return run_job(job, report)

    monkeypatch.setattr(jobs, "run_job", robbed)
    assert work(store, None, WorkOptions(0)).recorded == 6
    assert sum(trained) == 9
    assert rows(store, "SELECT state, attempt, count(*) FROM run GROUP BY 1, 2") == [
        ("done", 1, 3),
        ("done", 2, 3),
    ]
    assert verify(store).damages == []


@pytest.mark.parametrize("elsewhere", [False, True])
def test_progress_and_status_report_a_dead_worker(tmp_path: Path, elsewhere: bool) -> None:
    store = queued(tmp_path / "x.db")
    worker = writer.register_worker(store)
    change(store, f"UPDATE run SET state = 'running', worker_id = {worker}")
    ((own,),) = [progress(store)]
    assert own.orphaned == 0
    # A process that has ended; or one of another machine without a heartbeat.
    lost = f"host = 'elsewhere', heartbeat_at = '{LONG_AGO}'" if elsewhere else "pid = 0"
    change(store, f"UPDATE worker SET {lost}")
    (seen,) = progress(store)
    assert (seen.running, seen.orphaned) == (6, 6)
    assert "the worker of 6 died" in running.describe(seen, attended=False)
    path = str(tmp_path / "x.db")
    completed = run_main("status", "--db", path)
    again = f"`seqcls work --db {path}` trains them again"
    assert completed.stderr == f"s: the worker of 6 runs died; {again}.\n"
    assert rows(store, "SELECT DISTINCT state FROM run") == [("running",)]


def test_worker_heartbeats_use_the_clock_of_the_server(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = open_writer(postgres_url)
    writer.submit(store, spec(fixed=SHORT))
    monkeypatch.setattr(workers, "now", lambda *_: LONG_AGO)
    monkeypatch.setattr(socket, "gethostname", lambda: "with a wrong clock")
    worker = writer.register_worker(store)
    change(store, f"UPDATE run SET state = 'running', worker_id = {worker}")
    monkeypatch.setattr(socket, "gethostname", lambda: "another")
    assert workers.dead_workers(store) == []
    assert claiming.release_dead(store) == 0
    monkeypatch.setattr(workers, "GRACE_SECONDS", -5.0)
    assert workers.dead_workers(store) == [worker]


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_steps_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    store = open_writer(str(tmp_path / "x.db"))
    sweep_id = writer.submit(store, spec(fixed=SHORT, axes={"hidden_size": [2, 3, 4]}))
    step = timedelta()

    def clock(seconds: float = 0.0) -> str:
        return (datetime.now(UTC) + step - timedelta(seconds=seconds)).isoformat()

    def stepping(job: Job, report: Progress) -> list[RunResult]:
        nonlocal step
        step += timedelta(hours=hours)
        # Others plan meanwhile, as this worker does between its groups.
        assert claiming.release_dead(store, 1) == 0
        assert all(one.seconds_left is None or one.seconds_left >= 0 for one in progress(store))
        return run_job(job, report)

    for module in (claiming, recording, workers):
        monkeypatch.setattr(module, "now", clock)
    monkeypatch.setattr(jobs, "run_job", stepping)
    assert work(store, [sweep_id], WorkOptions(0)).recorded == 9
    assert rows(store, "SELECT state, attempt, count(*) FROM run GROUP BY 1, 2") == [("done", 1, 9)]
    assert verify(store).damages == []
