"""Architectures of another package, or of one file and one line more: what training would lose is
refused, and all else answers.
"""

import runpy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import PluginError, PluginMissingError
from seqcls.models import MODELS
from seqcls.models.architectures import Recurrent
from seqcls.problem import check, configuration, resolve
from sweeps.api import Store, fit_shortcuts, open_store, runs, submit, work
from sweeps.work.machine import parameter_bytes
from tests.commands import printed, printed_json, refused, run_main
from tests.conftest import ASSETS, SHORT
from tests.plugins import forget_parts, found_in, write_metadata
from tests.shown import page_data

MODULE = """
import torch as t
from torch import nn
from seqcls.models.base import Classifier
from seqcls.models.layers import masked_mean
from seqcls.strings.tokenizer import PAD

class Mean(Classifier):
    def __init__(self, config):
        super().__init__(config)
        self.embedding = nn.Embedding(config.vocabulary_size, config.hidden_size)
        self.classifier = nn.Linear(config.hidden_size, 1)

    def mixed(self, mean):
        return mean

    def run(self, ids, record, places):
        mean = self.mixed(masked_mean(self.embedding(ids), ids != PAD))
        return record("logit", self.classifier(mean).squeeze(-1))

class Halved(Mean):
    def __init__(self, config):
        super().__init__(config)
        self.register_buffer("halves", t.full((config.hidden_size,), 0.5))

    def mixed(self, mean):
        return mean * self.halves

class Shared(Mean):
    def __init__(self, config):
        super().__init__(config)
        self.first = self.second = nn.Linear(config.hidden_size, config.hidden_size)

    def mixed(self, mean):
        return self.second(t.tanh(self.first(mean)))

class Scaled(Mean):
    def __init__(self, config):
        super().__init__(config)
        self.scale = nn.Parameter(t.tensor(1.0))

    def mixed(self, mean):
        return mean * self.scale

class Normed(Mean):
    def __init__(self, config):
        super().__init__(config)
        self.norm = nn.BatchNorm1d(config.hidden_size)

    def mixed(self, mean):
        return self.norm(mean)

class Column(Mean):
    def run(self, ids, record, places):
        return super().run(ids, record, places)[:, None]

class Raising(Mean):
    def mixed(self, mean):
        raise RuntimeError("mixed!")

class Unrecorded(Mean):
    def units(self):
        return ({"state": "nowhere"},)

class Empty(Classifier):
    def run(self, ids, record, places):
        return ids.sum(dim=1).float()
"""

SOUND = ("mean", "halved", "shared", "scaled")
NAMES = (*SOUND, "normed", "column", "raising", "unrecorded", "empty")


def spec_of(*names: str) -> dict[str, Any]:
    """A sweep of these architectures, a model each."""
    fixed = {**SHORT, "hidden_size": 4, "test_max_length": 20}
    how = [
        {"architecture": name} | ({"readout": "last"} if name == "rnn" else {}) for name in names
    ]
    return {"name": "sound", "model_seeds": [0], "fixed": fixed, "configurations": how}


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Python finds the package."""
    folder = tmp_path_factory.mktemp("package")
    (folder / "many_means.py").write_text(MODULE)
    points = "".join(f"{name} = many_means:{name.title()}\n" for name in NAMES)
    about = write_metadata(folder, "many-means", "1.0", f"[seqcls.models]\n{points}")
    (about / "RECORD").write_text("many_means.py,,\n")
    return folder


@pytest.fixture
def installed(package: Path) -> Iterator[None]:
    with found_in(package):
        yield


@pytest.fixture(scope="module")
def trained(package: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A sweep of the sound architectures, with causes and shortcut readers."""
    db = str(tmp_path_factory.mktemp("trained") / "runs.db")
    with found_in(package):
        store = open_store(db)
        submit(store, spec_of(*SOUND))
        work(store, workers=0)
        printed("causes", "sound", "--db", db)
        fit_shortcuts(store)
    return db


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("normed", "a buffer 'norm.running_mean' that changes while it trains"),
        ("column", r"outputs of the shape \(2, 1\) for 2 strings, expected \(2,\)"),
        ("raising", "ended in RuntimeError: mixed!"),
        ("unrecorded", r"names a state 'nowhere' in units\(\) that it never records"),
        ("empty", "has no parameter"),
    ],
)
def test_architectures_that_training_would_break_are_refused(name: str, why: str) -> None:
    with pytest.raises(PluginError, match=rf"^many-means==1\.0 .*'{name}'.* {why}"):
        check(configuration({"architecture": name}))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", SOUND)
