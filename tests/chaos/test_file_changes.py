"""Every command that changes files may end at each of its changes, and nothing is lost by it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.chaos.interrupted import COMMANDS, ONLY_READING
from tests.commands import shown_commands
from tests.conftest import ROOT

FEW = ["pack", "import", "export"]
"""Commands of a file's journal, of several runs at once, and of a set of files."""


def test_every_command_that_changes_files_is_ended_at_its_changes() -> None:
    ended = {arguments[1 if arguments[0] == "db" else 0] for arguments in COMMANDS.values()}
    assert ended.isdisjoint(ONLY_READING)
    assert ended | ONLY_READING == set(shown_commands())


@pytest.fixture
def counting(tmp_path: Path) -> Path:
    """The library that counts changes of files, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is on this machine")
    library = tmp_path / "file_changes.so"
    source = ROOT / "tests" / "chaos" / "file_changes.c"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.timeout(7200)
@pytest.mark.skipif(sys.platform != "linux", reason="the library is one of Linux")
def test_a_command_may_end_at_any_change_of_a_file(
    tmp_path: Path, counting: Path, long: bool
) -> None:
    (tmp_path / "tried").mkdir()
    every, names = (1, []) if long else (121, FEW)
    said = subprocess.run(
        [
            *(sys.executable, "-m", "tests.chaos.interrupted"),
            *(str(tmp_path / "tried"), str(every), *names),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(counting)},
    )
    assert said.returncode == 0, said.stderr
    seen = json.loads(said.stdout)
    print(f"ended at {sum(seen['instants'].values())} changes: {seen['instants']}")
    assert seen["faults"] == []
    assert all(seen["instants"].values())
