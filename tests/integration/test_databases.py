"""Merging, exporting, verifying and upgrading whole databases."""

import json
import os
import re
import shutil
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from sqlalchemy import make_url

from seqcls.errors import ConfigError, StoreBusyError, StoreError, StoreVersionError
from sweeps.api.databases import upgrade
from sweeps.api.exports import _without_formulas, export, without_formulas
from sweeps.results import RANGE_COLUMNS
from sweeps.store import migrate, verification, writer
from sweeps.store.databases import statements
from sweeps.store.databases.engine import SCHEMA_VERSION, Store, schema_version
from sweeps.store.migrate import upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries, string_queries
from sweeps.store.reads.export import answers_of
from sweeps.store.reads.workers import GRACE_SECONDS
from sweeps.store.tables import now
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.chaos.damaged import unchecked
from tests.commands import run_main
from tests.conftest import ASSETS, ROOT
from tests.databases import fill_server, rows, spec, stored_sweeps
from tests.integration.test_store import claimed, outcomes

OLD = ASSETS / "databases" / "0004.db"
"""One of the version before: finished, failed, queued and imported runs."""

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
    written = export(shipped, tmp_path / "out", kind)
    assert list(written.values()) == [43, 8600, 12572, 4221]
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
    others = ["target", "output", "first_wrong", "log_probability", "error_kind", "drawn"]
    assert list(frames["errors"]) == [*errors, *others]
    assert frames["errors"][others].isna().all(axis=None)
    assert frames["runs"]["accuracy"].tolist() == queries.runs(shipped)["accuracy"].tolist()
    with pytest.raises(ConfigError, match="is there; move it"):
        export(shipped, tmp_path / "out", kind)


