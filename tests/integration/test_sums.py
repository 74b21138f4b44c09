"""Sums by configuration and length: whatever happens to runs, they are those of the results."""

from typing import Any

import pytest

from sweeps.grid.grouping import make_groups
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries, workers
from sweeps.store.verification import verify
from tests.databases import rows, spec
from tests.integration.test_store import claimed, outcome, outcomes

TWO_SIZES: dict[str, Any] = {"axes": {"hidden_size": [4, 8]}}
COUNTS = ("tn", "fp", "fn", "tp", "tested", "wrong")


@pytest.fixture
def store(any_db: str) -> Store:
    return open_writer(any_db)


def filled(store: Store, first: int = 0, **changes: Any) -> Store:
    """All runs of a sweep finished, whose results depend on `first`."""
    sweep_id = writer.submit(store, spec(**changes))
    worker_id = writer.register_worker(store)
    for group in make_groups(workers.queued_runs(store, [sweep_id])):
        claim = writer.claim(store, worker_id, group)
        assert claim is not None
        writer.record(store, claim, outcomes(claim, first))
    return store


def sums(store: Store) -> list[tuple[Any, ...]]:
    columns = f"config_id, length, runs, failing, {', '.join(COUNTS)}"
    return rows(store, f"SELECT {columns} FROM length_sum ORDER BY config_id, length")


def summed(store: Store) -> list[tuple[Any, ...]]:
    """What the sums should be, from the results of every run, one by one."""
    found: dict[tuple[int, int], list[int]] = {}
    counts = ", ".join(f"score.{name}" for name in COUNTS)
    results = rows(
        store,
        f"SELECT config_id, length, {counts} FROM length_score AS score "
        "JOIN run ON run.id = run_id WHERE state = 'done'",
    )
    for config_id, length, *own in results:
        total = found.setdefault((config_id, length), [0] * 8)
        for place, value in enumerate((1, int(own[1] + own[2] > 0), *own)):
            total[place] += value
    return [(*key, *own) for key, own in sorted(found.items())]


def test_results_raise_the_sums_of_their_configuration(store: Store) -> None:
    assert sums(store) == []
    filled(store)
    (config_id, *at_one), (_, *at_ten) = sums(store)
    assert at_one == [1, 3, 0, 15, 0, 0, 0, 15, 0]
    assert at_ten == [10, 3, 1, 0, 0, 1, 12, 13, 1]
    filled(store, name="more", model_seeds=[7])
    assert [row[:3] for row in sums(store)] == [(config_id, 1, 4), (config_id, 10, 4)]
    filled(store, name="t", **TWO_SIZES)
    assert len({row[0] for row in sums(store)}) == 3
    assert sums(store) == summed(store)


def test_a_run_without_results_is_in_no_sum(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    _, claim = claimed(store, sweep_id)
    failed = RunResult([], [], 0.0, "torch", best_epoch=None, failure="it diverged")
    writer.record(store, claim, [outcome(0, claim.runs[0]), failed, outcome(2, claim.runs[2])])
    assert [row[2] for row in sums(store)] == [2, 2]
    writer.retry(store, [sweep_id])
    (group,) = make_groups(workers.queued_runs(store, [sweep_id]))
    again = writer.claim(store, writer.register_worker(store), group)
    assert again is not None
    writer.record(store, again, [outcome(1, again.runs[0])])
    assert [row[2] for row in sums(store)] == [3, 3]
    assert sums(store) == summed(store)


def test_results_that_come_too_late_are_in_no_sum(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    slow, old = claimed(store, sweep_id)
    writer.release(store, slow)
    _, new = claimed(store, sweep_id)
    writer.record(store, new, outcomes(new))
    writer.record(store, old, outcomes(old))
    assert [row[2] for row in sums(store)] == [3, 3]


def test_deleting_lowers_the_sums(store: Store) -> None:
    filled(store, **TWO_SIZES)
    filled(store, name="more", model_seeds=[7], axes={"hidden_size": [8, 16]})
    writer.delete(store, sweep_queries.find_sweep(store, "more"))
    assert sums(store) == summed(store)
    assert len({row[0] for row in sums(store)}) == 2
    writer.delete(store, sweep_queries.find_sweep(store, "s"))
    assert sums(store) == []


def test_merging_raises_the_sums_by_what_is_taken_over(store: Store, tmp_path: Any) -> None:
    filled(store)
    other = filled(open_writer(str(tmp_path / "o.db")), 2, name="t", model_seeds=[2, 3, 4])
    for _ in range(2):
        writer.merge(store, other)
        assert [row[2] for row in sums(store)] == [5, 5]
        assert sums(store) == summed(store)
    assert verify(store).damages == []


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE length_sum SET failing = failing + 1 WHERE length = 10",
        "DELETE FROM length_sum WHERE length = 1",
        "UPDATE length_sum SET wrong = wrong + 1 WHERE length = 10",
        "UPDATE length_sum SET tested = 0 WHERE length = 10",
        "INSERT INTO length_sum SELECT config_id, 99, 1, 0, 1, 0, 0, 0, 1, 0, NULL, NULL, NULL "
        "FROM length_sum WHERE length = 1",
    ],
)
def test_sums_that_are_wrong_are_named_and_hinder_no_deletion(store: Store, change: str) -> None:
    filled(store)
    with store.begin() as connection:
        connection.exec_driver_sql(change)
    config_id = rows(store, "SELECT id FROM config")[0][0]
    said = [str(damage) for damage in verify(store).damages]
    assert said == [f"configuration {config_id}: its sums by length are wrong"]
    writer.delete(store, sweep_queries.find_sweep(store, "s"))
    assert sums(store) == []
