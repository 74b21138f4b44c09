"""Opening a database: versions, pragmas, paths, and what is refused."""

import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

import seqcls
from seqcls.errors import StoreError, StoreMissingError
from sweeps import api
from sweeps.api.models import trained_model
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import MIGRATIONS, SCHEMA_VERSION, locate, open_reader, open_writer, pack
from sweeps.store.reads import queries
from sweeps.store.tables import Base
from tests.commands import run_main
from tests.conftest import ROOT
from tests.databases import change, rows, spec
from tests.stock import copy_of


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A file."""
    return open_writer(str(copy_of("made", "made.db", tmp_path)))


def test_the_migrations_create_the_declared_tables(store: Store) -> None:
    with store.read() as connection:
        assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    assert ScriptDirectory(str(MIGRATIONS)).get_current_head() == SCHEMA_VERSION


def test_a_writer_uses_wal_and_foreign_keys_and_a_reader_cannot_write(store: Store) -> None:
    with store.write() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 1
    with pytest.raises(StoreError, match="FOREIGN KEY"), store.write(quiet=True) as connection:
        connection.exec_driver_sql("INSERT INTO sweep_run VALUES (99, 99)")
    reader = open_reader(str(store.path))
    with pytest.raises(StoreError, match="readonly database; check"), reader.read() as connection:
        connection.exec_driver_sql("DELETE FROM sweep")


READS: dict[str, Callable[[Store], object]] = {
    "runs": lambda store: api.runs(store, "all_initializations"),
    "errors": lambda store: api.errors(store, [5]),
    "lengths": lambda store: api.lengths(store, [5]),
    "trained_model": lambda store: trained_model(store, 5).answer("aab"),
    "model": lambda store: api.model(store, 5).answer("aab"),
    "predict": lambda store: api.predict(store, 5, ["aab"]),
    "explain": lambda store: api.explain(store, 5, "aab"),
    "load_run": lambda store: seqcls.load_run(str(store.path), 5).logits(["aab"]),
    "compare": lambda store: api.compare(store, "all_initializations", "walkthrough"),
    "status": api.status,
    "protocol": lambda store: api.protocol(store, 5),
    "a block of begin": lambda store: queries.run_config(store, 5),
    "runs --failing": lambda store: run_main("runs", "--failing", "--db", str(store.path)),
    "explain RUN": lambda store: run_main("explain", "5", "aab", "--db", str(store.path)),
    "verdict": lambda store: run_main("verdict", "5", "--beyond", "--db", str(store.path)),
    "refused": lambda store: run_main("delete", "nix", "--yes", "--db", str(store.path)),
}


def test_reading_leaves_the_file_unchanged(tmp_path: Path) -> None:
    copy = Path(shutil.copy(ROOT / "runs.db", tmp_path))
    before = copy.read_bytes()
    for name, ask in READS.items():
        ask(api.open_store(copy))
        assert copy.read_bytes() == before, name
        assert list(tmp_path.iterdir()) == [copy], name


def test_the_first_write_enables_wal_and_packing_leaves_a_single_file(tmp_path: Path) -> None:
    path = Path(shutil.copy(ROOT / "runs.db", tmp_path))
    # As it is shipped.
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    writer.stop(api.open_store(path), [1])
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert pack(str(path)) == path
    assert rows(path, "PRAGMA journal_mode") == [("delete",)]
    assert list(tmp_path.iterdir()) == [path]
    assert len(queries.runs(open_reader(str(path)))) == 43


def test_foreign_files_and_newer_databases_are_refused_and_unchanged(tmp_path: Path) -> None:
    newer, other, text = (tmp_path / name for name in ("made.db", "other.db", "notes.txt"))
    copy_of("made", "made.db", tmp_path)
    change(newer, "UPDATE alembic_version SET version_num = '9999'")
    change(other, "CREATE TABLE mine (x)")
    text.write_text("not a database, but more than a hundred bytes of somebody's notes\n" * 9)
    for path, message in {
        newer: r"newer version .*'9999'.*upgrade seqcls",
        other: "a database of another program",
        text: r"notes\.txt' is not a SQLite database",
    }.items():
        before = path.read_bytes()
        for opened in (open_reader, open_writer):
            with pytest.raises(StoreError, match=message):
                opened(str(path))
        assert path.read_bytes() == before


def test_a_missing_database_is_reported_with_the_command_that_creates_one(tmp_path: Path) -> None:
    with pytest.raises(
        StoreMissingError, match=r"does not exist; name one .*`seqcls sweep report --db "
    ):
        open_reader(str(tmp_path / "none.db"))
    assert list(tmp_path.iterdir()) == []
    # The command is handed over as it is, whatever the file is called.
    with pytest.raises(StoreMissingError) as missing:
        open_reader(str(tmp_path / "a `b` c.db"))
    assert shlex.split(missing.value.command)[-2:] == ["--db", str(tmp_path / "a `b` c.db")]
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreMissingError, match="is empty"):
        open_reader(str(tmp_path / "empty.db"))
    with pytest.raises(StoreError, match=r"the folder '.*nowhere' is missing"):
        open_writer(str(tmp_path / "nowhere" / "x.db"))
    with pytest.raises(StoreError, match="it is a folder"):
        open_reader(str(tmp_path))


def test_the_database_is_named_by_option_variable_or_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SEQCLS_DB", raising=False)
    assert locate(None) == Path("runs.db")
    monkeypatch.setenv("SEQCLS_DB", "elsewhere.db")
    assert locate(None) == Path("elsewhere.db")
    assert locate("named.db") == Path("named.db")
    assert locate("sqlite:////tmp/x.db") == Path("/tmp/x.db")
    with pytest.raises(StoreError, match="kind 'mysql': expected a file, sqlite:///FILE or"):
        locate("mysql://localhost/runs")


def test_a_path_may_have_odd_characters_and_must_be_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "a b?mode=memory#%41.db"
    writer.submit(open_writer(str(odd)), spec())
    assert len(queries.runs(open_reader(str(odd)))) == 3
    assert odd.exists()
    # Messages cut long names.
    monkeypatch.chdir(tmp_path)
    for opened in (open_reader, open_writer):
        with pytest.raises(StoreError, match=r"cannot open '\\udcff\.db': .*name another file"):
            opened("\udcff.db")
