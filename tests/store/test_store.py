"""The store: transactions, fences, digests and what its queries answer."""

import json
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from seqcls.config import RunConfig
from seqcls.errors import UnknownRunError
from sweeps.api import reading as pages
from sweeps.api.exports import export
from sweeps.processes import environment_of
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import checkpoints, misclassified, queries, sweep_queries, workers
from sweeps.store.reads.stored import read_runs
from tests.conftest import ROOT
from tests.databases import change, rows, spec, stored_sweeps
from tests.results import claimed, filled, groups, outcome, outcomes


def test_a_changed_specification_changes_its_sweep_and_deletes_no_result(store: Store) -> None:
    sweep_id = writer.submit(store, spec())
    (group,) = groups(store, sweep_id)
    claim = writer.claim(store, writer.register_worker(store), group[:1])
    assert claim is not None
    writer.record(store, claim, [outcome(0)])
    changed = spec(model_seeds=[2, 3])
    assert sweep_queries.missing_runs(store, [changed]) is None
    writer.submit(store, changed)
    runs = queries.runs(store)
    # Seed 1, which was queued and is in no sweep any longer, is gone.
    assert runs["model_seed"].tolist() == [0, 2, 3]
    assert runs["sweeps"].tolist() == [(), ("s",), ("s",)]


def test_sweeps_share_their_common_runs(store: Store) -> None:
    writer.submit(store, spec())
    writer.submit(store, spec(name="t", checkpoints="every_epoch", model_seeds=[2, 3]))
    runs = queries.runs(store)
    assert runs["sweeps"].tolist() == [("s",), ("s",), ("s", "t"), ("t",)]
    planned = {run.model_seed: run.every_epoch for run in workers.queued_runs(store)}
    assert planned == {0: False, 1: False, 2: True, 3: True}


def test_a_groups_results_and_states_are_one_transaction(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    broken = [outcome(0), outcome(1), RunResult([], [], 0.0, "torch", best_epoch=None)]
    with pytest.raises(AssertionError):
        writer.record(store, claim, broken)
    assert set(queries.runs(store)["state"]) == {"running"}
    for table in ("epoch", "length_score", "string_error", "checkpoint"):
        assert rows(store, f"SELECT count(*) FROM {table}") == [(0,)]
    assert writer.record(store, claim, outcomes(claim)) == 3
    assert set(queries.runs(store)["state"]) == {"done"}
    assert rows(store, "SELECT count(*) FROM length_score") == [(6,)]
    assert stored_sweeps(store)["state"].tolist() == ["done"]


@pytest.mark.parametrize("again", ["another worker", "the same worker"])
def test_a_worker_that_lost_its_claim_records_nothing(store: Store, again: str) -> None:
    sweep_id = writer.submit(store, spec())
    (group,) = groups(store, sweep_id)
    slow, old_claim = claimed(store, sweep_id)
    assert len(old_claim.runs) == 3
    assert writer.claim(store, writer.register_worker(store), group) is None, "it is taken"
    assert writer.release(store, slow) == 3
    (group,) = groups(store, sweep_id)
    worker_id = slow if again == "the same worker" else writer.register_worker(store)
    new_claim = writer.claim(store, worker_id, group)
    assert new_claim is not None
    assert writer.record(store, old_claim, outcomes(old_claim)) == 0
    assert rows(store, "SELECT count(*) FROM epoch") == [(0,)]
    assert writer.record(store, new_claim, outcomes(new_claim)) == 3
    assert rows(store, "SELECT DISTINCT attempt FROM run") == [(2,)]
    assert writer.record(store, old_claim, outcomes(old_claim)) == 0
    assert rows(store, "SELECT count(*) FROM epoch") == [(6,)]


def test_a_diverged_run_is_failed_with_its_reason_and_in_no_average(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec()))
    reason = "diverged in epoch 2: the training loss became nan"
    diverged = RunResult([1.0], [1.0], 0.1, "torch", failure=reason)
    long = replace(diverged, failure="odd \ud800 \0 text " + "x" * 1_000_000)
    writer.record(store, claim, [outcome(0), diverged, long])
    runs = queries.runs(store).set_index("model_seed")
    assert runs["state"].tolist() == ["done", "failed", "failed"]
    assert runs["accuracy"].isna().tolist() == [False, True, True]
    # A long reason is cut, and whatever it holds is stored as text.
    assert rows(store, "SELECT reason FROM failure ORDER BY run_id") == [
        (reason,),
        (runs.loc[2, "error"],),
    ]
    assert str(runs.loc[2, "error"]).startswith(r"odd \ud800 \0 text xxx")
    assert len(str(runs.loc[2, "error"])) <= 510
    with pytest.raises(UnknownRunError, match=f"run 2 is failed and has no weights: {reason}"):
        checkpoints.weights(store, 2)


