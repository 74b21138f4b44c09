"""Stopping, resuming, retrying, deleting; dead workers; the same on SQLite and PostgreSQL."""

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import queries, sweep_queries, workers
from sweeps.store.reads.workers import is_alive
from sweeps.store.tables import now
from sweeps.work.estimate import estimate
from sweeps.work.progress import progress
from tests.databases import change, rows, spec, stored_sweeps
from tests.results import claimed, filled, groups, outcome, outcomes


def states(store: Store) -> list[str]:
    return [state for (state,) in rows(store, "SELECT state FROM run ORDER BY id")]


def test_launching_twice_or_concurrently_creates_one_sweep(store: Store, any_db: str) -> None:
    first = writer.submit(store, spec(), launch_token="click")
    assert writer.submit(store, spec(name="other"), launch_token="click") == first
    with ThreadPoolExecutor(8) as threads:
        submitted = threads.map(lambda _: writer.submit(open_writer(any_db), spec()), range(8))
    assert set(submitted) == {first}
    assert stored_sweeps(store)["name"].tolist() == ["s"]
    assert len(queries.runs(store)) == sweep_queries.missing_runs(store, [spec()]) == 3


def test_a_stopped_sweep_starts_no_run_until_it_is_resumed(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    going_on = writer.submit(store, spec(name="t", model_seeds=[2, 3]))
    (group,) = groups(store, sweep_id)
    worker_id = writer.register_worker(store)
    writer.stop(store, [sweep_id])
    assert stored_sweeps(store)["state"].tolist() == ["stopped", "queued"]
    assert groups(store, sweep_id) == []
    assert writer.claim(store, worker_id, group[:2]) is None
    # A run goes on where one of its sweeps does.
    for queued in (workers.queued_runs(store), workers.queued_runs(store, [going_on])):
        assert {run.model_seed for run in queued} == {2, 3}
    writer.resume(store, [sweep_id])
    assert stored_sweeps(store)["state"].tolist() == ["queued", "queued"]
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    assert stored_sweeps(store)["state"].tolist() == ["running", "running"]
    # One that is stopped when all is done is done.
    writer.stop(store, [sweep_id])
    assert stored_sweeps(store)["state"].tolist() == ["stopped", "running"]
    writer.record(store, claim, outcomes(claim))
    assert stored_sweeps(store)["state"].tolist() == ["done", "queued"]


def test_a_lost_run_is_tried_three_times_and_three_more_once_it_is_retried(store: Store) -> None:
    sweep_id = writer.submit(store, spec(model_seeds=[0]))
    # What a stopped sweep gives back uses up no attempt.
    for _ in range(5):
        writer.release(store, claimed(store, sweep_id)[0])
    for attempt in (6, 7, 8):
        assert states(store) == ["queued"]
        _, claim = claimed(store, sweep_id)
        assert claim.attempts == {1: attempt}
        writer.record_lost(store, claim, "killed")
    assert rows(store, "SELECT attempt, error FROM run") == [(8, "killed")]
    writer.submit(store, spec(model_seeds=[0, 1]))
    assert states(store) == ["failed", "queued"]
    assert writer.retry(store, [sweep_id]) == 1
    assert states(store) == ["queued", "queued"]
    assert stored_sweeps(store)["state"].tolist() == ["queued"]
    assert queries.runs(store)["error"].isna().all()
    for _ in range(3):
        assert states(store)[0] == "queued"
        (alone,) = [group for group in groups(store) if group[0].id == 1]
        lost = writer.claim(store, writer.register_worker(store), alone[:1])
        assert lost is not None
        writer.record_lost(store, lost, "killed")
    assert states(store)[0] == "failed"
    assert rows(store, "SELECT count(*) FROM failure") == [(6,)]


def test_deleting_a_sweep_keeps_runs_of_other_sweeps(store: Store) -> None:
    first = sweep_queries.find_sweep(filled(store), "s")
    writer.submit(store, spec(name="t", model_seeds=[2, 3]))
    assert sweep_queries.runs_of_one_sweep_only(store, first) == 2
    assert writer.delete(store, first) == 2
    assert queries.runs(store)["model_seed"].tolist() == [2, 3]
    assert stored_sweeps(store)["name"].tolist() == ["t"]
    assert rows(store, "SELECT DISTINCT run_id FROM epoch") == [(3,)]
    assert writer.delete(store, sweep_queries.find_sweep(store, "t")) == 2
    for table in ("run", "config", "sweep", "sweep_run", "checkpoint", "test_string"):
        assert rows(store, f"SELECT count(*) FROM {table}") == [(0,)]


def test_runs_of_an_ended_process_and_of_a_silent_machine_are_queued_again(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    claimed(store, sweep_id)
    assert writer.release_dead(store) == 0
    ended = subprocess.Popen("true")
    ended.wait()
    change(store, f"UPDATE worker SET pid = {ended.pid}")
    assert writer.release_dead(store) == 3
    assert states(store) == ["queued"] * 3
    worker_id, _ = claimed(store, sweep_id)
    change(store, "UPDATE worker SET host = 'elsewhere'")
    assert writer.release_dead(store) == 0
    late = now(workers.GRACE_SECONDS + 1)
    change(store, f"UPDATE worker SET heartbeat_at = '{late}'")
    writer.beat(store, worker_id)
    assert writer.release_dead(store) == 0
    change(store, f"UPDATE worker SET heartbeat_at = '{late}'")
    assert writer.release_dead(store) == 3
    assert states(store) == ["queued"] * 3


def test_zombies_and_processes_with_a_reused_id_are_dead() -> None:
    assert is_alive(os.getpid(), now())
    assert not is_alive(os.getpid(), "2001-01-01T00:00:00.000+00:00")
    child = os.fork()
    if child == 0:
        os._exit(0)
    # It has ended and is left to be waited for.
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert not is_alive(child, now())
    os.waitpid(child, 0)


def test_progress_counts_runs_and_estimates_the_rate(store: Store) -> None:
    sweep_id = writer.submit(store, spec(model_seeds="0..5"))
    (before,) = progress(store)
    assert (before.queued, before.total, before.runs_per_second) == (6, 6, None)
    (group,) = groups(store, sweep_id)
    worker_id = writer.register_worker(store)
    first = writer.claim(store, worker_id, group[:2])
    assert first is not None
    writer.record(store, first, [outcome(0), outcome(1)])
    assert writer.claim(store, worker_id, group[2:3]) is not None
    (now_,) = progress(store)
    assert (now_.queued, now_.running, now_.done, now_.state) == (3, 1, 2, "running")
    assert now_.runs_per_second is not None
    assert now_.seconds_left == pytest.approx(4 / now_.runs_per_second)


def test_an_estimate_counts_stored_runs_and_uses_measured_times(store: Store) -> None:
    small = spec()
    nothing = estimate(store, [small], 1)
    assert (nothing.runs, nothing.there, nothing.seconds) == (3, 0, None)
    filled(store)
    there = estimate(store, [small], 1)
    assert (there.runs, there.there, there.seconds) == (3, 3, 0.0)
    # As if storing them had taken no time, on a busy machine too.
    change(store, "UPDATE run SET finished_at = started_at")
    more = estimate(store, [spec(model_seeds="0..12")], 1)
    assert (more.runs, more.there) == (13, 3)
    # A quarter of a second each, as the three took.
    assert more.seconds == pytest.approx(10 * 0.25, rel=0.1)
    # Ten seeds train as one group, in one process; a hundred do not.
    assert estimate(store, [spec(model_seeds="0..12")], 2).seconds == more.seconds
    halved = estimate(store, [spec(model_seeds="0..102")], 2)
    assert halved.seconds == pytest.approx(50 * 0.25, rel=0.1)
    # Those that were trained took two epochs each.
    sixty = {"max_num_epochs": 60, "min_num_epochs": 60}
    longer = estimate(store, [spec(model_seeds="0..12", fixed=sixty)], 1)
    assert longer.seconds == pytest.approx(13 * 60 * 0.125, rel=0.1)


def test_an_outdated_run_id_is_not_claimed(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    (group,) = groups(store, sweep_id)
    worker_id = writer.register_worker(store)
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    writer.delete(store, sweep_id)
    assert writer.record(store, claim, outcomes(claim)) == 0
    writer.submit(store, spec(fixed={"hidden_size": 16}))
    assert writer.record(store, claim, outcomes(claim)) == 0
    assert writer.claim(store, worker_id, group) is None
    assert states(store) == ["queued"] * 3
    assert rows(store, "SELECT count(*) FROM epoch") == [(0,)]


def test_a_run_of_an_outdated_plan_is_not_claimed(store: Store) -> None:
    writer.submit(store, spec())
    (group,) = groups(store)
    writer.submit(store, spec(name="t", checkpoints="every_epoch", model_seeds=[2]))
    claim = writer.claim(store, writer.register_worker(store), group)
    assert claim is not None
    assert {run.model_seed for run in claim.runs} == {0, 1}
    (rest,) = groups(store)
    assert [(run.model_seed, run.every_epoch) for run in rest] == [(2, True)]


def test_submitting_and_deleting_beside_workers_causes_no_deadlock(any_db: str) -> None:
    """Threads that claim and store, while others submit the same sweep and delete another."""
    store = open_writer(any_db)
    shared, doomed = spec(model_seeds="0..15"), spec(name="t", fixed={"hidden_size": 4})
    writer.submit(store, shared)

    def work_for_a_while(_: int) -> int:
        own = open_writer(any_db)
        worker_id, recorded = writer.register_worker(own), 0
        for group in groups(own) * 3:
            claim = writer.claim(own, worker_id, group)
            if claim is not None:
                recorded += writer.record(own, claim, [outcome(0)] * len(claim.runs))
        return recorded

    def submit_and_delete(_: int) -> int:
        for _ in range(4):
            writer.submit(open_writer(any_db), shared)
            writer.delete(open_writer(any_db), writer.submit(open_writer(any_db), doomed))
        return 0

    with ThreadPoolExecutor(4) as threads:
        tasks = [threads.submit(work_for_a_while, 0) for _ in range(2)]
        tasks += [threads.submit(submit_and_delete, 0) for _ in range(2)]
        assert sum(task.result() for task in tasks) >= 16
    assert sweep_queries.runs_by_state(store) == {"done": 16}