def test_an_export_for_spreadsheets_has_no_formulas(tmp_path: Path) -> None:
    """Texts of others are cells there, and the default loses none of their signs."""
    path = tmp_path / "x.db"
    shutil.copy(ROOT / "runs.db", path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE sweep SET name = '=HYPERLINK(0)' WHERE id = 1")
        file.execute("UPDATE sweep SET name = '+1' WHERE id = 2")
        file.commit()
    store = open_reader(str(path))
    plain = export(store, tmp_path / "plain", "csv")
    safe = export(store, tmp_path / "safe", "csv", spreadsheet=True)
    assert list(plain.values()) == list(safe.values())
    before, after = (
        pd.read_csv(folder / "runs.csv", dtype=str)["sweeps"].tolist()
        for folder in (tmp_path / "plain", tmp_path / "safe")
    )
    assert any(text.startswith("=") for text in before)
    assert after == [f"'{text}" if text[0] in "=+" else text for text in before]
    first, second = (pd.read_csv(tmp_path / x / "errors.csv") for x in ("plain", "safe"))
    pd.testing.assert_series_equal(first["logit"], second["logit"])
    with pytest.raises(ConfigError, match="spreadsheet=True with format 'parquet': only csv"):
        export(store, tmp_path / "out", "parquet", spreadsheet=True)


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
    assert set(export(other, tmp_path / "out", "csv").values()) == {0}
    assert list(pd.read_csv(tmp_path / "out" / "lengths.csv")) == [
        *("run_id", "length", "tn", "fp", "fn", "tp", "tested", "wrong"),
        *("right_length_given", "edits", "target_tokens"),
    ]
    with pytest.raises(ConfigError, match="format 'xls': expected csv, parquet or jsonl"):
        export(other, tmp_path / "out2", "xls")


def test_a_database_of_the_version_before_is_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    before = {table: rows(path, f"SELECT * FROM {table}") for table in tables(path)}
    for opened in (open_reader, open_writer):
        with pytest.raises(StoreVersionError, match=r"older version .* `seqcls db upgrade"):
            opened(str(path))
    upgraded = upgrade_with_backup(open_writer(str(path), any_version=True))
    assert upgraded is not None
    assert upgraded.backup == tmp_path / "old.db.schema-0004"
    assert {table: rows(upgraded.backup, f"SELECT * FROM {table}") for table in before} == before
    store = open_writer(str(path))
    assert schema_version(store) == upgraded.after == SCHEMA_VERSION
    before["alembic_version"] = [(SCHEMA_VERSION,)]
    # How older test strings were drawn is not known, and no readers were asked about them.
    before["test_string"] = [(*row, None) for row in before["test_string"]]
    before["shortcut"] = before["proof"] = []
    ranges = rows(store, f"SELECT {', '.join(RANGE_COLUMNS)} FROM run ORDER BY id")
    before["run"] = [(*row, *own) for row, own in zip(before["run"], ranges, strict=True)]
    assert {table: rows(store, f"SELECT * FROM {table}") for table in tables(path)} == before
    states = rows(store, "SELECT state, count(*) FROM run GROUP BY 1 ORDER BY 1")
    assert states == [("done", 8), ("failed", 1), ("queued", 2)]
    finite = "SELECT * FROM misclassified WHERE run_id < 10 ORDER BY 1, 2"
    assert rows(store, finite) == rows(upgraded.backup, finite) != []
    outputs = "SELECT * FROM wrong_output ORDER BY 1, 2"
    assert rows(store, outputs) == rows(upgraded.backup, outputs) != []
    sums = "SELECT sum(tn), sum(fp), sum(fn), sum(tp), sum(tested), sum(wrong) FROM {}"
    summed = rows(store, sums.format("length_sum"))
    assert rows(store, sums.format("run")) == rows(store, sums.format("length_score")) == summed
    assert verify(store).damages == []
    assert rows(store, "SELECT failures FROM run WHERE state = 'failed'") == [(3,)]
    assert upgrade_with_backup(store) is None
    made = open_writer(str(tmp_path / "made.db"))
    assert rows(store, SCHEMA["sqlite"]) == rows(made, SCHEMA["sqlite"])
    assert rows(ROOT / "runs.db", SCHEMA["sqlite"]) == rows(made, SCHEMA["sqlite"])


def tables(path: Path) -> list[str]:
    made = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    return [name for (name,) in rows(path, made)]


def test_logits_are_said_as_they_are_stored(any_db: str, request: pytest.FixtureRequest) -> None:
    """After an upgrade NaN is null and infinity infinite, in SQL, frames and exports."""
    db, nan = any_db, float("nan")
    if db.startswith("postgresql"):
        db = request.getfixturevalue("postgres_url")
        fill_server(db, OLD)
    else:
        shutil.copy(OLD, db)
    upgrade_with_backup(open_writer(db, any_version=True))
    store = open_reader(db)
    logits = "SELECT logit FROM {} WHERE run_id = 11 ORDER BY {}"
    by_number = [x for (x,) in rows(store, logits.format("string_error", "number"))]
    assert sorted(map(str, by_number)) == ["-0.25", "-inf", "5e-324", "None", "None", "inf"]
    frame = string_queries.errors_of(store, [11])
    assert frame["logit"].map(str).tolist() == [
        str(nan if logit is None else logit) for logit in by_number
    ]
    labels = rows(store, "SELECT label FROM misclassified WHERE logit IS NULL AND run_id = 11")
    assert sorted(labels) == [(0,), (1,)]
    said = string_queries.string_errors(store, 11).set_index("logit")["kind"]
    assert said[said.index.isna()].tolist() == ["no answer", "no answer"]
    assert set(said[said.index.notna()]) == {"false positive", "false negative"}
    answers = {answer["input"]: answer["prediction"] for answer in answers_of(store, 11)}
    assert [answers["a"], answers["ab"], answers["ac"], answers["abc"]] == [None, None, 1, 0]
    told = json.loads(run_main("errors", "unanswered/0", "--json", "--db", db).stdout)
    assert [(row["string"], row["kind"], row["logit"]) for row in told[:4]] == [
        ("a", "no answer", None),
        ("ab", "no answer", None),
        ("ac", "false positive", "Infinity"),
        ("abc", "false negative", "-Infinity"),
    ]
    # No scores were imported with these answers.
    imported = string_queries.string_errors(store, 10)
    assert imported["logit"].isna().all()
    assert set(imported["kind"]) == {"false positive", "false negative"}
    assert None not in {answer["prediction"] for answer in answers_of(store, 10)}


def test_a_servers_database_becomes_the_same_as_a_file(
    tmp_path: Path, postgres_url: str, made_on_server: str
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    fill_server(postgres_url, OLD)
    for db in (str(path), postgres_url):
        assert upgrade_with_backup(open_writer(db, any_version=True)) is not None
    store = open_writer(postgres_url)
    assert contents(store) == contents(open_reader(str(path)))
    for view in ("string_error", "misclassified", "wrong_output"):
        of_server, of_file = (
            sorted(map(repr, rows(of, f"SELECT * FROM {view}"))) for of in (store, path)
        )
        assert of_server == of_file != []
    assert verify(store).damages == []
    made = open_writer(
        make_url(postgres_url).set(database=made_on_server).render_as_string(hide_password=False)
    )
    assert rows(store, SCHEMA["postgresql"]) == rows(made, SCHEMA["postgresql"])


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_an_upgrade_blesses_no_damage(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    db = str(tmp_path / "old.db")
    if kind == "sqlite":
        shutil.copy(OLD, db)
    else:
        db = request.getfixturevalue("postgres_url")
        fill_server(db, OLD)
    digests = "SELECT id, digest, verdict_digest FROM run ORDER BY id"
    store = open_writer(db, any_version=True)
    with store.begin() as connection:
        for damage in (
            "UPDATE verdict SET inputs = 1 WHERE run_id = 1",
            "UPDATE length_score SET fn = fn + 1 WHERE run_id = 2 AND length = 9",
            "DELETE FROM error_pack WHERE run_id = 3",
            "UPDATE run SET tp = tp + 1 WHERE id = 4",
            "UPDATE length_score SET edits = edits + 1 WHERE run_id = 8 AND length = 4",
        ):
            connection.exec_driver_sql(damage)
    before, scores = rows(store, digests), rows(store, "SELECT count(*) FROM length_score")
    assert upgrade_with_backup(store) is not None
    store = open_reader(db)
    assert rows(store, digests) == before
    assert rows(store, "SELECT count(*) FROM length_score") == scores
    said = [str(damage) for damage in verify(store).damages]
    assert [line for line in said if line.startswith("run")] == [
        "run 1 (model seed 0): its exhaustive check does not fit its digest",
        "run 2 (model seed 1): its results do not fit its digest",
        "run 3 (model seed 0): its results do not fit its digest",
        "run 4 (model seed 1): its results do not fit its digest",
        "run 8 (model seed 0): its results do not fit its digest",
    ]
    assert len(queries.runs(store)) == 11


def test_an_upgrade_takes_over_what_tables_that_check_nothing_may_hold(tmp_path: Path) -> None:
    path = unchecked(OLD, tmp_path / "old.db")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE run SET fp = 'many' WHERE id = 1")
        connection.execute("UPDATE length_score SET tp = 0.5 WHERE run_id = 2 AND length = 9")
        connection.execute("INSERT INTO length_score SELECT * FROM length_score WHERE run_id = 3")
        connection.commit()
    upgraded = upgrade_with_backup(open_writer(str(path), any_version=True))
    assert upgraded is not None
    assert upgraded.backup is not None
    assert rows(upgraded.backup, "SELECT fp FROM run WHERE id = 1") == [("many",)]
    assert rows(path, "SELECT fp FROM run WHERE id = 1") == [("many",)]
    merged = writer.merge(open_writer(str(tmp_path / "new.db")), open_reader(str(path)))
    assert (merged.results, merged.waiting) == (5, 3), "those that are as they were"


@pytest.mark.parametrize("schema", ["0000", "0001", "0002", "0003"])
def test_a_database_of_a_schema_before_the_first_is_refused_and_left_as_it_is(
    schema: str, tmp_path: Path
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (schema,))
        connection.commit()
    before = path.read_bytes()
    said = (
        rf"'{re.escape(str(path))}' is of schema '{schema}'; seqcls 0\.2 .* upgrades it to 0004 .*"
    )
    for asked in (
        lambda: open_reader(str(path)),
        lambda: open_writer(str(path)),
        lambda: open_reader(str(path), any_version=True),
        lambda: open_writer(str(path), any_version=True),
        lambda: upgrade(str(path)),
    ):
        with pytest.raises(StoreVersionError, match=said) as refused:
            asked()
        assert "\n" not in str(refused.value)
    for command in (("db", "upgrade"), ("db", "check"), ("runs",), ("status",), ("pack",)):
        ended = run_main(*command, "--db", str(path))
        assert ended.returncode != 0
        assert f"is of schema '{schema}'" in ended.stderr
    assert [file.name for file in tmp_path.iterdir()] == ["old.db"]
    assert path.read_bytes() == before


def test_nothing_is_upgraded_under_a_worker(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)

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
    assert schema_version(open_writer(str(path), any_version=True)) == "0004"
    assert [file.name for file in tmp_path.glob("*schema*")] == []
    beat(seconds_ago=GRACE_SECONDS + 1)
    assert upgrade_with_backup(open_writer(str(path), any_version=True)) is not None


def test_an_upgrade_overwrites_no_copy(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    copy, mine = tmp_path / f"old.db.schema-{OLD.stem}", tmp_path / "mine"
    mine.write_text("mine")
    for target in (mine, tmp_path / "nowhere"):
        copy.symlink_to(target)
        with pytest.raises(StoreError, match="is in the way"):
            upgrade_with_backup(open_writer(str(path), any_version=True))
        assert schema_version(open_writer(str(path), any_version=True)) == OLD.stem
        copy.unlink()
    copy.symlink_to(mine)
    with pytest.raises(StoreError, match="is in the way"):
        upgrade_with_backup(open_writer(str(path), any_version=True))
    assert mine.read_text() == "mine", "no link is written through"
    copy.unlink()
    upgrade_with_backup(open_writer(str(path), any_version=True))
    assert rows(copy, "SELECT version_num FROM alembic_version") == [(OLD.stem,)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_an_upgrade_that_was_killed_is_taken_up_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "old.db"
    shutil.copy(OLD, path)
    child = os.fork()
    if child == 0:
        # What is copied is there, and nothing upgraded.
        monkeypatch.setattr(migrate, "upgrade", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        upgrade_with_backup(open_writer(str(path), any_version=True))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    copy = tmp_path / f"old.db.schema-{OLD.stem}"
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