def test_a_stored_plug_in_model_answers_alike_in_every_command(
    name: str,
    trained: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    db = ("--db", trained)
    (run,) = map(str, runs(open_store(trained), architecture=name)["id"])
    predicted = printed("predict", run, "ab", *db)
    printed("states", run, "ab", *db)
    printed("automaton", run, "--strings", "100", *db)
    printed("verdict", run, *db)
    printed("give", run, str(tmp_path / "given"), *db)
    monkeypatch.setattr(sys, "argv", ["model.py", "ab"])
    with pytest.raises(SystemExit, match="0"):
        runpy.run_path(str(tmp_path / "given" / "model.py"), run_name="__main__")
    assert f"{float(capsys.readouterr().out.split()[1]):.4f}" in predicted


@pytest.mark.usefixtures("undrawn")
def test_stored_results_are_complete_without_the_package(
    trained: str, package: Path, tmp_path: Path
) -> None:
    out, files = tmp_path / "report.html", tmp_path / "files"
    printed("report", "sound", "--out", str(out), "--db", trained)
    text, all_runs = out.read_text(encoding="utf-8"), runs(open_store(trained))
    assert "install many-means==1.0" in text
    assert "Of 4 failing models 4 fail by not having learned." in text, "stored causes"
    failing = all_runs.loc[all_runs["errors"] > 0, "id"]
    assert set(page_data(text)) == {f"run-{run}-strings" for run in failing} != set()
    printed("export", str(files), "--db", trained)
    assert len((files / "shortcuts.csv").read_text().splitlines()) > 100
    command = ("seeds", "sound", "--until", "learned ± 10 %", "--db", trained)
    assert "install many-means==1.0" in refused(*command)
    with pytest.raises(PluginMissingError, match="install many-means"):
        work(queued(package, tmp_path, "mean"))


def test_runs_of_a_missing_package_do_not_block_other_sweeps(
    package: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = queued(package, tmp_path, "mean", "halved")
    submit(store, {**spec_of("rnn"), "name": "ours"})
    completed = run_main("work", "--workers", "0", "--db", str(store.path))
    assert completed.returncode == 4, completed
    assert "left queued: plugins='many-means==1.0'" in caplog.text + completed.stderr
    found_ = runs(store).set_index("architecture")["state"].to_dict()
    assert found_ == {"rnn": "done", "mean": "queued", "halved": "queued"}


def queued(package: Path, folder: Path, *names: str) -> Store:
    """A database with runs of these architectures that nobody has trained."""
    store = open_store(folder / "queued.db")
    with found_in(package):
        submit(store, spec_of(*names))
    return store


class Minimal(Recurrent):
    path = "minimal:Minimal"
    compiled_width = None
    gates = 2


@pytest.fixture
def minimal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A specification of models whose architecture is one file and one line more."""
    monkeypatch.syspath_prepend(str(ASSETS / "architecture"))
    monkeypatch.setattr(MODELS, "_own", {**MODELS._own, "minimal": Minimal})
    forget_parts()
    lengths = "".join(f"{part}_max_length = 6\n" for part in ("train", "validation", "test"))
    own = [
        f'[[configurations]]\narchitecture = "minimal"\n{x}\n'
        for x in ('task = "copy"', 'task = "parity"\nreadout = "last"\nnum_blocks = 2')
    ]
    fields = "".join(f"{name} = {value}\n" for name, value in SHORT.items())
    spec = tmp_path / "new.toml"
    spec.write_text(f'name = "new"\nmodel_seeds = [0]\n[fixed]\n{fields}{lengths}' + "".join(own))
    yield str(spec)
    monkeypatch.undo()
    forget_parts()


def test_an_architecture_of_one_file_is_trained_queried_and_inspected(
    minimal: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQCLS_DB", str(tmp_path / "new.db"))
    open_store(tmp_path / "new.db")
    assert printed_json("estimate", minimal)[0]["runs"] == 2
    printed("sweep", minimal, "--workers", "0")
    writes, recognizes = sorted(printed_json("runs"), key=lambda run: str(run["task"]))
    assert [(x["state"], x["engine"]) for x in (writes, recognizes)] == [("done", "strings")] * 2
    sizes = [
        parameter_bytes(resolve(configuration({"task": "copy", "architecture": name})))
        for name in ("minimal", "rnn")
    ]
    assert sizes[0] > sizes[1] > 0, "it has two gates, and that one none"
    (written,) = printed_json("predict", str(writes["id"]), "ab")
    beam = printed_json("predict", str(writes["id"]), "ab", "--beam", "3")
    assert written["target"] == beam[0]["target"] == "ab"
    run = str(recognizes["id"])
    assert len(printed_json("states", run, "0110")["units"]) == 2, "a layer each"
    assert printed_json("patch", run, "0110", "--source", "0010")
    assert printed_json("ablate", run, "--sample", "20")
    assert printed_json("automaton", run, "--strings", "60", "--seconds", "5")
