"""Losses of runs in training: stored while they train, and nothing is left of them but results."""

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqcls.errors import StoreBusyError
from seqcls.results import EpochLosses
from sweeps.grid.spec import parse_spec
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from sweeps.store.verification import verify
from sweeps.work import reports
from sweeps.work.machine import WorkOptions
from sweeps.work.progress import progress
from sweeps.work.worker import work
from tests.conftest import SHORT
from tests.databases import rows, spec
from tests.results import claimed, outcomes

TOLD = [EpochLosses(member, epoch, 4.0, 2.0 + epoch) for member in (0, 2) for epoch in (1, 2, 3)]
STORED = [(member + 1, epoch, 4.0, 2.0 + epoch) for member in (0, 2) for epoch in (1, 2, 3)]
EPOCHS = "SELECT run_id, epoch.epoch, train_loss, validation_loss FROM epoch ORDER BY 1, 2"
IN_TRAINING = EPOCHS.replace("ORDER", "JOIN run ON run.id = run_id WHERE state = 'running' ORDER")


@pytest.fixture
def store(any_db: str) -> Store:
    """The contract of the store holds for every kind of database."""
    return open_writer(any_db)


@pytest.fixture
def told(store: Store) -> writer.Claim:
    """A claim of three runs, of two of which losses are stored."""
    _, claim = claimed(store, writer.submit(store, spec()))
    writer.record_losses(store, [(claim, TOLD)])
    assert rows(store, EPOCHS) == STORED
    return claim


