"""Workers in this process, in others, on a cluster; and with failing groups."""

import os
import signal
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from sqlalchemy import event

import sweeps.store.database
import sweeps.work.executors
from seqcls.engines.base import Progress
from seqcls.engines.lanes.engine import Lanes
from seqcls.errors import MachineError, StoreBusyError, StoreUnavailableError
from sweeps.grid.spec import parse_spec
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import queries, sweep_queries
from sweeps.work import jobs
from sweeps.work.executors import dask_cluster
from sweeps.work.jobs import Job, run_job
from sweeps.work.machine import WorkOptions
from sweeps.work.progress import busy_seconds
from sweeps.work.worker import work
from tests.chaos.sending import training_processes
from tests.conftest import SHORT
from tests.databases import file_of, rows, stored_sweeps

FOR_EVER = {"max_num_epochs": 100_000, "min_num_epochs": 100_000}
ENDLESS = {"name": "endless", "model_seeds": [0], "fixed": {**SHORT, **FOR_EVER}}
GRID = {"name": "s", "model_seeds": [0, 1], "fixed": SHORT, "axes": {"hidden_size": [2, 3, 4]}}


CLUSTER = SimpleNamespace(
    status="running",
    get_executor=lambda **_: ThreadPoolExecutor(1),
    nthreads=lambda: {"tcp://here": 1},
    close=lambda **_: None,
)
"""The part of a client of Dask that is used; groups are trained in a thread."""


@pytest.mark.parametrize("dask", [None, "tcp://here:1"])
def test_a_run_that_raises_is_tried_three_times_and_fails_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch, dask: str | None
) -> None:
    tried: list[int] = []

    def failing(job: Job, report: Progress) -> list[RunResult]:
        if any(run.model_seed == 3 for run in job.group):
            tried.append(len(job.group))
            raise MemoryError("no more")
        return run_job(job, report)

    monkeypatch.setattr(jobs, "run_job", failing)
    monkeypatch.setattr(dask_cluster, "_connect", lambda _: CLUSTER)
    wide = {"name": "s", "model_seeds": "0..19", "fixed": SHORT}
    worked = work(store, [writer.submit(store, parse_spec(wide))], WorkOptions(0, dask=dask))
    runs = queries.runs(store).set_index("model_seed")
    # First with all others of its group, then with one of them, at last alone.
    assert tried == [16, 2, 1]
    assert (runs.loc[3, "state"], runs.loc[3, "error"]) == ("failed", "MemoryError: no more")
    assert set(runs.drop(index=3)["state"]) == {"done"}
    assert worked.recorded == 19
    assert rows(store, "SELECT attempt, reason FROM failure WHERE run_id = 4 ORDER BY 1") == [
        (attempt, "MemoryError: no more") for attempt in (1, 2, 3)
    ]


def test_a_killed_process_costs_an_attempt_and_no_run(store: Store) -> None:
    sweep_id = writer.submit(store, parse_spec(ENDLESS))
    killed: list[int] = []

    def kill_the_first(done: float, _total: int) -> None:
        if done > 0 and not killed:
            (process,) = training_processes(psutil.Process())
            process.kill()
            killed.append(process.pid)
        elif done > 0 and rows(store, "SELECT count(*) FROM failure") == [(1,)]:
            writer.stop(store, [sweep_id])

    work(store, [sweep_id], WorkOptions(1), kill_the_first)
    assert rows(store, "SELECT attempt, reason FROM failure") == [
        (1, "its process was killed, perhaps for lack of memory")
    ]
    assert rows(store, "SELECT state, attempt, failures FROM run") == [("queued", 2, 1)]


def test_machine_code_is_compiled_while_other_runs_train(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed = {**SHORT, "num_blocks": 2, "positions": "alibi"}
    # Dropout is for PyTorch, which needs nothing.
    spec = {"name": "s", "model_seeds": [0], "fixed": fixed, "axes": {"dropout_rate": [0.0, 0.1]}}
    made = threading.Event()
    done_before: list[int] = []

    def prepare(*_: object) -> None:
        end = time.monotonic() + 100
        while not done_before and time.monotonic() < end:
            time.sleep(0.05)
            done_before.extend(
                run for (run,) in rows(store, "SELECT id FROM run WHERE state = 'done'")
            )
        made.set()

    monkeypatch.setattr(Lanes, "prepare", prepare)
    monkeypatch.setattr(Lanes, "is_ready", lambda *_: made.is_set())
    assert work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(1)).recorded == 2
    engines = queries.runs(store).set_index("id")["engine"]
    assert sorted(engines) == ["lanes", "strings"]
    assert [engines[run] for run in done_before] == ["strings"]


def test_a_failing_progress_report_counts_no_failure_of_the_runs(store: Store) -> None:
    sweep_id = writer.submit(store, parse_spec(ENDLESS | {"fixed": SHORT}))

    def gone(done: float, _total: int) -> None:
        if done > 0:
            raise StoreUnavailableError("the disk is full")

    for _ in range(3):
        with pytest.raises(StoreUnavailableError, match="the disk is full"):
            work(store, [sweep_id], WorkOptions(0), gone)
    assert sweep_queries.runs_by_state(store, [sweep_id]) == {"queued": 1}
    assert rows(store, "SELECT count(*) FROM failure") == [(0,)]


