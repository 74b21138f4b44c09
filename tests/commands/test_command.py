"""The command as a user runs it."""

import os
import pickle
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from seqcls import __version__
from seqcls.weights import num_parameters
from sweeps import api
from sweeps.api.by_settings import axes_of
from sweeps.api.outcomes import configurations_of, settings_read
from sweeps.grid.grouping import PlannedRun
from sweeps.store.reads.selection import Selection
from sweeps.work.jobs import make_job
from tests.commands import SEQCLS, printed_json, run_main
from tests.conftest import ROOT, short_config
from tests.databases import change, rows

DB = ["--db", str(ROOT / "runs.db")]


def test_help_and_version_load_nothing_heavy() -> None:
    heavy = {"torch", "pandas", "sqlalchemy", "numpy", "streamlit", "altair"}
    show = (
        "import sys; from sweeps.cli.app import app\n"
        "try: app(sys.argv[1:])\n"
        "finally: print(*sys.modules)"
    )
    for arguments in (["--version"], ["sweep", "--help"]):
        completed = subprocess.run(
            [sys.executable, "-c", show, *arguments], capture_output=True, text=True, check=False
        )
        *shown, modules = completed.stdout.splitlines()
        assert shown
        assert not heavy & set(modules.split())
        # How a sweep is trained has a default, which is checked.
        assert arguments[0] == "sweep" or "pydantic" not in modules.split()
        assert shown == [f"seqcls {__version__}"] or arguments[0] != "--version"


RUN_JOB = """
import pickle, sys
from sweeps.work.jobs import run_job
outcomes = run_job(pickle.load(sys.stdin.buffer), lambda *_: None)
print(outcomes[0].evaluation is not None, outcomes[0].verdict is not None)
print([name in sys.modules for name in ("numba", "torch", "scipy.linalg")])
"""


def test_a_worker_of_the_fused_engine_loads_no_pytorch_and_no_linear_algebra() -> None:
    run = PlannedRun(1, short_config(), 0, every_epoch=True, verdict=True)
    job = pickle.dumps(make_job((run,), "auto", "auto"))
    completed = subprocess.run(
        [sys.executable, "-c", RUN_JOB], input=job, capture_output=True, check=True
    )
    assert completed.stdout == b"True True\n[True, False, False]\n"


def test_a_users_sweep_is_trained_once(short_spec: Path, tmp_path: Path) -> None:
    db = ("--db", str(tmp_path / "own.db"))
    first = run_main("sweep", str(short_spec), *db, "--workers", "0")
    assert "short: trained 6 runs in" in first.stdout
    assert "6/6 runs" in first.stderr
    again = run_main("sweep", str(short_spec), *db)
    runs = printed_json("runs", *db)
    counts = Counter(r["outcome"] for r in runs)
    learned, generalize = 6 - counts["not learned"], counts["generalizes"]
    came_to = f"{learned} of 6 runs learned; of these {generalize} generalize"
    if not learned:
        came_to = "0 of 6 runs learned"
    assert f"in {db[1]}: {came_to.replace(' runs', '')}.\n" in first.stdout
    assert again.stdout == f"short: all runs are in {db[1]}.\n{came_to}.\n"
    assert run_main("status", *db).stdout.endswith(f"\n{came_to}.\n")
    # A seed more is one run a size more.
    short_spec.write_text(short_spec.read_text().replace("0..2", "0..3"))
    more = run_main("sweep", str(short_spec), *db, "--workers", "0")
    assert "short: trained 2 runs in" in more.stdout
    runs = printed_json("runs", *db)
    assert [(r["hidden_size"], r["model_seed"]) for r in runs if r["state"] == "done"] == [
        *((2, 0), (2, 1), (2, 2), (4, 0), (4, 1), (4, 2)),
        *((2, 3), (4, 3)),
    ]


def test_runs_that_rounding_decides_are_listed(short_spec: Path, tmp_path: Path) -> None:
    db, spec = ("--db", str(tmp_path / "own.db")), str(short_spec)
    short_spec.write_text(short_spec.read_text().replace('"0..2"', "[0]"))
    run_main("sweep", spec, *db, "--workers", "0").check_returncode()
    assert "no run is stored in both precisions" in run_main("sensitive", *db).stdout
    again = run_main("sweep", spec, *db, "--precision", "float64", "--workers", "0")
    assert "short-float64: trained 2 runs" in again.stdout
    # A run that rounding does decide, made up by changing what is stored of it.
    change(Path(db[1]), "UPDATE run SET tn = tn + 1 WHERE id = 1")
    first, second = printed_json("sensitive", *db)
    cells = ("tn", "fp", "fn", "tp")
    assert first["sensitive"]
    assert second["sensitive"] == any(
        second[f"{x}_float32"] != second[f"{x}_float64"] for x in cells
    )


