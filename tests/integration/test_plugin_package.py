"""A language, positions and an architecture from outside: trained, stored, listed and shown."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
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

# In processes of their own: what is installed is looked up once a process.
COMMANDS = """
import json, sys
from typer.testing import CliRunner
from sweeps.cli.app import app
for arguments in json.loads(sys.argv[1]):
    said = CliRunner().invoke(app, arguments)
    assert said.exit_code == 0, said
    print(json.dumps(said.stdout))
"""
PAGE = """
from streamlit.testing.v1 import AppTest
page = AppTest.from_file("dashboard/app.py", default_timeout=120).run()
assert not page.exception, page.exception[0].value
assert not page.error, page.error[0].value
print([str(table.value.to_dict()) for table in page.dataframe])
"""

# The fixture of another module, used here too.
_ = cluster


@pytest.fixture(autouse=True, scope="module")
def installed() -> Iterator[None]:
    """The package is where Python finds it, in processes that are started too."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", os.pathsep.join([str(PACKAGE), str(ROOT)]))
        yield


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200)


def said(*commands: list[str]) -> list[str]:
    """What these commands print."""
    run = python("-c", COMMANDS, json.dumps(commands))
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def swept(folder: Path, name: str, *how: str) -> Path:
    spec, db = folder / "spec.toml", folder / f"{name}.db"
    spec.write_text(SPEC)
    run = python("-m", "sweeps", "sweep", str(spec), "--db", str(db), *how)
    assert run.returncode == 0, run.stderr
    return db


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return swept(tmp_path_factory.mktemp("plugins"), "pool", "--workers", "2")


@pytest.mark.timeout(600)
def test_parts_from_outside_are_trained_stored_listed_and_shown(
    stored: Path, tmp_path: Path, cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The commands and the page are told the database as a user may: by the environment.
    monkeypatch.setenv("SEQCLS_DB", str(stored))
    listed, errors, predicted, _ = said(
        ["runs", "--json"], ["errors", "1", "--json"], ["predict", "4", "aab"], ["verify"]
    )
    runs = json.loads(listed)
    assert [run["state"] for run in runs] == ["done"] * 4
    assert {run["plugins"] for run in runs} == {"little-extras==1.2"}
    assert {run["engine"] for run in runs} == {"strings"}
    assert {(run["positions"], run["architecture"]) for run in runs} == {
        ("every_other", "transformer"),
        ("none", "bag"),
    }
    for error in json.loads(errors):
        assert error["label"] == error["string"].rstrip("{}0123456789>").endswith("b")
    assert "aab" in predicted

    on_dask = swept(tmp_path, "dask", "--dask", cluster.address)
    assert contents(open_reader(str(on_dask))) == contents(open_reader(str(stored)))

    page = python("-c", PAGE)
    assert page.returncode == 0, page.stderr
    assert "every_other" in page.stdout


def test_without_the_package_a_stored_run_says_what_to_install(
    stored: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH")
    run = python("-m", "sweeps", "predict", "1", "aab", "--db", str(stored))
    assert run.returncode == 2
    assert "install little-extras==1.2" in run.stderr
    assert "Traceback" not in run.stderr
