"""The pages on a database of 10,000 runs: seconds from request to finished script, and memory.

python -m benchmarks.pages [DB]

measures on that database, or on one in a temporary folder, which it makes first.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import insert

from seqcls.config import RunConfig, canonical_json
from seqcls.tokenizer import LETTERS, Tokenizer
from sweeps.store.engine import Store, open_writer
from sweeps.store.tables import (
    Base,
    Config,
    Epoch,
    LengthScore,
    Run,
    StringError,
    Sweep,
    SweepRun,
    now,
)

AXES: dict[str, list[Any]] = {
    "hidden_size": [2, 4, 8, 16, 32],
    "num_attention_heads": [1, 2, 4, 8, 16],
    "attention_head_size": [1, 2, 4, 8],
    "train_sampler": ["variable_length", "fixed_length"],
    "embeddings_init_strategy": ["default", "linear_like"],
}
SEEDS = 25
ERRORS = 134
"""Misclassified strings of each run that fails; every fourth does not."""

LENGTHS = 200
STRINGS_A_LENGTH = 50
POOL = 20_000
EPOCHS = 10

PAGES = ("compare", "map", "failing", "sweeps")
ROOT = Path(__file__).parent.parent


def main(db: str | None = None) -> None:
    """Prints each page's seconds, cold and warm, and the memory of the process that made it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(db) if db else Path(folder) / "large.db"
        if not path.exists():
            started = time.perf_counter()
            make_database(str(path))
            seconds = time.perf_counter() - started
            print(f"made {path.stat().st_size / 1e6:.0f} MB in {seconds:.0f} s")
        runs = SEEDS * len(list(_configs(AXES)))
        errors = (runs - runs // 4) * ERRORS
        print(f"pages on {runs:,} runs, {runs * LENGTHS:,} lengths, {errors:,} errors")
        for page in PAGES:
            found = measure(page, path)
            print(
                f"  {page:8} cold {found['cold']:.2f} s, warm {found['warm']:.2f} s, "
                f"{found['megabytes']:.0f} MB"
            )


def measure(page: str, db: Path) -> dict[str, float]:
    """Opens a page twice, in a process of its own: cold and warm (s), megabytes at most."""
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.pages", "--open", page],
        env={**os.environ, "SEQCLS_DB": str(db)},
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    measured: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return measured


def open_page(page: str) -> dict[str, float]:
    """What `measure` runs: the page in two sessions of one server, one after the other."""
    from streamlit.testing.v1 import AppTest

    seconds = []
    for _ in range(2):
        app = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=120)
        if page != "compare":
            app.switch_page(f"screens/{page}.py")
        started = time.perf_counter()
        app.run()
        seconds.append(time.perf_counter() - started)
        assert not app.exception, app.exception[0].value
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cold": seconds[0], "warm": seconds[1], "megabytes": megabytes}


def make_database(
    db: str,
    axes: Mapping[str, list[Any]] = AXES,
    seeds: int = SEEDS,
    errors: int = ERRORS,
) -> Store:
    """Fills a new database with one sweep of finished runs, whose results are drawn at random.

    Args:
        db: where to make it: a file that is not there, or the URL of an empty database.
        axes: the sweep's axes; every combination of their values is a configuration.
        seeds: runs of each configuration.
        errors: misclassified strings of each run that fails; every fourth does not.
    """
    generator = np.random.default_rng(0)
    store = open_writer(db)
    spec = {"name": "large", "model_seeds": f"0..{seeds - 1}", "axes": dict(axes)}
    sweep = {"id": 1, "name": "large", "description": "", "spec": canonical_json(spec)}
    created = {"created_at": now(), "state": "done", "launch_token": "large"}
    _insert(store, Sweep, [sweep | created])
    strings = _strings(generator)
    for config_id, config in enumerate(_configs(axes), start=1):
        row = {"id": config_id, "key": config.key, "json": canonical_json(config.model_dump())}
        _insert(store, Config, [row])
        first = (config_id - 1) * seeds + 1
        own = [_Results(first + seed, generator, errors, strings) for seed in range(seeds)]
        runs = [
            {"config_id": config_id, "model_seed": seed, **result.run()}
            for seed, result in enumerate(own)
        ]
        _insert(store, Run, runs)
        _insert(store, SweepRun, [{"sweep_id": 1, "run_id": run["id"]} for run in runs])
        _insert(store, LengthScore, [row for result in own for row in result.lengths()])
        _insert(store, StringError, [row for result in own for row in result.strings()])
        _insert(store, Epoch, [row for result in own for row in result.epochs()])
    return store


