"""A language, positions and an architecture from outside: trained, stored, listed and shown."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sweeps.store.opening import open_reader
from tests.chaos.contents import contents
from tests.chaos.test_dask import Cluster, cluster
from tests.conftest import ASSETS, ROOT, SHORT

PACKAGE = ASSETS / "plugin_package"
SHORTLY = {**SHORT, "train_max_length": 8, "validation_max_length": 8, "test_max_length": 12}

SPEC = "\n".join(
    [
        'name = "from_outside"\nmodel_seeds = "0..1"\n[fixed]\ntask = "ends_with_b"',
        *(f"{name} = {value}" for name, value in SHORTLY.items()),
        '[[configurations]]\npositions = "every_other"',
        '[[configurations]]\narchitecture = "bag"\n',
    ]
)

# In a process of its own: what is installed is looked up once a process.
PAGE = """
from streamlit.testing.v1 import AppTest
page = AppTest.from_file("dashboard/app.py", default_timeout=120).run()
assert not page.exception, page.exception[0].value
assert not page.error, page.error[0].value
print([str(table.value.to_dict()) for table in page.dataframe])
"""

# The fixture of another module, used here too.
_ = cluster


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package is where Python finds it, in processes that are started too."""
    found = os.pathsep.join([str(PACKAGE), str(ROOT)])
    monkeypatch.setenv("PYTHONPATH", found)


def seqcls(*arguments: str) -> str:
    command = [sys.executable, "-m", "sweeps", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert run.returncode == 0, run.stderr
    return run.stdout


def swept(folder: Path, name: str, *how: str) -> Path:
    spec, db = folder / "spec.toml", folder / f"{name}.db"
    spec.write_text(SPEC)
    seqcls("sweep", str(spec), "--db", str(db), *how)
    return db


@pytest.mark.timeout(600)
def test_parts_from_outside_are_trained_stored_listed_and_shown(
    tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = swept(tmp_path, "pool", "--workers", "2")
    runs = json.loads(seqcls("runs", "--db", str(db), "--json"))
    assert [run["state"] for run in runs] == ["done"] * 4
    assert {run["plugins"] for run in runs} == {"little-extras==1.2"}
    assert {run["engine"] for run in runs} == {"strings"}
    assert {(run["positions"], run["architecture"]) for run in runs} == {
        ("every_other", "transformer"),
        ("none", "bag"),
    }
    for error in json.loads(seqcls("errors", "1", "--db", str(db), "--json")):
        assert error["label"] == error["string"].rstrip("{}0123456789>").endswith("b")
    assert "aab" in seqcls("predict", "4", "aab", "--db", str(db))

    on_dask = swept(tmp_path, "dask", "--dask", cluster.address)
    assert contents(open_reader(str(on_dask))) == contents(open_reader(str(db)))

    seqcls("verify", "--db", str(db))
    monkeypatch.setenv("SEQCLS_DB", str(db))
    page = subprocess.run([sys.executable, "-c", PAGE], capture_output=True, text=True, cwd=ROOT)
    assert page.returncode == 0, page.stderr
    assert "every_other" in page.stdout


def test_without_the_package_a_stored_run_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = swept(tmp_path, "here", "--workers", "0")
    monkeypatch.delenv("PYTHONPATH")
    command = [sys.executable, "-m", "sweeps", "predict", "1", "aab", "--db", str(db)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=ROOT)
    assert run.returncode == 2
    assert "install little-extras==1.2" in run.stderr
    assert "Traceback" not in run.stderr
