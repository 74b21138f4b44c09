"""Merging, exporting, verifying and upgrading whole databases."""

import os
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from sqlalchemy import make_url

from seqcls.config import RunConfig
from seqcls.errors import ConfigError, StoreBusyError, StoreError, StoreVersionError
from sweeps.analysis.export import _without_formulas, export, without_formulas
from sweeps.store import migrate, verification, writer
from sweeps.store.databases import statements
from sweeps.store.databases.engine import Store, schema_version
from sweeps.store.migrate import upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reading import queries
from sweeps.store.reading.selection import View
from sweeps.store.runs.claiming import GRACE_SECONDS
from sweeps.store.schema.tables import now
from sweeps.store.strings import string_queries
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.chaos.damaged import seeming, unchecked
from tests.conftest import ASSETS, ROOT
from tests.databases import fill_server, rows, spec, stored_sweeps
from tests.integration.test_store import claimed, outcomes

OLD = sorted((ASSETS / "databases").glob("*.db"))

SCHEMA = {
    "sqlite": "SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2",
    "postgresql": (
        "SELECT table_name, ordinal_position::text, concat_ws(' ', column_name, data_type, "
        "is_nullable, column_default, is_identity) FROM information_schema.columns "
        "WHERE table_schema = current_schema() UNION ALL "
        "SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint "
        "WHERE connamespace = current_schema()::regnamespace UNION ALL "
        "SELECT tablename, indexname, indexdef FROM pg_indexes "
        "WHERE schemaname = current_schema() UNION ALL "
        "SELECT 'view', viewname, definition FROM pg_views WHERE schemaname = current_schema() "
        "ORDER BY 1, 2, 3"
    ),
}
"""What a database says of its tables, indexes and views."""


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
    assert stored_sweeps(store)["state"].tolist() == ["queued"]
    merged = writer.merge(store, filled(other))
    assert merged.results == 3
    assert stored_sweeps(store)["state"].tolist() == ["done"]
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
    assert stored_sweeps(store)["name"].tolist() == ["s", "s (other)"]
    assert stored_sweeps(store)["runs"].tolist() == [3, 3]
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
        ("UPDATE run SET wrong = wrong - 1, tested = tested - 1 WHERE id = 2", "run 2"),
        ("UPDATE run SET tested = NULL WHERE id = 2", "run 2"),
        ("UPDATE length_score SET tested = tested + 1 WHERE run_id = 3 AND length = 10", "run 3"),
        ("UPDATE length_sum SET tested = tested + 1", "configuration 1"),
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


@pytest.mark.parametrize(
    ("change", "how"),
    [
        (
            "UPDATE {} SET tested = tested + 1 WHERE {} = 2",
            "its tested and wrong are not the sums of those of its lengths",
        ),
        (
            "UPDATE {} SET tested = tested + 15, wrong = wrong + 15 WHERE {} = 2",
            "its tested and wrong are not those of its tn, fp, fn and tp",
        ),
        (
            "UPDATE {} SET wrong = wrong + 15 WHERE {} = 2",
            "it got more strings wrong than it was tested on",
        ),
    ],
)
def test_counts_that_contradict_others_are_damage_and_no_merge_takes_them(
    store: Store, other: Store, change: str, how: str
) -> None:
    filled(store)
    # Where the sums are to agree, the run says the same as its one length of 10 letters.
    places = [("run", "id")]
    if "sums" not in how:
        places.append(("length_score", "length = 10 AND run_id"))
    with store.begin() as connection:
        for place in places:
            connection.exec_driver_sql(change.format(*place))
    said = [str(damage) for damage in verify(store).damages]
    assert f"run 2 (model seed 1): {how}" in said
    merged = writer.merge(other, store)
    assert (merged.results, merged.damaged) == (2, ["run 2 (model seed 1)"])
    assert verify(other).damages == []


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
    scores = queries.length_scores(shipped, ids)
    pd.testing.assert_frame_equal(frames["lengths"][list(scores)], scores)
    of_outputs = list(frames["lengths"])[len(scores.columns) :]
    assert of_outputs == ["right_length_given", "edits", "target_tokens"]
    assert frames["lengths"][of_outputs].isna().all(axis=None)
    errors = string_queries.errors_of(shipped, ids)
    assert frames["errors"]["string"].tolist() == errors["string"].tolist()
    assert frames["errors"]["logit"].tolist() == errors["logit"].tolist()
    of_outputs = ["target", "output", "first_wrong", "log_probability", "error_kind"]
    assert list(frames["errors"]) == [*errors, *of_outputs]
    assert frames["errors"][of_outputs].isna().all(axis=None)
    assert frames["runs"]["accuracy"].tolist() == queries.runs(shipped)["accuracy"].tolist()
    with pytest.raises(ConfigError, match="is there; move it"):
        export(shipped, tmp_path / "out", kind, View())


