"""Workers that a page starts: once, apart from it, and with a log that no stranger misleads."""

import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psutil
import pytest
from sqlalchemy import make_url

from seqcls.errors import StoreError
from sweeps.grid.spec import parse_spec, read_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
from sweeps.work.background_worker import forget, read_log
from tests.databases import file_of


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, short_spec: Path) -> Store:
    """A database with one short run that nobody trains yet; its name begins like an option."""
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "launched.db"))
    store = open_writer()
    text = short_spec.read_text().replace('name = "short"', 'name = "--short"')
    short_spec.write_text(text.replace('"0..2"', "[0]").replace("[2, 4]", "[2]"))
    writer.submit(store, read_spec(short_spec))
    return store


def wait_for_end(store: Store) -> None:
    while background_worker.has_worker(store, 1):
        time.sleep(0.1)


def start(store: Store) -> bool:
    return background_worker.start_worker(store, {1: "--short"})


def test_concurrent_starts_start_one_worker_and_a_killed_one_is_replaced(queued: Store) -> None:
    assert read_log(queued, 1) is None
    with closing(sqlite3.connect(file_of(queued), isolation_level=None)) as held:
        # Nobody can train until it is let go.
        held.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(lambda _: start(queued), range(8))) == 1
        process = psutil.Process(list(background_worker._started)[-1].pid)
        assert os.getsid(process.pid) == process.pid, "it is a session of its own"
        assert str(file_of(queued)) not in " ".join(process.cmdline())
        assert len(list(background_worker.log_folder(queued).glob("*.log"))) == 1
        process.kill()
        wait_for_end(queued)
    assert start(queued)
    wait_for_end(queued)
    assert sweep_queries.runs_by_state(queued, [1]) == {"done": 1}
    assert "trained 1 run " in (read_log(queued, 1) or "")
    forget(queued, 1)
    assert read_log(queued, 1) is None


def test_logs_of_a_server_database_are_in_the_users_folder(queued: Store) -> None:
    server = Store("postgresql://u:***@host/db", make_url("postgresql://u:p@host/db"))
    assert background_worker.log_folder(server) != background_worker.log_folder(queued)
    assert "***" not in str(background_worker.log_folder(server))


# Logs beside a database are not trusted.


def log_of(store: Store, sweep_ids: str = "1") -> Path:
    """A log as a stranger may write it."""
    folder = background_worker.log_folder(store)
    folder.mkdir(exist_ok=True)
    return folder / f"20260101T000000.000000-{sweep_ids}.log"


def test_logs_are_read_by_sweep_and_never_through_links(store: Store, tmp_path: Path) -> None:
    """Links, pipes and folders are not read."""
    log_of(store).write_text("trained")
    assert read_log(store, 1) == "trained"
    log_of(store, "12-21").write_text("others")
    assert read_log(store, 1) == "trained"
    assert read_log(store, 21) == "others"
    forget(store, 1)
    assert read_log(store, 1) is None
    assert read_log(store, 12) == "others"
    secret, path = tmp_path / "secret", log_of(store)
    secret.write_text("secret")
    makers: tuple[Callable[[], object], ...] = (
        lambda: path.symlink_to(secret),
        lambda: os.link(secret, path),
        lambda: os.mkfifo(path),
        path.mkdir,
    )
    for make in makers:
        make()
        assert read_log(store, 1) is None
        path.rmdir() if path.is_dir() else path.unlink()


def test_a_log_folder_that_is_a_link_is_not_followed(store: Store, tmp_path: Path) -> None:
    log_of(store).write_text("secret")
    folder = background_worker.log_folder(store)
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    assert read_log(store, 1) is None
    forget(store, 1)
    with pytest.raises(StoreError, match=r"logs' is a link: .*; remove the link"):
        background_worker.start_worker(store, {1: "s"}, anyway=True)
    assert [path.read_text() for path in elsewhere.iterdir()] == ["secret"]


def test_a_worker_is_found_by_its_row_in_the_database(queued: Store) -> None:
    assert not background_worker.has_worker(queued, 1)
    with closing(sqlite3.connect(file_of(queued), isolation_level=None)) as held:
        held.execute("BEGIN IMMEDIATE")
        assert start(queued)
        process, _ = background_worker._started.popitem()
        held.execute("ROLLBACK")
    try:
        while not background_worker.has_worker(queued, 1):
            assert process.poll() is None
            time.sleep(0.02)
        writer.submit(queued, parse_spec({"name": "other", "model_seeds": [0]}))
        assert not background_worker.has_worker(queued, 2), "it was started for another sweep"
    finally:
        process.wait()
    assert not background_worker.has_worker(queued, 1)
