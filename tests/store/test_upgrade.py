"""Databases of the version before are upgraded whole, or left as they are."""

import json
import os
import shutil
import signal
from pathlib import Path

import pytest

from seqcls.errors import StoreBusyError, StoreError, StoreVersionError
from sweeps.api.databases import upgrade
from sweeps.results import RANGE_COLUMNS
from sweeps.store import migrate
from sweeps.store.databases.engine import SCHEMA_VERSION, Store, schema_version
from sweeps.store.migrate import upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries, string_queries
from sweeps.store.reads.export import answers_of
from sweeps.store.reads.workers import GRACE_SECONDS
from sweeps.store.tables import now
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.commands import run_main
from tests.conftest import ASSETS, ROOT
from tests.databases import MADE, change, fill_server, new_database, rows
from tests.results import filled

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
def path(tmp_path: Path) -> Path:
    return Path(shutil.copy(OLD, tmp_path / "old.db"))


def opened(path: Path) -> Store:
    return open_writer(str(path), any_version=True)


def tables(path: Path) -> list[str]:
    made = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    return [name for (name,) in rows(path, made)]


def test_a_file_is_upgraded_beside_a_copy_and_loses_nothing(path: Path, made_file: Path) -> None:
    before = {table: rows(path, f"SELECT * FROM {table}") for table in tables(path)}
    for how in (open_reader, open_writer):
        with pytest.raises(StoreVersionError, match=r"older version .* `seqcls db upgrade"):
            how(str(path))
    upgraded = upgrade_with_backup(opened(path))
    assert upgraded is not None
    assert upgraded.backup == path.with_name("old.db.schema-0004")
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
    for of in ("misclassified WHERE run_id < 10", "wrong_output"):
        view = f"SELECT * FROM {of} ORDER BY 1, 2"
        assert rows(store, view) == rows(upgraded.backup, view) != []
    assert verify(store).damages == []
    assert upgrade_with_backup(store) is None
    for made in (made_file, ROOT / "runs.db"):
        assert rows(store, SCHEMA["sqlite"]) == rows(made, SCHEMA["sqlite"])
    # What is submitted afterwards gets ids that are free.
    assert verify(filled(store, name="new", model_seeds=[70, 71, 72])).damages == []
    # A file that was made before the newest migration was finished lacks one table.
    change(path, "DROP TABLE proof")
    with pytest.raises(StoreVersionError, match="'0005-dev'"):
        open_reader(str(path))
    assert upgrade_with_backup(opened(path)) is not None
    assert rows(path, "SELECT * FROM proof") == []


def test_a_servers_database_becomes_the_same_as_a_file(
    path: Path, postgres_server: str, postgres_url: str
) -> None:
    fill_server(postgres_url, OLD)
    old = open_writer(postgres_url, any_version=True)
    with pytest.raises(StoreVersionError, match="back it up"):
        open_reader(postgres_url)
    change(
        old,
        "CREATE VIEW mine AS SELECT logit FROM misclassified",
        "GRANT SELECT ON misclassified TO PUBLIC",
    )
    upgrade_with_backup(opened(path))
    upgraded = upgrade_with_backup(old)
    assert upgraded is not None
    assert (upgraded.before, upgraded.backup) == (OLD.stem, None)
    store = open_writer(postgres_url)
    assert contents(store) == contents(open_reader(str(path)))
    for view in ("string_error", "misclassified", "wrong_output", "length_sum"):
        of_server, of_file = (
            sorted(map(repr, rows(of, f"SELECT * FROM {view}"))) for of in (store, path)
        )
        assert of_server == of_file != []
    # A server's own views of these views stay, and so do permissions.
    assert rows(store, "SELECT count(*) FROM mine WHERE logit IS NULL") == [(4,)]
    granted = "SELECT has_table_privilege('public', 'misclassified', 'SELECT')"
    assert rows(store, granted) == [(True,)]
    change(store, "DROP VIEW mine")
    made = open_writer(new_database(postgres_server, MADE))
    assert rows(store, SCHEMA["postgresql"]) == rows(made, SCHEMA["postgresql"])
    assert verify(filled(store, name="new", model_seeds=[70, 71, 72])).damages == []


