"""The store: transactions, fences, digests and what its queries answer."""

import json
import os
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls.config import RunConfig
from seqcls.errors import UnknownRunError
from seqcls.evaluation import drawn_test_set
from seqcls.problem import resolve
from seqcls.results import Evaluation, StringErrors
from sweeps.grid.grouping import PlannedRun, make_groups
from sweeps.processes import environment_of
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader, open_writer, to_write
from sweeps.store.reads import queries, sweep_queries, workers
from sweeps.store.reads.selection import View
from sweeps.store.reads.stored import read_runs
from tests.conftest import ROOT
from tests.databases import rows, spec, stored_sweeps


def outcome(number: int, run: PlannedRun | None = None) -> RunResult:
    """Results that only a test could get, different for every number; of a run where one is named.

    An odd number's misclassifies a string that a default configuration is tested on.
    """
    test_set = drawn_test_set(resolve(run.config if run else RunConfig()))
    wrong = np.flatnonzero((test_set.lengths == 10) & test_set.labels)[: number % 2]
    made = RunResult(
        train_losses=[3.0, 2.0 + number],
        validation_losses=[2.0, 1.0 + number],
        train_seconds=0.25,
        engine="torch",
        engine_reason="asked for",
        best_epoch=2,
        evaluation=Evaluation(
            lengths=np.array([1, 10]),
            tested_by_length=np.array([5, number % 2 + 4]),
            wrong_by_length=np.array([0, number % 2]),
            cells=np.array([[5, 0, 0, 0], [0, 0, number % 2, 4]]),
            errors=StringErrors(wrong, np.full(len(wrong), -0.5 - number)),
            solved_length=9 if len(wrong) else 200,
            test_set=test_set.digest,
        ),
        checkpoints={2: b"weights"},
    )
    return made.seal(run.config.key, run.model_seed) if run else made


def outcomes(claim: writer.Claim, first: int = 0) -> list[RunResult]:
    """One for each run of a claim, numbered on from the first."""
    return [outcome(first + n, run) for n, run in enumerate(claim.runs)]


@pytest.fixture
def store(any_db: str) -> Store:
    """The contract of the store holds for every kind of database."""
    return open_writer(any_db)


def claimed(store: Store, sweep_id: int) -> tuple[int, writer.Claim]:
    worker_id = writer.register_worker(store)
    (group,) = make_groups(workers.queued_runs(store, [sweep_id]))
    claim = writer.claim(store, worker_id, group)
    assert claim is not None
    return worker_id, claim


def test_submitting_again_adds_nothing(store: Store) -> None:
    first = writer.submit(store, spec())
    assert writer.submit(store, spec()) == first
    assert len(queries.runs(store)) == 3
    assert sweep_queries.missing_runs(store, [spec()]) == 3


