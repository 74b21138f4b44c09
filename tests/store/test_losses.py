"""Losses of runs in training: stored while they train, and nothing is left of them but results."""

import subprocess
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from seqcls.errors import StoreBusyError
from seqcls.results import EpochLosses
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from sweeps.store.verification import verify
from sweeps.work import worker as working
from sweeps.work.machine import WorkOptions
from sweeps.work.progress import progress
from sweeps.work.worker import work
from tests.conftest import SHORT
from tests.databases import change, rows, spec
from tests.results import claimed, outcomes

LOSSES = [EpochLosses(member, epoch, 4.0, 2.0 + epoch) for member in (0, 2) for epoch in (1, 2, 3)]
STORED = [(member + 1, epoch, 4.0, 2.0 + epoch) for member in (0, 2) for epoch in (1, 2, 3)]
EPOCHS = "SELECT run_id, epoch.epoch, train_loss, validation_loss FROM epoch ORDER BY 1, 2"
IN_TRAINING = EPOCHS.replace("ORDER", "JOIN run ON run.id = run_id WHERE state = 'running' ORDER")


@pytest.fixture
def claim(store: Store) -> writer.Claim:
    """A claim of three runs, of two of which losses are stored."""
    _, made = claimed(store, writer.submit(store, spec()))
    writer.record_losses(store, [(made, LOSSES[:2])])
    # Told again, as after a connection that broke when all was stored.
    writer.record_losses(store, [(made, LOSSES)])
    assert rows(store, EPOCHS) == STORED
    return made


def test_losses_in_training_advance_progress_without_a_new_revision(
    store: Store, claim: writer.Claim
) -> None:
    before = queries.revision(store)
    new = [EpochLosses(1, 1, 4.0, 2.0)]
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET failures = failures")
        with pytest.raises(StoreBusyError):
            writer.record_losses(store.without_waiting(), [(claim, new)])
    writer.record_losses(store.without_waiting(), [(claim, new)])
    assert len(rows(store, EPOCHS)) == len(STORED) + 1
    assert queries.revision(store) == before
    assert verify(store).damages == []
    (now,) = progress(store)
    assert now.done == 0
    assert now.share == pytest.approx(sum(epoch / most for epoch, most in now.epochs) / now.total)
    assert 0 < now.share < 1, "before any run has ended"
    assert now.runs_per_second, "nothing has ended, and epochs have"
    assert now.seconds_left == pytest.approx((1 - now.share) * now.total / now.runs_per_second)


def test_results_replace_losses_in_training(
    store: Store, claim: writer.Claim, tmp_path: Path
) -> None:
    # They are not merged; where another database has the results, these end the training here.
    other = open_writer(str(tmp_path / "other.db"))
    assert writer.merge(other, store).waiting == 3
    assert rows(other, EPOCHS) == []
    _, others = claimed(other, 1)
    writer.record(other, others, outcomes(others))
    assert writer.merge(store, other).results == 3
    writer.record_losses(store, [(claim, LOSSES)])
    assert rows(store, EPOCHS) == rows(other, EPOCHS)
    assert [x[:2] for x in rows(store, EPOCHS)] == [(x, y) for x in (1, 2, 3) for y in (1, 2)]
    assert verify(store).damages == verify(other).damages == []


def diverged(store: Store, claim: writer.Claim) -> None:
    failed = RunResult([1.0], [1.0], 0.1, "torch", failure="diverged in epoch 2")
    writer.record(store, claim, [failed] * 3)


def died(store: Store, claim: writer.Claim) -> None:
    ended = subprocess.Popen("true")
    ended.wait()
    change(store, f"UPDATE worker SET pid = {ended.pid}")
    assert writer.release_dead(store) == len(claim.runs)


ENDS: dict[str, Callable[[Store, writer.Claim], object]] = {
    "given back": lambda store, claim: writer.release(store, claim.worker_id),
    "worker ended": lambda store, claim: writer.end_worker(store, claim.worker_id),
    "worker died": died,
    "process lost": lambda store, claim: writer.record_lost(store, claim, "killed"),
    "diverged": diverged,
    "deleted": lambda store, _: writer.delete(store, 1),
}


@pytest.mark.parametrize("end", ENDS)
def test_losses_of_a_run_that_is_no_longer_trained_are_deleted(
    store: Store, claim: writer.Claim, end: str
) -> None:
    ENDS[end](store, claim)
    assert rows(store, EPOCHS) == []
    # Whoever held it stores nothing more.
    writer.record_losses(store, [(claim, LOSSES)])
    assert rows(store, EPOCHS) == []
    assert verify(store).damages == []


def test_late_losses_of_an_earlier_attempt_are_not_stored(
    store: Store, claim: writer.Claim
) -> None:
    # As a version would give it back that knows nothing of them.
    change(store, "UPDATE run SET state = 'queued', worker_id = NULL")
    _, again = claimed(store, 1)
    writer.record_losses(store, [(claim, LOSSES)])
    assert rows(store, EPOCHS) == []
    writer.record_losses(store, [(again, LOSSES[3:])])
    assert rows(store, EPOCHS) == STORED[3:]


def test_losses_read_during_training_equal_the_final_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working, "LOSSES_SECONDS", 0.0)
    store = open_writer(str(tmp_path / "x.db"))
    reader, seen, revisions = open_reader(str(tmp_path / "x.db")), [], set()
    fixed = {**SHORT, "num_blocks": 2, "positions": "sinusoidal", "dropout_rate": 0.1}
    fixed |= {"max_num_epochs": 10, "min_num_epochs": 10}
    own = writer.submit(store, spec(model_seeds="0..1", fixed=fixed))
    worker = threading.Thread(target=work, args=(store, [own], WorkOptions(0)))
    worker.start()
    while worker.is_alive():
        now = rows(reader, IN_TRAINING)
        if now and now not in seen:
            seen.append(now)
            revisions.add(queries.revision(reader))
    final = rows(reader, EPOCHS)
    assert len(final) == 20
    assert len(seen) > 1
    assert all(set(now) <= set(final) for now in seen)
    assert sorted(map(len, seen)) == list(map(len, seen))
    assert len(revisions) == 1, "no page forgets anything meanwhile"
    assert verify(reader).damages == []
