"""Faults that a user would notice, planted in a copy one after another: does a test see each?

    python -m tests.chaos.planted [WORD ...]

The faults are listed in `planted.toml`; words choose those whose name or file contains one.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("planted.toml")
NOBODY = "NOBODY"
SECONDS = 3600
"""Time limit of tests: a fault that makes them wait for ever is not caught by them."""


class Fault(NamedTuple):
    """A wrong line of the program, and who should see it."""

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


def faults(words: Sequence[str] = ()) -> list[Fault]:
    """All of the table, or those with one of the words in their name or file."""
    table = tomllib.loads(TABLE.read_text())
    named = [Fault(name, **fields) for name, fields in table.items()]
    lowercase = [word.lower() for word in words]
    return [
        fault
        for fault in named
        if not lowercase or any(x in f"{fault.name} {fault.file}".lower() for x in lowercase)
    ]


def copy_tree(to: Path) -> None:
    """Copies what git tracks, as it is now, and compiles it."""
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


def caught_by(tests: Sequence[str], root: Path, anyway: Sequence[str]) -> str:
    """The first of the tests that fails, or the reason for none."""
    code, output = run_tests(root, "-x", *tests)
    if not (failures := failed(output)):
        lines = output.strip().splitlines() or [f"pytest ended with {code}"]
        return f"{NOBODY}: {lines[-1]}"
    return f"{NOBODY}: {failures[0]} fails without it" if failures[0] in anyway else failures[0]


def main(words: Sequence[str]) -> int:
    if not (chosen := faults(words)):
        print(f"no fault has any of {', '.join(words)} in its name or file; see {TABLE.name}")
        return 1
    rows, started = list[tuple[str, str, str]](), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        root = Path(folder)
        copy_tree(root)
        tests = sorted({test for fault in chosen for test in fault.tests})
        anyway = failed(run_tests(root, *tests)[1])
        print(f"{time.monotonic() - started:4.0f} s  without a fault {len(anyway)} tests fail")
        for fault in chosen:
            began, path = time.monotonic(), root / fault.file
            try:
                path.write_text(fault.planted(root))
                by = caught_by(fault.tests, root, anyway)
            except ValueError as error:
                by = f"{NOBODY}: {error}"
            finally:
                if path.exists():
                    path.write_bytes((ROOT / fault.file).read_bytes())
            rows.append((fault.name, fault.file, by))
            print(f"{time.monotonic() - began:4.0f} s  {fault.name} · {by}", flush=True)
    missed = [row for row in rows if row[2].startswith(NOBODY)]
    print("\n| fault | place | caught by |\n|---|---|---|")
    print(*(f"| {' | '.join(row)} |" for row in rows), sep="\n")
    minutes = (time.monotonic() - started) / 60
    print(f"\n{len(rows) - len(missed)} of {len(rows)} caught, {minutes:.0f} minutes")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
