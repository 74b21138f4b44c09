"""Databases whose writer was killed, that may not be written, or that disappear: still read, or
refused with the reason.
"""

import logging
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import ConfigError, StoreUnavailableError
from sweeps.api.importing import import_predictions
from sweeps.cli.app import _show_log
from sweeps.store import database, writer
from sweeps.store.opening import open_reader, open_writer, pack, why_not_permitted
from sweeps.store.reads import queries, workers
from sweeps.store.writes import importing
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.chaos.moments import forked
from tests.commands import printed, run_main
from tests.conftest import SHORT
from tests.databases import rows, spec
from tests.temporary import open_to_all


def in_fork(function: Callable[[], object]) -> int:
    """The exit status of a forked process that calls a function."""
    return os.waitpid(forked(function), 0)[1]


def kill_while_writing(path: Path) -> None:
    """Ends this process while pages of the file are half changed and its journal is whole."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA cache_size=1")
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("UPDATE test_string SET length = 0")
    connection.execute("UPDATE run SET wrong = 0")
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of two imported models, packed, beside their predictions and strings."""
    folder = tmp_path_factory.mktemp("imported")
    texts = [f"{first}{number:011b}" for first in "01" for number in range(1024)]
    lines = [f"{text},{text.count('1') % 2}" for text in texts]
    (folder / "tested.csv").write_text("\n".join(["tokens,label", *lines]))
    given = [f"m,{seed},{text},1" for seed in (0, 1) for text in texts]
    (folder / "given.csv").write_text("\n".join(["model,seed,tokens,prediction", *given]))
    path = folder / "runs.db"
    import_predictions(path, folder / "given.csv", sweep="lab", dataset=folder / "tested.csv")
    pack(str(path))
    return path


@pytest.fixture
def two_runs(imported: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(imported, tmp_path))


@pytest.fixture
def half_written(two_runs: Path) -> Path:
    """A database with the journal of a writer that was killed."""
    before = rows(two_runs, "SELECT sum(length) FROM test_string")
    in_fork(lambda: kill_while_writing(two_runs))
    assert two_runs.with_name(f"{two_runs.name}-journal").stat().st_size > 0
    with closing(sqlite3.connect(f"file:{two_runs}?mode=ro&immutable=1", uri=True)) as reader:
        seen = reader.execute("SELECT sum(length) FROM test_string").fetchall()
    assert seen != before, "pages were written before the writer was killed"
    return two_runs


@pytest.mark.parametrize("command", [("status",), ("stop", "lab")])
def test_an_interrupted_write_is_rolled_back_by_the_next_command(
    half_written: Path, command: tuple[str, ...]
) -> None:
    printed(*command, "--db", str(half_written))
    assert rows(half_written, "PRAGMA integrity_check") == [("ok",)]
    assert len(queries.runs(open_reader(str(half_written)))) == 2
    assert run_main("verify", "--db", str(half_written)).returncode == 0


def as_nobody(function: Callable[[], object]) -> None:
    """Calls a function in a process of a user who owns nothing, and checks that it succeeds."""
    if os.getuid() != 0:
        pytest.skip("only root can become somebody else")

    def become_and_do() -> None:
        os.setgid(65534)
        os.setuid(65534)
        function()

    assert in_fork(become_and_do) == 0


@pytest.fixture
def for_all(two_runs: Path) -> Path:
    """The same where everybody may look."""
    open_to_all(two_runs)
    return two_runs


