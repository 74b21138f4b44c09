"""What a worker does when a group goes wrong."""

from pathlib import Path

import pytest

import sweeps.executors.in_process
from seqcls.engines.base import Progress
from sweeps.jobs import Job, run_job
from sweeps.run_result import RunResult
from sweeps.spec import parse_spec
from sweeps.store import queries, sweep_queries, writer
from sweeps.store.opening import open_writer
from sweeps.work_options import WorkOptions
from sweeps.worker import work
from tests.conftest import SHORT
from tests.databases import rows

GRID = {"name": "s", "model_seeds": [0, 1], "fixed": SHORT, "axes": {"hidden_size": [2, 3, 4]}}


def test_a_run_that_raises_is_tried_three_times_and_takes_no_other_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[int] = []

    def failing(job: Job, report: Progress) -> list[RunResult]:
        if any(run.model_seed == 3 for run in job.group):
            tried.append(len(job.group))
            raise MemoryError("no more")
        return run_job(job, report)

    monkeypatch.setattr(sweeps.executors.in_process, "run_job", failing)
    store = open_writer(str(tmp_path / "x.db"))
    wide = {"name": "s", "model_seeds": "0..19", "fixed": SHORT}
    worked = work(store, [writer.submit(store, parse_spec(wide))], WorkOptions(0))
    runs = queries.runs(store).set_index("model_seed")
    # First with all others of its group, then with one of them, at last alone.
    assert tried == [16, 2, 1]
    assert (runs.loc[3, "state"], runs.loc[3, "error"]) == ("failed", "MemoryError: no more")
    assert set(runs.drop(index=3)["state"]) == {"done"}
    assert worked.recorded == 19
    assert rows(store, "SELECT attempt, reason FROM failure WHERE run_id = 4 ORDER BY 1") == [
        (attempt, "MemoryError: no more") for attempt in (1, 2, 3)
    ]


def test_an_interrupted_group_is_queued_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_job: Job, _report: Progress) -> list[RunResult]:
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeps.executors.in_process, "run_job", interrupted)
    store = open_writer(str(tmp_path / "x.db"))
    sweep_id = writer.submit(store, parse_spec(GRID))
    with pytest.raises(KeyboardInterrupt):
        work(store, [sweep_id], WorkOptions(0))
    assert sweep_queries.counts_by_state(store, [sweep_id]) == {"queued": 6}


def test_progress_ends_at_the_number_of_runs(tmp_path: Path) -> None:
    told: list[tuple[float, int]] = []
    store = open_writer(str(tmp_path / "x.db"))
    sweep_id = writer.submit(store, parse_spec(GRID))
    work(store, [sweep_id], WorkOptions(0), lambda *now: told.append(now))
    assert told[0] == (0, 6)
    assert told[-1] == (6, 6)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