def test_a_changed_specification_changes_its_sweep_and_deletes_no_result(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    (group,) = make_groups(workers.queued_runs(store, [sweep_id]))
    claim = writer.claim(store, writer.register_worker(store), group[:1])
    assert claim is not None
    writer.record(store, claim, [outcome(0)])
    changed = spec(model_seeds=[2, 3])
    assert sweep_queries.missing_runs(store, [changed]) is None
    writer.submit(store, changed)
    runs = queries.runs(store)
    # Seed 1, which nobody had begun and no sweep asks for any longer, is gone.
    assert runs["model_seed"].tolist() == [0, 2, 3]
    assert runs["sweeps"].tolist() == [(), ("s",), ("s",)]


def test_sweeps_share_the_runs_that_both_ask_for(store: Store) -> None:
    writer.submit(store, spec())
    writer.submit(store, spec(name="t", checkpoints="every_epoch", model_seeds=[2, 3]))
    runs = queries.runs(store)
    assert runs["sweeps"].tolist() == [("s",), ("s",), ("s", "t"), ("t",)]
    sweep_ids = stored_sweeps(store)["id"].tolist()
    planned = {run.model_seed: run.every_epoch for run in workers.queued_runs(store, sweep_ids)}
    assert planned == {0: False, 1: False, 2: True, 3: True}


def test_a_groups_results_and_states_are_one_transaction(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    broken = [outcome(0), outcome(1), RunResult([], [], 0.0, "torch", best_epoch=None)]
    with pytest.raises(AssertionError):
        writer.record(store, claim, broken)
    assert set(queries.runs(store)["state"]) == {"running"}
    for table in ("epoch", "length_score", "error_pack", "checkpoint"):
        assert rows(store, f"SELECT count(*) FROM {table}") == [(0,)]
    assert writer.record(store, claim, outcomes(claim)) == 3
    assert set(queries.runs(store)["state"]) == {"done"}
    assert rows(store, "SELECT count(*) FROM length_score") == [(6,)]
    assert stored_sweeps(store)["state"].tolist() == ["done"]


def test_a_block_within_a_block_that_may_write_is_refused_at_once(tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "runs.db"))
    with (
        pytest.raises(AssertionError, match=r"within another one would wait for it"),
        store.begin(),
    ):
        queries.configs(store)
    with store.begin():
        assert queries.configs(store.reader()) == {}
    assert queries.configs(store) == {}


def test_a_run_is_claimed_by_one_worker_only(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    (group,) = make_groups(workers.queued_runs(store, [sweep_id]))
    _, claim = claimed(store, sweep_id)
    assert len(claim.runs) == 3
    assert writer.claim(store, writer.register_worker(store), group) is None


def test_a_worker_that_lost_its_claim_records_nothing(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    slow, old_claim = claimed(store, sweep_id)
    assert writer.release(store, slow) == 3
    _, new_claim = claimed(store, sweep_id)
    assert writer.record(store, old_claim, outcomes(old_claim)) == 0
    assert rows(store, "SELECT count(*) FROM epoch") == [(0,)]
    assert writer.record(store, new_claim, outcomes(new_claim)) == 3
    assert rows(store, "SELECT DISTINCT attempt FROM run") == [(2,)]


def test_runs_of_a_dead_process_are_queued_again_and_of_a_living_one_are_not(
    store: Store,
) -> None:
    worker_id, _ = claimed(store, writer.submit(store, spec()))
    assert writer.release_dead(store) == 0
    child = os.fork() if hasattr(os, "fork") else None
    if child == 0:
        os._exit(0)
    assert child is not None
    os.waitpid(child, 0)
    with store.begin() as connection:
        connection.exec_driver_sql(f"UPDATE worker SET pid = {child} WHERE id = {worker_id}")
    assert writer.release_dead(store) == 3
    assert set(queries.runs(store)["state"]) == {"queued"}


def test_a_diverged_run_is_failed_with_its_reason_and_in_no_average(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    reason = "diverged in epoch 2: the training loss became nan"
    diverged = RunResult([1.0], [1.0], 0.1, "torch", failure=reason)
    writer.record(store, claim, [outcome(0), diverged, outcome(1)])
    run = queries.runs(store).set_index("model_seed").loc[1]
    assert (run.state, run.error) == ("failed", reason)
    assert queries.runs(store)["accuracy"].isna().tolist() == [False, True, False]
    assert rows(store, "SELECT reason FROM failure") == [(reason,)]
    with pytest.raises(UnknownRunError, match=f"run 2 is failed and has no weights: {reason}"):
        queries.weights(store, 2)


def test_weights_of_one_epoch_are_read_without_those_of_others(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    each = 1_000_000
    weights = {epoch: bytes([epoch]) * each for epoch in range(1, 21)}
    writer.record(
        store,
        claim,
        [replace(outcome(n, run), checkpoints=weights) for n, run in enumerate(claim.runs)],
    )
    del weights
    tracemalloc.start()
    found = queries.weights(store, 1, 7)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == bytes([7]) * each
    assert most < 10 * each
    with pytest.raises(
        UnknownRunError, match="no weights of epoch 21; stored are those of epoch 1, 2"
    ):
        queries.weights(store, 1, 21)


def test_a_run_whose_worker_is_lost_is_tried_three_times(store: Store) -> None:
    sweep_id = writer.submit(store, spec(model_seeds=[0]))
    for attempt in (1, 2, 3):
        _, claim = claimed(store, sweep_id)
        assert claim.attempts == {1: attempt}
        writer.record_lost(store, claim, "killed by the system")
    run = queries.runs(store).iloc[0]
    assert (run.state, run.attempt, run.error) == ("failed", 3, "killed by the system")
    assert rows(store, "SELECT count(*) FROM failure") == [(3,)]


def test_a_long_reason_is_cut_and_stored_as_text(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec(model_seeds=[0])))
    lost = RunResult([], [], 0.1, "torch", failure="odd \ud800 \0 text " + "x" * 1_000_000)
    writer.record(store, claim, [lost])
    (reason,) = (text for (text,) in rows(store, "SELECT reason FROM failure"))
    assert reason == queries.runs(store).loc[0, "error"]
    assert reason.startswith(r"odd \ud800 \0 text xxx")
    assert len(reason) <= 510


def test_a_stopped_sweep_does_not_use_up_the_attempts_of_its_runs(store: Store) -> None:
    sweep_id = writer.submit(store, spec(model_seeds=[0]))
    for _ in range(5):
        worker_id, _ = claimed(store, sweep_id)
        writer.release(store, worker_id)
    _, claim = claimed(store, sweep_id)
    writer.record_lost(store, claim, "killed by the system")
    assert queries.runs(store)["state"].tolist() == ["queued"]


def digests(store: Store) -> Iterator[tuple[str, str]]:
    """Every run's stored digest, and the one that its stored rows have."""
    with store.begin() as connection:
        ids = [run_id for (run_id,) in connection.exec_driver_sql("SELECT id FROM run").all()]
        for stored in read_runs(connection, ids):
            yield stored.run["digest"], stored.digest()


def test_the_digest_is_that_of_the_stored_rows() -> None:
    pairs = list(digests(open_reader(str(ROOT / "runs.db"))))
    assert len(pairs) == 43
    assert all(stored == found for stored, found in pairs)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE run SET tn = tn + 1",
        "UPDATE epoch SET train_loss = train_loss * 1.0000001 WHERE epoch = 1",
        "UPDATE length_score SET tp = tp + 1 WHERE length = 10",
        "DELETE FROM length_score WHERE length = 1",
        "DELETE FROM checkpoint",
        "UPDATE config SET key = 'x'",
    ],
)
def test_a_changed_result_does_not_fit_its_digest(store: Store, change: str) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    writer.record(store, claim, outcomes(claim))
    assert all(stored == found for stored, found in digests(store))
    with store.begin() as connection:
        connection.exec_driver_sql(change)
    assert all(stored != found for stored, found in digests(store))


def test_filters_leave_the_runs_that_are_meant(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    writer.record(store, claim, outcomes(claim))
    writer.submit(store, spec(name="t", fixed={"hidden_size": 16}))

    def seeds(fields: dict[str, int] | None = None, **view: Any) -> list[int]:
        return queries.runs(store, View(**view), fields)["model_seed"].tolist()

    assert seeds() == [0, 1, 2, 0, 1, 2]
    assert seeds(sweeps=("t",)) == [0, 1, 2]
    assert seeds(model_seeds=(1, 2)) == [1, 2, 1, 2]
    assert seeds(failing=True) == [1]
    assert seeds(fields={"hidden_size": 16}, model_seeds=(0,)) == [0]
    assert seeds(fields={"hidden_size": 3}) == []


def test_the_revision_changes_with_what_is_stored(store: Store) -> None:
    seen = [queries.revision(store)]
    sweep_id = writer.submit(store, spec())
    seen.append(queries.revision(store))
    _, claim = claimed(store, sweep_id)
    seen.append(queries.revision(store))
    writer.record(store, claim, outcomes(claim))
    seen.append(queries.revision(store))
    assert len(set(seen)) == len(seen)
    assert queries.revision(store) == seen[-1]


def test_runs_are_found_by_id_or_by_sweep_and_seed(store: Store) -> None:
    writer.submit(store, spec(name="a/b", axes={"hidden_size": [2, 4]}))
    writer.submit(store, spec(name="one"))
    assert queries.find_run(store, "2") == 2
    assert queries.find_run(store, "one/1") == 2
    for reference, says in {
        "99": "no run '99'",
        "one/9": "no run 'one/9'",
        "x": "no run 'x': expected a run's id",
        "/1": "no run '/1': expected",
        "9" * 30: "expected a run's id",
        "a/b/1": "'a/b/1' means 2 runs of different configurations; name one by its id: 2, 5",
    }.items():
        with pytest.raises(UnknownRunError, match=says):
            queries.find_run(store, reference)


def test_a_configuration_comes_back_as_it_was(store: Store) -> None:
    config = RunConfig(hidden_size=16, learning_rate=0.1, layer_norm="nn")
    writer.submit(store, spec(fixed=config.changed))
    assert queries.run_config(store, 1) == config
    assert queries.configs(store) == {1: config}
    ((key, text),) = rows(store, "SELECT key, json FROM config")
    assert (key, json.loads(text)["hidden_size"]) == (config.key, 16)


def test_a_field_that_a_configuration_predates_has_its_default(store: Store) -> None:
    writer.submit(store, spec())
    with store.begin() as connection:
        old = json.dumps({"hidden_size": 2})
        connection.exec_driver_sql(f"UPDATE config SET json = '{old}'")
    assert queries.run_config(store, 1) == RunConfig()
    assert queries.runs(store)["num_letters"].tolist() == [3, 3, 3]


def test_what_is_open_for_reading_can_be_opened_for_writing_and_by_another_process(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = store.reader()
    writer.submit(to_write(reading), spec(name="again"))
    assert sweep_queries.find_sweep(reading, "again")
    # As for a process that is started: the environment names it, its password too.
    monkeypatch.setenv("SEQCLS_DB", environment_of(reading.address)["SEQCLS_DB"])
    assert open_reader().location == reading.location