def test_engines_are_chosen_with_a_reason_that_is_stored(short_spec: Path, tmp_path: Path) -> None:
    assert "letter counts suffice, on the CPU" in run_main("engines", str(short_spec)).stdout
    few = short_spec.read_text().replace('"0..2"', "[0]").replace("[2, 4]", "[2]")
    short_spec.write_text(few + "dropout_rate = [0.0, 0.1]\n")
    assert "dropout_rate=0.1 is not compiled" in run_main("engines", str(short_spec)).stdout
    db = ("--db", str(tmp_path / "own.db"))
    run_main("sweep", str(short_spec), *db, "--workers", "0").check_returncode()
    runs = printed_json("runs", *db)
    stored = {(run["dropout_rate"], run["engine"], run["engine_reason"]) for run in runs}
    assert stored == {
        (0.0, "fused", "letter counts suffice, on the CPU"),
        (0.1, "strings", "dropout_rate=0.1 is not compiled"),
    }


def test_a_closed_output_pipe_is_no_error(tmp_path: Path) -> None:
    # The reader is gone before the first letter.
    gone = tmp_path / "gone"
    seqcls = f"{sys.executable} -m sweeps runs --json"
    shell = f"{{ until [ -e {gone} ]; do sleep 0.05; done; {seqcls}; echo $? >&2; }} | touch {gone}"
    named = {**os.environ, "SEQCLS_DB": str(ROOT / "runs.db")}
    completed = subprocess.run(
        ["bash", "-c", shell], capture_output=True, text=True, check=False, env=named
    )
    assert completed.stderr == f"{128 + signal.SIGPIPE}\n"


@pytest.mark.parametrize(
    ("encoding", "command", "status"), [("ascii", "runs", 0), ("cp1252:strict", "status nix", 2)]
)
def test_letters_that_a_terminal_cannot_encode_are_escaped(
    encoding: str, command: str, status: int, tmp_path: Path
) -> None:
    db = tmp_path / "own.db"
    table = {"name": "uni é ə", "model_seeds": [0], "fixed": {"task": "parity"}}
    api.submit(api.open_store(db), table)
    completed = subprocess.run(
        [*SEQCLS, *command.split(), "--db", str(db)],
        capture_output=True,
        env={**os.environ, "PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"},
    )
    written = (completed.stdout + completed.stderr).decode(encoding.partition(":")[0])
    assert "PYTHONIOENCODING" not in written
    assert "uni" in written
    assert "\\u0259" in written
    assert completed.returncode == status


def test_conditions_are_repeated_and_may_leave_no_run() -> None:
    two = ["--where", "hidden_size=16", "--where", "model_seed=0", "--columns", "id,accuracy"]
    assert "4 runs in" in run_main("runs", *two, *DB).stdout
    # A share is written as tables write it.
    assert "93.02%" in run_main("runs", *DB, "--where", "accuracy=93.02%").stdout
    all_right = [run_main("runs", *DB, "--where", f"accuracy={x}").stdout for x in ("1", "100%")]
    assert all_right[0] == all_right[1]
    none = run_main("runs", *two, "--where", "state=failed", *DB)
    assert (none.returncode, none.stderr) == (0, "")
    assert "0 runs in" in none.stdout


def test_the_counting_level_and_the_number_of_parameters_are_columns_and_the_last_axis() -> None:
    store = api.open_store(DB[1])
    frame = api.runs(store)
    assert set(frame["counting"]) == {"level 0"}
    stored = rows(Path(DB[1]), "SELECT run_id, weights FROM checkpoint LIMIT 40")
    sizes = frame.set_index("id")["num_parameters"].to_dict()
    assert all(sizes[run_id] == num_parameters(weights) for run_id, weights in stored)
    assert printed_json("runs", "--where", "counting=outside", *DB) == []
    found = printed_json("runs", "--where", "num_parameters=288", *DB)
    assert {row["num_parameters"] for row in found} == {288}
    table = configurations_of(store, Selection())
    sizes = dict(rows(Path(DB[1]), "SELECT name, num_parameters FROM config"))
    assert table["num_parameters"].tolist() == [sizes[name] for name in table["name"]]
    assert set(table["counting"]) == {"level 0"}
    ids = table["config_id"].tolist()
    # All are of one level, so that it distinguishes none.
    assert list(settings_read(store, ids))[-1] == "num_parameters"
    assert axes_of(store, ids)[-1] == "num_parameters"
    assert table["selection"].str.contains("%").any()
