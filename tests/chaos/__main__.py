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
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import zip_longest
from pathlib import Path

from tests.chaos.conftest import SEED
from tests.chaos.planted import failed

ROOT = Path(__file__).parents[2]

FILES_BY_PART: dict[str, tuple[str, ...]] = {
    "kills": ("tests/chaos/test_kills.py",),
    "server": ("tests/chaos/test_postgres.py",),
    "processes": (
        *("tests/chaos/test_sending.py", "tests/chaos/test_sleep.py"),
        *("tests/chaos/test_many_workers.py", "tests/chaos/test_starting.py"),
    ),
    "file changes": ("tests/chaos/test_file_changes.py",),
    "trouble": ("tests/chaos/test_trouble.py",),
    "dask": ("tests/chaos/test_dask.py",),
    "damage": ("tests/chaos/test_damage.py",),
    "malformed": (
        *("tests/chaos/test_malformed.py", "tests/chaos/test_malformed_files.py"),
        *("tests/chaos/test_malformed_texts.py", "tests/chaos/test_markup.py"),
    ),
    "pages": ("tests/pages/test_one_moment.py", "tests/browser/test_quiet.py"),
    "values": ("tests/chaos/test_compare_values.py",),
    "matrix": ("tests/commands/test_matrix.py",),
    "controls": (
        "tests/pages/test_kinds.py::test_every_page_shows_every_kind",
        "tests/pages/test_kinds.py::test_every_section_of_a_model_has_content",
    ),
    "explained": ("tests/pages/test_failures.py", "tests/science/test_shipped_models.py"),
    "published": (
        "tests/science/test_published.py",
        "tests/chaos/test_shipped_specs.py::test_both_engines_give_equal_confusion_matrices",
    ),
    "trained": ("tests/chaos/test_shipped_specs.py",),
    "contracts": (
        *("tests/contracts/test_architectures.py", "tests/contracts/test_engines.py"),
        "tests/chaos/test_contracts.py",
    ),
    "proofs": ("tests/chaos/test_certificates.py",),
    "vectors": ("tests/chaos/test_contracts.py::test_contracts_hold_with_other_vectors",),
    "planted": ("tests/chaos/test_planted.py",),
    "memorizing": ("tests/chaos/test_shipped_specs.py::test_a_batch_of_16_is_memorized",),
}
"""Files of tests, or tests of a file; a test belongs to the part that names it most closely."""

BY_NAME_ALONE = {"memorizing"}
"""Parts that take hours, and run only by name."""

TOGETHER = 6
"""Cases of a file that a process tries, which starts once."""


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
    """Tries cases until the time is over; returns 1 if one failed or a part tried none."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(FILES_BY_PART))
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    if unknown := set(options.parts) - set(FILES_BY_PART):
        parser.error(f"no part {sorted(unknown)[0]!r}; there are {', '.join(FILES_BY_PART)}")
    parts = options.parts or [part for part in FILES_BY_PART if part not in BY_NAME_ALONE]
    found = collect(parts, options.seed)
    tried, failures = Counter[str](), Counter[str]()
    until = time.monotonic() + 60 * options.minutes

    def try_batch(part: str, cases: Sequence[str]) -> tuple[str, int, int]:
        """Tries some cases of a part while there is time: how many were tried, and failed."""
        if time.monotonic() > until:
            return part, 0, 0
        completed = subprocess.run(
            pytest_command(options.seed, *cases),
            cwd=ROOT, env=environment(options.seed), capture_output=True, text=True, check=False,
        )  # fmt: skip
        # Where the process itself ended, any of them may have been the reason.
        wrong = failed(completed.stdout) or (cases if completed.returncode else [])
        if wrong:
            lines = "\n".join(replay(case, options.seed) for case in wrong)
            print(f"\n{completed.stdout[-3000:]}\n{lines}\n", flush=True)
        return part, len(cases), len(wrong)

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        for part, number, wrong in pool.map(lambda x: try_batch(*x), in_turns(found)):
            tried[part] += number
            failures[part] += wrong
    for part, cases in found.items():
        print(f"{part}: {tried[part]} of {len(cases)}, {failures[part]} failed")
    return int(bool(failures.total()) or not all(tried[x] for x in parts))


def in_turns(found: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, list[str]]]:
    """Batches of cases of one file each, of all parts in turn."""
    batches = []
    for part, cases in found.items():
        files = {file_of(case): [x for x in cases if file_of(x) == file_of(case)] for case in cases}
        own = [x[at : at + TOGETHER] for x in files.values() for at in range(0, len(x), TOGETHER)]
        batches.append([(part, batch) for batch in sorted(own, key=lambda x: cases.index(x[0]))])
    for turn in zip_longest(*batches):
        yield from filter(None, turn)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
