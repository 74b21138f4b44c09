"""Architectures of another package: what training would lose is refused, and all else is asked."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from dashboard.cli import app
from seqcls.errors import PluginError, PluginMissingError
from seqcls.problem import check, configuration
from sweeps.api import fit_shortcuts, open_store, runs, work
from tests.conftest import SHORT
from tests.plugins import forget_parts

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

SPEC = "\n".join(
    [
        'name = "{0}"\nmodel_seeds = "0..0"\n[fixed]\narchitecture = "{0}"\nhidden_size = 4',
        *(f"{name} = {value}" for name, value in SHORT.items()),
        "test_max_length = 20\n",
    ]
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which Python finds the package."""
    folder = tmp_path_factory.mktemp("package")
    about = folder / "many_means-1.0.dist-info"
    about.mkdir()
    (folder / "many_means.py").write_text(MODULE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: many-means\nVersion: 1.0\n")
    (about / "RECORD").write_text("many_means.py,,\n")
    points = "".join(f"{name} = many_means:{name.title()}\n" for name in NAMES)
    (about / "entry_points.txt").write_text(f"[seqcls.models]\n{points}")
    return folder


@pytest.fixture
def installed(package: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(package))
    forget_parts()
    yield
    monkeypatch.undo()
    forget_parts()


@pytest.fixture(scope="module")
def trained(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep of each sound architecture, with causes and shortcut readers."""
    folder = tmp_path_factory.mktemp("trained")
    db = folder / "runs.db"
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(package))
        forget_parts()
        for name in SOUND:
            (folder / f"{name}.toml").write_text(SPEC.format(name))
            said("sweep", str(folder / f"{name}.toml"), "--workers", "0", "--db", str(db))
        said("causes", "mean", "--db", str(db))
        fit_shortcuts(open_store(str(db)))
    forget_parts()
    return db


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(app, arguments)


def said(*arguments: str) -> str:
    ended = invoke(*arguments)
    assert ended.exit_code == 0, (arguments, ended.output, ended.exception)
    return ended.output


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
def test_what_training_would_lose_is_refused_before(name: str, why: str) -> None:
    with pytest.raises(PluginError, match=rf"^many-means==1\.0 .*'{name}'.* {why}"):
        check(configuration({"architecture": name}))


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("name", SOUND)
def test_a_stored_model_answers_everywhere_alike(name: str, trained: Path, tmp_path: Path) -> None:
    run = ["--db", str(trained)]
    assert "logit" in said("predict", f"{name}/0", "ab", *run)
    said("states", f"{name}/0", "ab", *run)
    said("automaton", f"{name}/0", *run)
    said("verdict", f"{name}/0", *run)
    said("give", f"{name}/0", str(tmp_path / "given"), *run)
    file = str(tmp_path / "given" / "model.py")
    given = subprocess.run([sys.executable, file, "ab"], capture_output=True, text=True, check=True)
    assert f"{float(given.stdout.split()[1]):.4f}" in said("predict", f"{name}/0", "ab", *run)


def test_without_the_package_stored_results_are_whole(trained: Path, tmp_path: Path) -> None:
    out, files = tmp_path / "report.html", tmp_path / "files"
    said("report", "mean", "--out", str(out), "--db", str(trained))
    assert "No remedy can be trained here" in out.read_text(encoding="utf-8")
    said("site", str(tmp_path / "site"), "--db", str(trained))
    said("export", str(files), "--db", str(trained))
    assert len((files / "shortcuts.csv").read_text().splitlines()) > 100
    ended = invoke("seeds", "mean", "--until", "learned ± 10 %", "--db", str(trained))
    assert "install many-means==1.0" in str(ended.exception)
    with pytest.raises(PluginMissingError, match="install many-means"):
        work(open_store(_queued(trained, tmp_path, "mean")))


def test_what_lacks_a_package_keeps_no_other_sweep_from_training(
    trained: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = _queued(trained, tmp_path, "mean", "halved")
    (tmp_path / "ours.toml").write_text(SPEC.format("rnn").replace("[fixed]", _LAST))
    said("submit", str(tmp_path / "ours.toml"), "--db", db)
    ended = invoke("work", "--workers", "0", "--db", db)
    assert ended.exit_code == 4, ended.output
    assert caplog.text.count("1 run left queued: plugins='many-means==1.0'") == 2
    found = runs(open_store(db)).set_index("architecture")["state"].to_dict()
    assert found == {"rnn": "done", "mean": "queued", "halved": "queued"}


_LAST = '[fixed]\nreadout = "last"'


def _queued(trained: Path, folder: Path, *names: str) -> str:
    """A database with runs of these sweeps that nobody has trained."""
    db = str(folder / "queued.db")
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(trained.parent.parent / "package0"))
        forget_parts()
        for name in names:
            said("submit", str(trained.parent / f"{name}.toml"), "--db", db)
    forget_parts()
    return db
