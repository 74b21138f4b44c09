"""Merging, exporting, verifying and upgrading whole databases."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pytest

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, StoreBusyError, StoreError, StoreVersionError
from sweeps.analysis.export import export
from sweeps.store import migrate, verification, writer
from sweeps.store.databases.engine import Store, schema_version
from sweeps.store.migrate import upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reading import queries, sweep_queries
from sweeps.store.reading.selection import View
from sweeps.store.runs.claiming import GRACE_SECONDS
from sweeps.store.schema.tables import now
from sweeps.store.strings import string_queries
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.conftest import ASSETS, ROOT
from tests.databases import rows, spec
from tests.integration.test_store import claimed, outcomes

OLD = sorted((ASSETS / "databases").glob("*.db"))


@pytest.fixture
def store(any_db: str) -> Store:
    return open_writer(any_db)


@pytest.fixture
def other(tmp_path: Path) -> Store:
    return open_writer(str(tmp_path / "other.db"))


def filled(store: Store, first: int = 0, **changes: object) -> Store:
    """Three finished runs, whose results depend on `first`."""
    sweep_id = writer.submit(store, spec(**changes))
    _, claim = claimed(store, sweep_id)
    writer.record(store, claim, outcomes(claim, first))
    return store


def test_merging_into_an_empty_database_copies_all(store: Store) -> None:
    shipped = open_reader(str(ROOT / "runs.db"))
    merged = writer.merge(store, shipped)
    assert (merged.results, merged.same, merged.conflicts, merged.damaged) == (43, 0, [], [])
    assert contents(store) == contents(shipped)
    assert verify(store).damages == []
    again = writer.merge(store, shipped)
    assert (again.results, again.same) == (0, 43)
    assert contents(store) == contents(shipped)


def test_merging_keeps_both_sweeps_and_trains_shared_runs_once(store: Store, other: Store) -> None:
    filled(store)
    # Model seed 2 is the third run here and the first there.
    filled(other, first=2, name="t", model_seeds=[2, 3, 4])
    merged = writer.merge(store, other)
    assert (merged.results, merged.same, merged.conflicts) == (2, 1, [])
    assert queries.runs(store)["model_seed"].tolist() == [0, 1, 2, 3, 4]


def test_different_results_for_the_same_run_are_said_and_ours_are_kept(
    store: Store, other: Store
) -> None:
    before = contents(filled(store))
    merged = writer.merge(store, filled(other, first=1))
    assert len(merged.conflicts) == 3
    assert merged.conflicts[0] == (
        "run 1 (model seed 0): confusion matrix, epoch, length_score, string_error differ, the "
        "confusion matrix differs"
    )
    assert contents(store) == before


def test_results_of_another_database_end_what_waits_here(store: Store, other: Store) -> None:
    writer.submit(store, spec())
    assert sweep_queries.sweeps(store)["state"].tolist() == ["queued"]
    merged = writer.merge(store, filled(other))
    assert merged.results == 3
    assert sweep_queries.sweeps(store)["state"].tolist() == ["done"]
    assert contents(store) == contents(other)


def test_failed_and_waiting_runs_are_merged_as_such(store: Store, other: Store) -> None:
    sweep_id = writer.submit(other, spec(model_seeds=[0]))
    for _ in range(3):
        writer.record_lost(other, claimed(other, sweep_id)[1], "killed")
    writer.submit(other, spec(name="waits", model_seeds=[1]))
    merged = writer.merge(store, other)
    assert (merged.results, merged.waiting) == (0, 2)
    assert rows(store, "SELECT state, error, failures FROM run ORDER BY id") == [
        ("failed", "killed", 3),
        ("queued", None, 0),
    ]
    assert rows(store, "SELECT count(*) FROM failure") == [(3,)]
    assert verify(store).damages == []


def test_a_sweep_of_the_same_name_and_other_runs_gets_another_name(
    store: Store, other: Store
) -> None:
    filled(store)
    filled(other, model_seeds=[7, 8, 9])
    assert writer.merge(store, other).renamed == {"s": "s (other)"}
    assert writer.merge(store, other).renamed == {"s": "s (other)"}
    assert sweep_queries.sweeps(store)["name"].tolist() == ["s", "s (other)"]
    assert sweep_queries.sweeps(store)["runs"].tolist() == [3, 3]
    assert verify(store).damages == []


def test_a_damaged_run_is_not_taken_over(store: Store, other: Store) -> None:
    filled(other)
    with other.begin() as connection:
        connection.exec_driver_sql("UPDATE epoch SET train_loss = 1 WHERE run_id = 2 AND epoch = 1")
    merged = writer.merge(store, other)
    assert (merged.results, merged.damaged) == (2, ["run 2 (model seed 1)"])
    assert rows(store, "SELECT state FROM run ORDER BY id") == [("done",), ("queued",), ("done",)]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ("UPDATE epoch SET train_loss = train_loss + 1 WHERE run_id = 2", "run 2"),
        ("UPDATE run SET tp = tp + 1 WHERE id = 3", "run 3"),
        ("UPDATE error_pack SET numbers = substr(logits, 1, 3)", "run 2"),
        ("DELETE FROM error_pack", "run 2"),
        ("UPDATE test_string SET occurrences = 77 WHERE number = 5", "test set 1"),
        ("DELETE FROM test_string WHERE number = 5", "test set 1"),
        ("UPDATE test_set SET json = replace(json, 'size', 'sise')", "test set 1"),
        ("UPDATE test_set SET key = 'abc'", "test set 1"),
        ("DELETE FROM sweep_run WHERE run_id = 1", "sweep 's'"),
        ("UPDATE sweep SET name = 'x'", "sweep 'x'"),
        ("UPDATE config SET json = '{}'", "configuration 1"),
        ("UPDATE config SET key = 'abc'", "configuration 1"),
    ],
)
def test_damage_is_named(store: Store, change: str, named: str) -> None:
    filled(store, fixed={"hidden_size": 4})
    assert verify(store).damages == []
    with store.begin() as connection:
        connection.exec_driver_sql(change)
    assert any(damage.what.startswith(named) for damage in verify(store).damages)


def test_a_check_that_is_gone_is_missed(tmp_path: Path) -> None:
    path = tmp_path / "copy.db"
    shutil.copy(ROOT / "runs.db", path)
    assert verify(open_reader(str(path))).damages == []
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM verdict WHERE run_id = 7")
        connection.commit()
    (damage,) = verify(open_reader(str(path))).damages
    assert damage.what.startswith("run 7 ")
    assert damage.how == "its exhaustive check is not the one that was stored"


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_exported_files_hold_what_the_database_does(tmp_path: Path, kind: str) -> None:
    shipped = open_reader(str(ROOT / "runs.db"))
    written = export(shipped, tmp_path / "out", kind, View())
    assert list(written.values()) == [43, 8600, 12572]
    read = pd.read_csv if kind == "csv" else pd.read_parquet
    frames = {path.stem: read(path) for path in written}
    ids = queries.runs(shipped)["id"].tolist()
    pd.testing.assert_frame_equal(frames["lengths"], queries.length_scores(shipped, ids))
    errors = string_queries.errors_of(shipped, ids)
    assert frames["errors"]["string"].tolist() == errors["string"].tolist()
    assert frames["errors"]["logit"].tolist() == errors["logit"].tolist()
    assert frames["runs"]["accuracy"].tolist() == queries.runs(shipped)["accuracy"].tolist()
    with pytest.raises(ConfigError, match="is there; move it"):
        export(shipped, tmp_path / "out", kind, View())


def test_an_export_of_nothing_has_its_columns(tmp_path: Path, other: Store) -> None:
    assert set(export(other, tmp_path / "out", "csv", View()).values()) == {0}
    assert list(pd.read_csv(tmp_path / "out" / "lengths.csv")) == [
        *("run_id", "length", "tn", "fp", "fn", "tp")
    ]
    with pytest.raises(ConfigError, match="format 'xls': expected csv or parquet"):
        export(other, tmp_path / "out2", "xls", View())


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_a_database_of_every_older_version_is_upgraded(old: Path, tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(old, path)
    before = rows(path, "SELECT id, state, digest FROM run ORDER BY id")
    for opened in (open_reader, open_writer):
        with pytest.raises(StoreVersionError, match=r"older version .* `seqcls db upgrade"):
            opened(str(path))
    upgraded = upgrade_with_backup(open_writer(str(path), any_version=True))
    assert upgraded is not None
    assert upgraded.backup is not None
    assert rows(upgraded.backup, "SELECT id, state, digest FROM run ORDER BY id") == before
    store = open_writer(str(path))
    assert schema_version(store) == upgraded.after
    assert rows(store, "SELECT id, state FROM run ORDER BY id") == [row[:2] for row in before]
    after = rows(store, "SELECT digest FROM run WHERE state = 'done'")
    assert after
    assert all(digest.startswith("v2:") for (digest,) in after)
    wrong = "SELECT run_id, string, length, label, logit, occurrences FROM {} ORDER BY 1, 2"
    errors = rows(upgraded.backup, wrong.format("string_error"))
    assert rows(store, wrong.format("misclassified")) == errors != []
    ((fields,),) = rows(
        store,
        "SELECT DISTINCT json_array_length(json_group_array(key)) FROM "
        "(SELECT config.id, field.key FROM config, json_each(config.json) AS field) GROUP BY id",
    )
    assert fields == len(RunConfig.model_fields)
    assert upgraded.damaged == []
    summed = rows(store, "SELECT sum(tn), sum(fp), sum(fn), sum(tp) FROM length_sum")
    assert rows(store, "SELECT sum(tn), sum(fp), sum(fn), sum(tp) FROM run") == summed
    assert verify(store).damages == []
    assert rows(store, "SELECT failures FROM run WHERE state = 'failed'") == [(3,)]
    assert upgrade_with_backup(store) is None


def test_an_upgrade_blesses_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    # The first whose checks have digests too.
    shutil.copy(ASSETS / "databases" / "0002.db", path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE verdict SET multisets = 1 WHERE run_id = 1")
        connection.execute("UPDATE epoch SET train_loss = train_loss + 1 WHERE run_id = 2")
        connection.execute("UPDATE string_error SET string = 'no' || string WHERE run_id = 3")
        connection.execute("UPDATE length_score SET tp = 'many' WHERE run_id = 4 AND length = 9")
        connection.commit()
    upgraded = upgrade_with_backup(open_writer(str(path), any_version=True))
    assert upgraded is not None
    assert upgraded.damaged == [
        "run 1 (model seed 0): its exhaustive check",
        "run 2 (model seed 1)",
        "run 3 (model seed 0)",
        "run 4 (model seed 1)",
    ]
    store = open_reader(str(path))
    assert [str(damage) for damage in verify(store).damages] == [
        "run 1 (model seed 0): its exhaustive check does not fit its digest",
        "run 2 (model seed 1): its results do not fit its digest",
        "run 3 (model seed 0): its results do not fit its digest",
        "run 4 (model seed 1): its results do not fit its digest",
    ]
    assert len(queries.runs(store)) == 7


def test_nothing_is_upgraded_under_a_worker(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(ASSETS / "databases" / "0002.db", path)

    def beat(seconds_ago: float) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("UPDATE worker SET heartbeat_at = ?", (now(seconds_ago),))
            connection.execute(
                "UPDATE run SET state = 'running', worker_id = (SELECT min(id) FROM worker) "
                "WHERE state = 'queued'"
            )
            connection.commit()

    beat(seconds_ago=1)
    with pytest.raises(StoreBusyError, match=r"workers are training \d runs into .*; end them"):
        upgrade_with_backup(open_writer(str(path), any_version=True))
    assert schema_version(open_writer(str(path), any_version=True)) == "0002"
    assert [file.name for file in tmp_path.glob("*schema*")] == []
    beat(seconds_ago=GRACE_SECONDS + 1)
    assert upgrade_with_backup(open_writer(str(path), any_version=True)) is not None


def test_an_upgrade_overwrites_no_copy(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD[0], path)
    copy, mine = tmp_path / f"old.db.schema-{OLD[0].stem}", tmp_path / "mine"
    mine.write_text("mine")
    for target in (mine, tmp_path / "nowhere"):
        copy.symlink_to(target)
        with pytest.raises(StoreError, match="is in the way"):
            upgrade_with_backup(open_writer(str(path), any_version=True))
        assert schema_version(open_writer(str(path), any_version=True)) == OLD[0].stem
        copy.unlink()
    copy.symlink_to(mine)
    with pytest.raises(StoreError, match="is in the way"):
        upgrade_with_backup(open_writer(str(path), any_version=True))
    assert mine.read_text() == "mine", "no link is written through"
    copy.unlink()
    upgrade_with_backup(open_writer(str(path), any_version=True))
    assert rows(copy, "SELECT version_num FROM alembic_version") == [(OLD[0].stem,)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_upgrade_that_was_killed_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD[0], path)
    child = os.fork()
    if child == 0:
        # What is copied is there, and nothing upgraded.
        monkeypatch.setattr(migrate, "upgrade", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        upgrade_with_backup(open_writer(str(path), any_version=True))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    copy = tmp_path / f"old.db.schema-{OLD[0].stem}"
    before = copy.read_bytes()
    upgraded = upgrade_with_backup(open_writer(str(path), any_version=True))
    assert upgraded is not None
    assert upgraded.backup == copy
    assert copy.read_bytes() == before
    assert schema_version(open_reader(str(path))) == upgraded.after


def test_several_processes_find_the_same_damage(
    other: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(other)
    with other.begin() as connection:
        connection.exec_driver_sql("UPDATE epoch SET train_loss = 1 WHERE run_id = 2 AND epoch = 1")
    alone = verify(other)
    monkeypatch.setattr(verification, "RUNS_AT_ONCE", 1)
    monkeypatch.setattr(verification, "PARTS_IN_PARALLEL", 2)
    seen: list[float] = []
    together = verify(other, lambda done, _: seen.append(done), processes=2)
    assert together == alone
    assert [damage.what for damage in together.damages] == ["run 2 (model seed 1)"]
    assert seen == [1, 2, 3]
