"""A language, positions and an architecture from outside: trained, stored, listed and shown."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from seqcls.errors import ConfigError
from sweeps import api
from sweeps.store.opening import open_reader
from sweeps.store.verification import verify
from tests import plugins
from tests.app import open_app
from tests.commands import refused, run_main
from tests.world import parts_from_outside


@pytest.fixture
def installed() -> Iterator[None]:
    """The package is where this process finds it."""
    with parts_from_outside():
        yield


def test_every_page_is_shown_without_the_package(
    trained_by_processes: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Before this process has queried it with the package: answers would be cached.
    command = ("predict", "1", "aab", "--db", str(trained_by_processes))
    assert "install little-extras==1.2" in refused(*command)
    assert verify(open_reader(str(trained_by_processes))).damages == []
    for page in ("results", "sweeps"):
        app = open_app(monkeypatch, trained_by_processes, page)
        assert not app.error, (page, app.error[0].value)
        assert "plug-in" not in " ".join(str(warning.value) for warning in app.warning), page
    app = open_app(monkeypatch, trained_by_processes, "model")
    assert [warning.value for warning in app.warning] == [
        "These models need a plug-in that is not installed here."
    ]


@pytest.mark.usefixtures("installed")
def test_parts_from_outside_are_trained_by_processes_stored_and_listed(
    trained_by_processes: Path,
) -> None:
    db = ("--db", str(trained_by_processes))
    runs = json.loads(run_main("runs", "--json", *db).stdout)
    assert [run["state"] for run in runs] == ["done"] * 4
    assert {run["plugins"] for run in runs} == {"little-extras==1.2"}
    assert {run["engine"] for run in runs} == {"strings"}
    assert {(run["positions"], run["architecture"]) for run in runs} == {
        ("every_other", "transformer"),
        ("none", "bag"),
    }
    for error in json.loads(run_main("errors", "1", "--json", *db).stdout):
        assert error["label"] == error["string"].rstrip("{}0123456789>").endswith("b")
    assert "aab" in run_main("predict", "4", "aab", *db).stdout
    assert verify(open_reader(db[1])).damages == []


@pytest.mark.usefixtures("installed")
def test_a_refused_explanation_advises_only_applicable_commands(trained_by_processes: Path) -> None:
    store = open_reader(str(trained_by_processes))
    for run, is_advised in (("1", True), ("4", False)):
        with pytest.raises(ConfigError, match="do not hold for this model") as refusal:
            api.explain(store, run, "aab")
        assert ("`patch`" in str(refusal.value)) is is_advised
        if is_advised:
            api.patch(store, run, "aab", "aba")
        else:
            with pytest.raises(ConfigError, match="names no states"):
                api.patch(store, run, "aab", "aba")


NOISY = """
import os, subprocess, sys
from little_extras import EndsWithB

def be_loud(when):
    print(when)
    sys.stdout.write(when)
    sys.__stdout__.write(when)
    os.write(1, when.encode())
    subprocess.run(["echo", when])

be_loud("LOUD import")

class Loud(EndsWithB):
    "Strings that end with b are positive."
    def labels(self, strings):
        be_loud("LOUD labels")
        return super().labels(strings)
"""


def test_output_of_a_plug_in_is_not_output_of_a_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "noisy.py").write_text(NOISY)
    points = "[seqcls.tasks]\nends_loudly = noisy:Loud\n"
    plugins.write_metadata(tmp_path, "noisy", "1.0", points)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{plugins.PYTHONPATH}")
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "own.db"))
    lines = [f"{name} = {value}" for name, value in plugins.SHORTLY.items()]
    spec = tmp_path / "noisy.toml"
    table = ["[fixed]", 'task = "ends_loudly"', *lines]
    spec.write_text("\n".join(['name = "noisy"', "model_seeds = [0]", *table]))
    run = plugins.python("-m", "sweeps", "sweep", str(spec), "--workers", "1")
    assert run.returncode == 0, run.stderr
    assert "LOUD" not in run.stdout
    assert "LOUD import" in run.stderr
    assert "LOUD labels" in run.stderr
