"""A package with parts from outside, in processes that find it installed."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from seqcls import fields, problem
from seqcls.kinds import KINDS
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.plugin_checks import check_architecture
from seqcls.tasks import TASKS
from sweeps.store import shortcuts
from sweeps.store.reads import stored
from tests.conftest import ASSETS, ROOT, SHORT

PYTHONPATH = os.pathsep.join([str(ASSETS / "plugin_package"), str(ROOT)])
"""The path on which processes find the package and this project."""

SHORTLY = {**SHORT, "train_max_length": 8, "validation_max_length": 8, "test_max_length": 12}

SPEC = "\n".join(
    [
        'name = "from_outside"\nmodel_seeds = "0..1"\n[fixed]\ntask = "ends_with_b"',
        *(f"{name} = {value}" for name, value in SHORTLY.items()),
        '[[configurations]]\npositions = "every_other"',
        '[[configurations]]\narchitecture = "bag"\n',
    ]
)


def forget_parts(*, registries: bool = True) -> None:
    """Clears the registries of plugin parts, or only what was cached of them."""
    for registry in (TASKS, KINDS, MODELS, POSITIONS) if registries else ():
        vars(registry).pop("_plugins", None)
        vars(registry)["_loaded"].clear()
    cached = (
        *(problem.resolve, fields.fields_unread, fields.readers),
        *(check_architecture, shortcuts._training, stored._resolve_text),
    )
    for function in cached:
        function.cache_clear()


@contextmanager
def found_in(folder: Path) -> Iterator[None]:
    """A block in which the packages of a folder are installed."""
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(folder))
        forget_parts()
        yield
    forget_parts()


def write_metadata(folder: Path, name: str, version: str, points: str) -> Path:
    """Writes the metadata that pip makes of a package with entry points."""
    info = folder / f"{name.replace('-', '_')}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(points)
    return info


def python(*arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs this Python in a process, with the current environment."""
    command = [sys.executable, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=200)


def swept(folder: Path, name: str, *how: str) -> Path:
    """A database into which the command has just trained the sweep of the package's parts."""
    spec, db = folder / "spec.toml", folder / f"{name}.db"
    spec.write_text(SPEC)
    run = python("-m", "sweeps", "sweep", str(spec), "--db", str(db), *how)
    assert run.returncode == 0, run.stderr
    return db


@pytest.fixture(scope="session")
def trained_by_processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the sweep of the package's parts, as processes of this machine train it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PYTHONPATH", PYTHONPATH)
        return swept(tmp_path_factory.mktemp("plugins"), "processes", "--workers", "1")
