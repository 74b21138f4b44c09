"""An architecture is added to seqcls by one file and one line: all that others have, it has."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ASSETS, ROOT

ENTRY = """    "minimal": Entry(
        "seqcls.models.minimal:Minimal", frozenset({"num_blocks", "readout", "biases"}),
        _no_recurrent, several_outputs=True, sizes=recurrent(2),
    ),
"""
SPEC = "\n".join(
    [
        'name = "new"\nmodel_seeds = [0]\n[fixed]\nhidden_size = 8\nmax_num_epochs = 2',
        *(
            f"{part}_{field}"
            for part in ("train", "validation", "test")
            for field in ("size = 64", "max_length = 6")
        ),
        '[[configurations]]\ntask = "copy"\narchitecture = "minimal"',
        '[[configurations]]\ntask = "parity"\nreadout = "last"\narchitecture = "minimal"\n'
        "num_blocks = 2\n",
    ]
)
# In a process that finds the copy; numbers are read where they are made.
LOOK = """
import json, sys
import numpy as np
from typer.testing import CliRunner
from seqcls.engines.choice import choose_engine
from seqcls.problem import configuration, resolve
from sweeps.cli.app import app
from sweeps.work.machine import parameter_bytes

def said(*arguments):
    result = CliRunner().invoke(app, [*arguments, "--db", "new.db"])
    assert result.exit_code == 0, (arguments, result.output, result.exception)
    return result.stdout

def parsed(*arguments):
    return json.loads(said(*arguments, "--json"))

estimate = parsed("estimate", "new.toml")
said("sweep", "new.toml", "--workers", "0")
writes, recognizes = sorted(parsed("runs"), key=lambda run: run["task"])
of = {"writes": str(writes["id"]), "recognizes": str(recognizes["id"])}
print(json.dumps({
    "states": [run["state"] for run in (writes, recognizes)],
    "engines": [run["engine"] for run in (writes, recognizes)],
    "estimate": estimate,
    "bytes": [
        parameter_bytes(resolve(configuration({"task": "copy", "architecture": name})))
        for name in ("minimal", "rnn")
    ],
    "written": parsed("predict", of["writes"], "ab"),
    "beam": parsed("predict", of["writes"], "ab", "--beam", "3"),
    "inside": parsed("states", of["recognizes"], "0110"),
    "patched": parsed("patch", of["recognizes"], "0110", "--source", "0010"),
    "ablated": parsed("ablate", of["recognizes"], "--sample", "20"),
    "automaton": parsed("automaton", of["recognizes"], "--strings", "60", "--seconds", "5"),
}))
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the project with one file and one entry more."""
    tree = tmp_path / "tree"
    for package in ("seqcls", "sweeps"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / package, tree / package, ignore=ignored)
    shutil.copy(ASSETS / "architecture" / "minimal.py", tree / "seqcls" / "models")
    entries = tree / "seqcls" / "models" / "__init__.py"
    before, line, after = entries.read_text().partition('    "rnn": ')
    assert line
    entries.write_text(before + ENTRY + line + after)
    (tree / "new.toml").write_text(SPEC)
    return tree


def test_it_is_trained_asked_looked_into_and_writes_with_what_it_keeps(tree: Path) -> None:
    run = subprocess.run([sys.executable, "-c", LOOK], cwd=tree, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    assert found["states"] == ["done", "done"]
    assert found["engines"] == ["strings", "strings"]
    assert found["bytes"][0] == found["bytes"][1] > 0
    assert found["estimate"][0]["runs"] == 2
    (written,), beam = found["written"], found["beam"]
    assert written["target"] == beam[0]["target"] == "ab"
    assert any(x["output"] == written["output"] for x in beam)
    assert len(found["inside"]["units"]) == 2, "a layer each"
    assert found["patched"]
    assert found["ablated"]
    assert found["automaton"]