class _Results:
    """What came out of one run, drawn at random but as a whole consistent."""

    def __init__(
        self, run_id: int, generator: np.random.Generator, errors: int, strings: list[Any]
    ) -> None:
        self._run_id = run_id
        self._generator = generator
        number = 0 if run_id % 4 == 0 else errors
        chosen = generator.choice(len(strings), size=number, replace=False)
        self._errors = [strings[place] for place in chosen]

    def run(self) -> dict[str, Any]:
        cells = {
            name: sum(row[name] for row in self.lengths()) for name in ("tn", "fp", "fn", "tp")
        }
        solved = min((length for _, length, _ in self._errors), default=LENGTHS + 1) - 1
        return {
            "id": self._run_id,
            "state": "done",
            "attempt": 1,
            "failures": 0,
            "started_at": now(),
            "finished_at": now(),
            "epochs": EPOCHS,
            "best_epoch": EPOCHS,
            "best_validation_loss": 1.0,
            "solved_length": solved,
            "engine": "fused",
            "train_seconds": 0.1,
            "digest": "0" * 64,
            **cells,
        }

    def lengths(self) -> Iterator[dict[str, int]]:
        wrong = np.zeros((2, LENGTHS + 1), dtype=int)
        for _, length, label in self._errors:
            wrong[label, length] += 1
        for length in range(1, LENGTHS + 1):
            positives = STRINGS_A_LENGTH // 2 if length > 1 else 0
            negatives = STRINGS_A_LENGTH - positives
            fp, fn = (int(wrong[label, length]) for label in (0, 1))
            yield {
                "run_id": self._run_id,
                "length": length,
                "tn": negatives - fp,
                "fp": fp,
                "fn": fn,
                "tp": positives - fn,
            }

    def strings(self) -> list[dict[str, Any]]:
        return [
            {
                "run_id": self._run_id,
                "string": string,
                "length": length,
                "label": label,
                "logit": 1.0 - 2.0 * label,
                "occurrences": 1,
            }
            for string, length, label in self._errors
        ]

    def epochs(self) -> list[dict[str, Any]]:
        return [
            {"run_id": self._run_id, "epoch": epoch, "train_loss": 9.0, "validation_loss": 9.0}
            for epoch in range(1, EPOCHS + 1)
        ]


def _configs(axes: Mapping[str, list[Any]]) -> Iterator[RunConfig]:
    grid = np.array(np.meshgrid(*map(range, map(len, axes.values())), indexing="ij"))
    for places in grid.reshape(len(axes), -1).T:
        values = (own[place] for own, place in zip(axes.values(), places, strict=True))
        yield RunConfig.from_mapping(dict(zip(axes, values, strict=True)))


def _strings(generator: np.random.Generator) -> list[tuple[str, int, int]]:
    """Different strings of letters a, b and c: text, length, label."""
    counts = {tuple(row) for row in generator.integers(0, LENGTHS // 3, size=(POOL, 3)).tolist()}
    tokenizer = Tokenizer(LETTERS[:3])
    return [
        (tokenizer.text_of_counts(row), sum(row), int(row[0] > 0 and row[1] > 0))
        for row in sorted(counts)
        if sum(row) > 1
    ]


def _insert(store: Store, table: type[Base], rows: list[dict[str, Any]]) -> None:
    if rows:
        with store.begin() as connection:
            connection.execute(insert(table), rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--open"]:
        print(json.dumps(open_page(sys.argv[2])))
    else:
        main(*sys.argv[1:])
