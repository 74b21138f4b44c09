"""Workers that a page starts: once, apart from it, and with a log."""

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from sweeps.grid.spec import read_spec
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work import background_worker
from tests.databases import file_of

PATIENCE_SECONDS = 120


@pytest.fixture
def queued(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, short_spec: Path) -> Store:
    """A database with one short sweep that nobody trains yet; its name begins like an option."""
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "launched.db"))
    store = open_writer()
    text = short_spec.read_text().replace('name = "short"', 'name = "--short"')
    short_spec.write_text(text)
    writer.submit(store, read_spec(short_spec))
    return store


def wait_for_end(store: Store) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while background_worker.has_worker(store, 1):
        assert time.monotonic() < deadline, background_worker.read_log(store, 1)
        time.sleep(0.1)


def test_asked_many_times_at_once_it_starts_one_worker_that_trains_the_sweep(
    queued: Store,
) -> None:
    assert background_worker.read_log(queued, 1) is None
    with ThreadPoolExecutor(8) as pool:
        started = list(
            pool.map(lambda _: background_worker.start_worker(queued, {1: "--short"}), range(8))
        )
    assert sum(started) == 1
    process = psutil.Process(pid_of(queued))
    assert os.getsid(process.pid) == process.pid, "it is a session of its own"
    assert str(file_of(queued)) not in " ".join(process.cmdline())
    wait_for_end(queued)
    assert sweep_queries.counts_by_state(queued, [1]) == {"done": 6}
    assert "trained 6 runs" in (background_worker.read_log(queued, 1) or "")
    assert len(list(background_worker.log_folder(queued).glob("*.log"))) == 1


def pid_of(store: Store) -> int:
    record = json.loads((background_worker.log_folder(store) / "sweep-1.json").read_text())
    return int(record["pid"])


def test_after_a_worker_was_killed_another_can_be_started(queued: Store) -> None:
    assert background_worker.start_worker(queued, {1: "--short"})
    psutil.Process(pid_of(queued)).kill()
    wait_for_end(queued)
    assert background_worker.start_worker(queued, {1: "--short"})
    wait_for_end(queued)
    assert sweep_queries.counts_by_state(queued, [1]) == {"done": 6}
    background_worker.forget(queued, 1)
    assert background_worker.read_log(queued, 1) is None


def test_logs_of_a_servers_database_stand_in_the_users_folder(queued: Store) -> None:
    server = Store("postgresql://u:***@host/db", queued.engine, None)
    assert background_worker.log_folder(server) != background_worker.log_folder(queued)
    assert "***" not in str(background_worker.log_folder(server))
