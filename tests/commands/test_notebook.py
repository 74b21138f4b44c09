"""The example notebook runs from its first cell to its last, and shows its results."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

EXECUTE = "from nbclient.cli import main; main()"


@pytest.mark.timeout(600)
def test_the_notebook_runs_and_draws_models(tmp_path: Path) -> None:
    # Its kernel works in the notebook's folder.
    notebook = shutil.copy(ROOT / "examples" / "first_question.ipynb", tmp_path)
    out = tmp_path / "out.ipynb"
    command = [sys.executable, "-c", EXECUTE, str(notebook), "--output", str(out)]
    environment = {x: y for x, y in os.environ.items() if x != "SEQCLS_DB"}
    completed = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    cells = [x for x in json.loads(out.read_text())["cells"] if x["cell_type"] == "code"]
    shown = [json.dumps(cell["outputs"]) for cell in cells]
    assert "generalize" in shown[0]
    assert "Accuracy by length" in shown[3]
    assert not any('"output_type": "error"' in output for output in shown)