def test_logits_are_said_as_they_are_stored(path: Path) -> None:
    """NaN is null and infinity infinite, in SQL, frames, exports and commands."""
    upgrade_with_backup(opened(path))
    store = open_reader(str(path))
    logits = "SELECT logit FROM string_error WHERE run_id = 11 ORDER BY number"
    by_number = [str(x) for (x,) in rows(store, logits)]
    assert sorted(by_number) == ["-0.25", "-inf", "5e-324", "None", "None", "inf"]
    frame = string_queries.errors_of(store, [11])
    assert frame["logit"].map(str).tolist() == [x.replace("None", "nan") for x in by_number]
    answers = {answer["input"]: answer["prediction"] for answer in answers_of(store, 11)}
    assert [answers["a"], answers["ab"], answers["ac"], answers["abc"]] == [None, None, 1, 0]
    told = json.loads(run_main("errors", "unanswered/0", "--json", "--db", str(path)).stdout)
    assert {(row["string"], row["kind"], row["logit"]) for row in told[:4]} == {
        *((x, "no answer", None) for x in ("a", "ab")),
        *(("ac", "false positive", "Infinity"), ("abc", "false negative", "-Infinity")),
    }
    # No scores were imported with these answers.
    imported = string_queries.string_errors(store, 10)
    assert imported["logit"].isna().all()
    assert set(imported["kind"]) == {"false positive", "false negative"}


def test_an_upgrade_blesses_no_damage(path: Path) -> None:
    change(
        path,
        "UPDATE verdict SET inputs = 1 WHERE run_id = 1",
        "UPDATE length_score SET fn = fn + 1 WHERE run_id = 2 AND length = 9",
        "DELETE FROM error_pack WHERE run_id = 3",
        "UPDATE run SET tp = tp + 1 WHERE id = 4",
        "UPDATE length_score SET edits = edits + 1 WHERE run_id = 8 AND length = 4",
    )
    digests = "SELECT id, digest, verdict_digest FROM run ORDER BY id"
    before = rows(path, digests)
    upgrade_with_backup(opened(path))
    assert rows(path, digests) == before
    said = [damage.what for damage in verify(open_reader(str(path))).damages]
    assert [x.split()[1] for x in said if x.startswith("run")] == ["1", "2", "3", "4", "8"]
    assert len(queries.runs(open_reader(str(path)))) == 11


def test_a_schema_before_the_first_is_refused_and_left_as_it_is(path: Path) -> None:
    change(path, "UPDATE alembic_version SET version_num = '0003'")
    before = path.read_bytes()
    for asked in (open_reader, open_writer, upgrade):
        with pytest.raises(StoreVersionError, match=r"schema '0003'; seqcls 0\.2") as refused:
            asked(str(path))
        assert "\n" not in str(refused.value)
    ended = run_main("db", "upgrade", "--db", str(path))
    assert (ended.returncode, "is of schema '0003'" in ended.stderr) == (2, True)
    assert [file.name for file in path.parent.iterdir()] == ["old.db"]
    assert path.read_bytes() == before


def test_nothing_is_upgraded_under_a_worker_or_over_a_copy(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running = (
        "UPDATE run SET state = 'running', worker_id = (SELECT min(id) FROM worker) "
        "WHERE state = 'queued'"
    )
    change(path, f"UPDATE worker SET heartbeat_at = '{now(1)}'", running)
    with pytest.raises(StoreBusyError, match=r"workers are training \d runs into .*; end them"):
        upgrade_with_backup(opened(path))
    change(path, f"UPDATE worker SET heartbeat_at = '{now(GRACE_SECONDS + 1)}'")
    copy, mine = tmp_path / f"old.db.schema-{OLD.stem}", tmp_path / "mine"
    mine.write_text("mine")
    for target in (mine, tmp_path / "nowhere"):
        copy.symlink_to(target)
        with pytest.raises(StoreError, match="is in the way"):
            upgrade_with_backup(opened(path))
        assert schema_version(opened(path)) == OLD.stem
        copy.unlink()
    assert mine.read_text() == "mine", "no link is written through"
    # One that was killed once its copy was made is taken up again.
    child = os.fork()
    if child == 0:
        monkeypatch.setattr(migrate, "upgrade", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        upgrade_with_backup(opened(path))
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    before = copy.read_bytes()
    upgrade_with_backup(opened(path))
    assert copy.read_bytes() == before
    assert schema_version(open_reader(str(path))) == SCHEMA_VERSION
    assert rows(copy, "SELECT version_num FROM alembic_version") == [(OLD.stem,)]