def test_an_export_for_spreadsheets_has_no_formulas(tmp_path: Path) -> None:
    """Texts of others are cells there, and the default loses none of their signs."""
    path = tmp_path / "x.db"
    shutil.copy(ROOT / "runs.db", path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE sweep SET name = '=HYPERLINK(0)' WHERE id = 1")
        file.execute("UPDATE sweep SET name = '+1' WHERE id = 2")
        file.commit()
    store = open_reader(str(path))
    plain = export(store, tmp_path / "plain", "csv", View())
    safe = export(store, tmp_path / "safe", "csv", View(), spreadsheet=True)
    assert list(plain.values()) == list(safe.values())
    before, after = (
        pd.read_csv(folder / "runs.csv", dtype=str)["sweeps"].tolist()
        for folder in (tmp_path / "plain", tmp_path / "safe")
    )
    assert any(text.startswith("=") for text in before)
    assert after == [f"'{text}" if text[0] in "=+" else text for text in before]
    first, second = (pd.read_csv(tmp_path / x / "errors.csv") for x in ("plain", "safe"))
    pd.testing.assert_series_equal(first["logit"], second["logit"])
    with pytest.raises(ConfigError, match="--spreadsheet with format 'parquet': only csv"):
        export(store, tmp_path / "out", "parquet", View(), spreadsheet=True)


def test_no_cell_and_no_title_of_a_table_for_spreadsheets_begins_like_a_formula() -> None:
    signs = ["=1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "\uff1d1", "\uff0b1", "\uff0d1"]
    plain = ["a=1", "'=1", "", " =1", "1"]
    frame = pd.DataFrame({"=x": [*signs, *plain], "n": [-1.5] * 15})
    frame["mixed"] = [-1, None, "-1", True, *["b"] * 11]
    shown = without_formulas(frame)
    assert shown["'=x"].tolist() == [*(f"'{text}" for text in signs), *plain]
    assert shown["n"].tolist() == [-1.5] * 15
    assert shown["mixed"].tolist()[:4] == [-1, None, "'-1", True]
    table = pa.table({"string": [*signs, None], "logit": [-1.0] * 11})
    assert _without_formulas(table)["string"].to_pylist() == [*(f"'{x}" for x in signs), None]


def test_an_export_of_nothing_has_its_columns(tmp_path: Path, other: Store) -> None:
    assert set(export(other, tmp_path / "out", "csv", View()).values()) == {0}
    assert list(pd.read_csv(tmp_path / "out" / "lengths.csv")) == [
        *("run_id", "length", "tn", "fp", "fn", "tp", "tested", "wrong"),
        *("right_length_given", "edits", "target_tokens"),
    ]
    with pytest.raises(ConfigError, match="format 'xls': expected csv, parquet or jsonl"):
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
    spelled_out = "string_error" if old.stem < "0003" else "misclassified"
    errors = rows(upgraded.backup, wrong.format(spelled_out))
    assert rows(store, wrong.format("misclassified")) == errors != []
    ((fields,),) = rows(
        store,
        "SELECT DISTINCT json_array_length(json_group_array(key)) FROM "
        "(SELECT config.id, field.key FROM config, json_each(config.json) AS field) GROUP BY id",
    )
    assert fields == len(RunConfig.model_fields)
    assert upgraded.damaged == []
    sums = "SELECT sum(tn), sum(fp), sum(fn), sum(tp), sum(tested), sum(wrong) FROM {}"
    summed = rows(store, sums.format("length_sum"))
    assert rows(store, sums.format("run")) == rows(store, sums.format("length_score")) == summed
    for table in ("run", "length_score", "length_sum"):
        counts = rows(store, f"SELECT tn, fp, fn, tp, tested, wrong FROM {table}")
        assert {row for row in counts if None in row} <= {(None,) * 6}
        for tn, fp, fn, tp, *counted in set(counts) - {(None,) * 6}:
            assert counted == [tn + fp + fn + tp, fp + fn]
    assert verify(store).damages == []
    assert rows(store, "SELECT failures FROM run WHERE state = 'failed'") == [(3,)]
    assert upgrade_with_backup(store) is None
    made = open_writer(str(tmp_path / "made.db"))
    assert rows(store, SCHEMA["sqlite"]) == rows(made, SCHEMA["sqlite"])


@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_a_servers_database_becomes_the_same_as_a_file(
    old: Path, tmp_path: Path, postgres_url: str, made_on_server: str
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(old, path)
    fill_server(postgres_url, old)
    upgraded = [
        upgrade_with_backup(open_writer(db, any_version=True)) for db in (str(path), postgres_url)
    ]
    assert [own is not None and own.damaged for own in upgraded] == [[], []]
    store = open_writer(postgres_url)
    assert contents(store) == contents(open_reader(str(path)))
    assert verify(store).damages == []
    made = open_writer(
        make_url(postgres_url).set(database=made_on_server).render_as_string(hide_password=False)
    )
    assert rows(store, SCHEMA["postgresql"]) == rows(made, SCHEMA["postgresql"])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_upgrade_of_0003_checks_what_it_keeps(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    db, old = str(tmp_path / "old.db"), ASSETS / "databases" / "0003.db"
    if kind == "sqlite":
        shutil.copy(old, db)
    else:
        db = request.getfixturevalue("postgres_url")
        fill_server(db, old)
    digests = "SELECT id, digest, verdict_digest FROM run ORDER BY id"
    store = open_writer(db, any_version=True)
    with store.begin() as connection:
        for damage in (
            "UPDATE verdict SET inputs = 1 WHERE run_id = 1",
            "UPDATE length_score SET fn = fn + 1 WHERE run_id = 2 AND length = 9",
            "DELETE FROM error_pack WHERE run_id = 3",
            "UPDATE run SET tp = tp + 1 WHERE id = 4",
            "UPDATE test_string SET occurrences = 77 WHERE test_set_id = 1 AND number = 5",
        ):
            connection.exec_driver_sql(damage)
    before, scores = rows(store, digests), rows(store, "SELECT count(*) FROM length_score")
    upgraded = upgrade_with_backup(store)
    assert upgraded is not None
    assert upgraded.damaged == [
        "test set 1",
        "run 1 (model seed 0): its exhaustive check",
        "run 2 (model seed 1)",
        "run 3 (model seed 0)",
        "run 4 (model seed 1)",
    ]
    store = open_reader(db)
    assert rows(store, digests) == before
    assert rows(store, "SELECT count(*) FROM length_score") == scores
    said = [str(damage) for damage in verify(store).damages]
    assert said[0] == "test set 1: its strings do not fit its digest"
    assert [line for line in said if line.startswith("run")] == [
        "run 1 (model seed 0): its exhaustive check does not fit its digest",
        "run 2 (model seed 1): its results do not fit its digest",
        "run 3 (model seed 0): its results do not fit its digest",
        "run 4 (model seed 1): its results do not fit its digest",
    ]
    assert len(queries.runs(store)) == 7


def test_an_upgrade_takes_over_what_tables_that_check_nothing_may_hold(tmp_path: Path) -> None:
    path = unchecked(ASSETS / "databases" / "0003.db", tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET fp = 'many' WHERE id = 1")
        connection.execute("UPDATE length_score SET tp = 0.5 WHERE run_id = 2 AND length = 9")
        connection.execute("INSERT INTO length_score SELECT * FROM length_score WHERE run_id = 3")
        connection.execute("INSERT INTO length_score VALUES (99, 9, 1, 1, 1, 1)")
        connection.commit()
    upgraded = upgrade_with_backup(open_writer(str(path), any_version=True))
    assert upgraded is not None
    assert upgraded.damaged == [
        "run 1 (model seed 0)",
        "run 2 (model seed 1)",
        "run 3 (model seed 0)",
    ]
    assert upgraded.backup is not None
    assert rows(upgraded.backup, "SELECT fp FROM run WHERE id = 1") == [("many",)]
    merged = writer.merge(open_writer(str(tmp_path / "new.db")), open_reader(str(path)))
    assert (merged.results, merged.waiting) == (1, 3), "those that are as they were"


def test_an_upgrade_leaves_out_a_row_that_no_table_can_hold(tmp_path: Path) -> None:
    whole, path = ASSETS / "databases" / "0003.db", tmp_path / "old.db"
    seeming(whole, path, "length_score", "tp", "text", first=True)
    upgraded = upgrade_with_backup(open_writer(str(path), any_version=True))
    assert upgraded is not None
    assert upgraded.damaged == ["run 1 (model seed 0)"]
    ((before,),) = rows(whole, "SELECT count(*) FROM length_score")
    assert rows(path, "SELECT count(*) FROM length_score") == [(before - 1,)]
    assert verify(open_reader(str(path))).damages != []


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
@pytest.mark.parametrize("old", OLD, ids=lambda path: path.stem)
def test_an_upgrade_that_was_killed_is_taken_up_again(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(old, path)
    child = os.fork()
    if child == 0:
        # What is copied is there, and nothing upgraded.
        monkeypatch.setattr(migrate, "upgrade", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        upgrade_with_backup(open_writer(str(path), any_version=True))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    copy = tmp_path / f"old.db.schema-{old.stem}"
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
    monkeypatch.setattr(statements, "CHUNK", 1)
    monkeypatch.setattr(verification, "PARTS_IN_PARALLEL", 2)
    seen: list[float] = []
    together = verify(other, lambda done, _: seen.append(done), processes=2)
    assert together == alone
    assert [damage.what for damage in together.damages] == ["run 2 (model seed 1)"]
    assert seen == [1, 2, 3]
