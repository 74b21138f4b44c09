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
from tests.conftest import LONG, ROOT
from tests.stock import stock

QUICK_COMMANDS = {"import"}
"""Commands that are interrupted in `make test`: they read files, and write several runs."""


def test_every_command_that_changes_files_is_interrupted_here() -> None:
    ended = {arguments[1 if arguments[0] == "db" else 0] for arguments in COMMANDS.values()}
    assert ended.isdisjoint(ONLY_READING)
    assert ended | ONLY_READING == set(shown_commands())


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library that counts changes of files, compiled."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler is on this machine")
    library = tmp_path_factory.mktemp("counting") / "file_changes.so"
    source = ROOT / "tests" / "chaos" / "file_changes.c"
    command = [compiler, "-O1", "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.skipif(sys.platform != "linux", reason="the library is one of Linux")
@pytest.mark.cases(100)
@pytest.mark.parametrize("name", [name for name in COMMANDS if LONG or name in QUICK_COMMANDS])
def test_a_command_interrupted_at_any_file_change_can_be_repeated(
    tmp_path: Path, counting: Path, name: str, seed: int
) -> None:
    stock("commands")
    completed = subprocess.run(
        [
            *(sys.executable, "-m", "tests.chaos.interrupted"),
            *(str(tmp_path), name, str(seed), "6" if LONG else "1"),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, "LD_PRELOAD": str(counting)},
    )
    assert completed.returncode == 0, completed.stderr
    seen = json.loads(completed.stdout)
    print(f"it changes files {seen['changes']} times")
    assert seen["faults"] == []
    assert seen["changes"] > 0