def test_a_user_without_write_permission_reads_or_gets_the_reason(for_all: Path) -> None:
    name = str(for_all)
    in_fork(lambda: kill_while_writing(for_all))

    def read() -> None:
        with pytest.raises(StoreUnavailableError, match="a write to it was interrupted") as refused:
            open_reader(name)
        assert f"`seqcls db check --db {name}`" in str(refused.value)

    as_nobody(read)
    assert run_main("db", "check", "--db", name).returncode == 0
    as_nobody(lambda: open_reader(name))
    for_all.chmod(0o444)
    why = "it may not be written; check its permissions (mode 0444)"

    def check_and_write() -> None:
        assert f"no: {why}" in run_main("db", "check", "--db", name).stdout
        for command in (("pack",), ("stop", "lab"), ("delete", "lab", "--yes")):
            completed = run_main(*command, "--db", name)
            assert (completed.returncode, why in completed.stderr) == (3, True)

    as_nobody(check_and_write)
    with closing(sqlite3.connect(for_all)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    for_all.parent.chmod(0o555)
    as_nobody(lambda: queries.runs(open_reader(name)))
    assert why_not_permitted(for_all) is None, "root may write anywhere"
    for_all.parent.chmod(0o755)


def test_a_killed_import_stores_nothing(
    imported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new.db"
    open_writer(str(new))
    files = (imported.with_name("given.csv"), imported.with_name("tested.csv"))
    record, calls = importing._record, iter(range(2))

    def killed(*given: object) -> int:
        if next(calls) == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return record(*given)  # type: ignore[arg-type]

    def store() -> None:
        monkeypatch.setattr(importing, "_record", killed)
        import_predictions(new, files[0], sweep="lab", dataset=files[1])

    assert os.WIFSIGNALED(in_fork(store))
    assert rows(new, "SELECT (SELECT count(*) FROM run), (SELECT count(*) FROM sweep)") == [(0, 0)]
    import_predictions(new, files[0], sweep="lab", dataset=files[1])
    assert len(queries.runs(open_reader(str(new)))) == 2
    # Nor does one store anything of which one run is there.
    more = tmp_path / "more.csv"
    more.write_text(files[0].read_text().replace("m,0,", "m,7,"))
    with pytest.raises(ConfigError, match="with seed 1 is already in the database"):
        import_predictions(new, more, sweep="lab", dataset=files[1])
    assert rows(new, "SELECT model_seed FROM run ORDER BY 1") == [(0,), (1,)]


def test_a_container_and_its_machine_have_different_host_names() -> None:
    script = "from sweeps.store.reads.workers import this_host; print(this_host())"
    container = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=False,
    )
    if container.returncode != 0:
        pytest.skip("this machine makes no name spaces of processes")
    assert container.stdout.strip() != workers.this_host()
    assert container.stdout.split()[0] == workers.this_host().split()[0], "the name is the same"
    assert workers.this_host() == workers.this_host()


def test_a_signal_while_a_connection_closes_is_not_logged(
    capsys: pytest.CaptureFixture[str],
) -> None:
    known = {name: [*logging.getLogger(name).handlers] for name in ("sweeps", "sqlalchemy")}
    _show_log()
    log = logging.getLogger("sqlalchemy.pool.impl.NullPool")
    for error in (SystemExit(130), KeyboardInterrupt(), OSError("gone")):
        log.error("Exception closing connection", exc_info=error)
    for name, handlers in known.items():
        logging.getLogger(name).handlers = handlers
    logged = capsys.readouterr().err
    assert logged.count("Exception closing connection") == 1
    assert "OSError: gone" in logged


def empty(path: Path) -> None:
    os.truncate(path, 0)


def replace_by_empty(path: Path) -> None:
    (path.parent / "empty").touch()
    (path.parent / "empty").replace(path)


def replace_by_another(path: Path) -> None:
    open_writer(str(path.parent / "another.db"))
    (path.parent / "another.db").replace(path)


def move_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


GONE: dict[Callable[[Path], None], str] = {
    empty: "was emptied or replaced while it was open",
    replace_by_empty: "was emptied or replaced while it was open",
    replace_by_another: "was replaced by another file while it was open",
    Path.unlink: "check that it and its folder are there",
    move_folder: "check that it and its folder are there",
}


@pytest.mark.parametrize("make_gone", GONE)
def test_a_file_replaced_or_deleted_during_a_sweep_is_reported_and_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make_gone: Callable[[Path], None]
) -> None:
    # Where the file is waited for, the test takes as long as this.
    monkeypatch.setattr(database, "BUSY_SECONDS", 600.0)
    path = tmp_path / "here" / "x.db"
    path.parent.mkdir()
    store = open_writer(str(path))
    sweep_id = writer.submit(store, spec(fixed=SHORT))
    record = writer.record

    def change_first(*given: Any) -> int:
        make_gone(path)
        monkeypatch.setattr(writer, "record", record)
        return record(*given)

    monkeypatch.setattr(writer, "record", change_first)
    with pytest.raises(StoreUnavailableError, match=GONE[make_gone]):
        work(store, [sweep_id], WorkOptions(0))
    if make_gone in (empty, replace_by_empty):
        assert path.stat().st_size == 0
        with pytest.raises(StoreUnavailableError, match=GONE[make_gone]):
            queries.runs(store)
    assert path.exists() is (make_gone not in (Path.unlink, move_folder))
