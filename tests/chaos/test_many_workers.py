"""Several workers on one database: each run is trained once and recorded once."""

import re
import subprocess
from typing import Any

import pytest

from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.verification import verify
from tests.commands import SEQCLS
from tests.conftest import LONG, ROOT, SHORT
from tests.databases import rows, stored_sweeps

WIDE = parse_spec(
    {
        "name": "wide",
        "model_seeds": "0..7",
        "fixed": {**SHORT, "max_num_epochs": 1, "test_size": 256},
        "axes": {"train_seed": list(range(1, 26 if LONG else 11))},
    }
)
"""Groups of 8 runs each."""

RUNS = WIDE.num_runs()


@pytest.mark.cases(9)
def test_many_workers_record_each_run_once(any_db: str, seed: int) -> None:
    store = open_writer(any_db)
    writer.submit(store, WIDE)
    number = (2, 4, 8)[seed % 3]
    command = [*SEQCLS, "work", "wide", "--db", any_db, "--workers", "0"]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen(command, cwd=ROOT, **pipes) for _ in range(number)]
    ended = [(process.communicate(), process.returncode) for process in workers]
    recorded = 0
    for (stdout, stderr), status in ended:
        # 4: there was nothing left to begin while another worker still trained.
        assert status in (0, 4), stderr
        recorded += int(re.findall(r"trained (\d+) runs", stdout)[0])
    assert recorded == RUNS
    assert rows(store, "SELECT state, count(*) FROM run GROUP BY state") == [("done", RUNS)]
    # A second attempt would mean that two workers had the same run.
    assert rows(store, "SELECT max(attempt), min(attempt) FROM run") == [(1, 1)]
    assert rows(store, "SELECT count(*) FROM epoch") == [(RUNS,)]
    assert rows(store, "SELECT count(*) FROM failure") == [(0,)]
    assert verify(store).damages == []
    assert stored_sweeps(store)["state"].tolist() == ["done"]
