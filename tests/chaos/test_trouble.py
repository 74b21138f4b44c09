"""A database that is locked or full: reported in one line, and nothing is lost."""

import os
import resource
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

import sweeps.store.database
from seqcls.errors import StoreUnavailableError
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.verification import verify
from tests.chaos.moments import forked
from tests.chaos.swept import assert_whole, spec, sweep
from tests.conftest import LONG
from tests.databases import rows


def sweep_in_trouble(path: Path, trouble: Callable[[], None]) -> str:
    """Sweeps in a fork of this process after `trouble` was called there.

    Returns:
        Empty if all went well; the message if the database could not be used.
    """
    message = path.with_suffix(".message")

    def in_trouble() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        trouble()
        try:
            sweep(path, "small")
        except StoreUnavailableError as error:
            message.write_text(str(error))

    # A fork: trouble may be that the process is somebody who may not even read the program.
    assert os.waitpid(forked(in_trouble), 0)[1] == 0
    return message.read_text() if message.exists() else ""


pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs fork")


RUNS = spec("small").num_runs()


@contextmanager
def locked(path: Path, seconds: float) -> Iterator[None]:
    """Another connection writes, for so long, while the block runs."""
    taken = threading.Event()

    def hold() -> None:
        with closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            taken.set()
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    yield
    thread.join()


def resumes(path: Path) -> None:
    """Checks that committed results are intact, and the sweep resumes to the same end."""
    if path.exists() and rows(path, "SELECT name FROM sqlite_master"):
        assert verify(open_reader(str(path))).damages == []
    sweep(path, "small")
    assert_whole(path, "small")


@pytest.mark.parametrize("seconds", [1.0, *([0.1, 5.0, 30.0] if LONG else [])])
def test_a_sweep_waits_for_a_locked_database(
    tmp_path: Path,
    seconds: float,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / "x.db"
    start_sweep(path)
    with locked(path, seconds):
        assert sweep(path, "small") == RUNS
    assert_whole(path, "small")
    assert "Traceback" not in caplog.text


def start_sweep(path: Path) -> None:
    writer.submit(open_writer(str(path)), spec("small"))


def test_results_are_written_after_several_attempts_on_a_locked_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that outlasts SQLite's timeout while trained results wait."""
    path = tmp_path / "x.db"
    start_sweep(path)
    monkeypatch.setattr(sweeps.store.database, "BUSY_SECONDS", 0.05)
    record = writer.record
    attempts: list[int] = []

    def while_locked(*arguments: Any) -> int:
        if len(attempts) < 3:
            attempts.append(1)
            with locked(path, 0.3):
                return record(*arguments)
        return record(*arguments)

    monkeypatch.setattr(writer, "record", while_locked)
    assert sweep(path, "small") == RUNS
    assert len(attempts) == 3
    assert_whole(path, "small")


def limit_pages(pages: int) -> None:
    @event.listens_for(Engine, "connect")
    def limit(connection: Any, _: Any) -> None:
        connection.execute(f"PRAGMA max_page_count={pages}")


@pytest.mark.cases(13)
@pytest.mark.parametrize("how", ["pages", "bytes"])
def test_a_full_disk_loses_no_committed_run(tmp_path: Path, seed: int, how: str) -> None:
    (tmp_path / "whole").mkdir()
    sweep(tmp_path / "whole" / "x.db", "small")
    size = (tmp_path / "whole" / "x.db").stat().st_size
    refused = 0
    for share in (0.1, 0.4, 0.7) if LONG else (0.4,):
        path = tmp_path / f"{share}.db"
        limit = round(size * (share + 0.3 * (seed % 13) / 13))
        trouble = partial(limit_pages, limit // 4096)
        if how == "bytes":
            trouble = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit))
        message = sweep_in_trouble(path, trouble)
        refused += bool(message)
        assert "\n" not in message
        assert message == "" or (
            f"{str(path)!r}: di" in message or f"{str(path)!r}: database or disk" in message
        )
        resumes(path)
    assert refused