def test_losses_in_training_raise_no_revision_and_are_no_damage(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    before = queries.revision(store)
    writer.record_losses(store, [(claim, TOLD[:2])])
    # Told again, as after a connection that broke when all was stored.
    writer.record_losses(store, [(claim, TOLD)])
    assert rows(store, EPOCHS) == STORED
    assert queries.revision(store) == before
    assert verify(store).damages == []


def test_results_take_the_place_of_losses_in_training(store: Store, told: writer.Claim) -> None:
    assert writer.record(store, told, outcomes(told)) == 3
    assert rows(store, "SELECT run_id, epoch FROM epoch ORDER BY 1, 2") == [
        (run, epoch) for run in (1, 2, 3) for epoch in (1, 2)
    ]
    assert verify(store).damages == []


def diverged(store: Store, told: writer.Claim) -> None:
    failed = RunResult([1.0], [1.0], 0.1, "torch", failure="diverged in epoch 2")
    writer.record(store, told, [failed] * 3)


def died(store: Store, told: writer.Claim) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    with store.begin() as connection:
        connection.exec_driver_sql(f"UPDATE worker SET pid = {child}")
    assert writer.release_dead(store) == len(told.runs)


ENDS: dict[str, Callable[[Store, writer.Claim], object]] = {
    "given back": lambda store, told: writer.release(store, told.worker_id),
    "worker ended": lambda store, told: writer.end_worker(store, told.worker_id),
    "worker died": died,
    "process lost": lambda store, told: writer.record_lost(store, told, "killed"),
    "diverged": diverged,
    "deleted": lambda store, _: writer.delete(store, 1),
}


@pytest.mark.parametrize("end", ENDS)
def test_nothing_is_left_of_a_run_that_is_no_longer_trained(
    store: Store, told: writer.Claim, end: str
) -> None:
    ENDS[end](store, told)
    assert rows(store, EPOCHS) == []
    assert verify(store).damages == []
    # Whoever held it stores nothing more.
    writer.record_losses(store, [(told, TOLD)])
    assert rows(store, EPOCHS) == []


@pytest.mark.usefixtures("told")
def test_a_sweep_goes_on_with_every_epoch_of_a_run_in_training(store: Store) -> None:
    (now,) = progress(store)
    assert now.done == 0
    assert now.epochs, "before any run has ended"
    assert now.share == pytest.approx(sum(epoch / most for epoch, most in now.epochs) / now.total)
    assert 0 < now.share < 1


def test_losses_of_an_attempt_are_not_those_of_another(store: Store, told: writer.Claim) -> None:
    writer.release(store, told.worker_id)
    _, again = claimed(store, 1)
    writer.record_losses(store, [(told, TOLD)])
    assert rows(store, EPOCHS) == []
    writer.record_losses(store, [(again, TOLD[3:])])
    assert rows(store, EPOCHS) == STORED[3:]


@pytest.mark.usefixtures("told")
def test_whoever_takes_a_run_deletes_what_was_left_of_it(store: Store) -> None:
    # As a version would give it back that knows nothing of them.
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'queued', worker_id = NULL")
    assert [damage.how for damage in verify(store).damages] == ["it is queued and has results"] * 2
    claimed(store, 1)
    assert rows(store, EPOCHS) == []


def test_a_tested_run_in_training_is_damage(store: Store, told: writer.Claim) -> None:
    writer.record(store, told, outcomes(told))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'running'")
    assert "it is running and has results" in {damage.how for damage in verify(store).damages}


def test_losses_in_training_are_not_merged(
    store: Store, told: writer.Claim, tmp_path: Path
) -> None:
    other = open_writer(str(tmp_path / "other.db"))
    assert writer.merge(other, store).waiting == 3
    assert rows(other, EPOCHS) == []
    # And where the other has the results, these end the training here.
    _, claim = claimed(other, 1)
    writer.record(other, claim, outcomes(claim))
    assert writer.merge(store, other).results == 3
    assert rows(store, EPOCHS) == rows(other, EPOCHS)
    writer.record_losses(store, [(told, TOLD)])
    assert rows(store, EPOCHS) == rows(other, EPOCHS)
    assert verify(store).damages == verify(other).damages == []


@contextmanager
def locked(store: Store) -> Iterator[None]:
    """Somebody else holds the runs, or all of the file, for as long as the block lasts."""
    with store.engine.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET failures = failures")
        yield


def test_losses_wait_for_no_busy_database(store: Store, told: writer.Claim) -> None:
    new = [EpochLosses(1, 1, 4.0, 2.0)]
    with locked(store), pytest.raises(StoreBusyError):
        writer.record_losses(store.without_waiting(), [(told, new)])
    writer.record_losses(store.without_waiting(), [(told, new)])
    assert len(rows(store, EPOCHS)) == len(STORED) + 1


PLAIN = {**SHORT, "num_blocks": 2, "positions": "sinusoidal", "dropout_rate": 0.1}


def plain(store: Store, epochs: int) -> int:
    """A sweep of two Transformers that are trained side by side, for so many epochs."""
    fixed = {**PLAIN, "max_num_epochs": epochs, "min_num_epochs": epochs}
    return writer.submit(store, parse_spec({"name": "s", "model_seeds": "0..1", "fixed": fixed}))


@contextmanager
def at_work(store: Store, sweep_id: int, workers: int) -> Iterator[threading.Thread]:
    """A worker, which is waited for at the end of the block."""
    thread = threading.Thread(target=work, args=(store, [sweep_id], WorkOptions(workers)))
    thread.start()
    try:
        yield thread
    finally:
        thread.join()


def test_what_is_seen_meanwhile_is_what_is_stored_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "STORE_SECONDS", 0.0)
    monkeypatch.setattr(reports, "MOST_SHARE", 1.0)
    store = open_writer(str(tmp_path / "x.db"))
    reader, seen, revisions = open_reader(str(tmp_path / "x.db")), [], set()
    with at_work(store, plain(store, epochs=10), workers=0) as worker:
        while worker.is_alive():
            now = rows(reader, IN_TRAINING)
            if now and now not in seen:
                seen.append(now)
                revisions.add(queries.revision(reader))
                assert verify(reader).damages == []
    final = rows(reader, EPOCHS)
    assert len(final) == 20
    assert len(seen) > 1
    assert all(set(now) <= set(final) for now in seen)
    assert sorted(map(len, seen)) == list(map(len, seen))
    assert len(revisions) == 1, "no page forgets anything meanwhile"
    assert verify(reader).damages == []


@pytest.mark.slow
def test_losses_come_out_of_a_process_until_its_sweep_is_stopped(tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "x.db"))
    sweep_id = plain(store, epochs=100_000)
    seen: list[int] = []
    with at_work(store, sweep_id, workers=1) as worker:
        while len(seen) < 2 and worker.is_alive():
            (now,) = rows(store, "SELECT count(*) FROM epoch")[0]
            seen += [now] if now and now not in seen else []
            time.sleep(0.05)
        # Both members train in step.
        assert rows(store, "SELECT count(DISTINCT epoch) * 2 = count(*) FROM epoch") == [(1,)]
        writer.stop(store, [sweep_id])
    assert len(seen) == 2
    assert rows(store, "SELECT count(*) FROM epoch") == [(0,)]
    assert set(queries.runs(store)["state"]) == {"queued"}


def test_a_model_that_trains_briefly_is_stored_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("losses are stored of a group that is soon done")

    monkeypatch.setattr(writer, "record_losses", refused)
    store = open_writer(str(tmp_path / "x.db"))
    brief = {"name": "s", "model_seeds": "0..3", "fixed": SHORT}
    assert work(store, [writer.submit(store, parse_spec(brief))], WorkOptions(0)).recorded == 4