def test_ctrl_c_on_a_locked_database_raises_the_lock_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeps.store.database, "BUSY_SECONDS", 0.05)
    store = open_writer(str(tmp_path / "locked.db"))
    sweep_id = writer.submit(store, parse_spec(GRID))

    def locked(_job: Job, report: Progress) -> list[RunResult]:
        with closing(sqlite3.connect(file_of(store), isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            os.kill(os.getpid(), signal.SIGINT)
            report(0.0, [])
        return []

    monkeypatch.setattr(jobs, "run_job", locked)
    with pytest.raises(StoreBusyError, match="locked"):
        work(store, [sweep_id], WorkOptions(0))
    assert sweep_queries.runs_by_state(store, [sweep_id]) == {"queued": 6}


def test_a_machine_that_draws_other_test_strings_stops_without_failing_runs(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    work(store, [writer.submit(store, parse_spec(GRID | {"model_seeds": [0]}))], WorkOptions(0))
    sweep_id = writer.submit(store, parse_spec(GRID | {"name": "more"}))

    def elsewhere(job: Job, report: Progress) -> list[RunResult]:
        return [
            replace(own, evaluation=own.evaluation and replace(own.evaluation, test_set="other"))
            for own in run_job(job, report)
        ]

    with monkeypatch.context() as patched:
        patched.setattr(jobs, "run_job", elsewhere)
        with pytest.raises(MachineError, match="other test strings"):
            work(store, [sweep_id], WorkOptions(0))
    assert sweep_queries.runs_by_state(store, [sweep_id]) == {"done": 3, "queued": 3}
    assert rows(store, "SELECT count(*) FROM failure") == [(0,)]
    assert work(store, [sweep_id], WorkOptions(0)).recorded == 3
    # Scores of more runs than a statement takes parameters.
    assert queries.length_scores(store, range(1, 300_001))["run_id"].nunique() == 6


def test_runs_are_listed_while_others_are_submitted(store: Store) -> None:
    writer.submit(store, parse_spec(GRID))
    submitted: list[str] = []

    @event.listens_for(store._engine(writes=False), "after_cursor_execute")
    def submit(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if "config" in statement and not submitted:
            submitted.append(statement)
            more = GRID | {"name": "more", "axes": {"hidden_size": [5]}}
            writer.submit(open_writer(str(store.path)), parse_spec(more))

    assert len(queries.runs(store)) == 6
    assert len(submitted) == 1
    assert len(queries.runs(store)) == 8


def test_a_sweep_stopped_by_another_process_ends_its_worker(any_db: str) -> None:
    store = open_writer(any_db)
    sweep_id = writer.submit(store, parse_spec(ENDLESS))
    progress: list[float] = []

    def stop_when_going(done: float, _total: int) -> None:
        if done > 0 and not progress:
            progress.append(done)
            writer.stop(open_writer(any_db), [sweep_id])

    worked = work(store, [sweep_id], WorkOptions(0), stop_when_going)
    assert (worked.recorded, worked.abandoned, worked.signal) == (0, 1, None)
    assert sweep_queries.runs_by_state(store) == {"queued": 1}
    assert stored_sweeps(store)["state"].tolist() == ["stopped"]
    assert rows(store, "SELECT count(*) FROM worker WHERE ended_at IS NULL") == [(0,)]


def test_workers_give_equal_results_in_this_and_in_other_processes(
    postgres_url: str, tmp_path: Path
) -> None:
    found = []
    for db, workers in ((str(tmp_path / "here.db"), 0), (postgres_url, 2)):
        store, progress = open_writer(db), list[tuple[float, int]]()
        sweep_id = writer.submit(store, parse_spec(GRID))
        worked = work(store, [sweep_id], WorkOptions(workers), lambda *now: progress.append(now))  # noqa: B023
        assert worked.recorded == 6
        assert (progress[0], progress[-1]) == ((0, 6), (6, 6))
        shares = [round(done, 9) for done, _ in progress]
        assert shares == sorted(shares)
        found.append(rows(store, "SELECT digest FROM run ORDER BY id"))
    assert found[0] == found[1]
    assert len(set(found[0])) == 6


def test_a_group_stopped_and_resumed_twice_counts_no_failure(store: Store) -> None:
    quick = parse_spec({"name": "quick", "model_seeds": [1], "fixed": SHORT})
    sweep_id = writer.submit(store, parse_spec(ENDLESS))
    actions: list[str] = []

    def stop_then_resume(done: float, _total: int) -> None:
        if done > 0 and not actions:
            writer.stop(store, [sweep_id])
            writer.submit(store, quick)
            actions.append("stopped")
        elif done == 0 and actions == ["stopped"]:
            writer.resume(store, [sweep_id])
            actions.append("resumed")
        elif done > 0.001 and actions == ["stopped", "resumed"]:
            writer.stop(store, [sweep_id])

    worked = work(store, None, WorkOptions(0), stop_then_resume)
    assert worked.abandoned == 2
    assert worked.recorded == 1


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return (NOW - timedelta(seconds=seconds)).isoformat()


def test_busy_seconds_exclude_pauses_and_count_overlaps_once() -> None:
    together = [(ago(200), ago(180)), (ago(195), ago(170))]
    after_a_pause = [(ago(10), ago(0))]
    assert busy_seconds([*together, *after_a_pause]) == 30 + 10
    assert busy_seconds([]) == 0
