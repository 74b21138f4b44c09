"""A clock that is set while workers work costs no result and trains nothing twice."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from seqcls.engines.base import Progress
from sweeps.results import RunResult
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import workers
from sweeps.store.verification import verify
from sweeps.store.writes import claiming, recording
from sweeps.work import jobs
from sweeps.work.jobs import Job, run_job
from sweeps.work.machine import WorkOptions
from sweeps.work.progress import progress
from sweeps.work.worker import work
from tests.conftest import SHORT
from tests.databases import rows, spec


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_steps_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    store = open_writer(str(tmp_path / "x.db"))
    sweep_id = writer.submit(store, spec(fixed=SHORT, axes={"hidden_size": [2, 3, 4]}))
    step = timedelta()

    def clock(seconds: float = 0.0) -> str:
        return (datetime.now(UTC) + step - timedelta(seconds=seconds)).isoformat()

    def stepping(job: Job, report: Progress) -> list[RunResult]:
        nonlocal step
        step += timedelta(hours=hours)
        # Others plan meanwhile, as this worker does between its groups.
        assert claiming.release_dead(store, 1) == 0
        assert all(one.seconds_left is None or one.seconds_left >= 0 for one in progress(store))
        return run_job(job, report)

    for module in (claiming, recording, workers):
        monkeypatch.setattr(module, "now", clock)
    monkeypatch.setattr(jobs, "run_job", stepping)
    assert work(store, [sweep_id], WorkOptions(0)).recorded == 9
    assert rows(store, "SELECT state, attempt, count(*) FROM run GROUP BY 1, 2") == [("done", 1, 9)]
    assert verify(store).damages == []