def test_weights_of_one_epoch_are_read_without_those_of_others(store: Store) -> None:
    _, claim = claimed(store, writer.submit(store, spec(model_seeds=[0])))
    size = 1_000_000
    weights = {epoch: bytes([epoch]) * size for epoch in range(1, 21)}
    writer.record(store, claim, [replace(outcome(0, claim.runs[0]), checkpoints=weights)])
    del weights
    tracemalloc.start()
    found = checkpoints.weights(store, 1, 7)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found == bytes([7]) * size
    assert peak < 10 * size
    with pytest.raises(UnknownRunError, match="no weights of epoch 21; stored epochs: 1"):
        checkpoints.weights(store, 1, 21)


def digests(store: Store) -> Iterator[tuple[str, str]]:
    """Every run's stored digest, and the one that its stored rows have."""
    with store.read() as connection:
        ids = [run_id for (run_id,) in connection.exec_driver_sql("SELECT id FROM run").all()]
        for stored in read_runs(connection, ids):
            yield stored.run["digest"], stored.digest()


def test_the_stored_digest_equals_that_of_the_stored_rows(store: Store) -> None:
    for some, runs in ((open_reader(str(ROOT / "runs.db")), 43), (filled(store), 3)):
        pairs = list(digests(some))
        assert len(pairs) == runs
        assert all(stored == found for stored, found in pairs)
    change(store, "UPDATE config SET key = 'x'")
    assert all(stored != found for stored, found in digests(store))


def test_every_write_raises_the_revision_and_a_heartbeat_does_not(store: Store) -> None:
    seen = [queries.revision(store)]

    def raised() -> bool:
        seen.append(queries.revision(store))
        return seen[-1] > seen[-2]

    sweep_id = writer.submit(store, spec())
    assert raised()
    worker_id, claim = claimed(store, sweep_id)
    assert raised()
    writer.beat(store, worker_id)
    assert not raised()
    writer.record(store, claim, outcomes(claim))
    assert raised()
    members = pages.members_revision(store)
    for write in (writer.stop, writer.resume, writer.retry):
        write(store, [sweep_id])
        assert raised()
    assert pages.members_revision(store) == members
    writer.delete(store, sweep_id)
    assert raised()
    assert pages.members_revision(store) > members


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


def test_a_configuration_is_read_back_unchanged(store: Store) -> None:
    config = RunConfig(hidden_size=16, learning_rate=0.1, layer_norm="nn")
    writer.submit(store, spec(fixed=config.changed))
    assert queries.run_config(store, 1) == config
    assert queries.configs(store) == {1: config}
    ((key, text),) = rows(store, "SELECT key, json FROM config")
    assert (key, json.loads(text)["hidden_size"]) == (config.key, 16)
    # A field that it predates has its default.
    with store.write(quiet=True) as connection:
        old = json.dumps({"hidden_size": 2})
        connection.exec_driver_sql(f"UPDATE config SET json = '{old}'")
    assert queries.run_config(store, 1) == RunConfig()
    assert queries.runs(store)["num_letters"].tolist() == [3, 3, 3]


def test_an_open_store_can_be_opened_for_writing_and_by_another_process(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer.submit(open_writer(store), spec(name="again"))
    assert sweep_queries.find_sweep(store, "again")
    # As for a process that is started: the environment names it, its password too.
    monkeypatch.setenv("SEQCLS_DB", environment_of(store.address)["SEQCLS_DB"])
    assert open_reader().location == store.location


def test_a_misclassified_string_of_ten_thousand_letters_is_stored_and_read(
    store: Store, tmp_path: Path
) -> None:
    filled(store)
    long = "".join("ab"[n % 2] for n in range(10_000))
    change(
        store,
        f"INSERT INTO test_string VALUES (1, 16000000, '{long}', 10000, 1, 1, NULL, NULL)",
        "UPDATE run SET errors = '[[16000000,-1.5]]' WHERE id = 1",
    )
    query = "SELECT string, length, logit FROM misclassified WHERE run_id = 1"
    assert rows(store, query) == [(long, 10_000, -1.5)]
    found = misclassified.string_errors(store, 1)
    assert found["string"].tolist() == [long]
    export(store, tmp_path / "out", "csv")
    assert f'"{long}"' in (tmp_path / "out" / "errors.csv").read_text()
