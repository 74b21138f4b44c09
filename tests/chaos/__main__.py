"""A campaign: parts of what goes wrong for users, each of many cases, for as long as there is time.

    python -m tests.chaos [PART ...] [--minutes 30] [--seed 0]

A part is a set of tests; its cases are theirs, with each of their seeds, of at most a minute. The
parts take turns, in as many processes as there are cores; a seed decides which cases come first. A
failure is written with the line that repeats it, and the part goes on.
"""

import argparse
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.conftest import SEED
from tests.chaos.planted import failed

ROOT = Path(__file__).parents[2]

FILES_BY_PART: dict[str, tuple[str, ...]] = {
    "kills": ("tests/chaos/test_kills.py",),
    "server": ("tests/chaos/test_postgres.py", "tests/chaos/test_postgres_killed.py"),
    "processes": (
        *("tests/chaos/test_sending.py", "tests/chaos/test_sleep.py", "tests/chaos/test_clock.py"),
        *("tests/chaos/test_many_workers.py", "tests/chaos/test_starting.py"),
        "tests/chaos/test_memory.py",
    ),
    "file changes": ("tests/chaos/test_file_changes.py",),
    "trouble": ("tests/chaos/test_trouble.py",),
    "dask": ("tests/chaos/test_dask.py",),
    "damage": (
        *("tests/chaos/test_bit_flips.py", "tests/chaos/test_damaged_files.py"),
        "tests/chaos/test_damaged_values.py",
    ),
    "malformed": (
        *("tests/chaos/test_malformed.py", "tests/chaos/test_malformed_files.py"),
        *("tests/chaos/test_malformed_texts.py", "tests/chaos/test_bombs.py"),
        "tests/chaos/test_markup.py",
    ),
    "pages": ("tests/chaos/test_deleting.py", "tests/browser/test_quiet.py"),
    "values": ("tests/chaos/test_compare_values.py",),
    "matrix": ("tests/commands/test_matrix.py",),
    "controls": (
        "tests/pages/test_kinds.py::test_every_page_shows_every_kind",
        "tests/pages/test_kinds.py::test_every_section_of_a_model_has_content",
    ),
    "explained": ("tests/pages/test_failures.py", "tests/science/test_shipped_models.py"),
    "published": ("tests/science/test_published.py", "tests/chaos/test_published.py"),
    "trained": ("tests/chaos/test_shipped_specs.py",),
    "contracts": (
        *("tests/contracts/test_architectures.py", "tests/contracts/test_engines.py"),
        "tests/chaos/test_shapes.py",
    ),
    "proofs": ("tests/chaos/test_certificates.py",),
    "vectors": ("tests/chaos/test_vectors.py",),
    "planted": ("tests/chaos/test_planted.py",),
    "memorizing": ("tests/chaos/test_memorizing.py",),
}
"""Files of tests, or tests of a file; a test belongs to the part that names it most closely."""

BY_NAME_ALONE = {"memorizing"}
"""Parts that take hours, and run only by name."""

TOGETHER = 6
"""Cases of a file that a process tries, which starts once."""


@dataclass
class Campaign:
    """The cases of some parts that are left, and what became of the others."""

    cases: dict[str, list[str]]
    seed: int
    tried: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, until: float) -> None:
        """Tries cases of each part in turn, until the time is over."""
        while time.monotonic() < until:
            part, cases = self._take()
            if not cases:
                return
            completed = subprocess.run(
                pytest_command(self.seed, *cases),
                cwd=ROOT, env=environment(self.seed), capture_output=True, text=True, check=False,
            )  # fmt: skip
            # Where the process itself ended, any of them may have been the reason.
            wrong = failed(completed.stdout) or (cases if completed.returncode else [])
            with self.lock:
                self.tried[part] += len(cases)
                self.failures[part] += len(wrong)
                if wrong:
                    lines = "\n".join(replay(case, self.seed) for case in wrong)
                    print(f"\n{completed.stdout[-3000:]}\n{lines}\n", flush=True)

    def _take(self) -> tuple[str, list[str]]:
        """Some cases of one file of the part whose turn it is."""
        with self.lock:
            part = next((part for part, cases in self.cases.items() if cases), "")
            cases = self.cases.pop(part, [])
            own = [case for case in cases if file_of(case) == file_of(cases[0])][:TOGETHER]
            # It is the last in turn now.
            self.cases[part] = [case for case in cases if case not in own]
            return part, own


def file_of(case: str) -> str:
    return case.partition("::")[0]


def environment(seed: int) -> dict[str, str]:
    """The environment of test processes, without CI, where properties draw the same examples."""
    inherited = {name: value for name, value in os.environ.items() if name != "CI"}
    return {**inherited, "SEQCLS_CHAOS": "long", SEED: str(seed), "PYTHONPATH": str(ROOT)}


def pytest_command(seed: int, *arguments: str) -> list[str]:
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", f"--hypothesis-seed={seed}")
    # What a file's first case sets up for all is not counted.
    limit = ("--timeout=60", "-o", "timeout_func_only=true")
    return [sys.executable, "-m", "pytest", *options, *limit, "-q", *arguments]


def replay(case: str, seed: int) -> str:
    """The line that tries a case again."""
    given = f"SEQCLS_CHAOS=long {SEED}={seed}"
    return f"{given} .venv/bin/python -m pytest --hypothesis-seed={seed} '{case}'"


def collect(parts: Sequence[str], seed: int) -> dict[str, list[str]]:
    """The cases of parts, in an order that the seed gives."""
    named = {path: part for part, paths in FILES_BY_PART.items() for path in paths}
    files = sorted({file_of(path) for part in parts for path in FILES_BY_PART[part]})
    collected = subprocess.run(
        pytest_command(seed, "-o", "addopts=", "--collect-only", *files),
        cwd=ROOT, env=environment(seed), capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: dict[str, list[str]] = {part: [] for part in parts}
    for case in collected.stdout.splitlines():
        part = named.get(case.partition("[")[0]) or named.get(file_of(case))
        if "::" in case and part in found:
            found[part].append(case)
    if collected.returncode:
        print(collected.stdout[-2000:], collected.stderr[-2000:])
    mixed = random.Random(seed)
    return {part: mixed.sample(cases, len(cases)) for part, cases in found.items()}


def main(arguments: Sequence[str]) -> int:
    """Tries cases for so many minutes; 1 if one failed or a part has tried none."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(FILES_BY_PART))
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(FILES_BY_PART):
        parser.error(f"no part {sorted(unknown)[0]!r}; there are {', '.join(FILES_BY_PART)}")
    parts = options.parts or [part for part in FILES_BY_PART if part not in BY_NAME_ALONE]
    found = collect(parts, options.seed)
    campaign = Campaign(dict(found), options.seed)
    until = time.monotonic() + 60 * options.minutes
    processes = os.cpu_count() or 1
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(campaign.work, [until] * processes))
    for part, cases in found.items():
        print(f"{part}: {campaign.tried[part]} of {len(cases)}, {campaign.failures[part]} failed")
    return int(bool(campaign.failures.total()) or not all(campaign.tried[x] for x in parts))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
