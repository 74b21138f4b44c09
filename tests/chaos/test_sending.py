"""Processes killed or suspended while they send results, and signals to their worker."""

import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work.machine import WorkOptions, WorkSummary
from sweeps.work.worker import work
from tests.chaos.conftest import long_alone
from tests.chaos.sending import (
    SWEEP,
    computed,
    last_words,
    stop,
    training_process,
    wait_until_it_sends,
)
from tests.chaos.swept import assert_whole, spec, sweep, written
from tests.conftest import LONG, ROOT
from tests.databases import rows

ENDS = [signal.SIGHUP, *([signal.SIGINT, signal.SIGTERM] if LONG else [])]
"""In `make test`, `tests/work/test_sweeps_command.py` sends the others."""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written("sending", tmp_path_factory.mktemp("sending"))


@pytest.mark.cases(20)
@pytest.mark.parametrize("is_killed", [False, True])
def test_a_partially_sent_result_does_not_block_the_sweep(
    file: Path, tmp_path: Path, seed: int, is_killed: bool
) -> None:
    db = tmp_path / f"{seed}.db"
    command = [*SWEEP, str(file), "--db", str(db), "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        own = psutil.Process(process.pid)
        child = wait_until_it_sends(own, db)
        assert child is not None, "the sweep ended before any process was waited for"
        child.kill() if is_killed else stop(child)
        own.resume()
        if not is_killed:
            # It takes what came through, and waits for no more of it.
            time.sleep(1)
            process.send_signal(signal.SIGTERM)
        message = last_words(process)
    assert process.returncode == (0 if is_killed else 128 + signal.SIGTERM), message
    assert "Traceback" not in message
    # One that is killed just after it sent, while its results are stored, loses nothing.
    assert message.count("its process was killed") <= is_killed
    assert not child.is_running()
    sweep(db, "sending")
    assert_whole(db, "sending")


def test_a_suspended_process_is_abandoned_when_its_sweep_is_stopped(tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "x.db"))
    sweep_id = writer.submit(store, spec("sending"))
    worked: list[WorkSummary] = []
    thread = threading.Thread(target=lambda: worked.append(work(store, [sweep_id], WorkOptions(1))))
    thread.start()
    child = None
    while child is None or sweep_queries.runs_by_state(store, [sweep_id]).get("running", 0) == 0:
        child = training_process(psutil.Process())
        time.sleep(0.01)
    stop(child)
    writer.stop(store, [sweep_id])
    thread.join()
    assert not child.is_running()
    assert worked[0].abandoned == 8
    assert set(sweep_queries.runs_by_state(store)) <= {"queued", "done"}


def count_runs(db: Path, state: str) -> int:
    """The number of runs in a state; 0 where there is no database yet."""
    try:
        return int(rows(db, f"SELECT count(*) FROM run WHERE state = '{state}'")[0][0])
    except sqlite3.Error:
        return 0


POINTS: dict[str, Callable[[psutil.Process, Path], object]] = {
    "storing": lambda _, db: count_runs(db, "done"),
    "imported": lambda process, _: computed(process) > 0.5,
    "submitted": lambda _, db: count_runs(db, "queued"),
    "training": lambda process, _: training_process(process),
}


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("point", list(POINTS) if LONG else ["storing"])
def test_a_signaled_sweep_ends_without_an_error(
    file: Path,
    tmp_path: Path,
    end: signal.Signals,
    point: str,
) -> None:
    db = tmp_path / "x.db"
    command = [*SWEEP, str(file), "--db", str(db), "--workers", "2" if LONG else "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        own = psutil.Process(process.pid)
        while process.poll() is None and not POINTS[point](own, db):
            time.sleep(0.01)
        process.send_signal(end)
        message = last_words(process)
    assert process.returncode in (0, 128 + end, -end), message
    assert "Traceback" not in message
    assert "Error" not in message
    store = open_writer(str(db))
    assert writer.release_dead(store) == 0
    # The signal may have come before anything was submitted.
    sweep(db, "sending")
    assert_whole(db, "sending")


@long_alone
def test_a_sweep_under_nohup_outlives_its_terminal(file: Path, tmp_path: Path) -> None:
    db = tmp_path / "x.db"
    command = ["nohup", *SWEEP, str(file), "--db", str(db), "--workers", "1"]
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        child = None
        while child is None:
            child = training_process(psutil.Process(process.pid))
            time.sleep(0.01)
        process.send_signal(signal.SIGHUP)
        message = last_words(process)
    assert process.returncode == 0, message
    assert_whole(db, "sending")
