"""The commands on sweeps as a user runs them, and what their exit status says."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

import sweeps.work.executors
from seqcls.engines.base import Progress
from seqcls.errors import SeqclsError
from sweeps.cli import sweeps as sweeping
from sweeps.cli.app import app
from sweeps.cli.parameters import RUNS_FAILED, RUNS_LEFT
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work.jobs import Job
from tests.conftest import ROOT
from tests.databases import rows


def seqcls(*arguments: str, typed: str | None = None) -> tuple[int, str]:
    """The exit status, and everything that was printed."""
    result = CliRunner().invoke(app, list(arguments), input=typed)
    if isinstance(result.exception, SeqclsError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


@pytest.fixture
def db(tmp_path: Path) -> tuple[str, str]:
    return ("--db", str(tmp_path / "own.db"))


def test_a_sweep_is_estimated_submitted_trained_and_watched(
    short_spec: Path, db: tuple[str, str]
) -> None:
    status, said = seqcls("estimate", str(short_spec), *db)
    assert (status, "6 runs, 0 there already" in said) == (0, True)
    assert "Estimated by timing a part of an epoch and of the test on this machine." in said
    assert "for the rest" in said
    status, said = seqcls("submit", str(short_spec), *db)
    assert (status, "short: 6 runs queued" in said) == (0, True)
    (shown,) = json.loads(seqcls("status", "--json", *db)[1])
    assert (shown["state"], shown["queued"], shown["done"]) == ("queued", 6, 0)
    status, said = seqcls("work", *db, "--workers", "0")
    assert (status, "all sweeps: trained 6 runs" in said) == (0, True)
    assert seqcls("status", "--watch", *db)[0] == 0
    assert "short   done" in seqcls("status", "short", *db)[1]
    assert "6 there already" in seqcls("estimate", str(short_spec), *db)[1]


def test_a_sweep_is_stopped_resumed_and_deleted(short_spec: Path, db: tuple[str, str]) -> None:
    seqcls("submit", str(short_spec), *db)
    status, said = seqcls("stop", "short", *db)
    assert (status, "short is stopped: 0 of 6 runs done" in said) == (0, True)
    status, said = seqcls("work", "short", *db, "--workers", "0")
    assert (status, "6 runs left" in said) == (RUNS_LEFT, True)
    assert "6 runs queued" in seqcls("resume", "short", *db)[1]
    assert seqcls("work", "short", *db, "--workers", "0")[0] == 0
    assert "short was done already" in seqcls("stop", "short", *db)[1]
    status, said = seqcls("delete", "short", *db, typed="n\n")
    assert status == 1
    assert "the 6 runs that no other sweep has" in said
    assert "short" in seqcls("status", *db)[1]
    assert "short: deleted, and 6 runs." in seqcls("delete", "short", *db, typed="y\n")[1]
    assert rows(Path(db[1]), "SELECT count(*) FROM run") == [(0,)]


def test_a_person_can_take_a_deletion_back_for_a_minute(
    short_spec: Path, db: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seqcls("submit", str(short_spec), *db)
    waits: list[float] = []

    def interrupted(seconds: float) -> None:
        waits.append(seconds)
        raise KeyboardInterrupt

    terminal = SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
    monkeypatch.setattr("sweeps.cli.sweeps.sys", terminal)
    monkeypatch.setattr("sweeps.cli.sweeps.time.sleep", interrupted)
    status, said = seqcls("delete", "short", *db, typed="y\n")
    assert status != 0
    assert "short is deleted in 60 seconds. Ctrl-C keeps it." in said
    assert waits == [60]
    assert rows(Path(db[1]), "SELECT count(*) FROM run") == [(6,)]


def test_runs_that_failed_are_told_by_the_exit_status_and_retried(
    short_spec: Path, db: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_job: Job, _report: Progress) -> list[RunResult]:
        raise MemoryError("no more")

    with monkeypatch.context() as patched:
        patched.setattr(sweeps.work.executors, "run_job", broken)
        status, said = seqcls("sweep", str(short_spec), *db, "--workers", "0")
    assert (status, "6 runs failed" in said) == (RUNS_FAILED, True)
    assert seqcls("status", *db)[0] == RUNS_FAILED
    assert "6 failed runs queued again" in seqcls("retry", "short", *db)[1]
    assert seqcls("work", *db, "--workers", "0")[0] == 0


@pytest.mark.parametrize("command", ["stop", "resume", "retry", "delete", "work", "status"])
def test_a_sweep_that_is_not_there_is_named(command: str) -> None:
    status, said = seqcls(command, "walktrough", "--db", str(ROOT / "runs.db"))
    assert status == 2
    assert "no sweep 'walktrough'" in said
    assert "did you mean 'walkthrough'?" in said


@pytest.mark.parametrize("command", ["stop", "work", "status", "delete"])
def test_a_database_that_is_not_there_is_not_made(command: str, db: tuple[str, str]) -> None:
    sweep = [] if command in ("work", "status") else ["short"]
    status, said = seqcls(command, *sweep, *db)
    assert (status, "does not exist" in said) == (2, True)
    assert not Path(db[1]).exists()


def test_a_worker_that_watches_trains_what_is_submitted_later(
    short_spec: Path, db: tuple[str, str]
) -> None:
    store = open_writer(db[1])
    command = [sys.executable, "-m", "sweeps", "work", "--watch", "--workers", "0", *db]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        time.sleep(1)
        seqcls("submit", str(short_spec), *db)
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and sweep_queries.counts_by_state(store) != {"done": 6}:
            time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=120)
    assert process.returncode == 130
    assert sweep_queries.counts_by_state(store) == {"done": 6}


def test_the_second_ctrl_c_ends_at_once_and_the_first_leaves_no_group_half_done(
    tmp_path: Path, db: tuple[str, str]
) -> None:
    spec = tmp_path / "long.toml"
    # A group that would be over in about ten seconds is finished after the first Ctrl-C.
    spec.write_text(
        'name = "long"\nmodel_seeds = [0]\n[fixed]\ntrain_size = 6400\ntest_size = 512\n'
        "validation_size = 64\nmin_num_epochs = 3000\nmax_num_epochs = 3000\n"
        "min_validation_loss = 0.0\n"
    )
    command = [sys.executable, "-m", "sweeps", "sweep", str(spec), *db, "--workers", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as process:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not _running(Path(db[1])):
            time.sleep(0.05)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    # At the very end of a program that was asked to end, Python itself dies of the signal.
    assert process.returncode in (130, -signal.SIGINT)
    assert "Traceback" not in said
    store = open_writer(db[1])
    assert writer.release_dead(store) == 0
    assert set(sweep_queries.counts_by_state(store)) <= {"queued", "done"}


def _running(path: Path) -> bool:
    return (
        path.exists()
        and bool(rows(path, "SELECT name FROM sqlite_master WHERE name = 'run'"))
        and rows(path, "SELECT count(*) FROM run WHERE state = 'running'") == [(1,)]
    )


def test_reading_a_specification_is_shown_to_go_on(
    short_spec: Path, db: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []

    @contextmanager
    def progress_bar(doing: str) -> Iterator[None]:
        shown.append(doing)
        yield

    monkeypatch.setattr(sweeping, "progress_bar", progress_bar)
    for command in ("estimate", "submit"):
        assert seqcls(command, str(short_spec), *db)[0] == 0
    assert shown == [f"reading {short_spec}", "timing a few steps", f"reading {short_spec}"]


def test_a_batch_that_does_not_fit_is_warned_of_with_the_estimate(
    tmp_path: Path, db: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweeps.work.machine.machine_bytes", lambda: 10**9)
    path = tmp_path / "large.toml"
    path.write_text(
        'name = "large"\nmodel_seeds = "0..0"\n[fixed]\narchitecture = "lstm"\nreadout = "last"\n'
        "train_size = 100_000\ntrain_batch_size = 100_000\ntrain_max_length = 10_000\n"
    )
    status, said = seqcls("estimate", str(path), *db)
    assert (status, "about 4.0 GB of memory" in said) == (0, True)
