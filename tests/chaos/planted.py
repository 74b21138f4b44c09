"""Faults that a user would notice, listed in `planted.toml`, to be planted in a copy."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("planted.toml")
SECONDS = 3600
"""Time limit of tests: a fault that makes them wait for ever is not caught by them."""


class Fault(NamedTuple):
    """A wrong line of the program, and the tests that should fail."""

    name: str
    """The symptom that a user would notice."""
    file: str
    old: str
    new: str
    tests: list[str]

    def planted(self, root: Path) -> str:
        """The file's content with the fault.

        Raises:
            ValueError: the old text does not occur in it exactly once.
        """
        path = root / self.file
        text = path.read_text() if path.exists() else ""
        if (found := text.count(self.old)) != 1:
            raise ValueError(f"not planted: its old text stands {found} times in {self.file}")
        return text.replace(self.old, self.new)


def faults() -> list[Fault]:
    return [Fault(name, **fields) for name, fields in tomllib.loads(TABLE.read_text()).items()]


def copy_tree(to: Path) -> None:
    """Copies the tracked files of the working tree, and compiles them."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            (to / name).write_bytes((ROOT / name).read_bytes())
    # By time and size bytecode could be taken for that of a file changed within the same second.
    arguments = ["-m", "compileall", "-q", "--invalidation-mode", "checked-hash"]
    packages = ["seqcls", "sweeps", "dashboard", "tests"]
    subprocess.run([sys.executable, *arguments, *packages], cwd=to, check=True)


def run_tests(root: Path, *arguments: str) -> tuple[int, str]:
    """Runs tests on a copy; the exit status of pytest, and its output."""
    arguments = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", *arguments)
    # Machine code is cached by the content of its source, and bytecode is written; examples are
    # those of CI.
    environment = {
        **os.environ,
        "PYTHONPATH": str(root),
        "PYTHONDONTWRITEBYTECODE": "",
        "CI": "true",
        "SEQCLS_CHAOS": "",
    }
    try:
        run = subprocess.run(
            [sys.executable, *arguments],
            cwd=root, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return -1, f"no end after {SECONDS:,} s"
    return run.returncode, run.stdout + run.stderr


def failed(output: str) -> list[str]:
    """The tests that failed, but files that could not even be read."""
    names = [x.split(" - ")[0].split(" ", 1)[1] for x in output.splitlines() if _FAILED.match(x)]
    return [test for test in names if "::" in test]


_FAILED = re.compile("(FAILED|ERROR) tests/")
