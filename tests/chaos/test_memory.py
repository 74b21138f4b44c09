"""A model that no machine can hold is a failure of its own: every other run is trained."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from sweeps.cli.app import app
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.store.reads import sweep_queries
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.conftest import SHORT
from tests.databases import rows, spec

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
        result = CliRunner().invoke(app, [command, str(path), "--db", str(db)])
        assert result.exit_code == 0
        assert "GB of memory, and this machine has" in result.stderr
        assert len(result.stderr.splitlines()) == 1
    found = CliRunner().invoke(app, ["estimate", str(path), "--db", str(db), "--json"])
    assert json.loads(found.stdout)[0]["runs"] == 1
