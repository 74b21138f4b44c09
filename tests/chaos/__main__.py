"""A campaign: parts of what goes wrong for users, each of many cases, for as long as there is time.

    python -m tests.chaos [PART ...] [--minutes 30] [--seed 0] [--list]

A part is a set of tests; its cases are theirs, with each of their seeds, of at most a minute. The
parts take turns, in as many processes as there are cores, and of each part what was not tried for
longest comes first. A failure is written with the line that repeats it, and the part goes on.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from platformdirs import user_state_path

from tests.chaos.conftest import SEED

ROOT = Path(__file__).parents[2]

PARTS: dict[str, tuple[str, ...]] = {
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
    "trained": ("tests/chaos/test_shipped_specs.py", "tests/chaos/test_trained.py"),
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
"""What takes hours: it is tried if it is asked for."""

GUESSED_SECONDS = 10.0
"""What a case takes that was never tried."""

TOGETHER_SECONDS = 60.0
"""Cases of a file are tried one after another in a process for so long, which starts once."""


class Tried(NamedTuple):
    """What became of a case."""

    at: float
    seconds: float
    failed: bool


@dataclass
class Campaign:
    """The cases of some parts, what is known of each, and what is tried of them now."""

    cases: dict[str, list[str]]
    """The ids of each part's tests, what was not tried for longest first."""
    seed: int
    known: dict[str, Tried]
    now: dict[str, Tried] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, until: float) -> None:
        """Tries cases of each part in turn, until the time is over."""
        while time.monotonic() < until and (cases := self._take()):
            told = dict(run(cases, self.seed))
            with self.lock:
                for case in cases:
                    failed, seconds, said = told.get(case, (True, 0.0, "its process ended"))
                    self.now[case] = Tried(time.time(), seconds, failed)
                    if failed:
                        print(f"\nFAILED {said}\n{replay(case, self.seed)}\n", flush=True)

    def _take(self) -> list[str]:
        """Cases of one file of the part whose turn it is, as many as a process tries together."""
        with self.lock:
            if not (part := next((part for part, cases in self.cases.items() if cases), None)):
                return []
            cases = self.cases.pop(part)
            own = [case for case in cases if file_of(case) == file_of(cases[0])]
            taken = list(self._together(own))
            # It is the last in turn now.
            self.cases[part] = [case for case in cases if case not in taken]
            return taken

    def _together(self, cases: Sequence[str]) -> Iterator[str]:
        seconds = 0.0
        for case in cases:
            yield case
            seconds += self.known[case].seconds if case in self.known else GUESSED_SECONDS
            if seconds > TOGETHER_SECONDS:
                return


def file_of(case: str) -> str:
    return case.partition("::")[0]


def environment(seed: int) -> dict[str, str]:
    """What every process of tests has; under CI all properties would be tried on the same."""
    kept = {name: value for name, value in os.environ.items() if name != "CI"}
    return {**kept, "SEQCLS_CHAOS": "long", SEED: str(seed), "PYTHONPATH": str(ROOT)}


def pytest_command(seed: int, *arguments: str) -> list[str]:
    options = ("-p", "no:cacheprovider", "-p", "no:xdist", f"--hypothesis-seed={seed}")
    # What a file's first case sets up for all is not counted.
    limit = ("--timeout=60", "-o", "timeout_func_only=true")
    return [sys.executable, "-m", "pytest", *options, *limit, *arguments]


def replay(case: str, seed: int) -> str:
    """The line that tries a case again."""
    given = f"SEQCLS_CHAOS=long {SEED}={seed}"
    return f"{given} .venv/bin/python -m pytest --hypothesis-seed={seed} '{case}'"


