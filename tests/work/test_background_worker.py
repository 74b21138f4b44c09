"""Workers that a page starts: once, apart from it, and with a log that no stranger misleads."""

import json
import os
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest
from sqlalchemy import make_url

from seqcls.errors import StoreError
from sweeps.grid.spec import read_spec
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
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


def test_asked_many_times_at_once_one_worker_is_started_and_after_it_was_killed_another(
    queued: Store,
) -> None:
    assert background_worker.read_log(queued, 1) is None
    with closing(sqlite3.connect(file_of(queued), isolation_level=None)) as held:
        # Nobody can train until it is let go.
        held.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(lambda _: start(queued), range(8))) == 1
        process = psutil.Process(pid_of(queued))
        assert os.getsid(process.pid) == process.pid, "it is a session of its own"
        assert str(file_of(queued)) not in " ".join(process.cmdline())
        assert len(list(background_worker.log_folder(queued).glob("*.log"))) == 1
        process.kill()
        wait_for_end(queued)
    assert start(queued)
    wait_for_end(queued)
    assert sweep_queries.counts_by_state(queued, [1]) == {"done": 1}
    assert "trained 1 run " in (background_worker.read_log(queued, 1) or "")
    background_worker.forget(queued, 1)
    assert background_worker.read_log(queued, 1) is None


def pid_of(store: Store) -> int:
    record = json.loads((background_worker.log_folder(store) / "sweep-1.json").read_text())
    return int(record["pid"])


def test_logs_of_a_servers_database_stand_in_the_users_folder(queued: Store) -> None:
    server = Store("postgresql://u:***@host/db", make_url("postgresql://u:p@host/db"))
    assert background_worker.log_folder(server) != background_worker.log_folder(queued)
    assert "***" not in str(background_worker.log_folder(server))


# What stands beside a database is not believed: records and logs of workers.

LOG = "20260101T000000.000000.log"


def record(store: Store, **changes: Any) -> Path:
    """A launch record as a stranger may write it."""
    folder = background_worker.log_folder(store)
    folder.mkdir(exist_ok=True)
    path = folder / "sweep-1.json"
    path.write_text(json.dumps({"pid": 1, "created": 1.0, "log": LOG, **changes}))
    return folder


def test_a_log_of_the_folder_is_read(store: Store, tmp_path: Path) -> None:
    """And none elsewhere, or that is no file of its own."""
    (record(store) / LOG).write_text("trained")
    assert background_worker.read_log(store, 1) == "trained"
    (record(store) / LOG).unlink()
    secret = tmp_path / "secret"
    for path in (secret, tmp_path.parent / "secret"):
        path.write_text("secret")
    for log in ("../../secret", "../secret", "/etc/passwd", "", ".", "x.log", None, 3, [LOG]):
        record(store, log=log)
        assert background_worker.read_log(store, 1) is None, log
    log_file = record(store) / LOG
    makers: tuple[Callable[[], object], ...] = (
        lambda: log_file.symlink_to(secret),
        lambda: os.link(secret, log_file),
        lambda: os.mkfifo(log_file),
        log_file.mkdir,
    )
    for make in makers:
        make()
        assert background_worker.read_log(store, 1) is None
        log_file.rmdir() if log_file.is_dir() else log_file.unlink()


def test_a_folder_of_logs_that_is_a_link_is_not_followed(store: Store, tmp_path: Path) -> None:
    folder = record(store, pid=os.getpid(), created=psutil.Process().create_time())
    (folder / LOG).write_text("secret")
    assert background_worker.has_worker(store, 1)
    elsewhere = folder.rename(tmp_path / "elsewhere")
    folder.symlink_to(elsewhere)
    before = {path.name: path.read_text() for path in elsewhere.iterdir()}
    assert background_worker.read_log(store, 1) is None
    assert not background_worker.has_worker(store, 1)
    background_worker.forget(store, 1)
    with pytest.raises(StoreError, match=r"logs' is a link: .*; remove the link"):
        background_worker.start_worker(store, {1: "s"}, anyway=True)
    assert {path.name: path.read_text() for path in elsewhere.iterdir()} == before


NOTHING: list[dict[str, Any]] = [
    *({"pid": pid} for pid in (-1, 0, "1", 2**70, True)),
    *({"created": created} for created in ("now", 1e300, None)),
    {"another": 1},
]


def test_a_record_that_means_nothing_is_no_record(store: Store) -> None:
    for changes in NOTHING:
        (record(store, **changes) / LOG).write_text("trained")
        assert background_worker.read_log(store, 1) is None, changes
        assert not background_worker.has_worker(store, 1), changes
    for content in (b"", b"\xff\xfe", b"[]", b"null", b"[" * 100_000, b"{}"):
        (background_worker.log_folder(store) / "sweep-1.json").write_bytes(content)
        assert not background_worker.has_worker(store, 1), content[:9]


def test_launching_writes_through_no_link(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine")
    folder = record(store)
    (folder / "sweep-1.json").unlink()
    (folder / "sweep-1.json").symlink_to(mine)
    started = background_worker._Record(1, 1.0, LOG)
    monkeypatch.setattr(background_worker, "_start", lambda *_: started)
    background_worker.start_worker(store, {1: "s"})
    assert mine.read_text() == "mine"
    (folder / "lock").unlink()
    (folder / "lock").symlink_to(mine)
    with pytest.raises(OSError, match="symbolic link"):
        background_worker.start_worker(store, {1: "s"}, anyway=True)
    assert mine.read_text() == "mine"
