"""Processes that cannot start: found after the first, in one line, and no run is charged."""

import os
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from seqcls.engines.base import Progress
from seqcls.engines.fused.engine import Fused
from seqcls.errors import MachineError
from sweeps.grid.grouping import make_groups
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.store.reads.workers import queued_runs
from sweeps.work import jobs
from sweeps.work.executors.pool import ProcessPool
from sweeps.work.jobs import Job, make_job
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.chaos.sending import training_processes
from tests.commands import printed_json, run_main
from tests.conftest import ASSETS, LONG, ROOT, SHORT
from tests.databases import rows, spec

UNGUARDED = """
from sweeps.api import open_store, submit, work
store = open_store("x.db")
submit(store, {spec!r})
print(work(store, workers=2).recorded)
"""

SPEC = {"name": "s", "model_seeds": [0, 1], "fixed": {**SHORT, "max_num_epochs": 1}}


@pytest.fixture
def queued(tmp_path: Path) -> Store:
    store = open_writer(str(tmp_path / "x.db"))
    writer.submit(store, spec(fixed=SPEC["fixed"], axes={"hidden_size": [2, 3, 4]}))
    return store


def uncharged(store: Store) -> bool:
    found = rows(store, "SELECT DISTINCT state, failures, worker_id, error FROM run")
    return found == [("queued", 0, None, None)]


@pytest.mark.parametrize("how", ["a file", *(["standard input"] if LONG else [])])
def test_an_unguarded_script_trains_in_processes(tmp_path: Path, how: str) -> None:
    script = tmp_path / "script.py"
    script.write_text(UNGUARDED.format(spec=SPEC))
    named = [str(script)] if how == "a file" else []
    completed = subprocess.run(
        [sys.executable, *named],
        input=script.read_text() if not named else None,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=200,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert (completed.stdout, completed.returncode) == ("2\n", 0), completed.stderr


def test_processes_that_fail_at_startup_are_reported_once(
    queued: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('no such library')\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), str(ROOT)]))
    with pytest.raises(MachineError, match=r"startup \(ImportError: no such library\).*workers=0"):
        work(queued, None, WorkOptions(2))
    assert capfd.readouterr().err == ""
    assert uncharged(queued)


def test_processes_start_early_and_a_killed_one_is_replaced(queued: Store) -> None:
    groups = make_groups(queued_runs(queued, None))
    queued_jobs = [make_job(group, "auto", "auto") for group in groups]
    pool = ProcessPool(2, lambda *_: None)
    try:
        pool.expect([job.engine.name for job in queued_jobs])
        expected = training_processes(psutil.Process())
        expected[1].kill()
        while expected[1].status() != psutil.STATUS_ZOMBIE:
            time.sleep(0.01)
        ends = [pool.begin(job) for job in queued_jobs[:2]]
        assert expected[0] in training_processes(psutil.Process())
        trained = [len(own.result()) for own in ends]
    finally:
        pool.close()
    assert trained == [3, 3]
    assert training_processes(psutil.Process()) == []


def test_a_full_disk_ends_the_worker_and_counts_no_attempt(
    queued: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Job, __: Progress) -> list[RunResult]:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(jobs, "run_job", full)
    with pytest.raises(MachineError, match="No space left on device"):
        work(queued, None, WorkOptions(0))
    assert uncharged(queued)


@pytest.mark.parametrize("workers", [0, 1])
def test_machine_code_that_cannot_be_cached_is_reported_with_its_folder(
    queued: Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, workers: int
) -> None:
    def full(*_: str) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("SEQCLS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(Fused, "compile_ahead", full)
    with pytest.raises(MachineError, match=r"cache'.*No space left.*SEQCLS_CACHE"):
        work(queued, None, WorkOptions(workers))
    assert uncharged(queued)


def test_a_plug_in_that_fails_to_import_is_reported_in_one_line(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    for path in (ASSETS / "plugin_package").rglob("*.dist-info/*"):
        (package / path.parent.name).mkdir(exist_ok=True)
        (package / path.parent.name / path.name).write_bytes(path.read_bytes())
    (package / "little_extras.py").write_text("import no_such_module\n")
    (tmp_path / "x.toml").write_text(
        'name = "x"\nmodel_seeds = [0]\n[fixed]\ntask = "ends_with_b"\n'
    )
    completed = subprocess.run(
        [sys.executable, "-m", "sweeps", "sweep", "x.toml", "--db", "x.db"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=100,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])},
    )
    assert completed.returncode == 3, completed
    assert completed.stderr.count("\n") == 1
    assert "No module named 'no_such_module'" in completed.stderr
    assert not (tmp_path / "x.db").exists()


HUGE = dict.fromkeys(
    ("hidden_size", "num_attention_heads", "attention_head_size", "feed_forward_size"), 4096
)
"""A valid specification that needs more than a terabyte."""

FIXED = {**SHORT, "max_num_epochs": 1}


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_that_cannot_be_allocated_fails_alone_with_its_reason(
    tmp_path: Path, workers: int
) -> None:
    store = open_writer(str(tmp_path / "x.db"))
    huge = spec(name="huge", model_seeds=[0], fixed={**FIXED, **HUGE})
    ids = [writer.submit(store, huge), writer.submit(store, spec(name="small", fixed=FIXED))]
    worked = work(store, ids, WorkOptions(workers))
    assert worked.recorded == 3
    assert sweep_queries.runs_by_state(store, ids[:1]) == {"failed": 1}
    assert sweep_queries.runs_by_state(store, ids[1:]) == {"done": 3}
    stored = rows(store, "SELECT attempt, failures, error FROM run WHERE state = 'failed'")
    ((attempt, failures, error),) = stored
    assert (attempt, failures) == (3, 3)
    assert error.startswith("MemoryError: training takes at least 6,597")


def test_estimate_and_submit_warn_of_too_little_memory(tmp_path: Path) -> None:
    path, db = tmp_path / "huge.toml", tmp_path / "x.db"
    fields = "\n".join(f"{name} = {value}" for name, value in HUGE.items())
    path.write_text(f'name = "huge"\nmodel_seeds = [0]\n[fixed]\n{fields}\n')
    for command in ("estimate", "submit"):
        completed = run_main(command, str(path), "--db", str(db))
        assert completed.returncode == 0
        assert "GB of memory, and this machine has" in completed.stderr
        assert len(completed.stderr.splitlines()) == 1
    assert printed_json("estimate", str(path), "--db", str(db))[0]["runs"] == 1