def collect(parts: Sequence[str], seed: int) -> dict[str, list[str]]:
    """The cases of parts."""
    named = {path: part for part, paths in PARTS.items() for path in paths}
    files = sorted({file_of(path) for part in parts for path in PARTS[part]})
    said = subprocess.run(
        pytest_command(seed, "-o", "addopts=", "--collect-only", "-q", *files),
        cwd=ROOT, env=environment(seed), capture_output=True, text=True, check=False,
    )  # fmt: skip
    found: dict[str, list[str]] = {part: [] for part in parts}
    for case in said.stdout.splitlines():
        if "::" in case and not case.startswith("ERROR"):
            test = case.partition("[")[0]
            part = named.get(test) or named.get(file_of(case))
            if part in found:
                found[part].append(case)
    if said.returncode:
        print(said.stdout[-2000:], said.stderr[-2000:])
    return found


def run(cases: Sequence[str], seed: int) -> Iterator[tuple[str, tuple[bool, float, str]]]:
    """Tries cases in a process of their own: whether each failed, its seconds, what it said."""
    with tempfile.TemporaryDirectory(prefix="chaos-") as folder:
        told = Path(folder) / "told.xml"
        subprocess.run(
            pytest_command(seed, f"--junitxml={told}", "-o", "junit_family=xunit1", *cases),
            cwd=ROOT, env=environment(seed), capture_output=True, check=False,
        )  # fmt: skip
        if not told.exists():
            return
        for one in ET.parse(told).iter("testcase"):
            wrong = [x for x in one if x.tag in ("failure", "error")]
            said = "\n".join((x.text or x.get("message") or "")[-3000:] for x in wrong)
            name = f"{one.get('file')}::{one.get('name')}"
            yield name, (bool(wrong), float(one.get("time") or 0), said)


def stored(path: Path) -> dict[str, Tried]:
    told = json.loads(path.read_text()) if path.exists() else {}
    return {case: Tried(*own) for case, own in told.items()}


def table(campaign: Campaign, found: dict[str, list[str]]) -> str:
    """A row a part: what was tried now, and since when all that was not is waiting."""
    every = {**campaign.known, **campaign.now}
    lines = ["| part | tried of all | minutes | failures | slowest | not tried since |", "|---" * 6]
    for part, cases in found.items():
        own = [campaign.now[case] for case in cases if case in campaign.now]
        waiting = [every[x].at if x in every else 0.0 for x in cases if x not in campaign.now]
        since = min(waiting, default=-1.0)
        said = f"{datetime.fromtimestamp(since):%Y-%m-%d}" if since > 0 else "never"
        cells = (
            part,
            f"{len(own)} of {len(cases)}",
            f"{sum(x.seconds for x in own) / 60:.1f}",
            f"{sum(x.failed for x in own)}",
            f"{max((x.seconds for x in own), default=0):.0f} s",
            "" if since < 0 else said,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str], state: Path | None = None) -> int:
    """Tries cases for so many minutes; 1 if one failed or a part has tried none."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="how many cases there are; try none")
    asked = parser.parse_args(arguments)
    if unknown := set(asked.parts) - set(PARTS):
        parser.error(f"no part {sorted(unknown)[0]!r}; there are {', '.join(PARTS)}")
    parts = asked.parts or [part for part in PARTS if part not in BY_NAME_ALONE]
    state = state or user_state_path("seqcls") / "chaos.json"
    known = stored(state)
    found = collect(parts, asked.seed)
    mixed = random.Random(asked.seed)
    longest_first = {
        part: sorted(
            mixed.sample(cases, len(cases)), key=lambda x: known[x].at if x in known else 0.0
        )
        for part, cases in found.items()
    }
    campaign = Campaign(longest_first, asked.seed, known)
    if not asked.list:
        until = time.monotonic() + 60 * asked.minutes
        processes = os.cpu_count() or 1
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(campaign.work, [until] * processes))
        state.parent.mkdir(parents=True, exist_ok=True)
        state.write_text(json.dumps({**known, **campaign.now}))
    print(table(campaign, found))
    untried = [part for part, cases in found.items() if not campaign.now.keys() & set(cases)]
    return int(not asked.list and bool(untried or any(x.failed for x in campaign.now.values())))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
