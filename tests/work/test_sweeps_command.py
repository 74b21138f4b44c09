"""The commands on sweeps as a user runs them, with their exit status."""

import json
import signal
import subprocess
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from seqcls.engines.base import Progress
from seqcls.errors import SeqclsError
from sweeps.cli.app import app
from sweeps.cli.parameters import RUNS_FAILED, RUNS_LEFT
from sweeps.grid.spec import parse_spec
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work import jobs
from sweeps.work.jobs import Job
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.commands import SEQCLS, run_main
from tests.conftest import ROOT
from tests.databases import rows


def seqcls(*arguments: str, typed: str | None = None) -> tuple[int, str]:
    """The exit status, and everything that was printed."""
    result = CliRunner().invoke(app, list(arguments), input=typed)
    if isinstance(result.exception, SeqclsError):
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


ONE = """
name = "one"
model_seeds = [0]
[fixed]
train_size = 256
validation_size = 128
test_size = 512
max_num_epochs = 3
"""


@pytest.fixture
def db(tmp_path: Path) -> tuple[str, str]:
    return ("--db", str(tmp_path / "own.db"))


def test_a_sweep_is_stopped_resumed_retried_and_deleted(
    short_spec: Path, db: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_job: Job, _report: Progress) -> list[RunResult]:
        raise MemoryError("no more")

    status, printed = seqcls("estimate", str(short_spec), *db)
    assert (status, "6 runs, 0 already in the database" in printed) == (0, True)
    assert "by timing" in printed
    status, printed = seqcls("submit", str(short_spec), *db)
    assert (status, "short: 6 runs queued" in printed) == (0, True)
    (shown,) = json.loads(seqcls("status", "--json", *db)[1])
    assert (shown["state"], shown["queued"], shown["done"]) == ("queued", 6, 0)
    stored = parse_spec(tomllib.loads(seqcls("status", "short", "--toml", *db)[1]))
    assert stored.submitted == parse_spec(tomllib.loads(short_spec.read_text())).submitted
    status, printed = seqcls("stop", "short", *db)
    assert (status, "short is stopped: 0 of 6 runs done" in printed) == (0, True)
    status, printed = seqcls("work", "short", *db, "--workers", "0")
    assert (status, "6 runs left" in printed) == (RUNS_LEFT, True)
    assert "6 runs queued" in seqcls("resume", "short", *db)[1]
    with monkeypatch.context() as patched:
        patched.setattr(jobs, "run_job", broken)
        status, printed = seqcls("sweep", str(short_spec), *db, "--workers", "0")
    assert (status, "6 runs failed" in printed) == (RUNS_FAILED, True)
    assert seqcls("status", *db)[0] == RUNS_FAILED
    assert "6 failed runs queued again" in seqcls("retry", "short", *db)[1]
    status, printed = seqcls("work", *db, "--workers", "0")
    assert (status, "all sweeps: trained 6 runs" in printed) == (0, True)
    assert seqcls("status", "--watch", *db)[0] == 0
    assert "short   done" in seqcls("status", "short", *db)[1]
    assert "all 6 runs are already in the database" in seqcls("estimate", str(short_spec), *db)[1]
    assert "short was already done" in seqcls("stop", "short", *db)[1]
    status, printed = seqcls("delete", "short", *db, typed="n\n")
    assert status == 1
    assert "with 6 runs that no other sweep has" in printed
    assert "short" in seqcls("status", *db)[1]
    assert "short: deleted, with 6 runs." in seqcls("delete", "short", *db, typed="y\n")[1]
    assert rows(Path(db[1]), "SELECT count(*) FROM run") == [(0,)]


def states(db: tuple[str, str]) -> dict[str, int]:
    """The number of runs in each state; empty before there is a table."""
    path = Path(db[1])
    if not (path.exists() and rows(path, "SELECT name FROM sqlite_master WHERE name = 'run'")):
        return {}
    return dict(rows(path, "SELECT state, count(*) FROM run GROUP BY 1"))


@contextmanager
def started(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """The command in a new process, which the block ends."""
    command = [*SEQCLS, *arguments]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes, text=True, cwd=ROOT) as process:
        yield process


def test_a_watching_worker_trains_later_submissions_and_requeues_runs_at_a_signal(
    tmp_path: Path, db: tuple[str, str]
) -> None:
    """Two groups: a short one, and one that no machine trains in a minute."""
    spec = tmp_path / "long.toml"
    spec.write_text(
        'name = "long"\nmodel_seeds = [0]\n[fixed]\nmin_num_epochs = 100000\n'
        "validation_size = 64\ntest_size = 256\n"
        "[[configurations]]\nmax_num_epochs = 1\ntrain_size = 64\nfeed_forward_size = 3\n"
        "[[configurations]]\nmax_num_epochs = 100000\n"
    )
    open_writer(db[1])
    with started("work", "--watch", "--workers", "2", *db) as process:
        while rows(Path(db[1]), "SELECT count(*) FROM worker") == [(0,)]:
            time.sleep(0.1)
        seqcls("submit", str(spec), *db)
        while states(db) != {"done": 1, "running": 1}:
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        _, message = process.communicate()
    assert process.returncode == 128 + signal.SIGTERM
    assert "Traceback" not in message
    assert states(db) == {"done": 1, "queued": 1}
    assert "1 run left" in message or "1 of 2 runs" in message, message


def test_the_first_ctrl_c_requeues_running_runs_and_the_second_exits(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep_id = writer.submit(store, parse_spec(tomllib.loads(ONE)))
    presses = 1

    def pressed(_: Job, report: Progress) -> list[RunResult]:
        for _press in range(presses):
            signal.raise_signal(signal.SIGINT)
        report(0.99, [])
        pytest.fail("it goes on")

    monkeypatch.setattr(jobs, "run_job", pressed)
    worked = work(store, [sweep_id], WorkOptions(0))
    assert (worked.recorded, worked.abandoned, worked.signal) == (0, 1, signal.SIGINT)
    assert sweep_queries.runs_by_state(store) == {"queued": 1}
    presses = 2
    completed = run_main("work", "one", "--workers", "0", "--db", str(store.path))
    assert completed.returncode == 128 + signal.SIGINT
    assert "Traceback" not in completed.stderr
    assert sweep_queries.runs_by_state(store) == {"queued": 1}
