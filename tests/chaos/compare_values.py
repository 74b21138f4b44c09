"""Every value that commands, files and Python give, compared with SQL and SciPy.

What pages show is compared in `tests/pages`.
"""

import csv
import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

import dashboard.cli  # noqa: F401 # adds the last of the commands
from sweeps import api
from sweeps.store.opening import open_reader
from tests.commands import run_main
from tests.oracles.compared import is_none
from tests.oracles.facts import (
    CELLS,
    OUTCOMES,
    RANGES,
    UNPROVED,
    Facts,
    Row,
    by_configuration,
    done,
    fails,
    is_among,
    outcome,
)

COUNTS = ("tested", "wrong", *CELLS)
RESULTS = (
    "state", "attempt", "failures", "finished_at", "error", "epochs", "best_epoch",
    "best_validation_loss", "engine", "engine_reason", "train_seconds", "digest",
)  # fmt: skip
"""Columns of runs that commands and files have as they are stored."""

THRESHOLDS = ((0.99, 1.0), (1.0, 0.95), (0.5, 0.5))
"""From which accuracy on trained lengths on a run has learned, and below which on longer ones it
fails."""

ERRORS = ("string", "length", "label", "logit", "occurrences")
OUTPUT_COLUMNS = ("target", "output", "first_wrong", "log_probability", "error_kind")


class InFile(str):
    """A number as written in a text file, with all its digits."""


def same(shown: Any, true: Any) -> bool:
    """Return True if a value is the true one; rounded as two ways of computing it may."""
    if isinstance(shown, list | tuple | np.ndarray) or isinstance(true, list | tuple):
        return [*shown] == [*true]
    if isinstance(true, str):
        return str(shown) == true or (true == "" and is_none(shown))
    if isinstance(shown, InFile) and shown.lower() == "nan":
        return isinstance(true, float) and math.isnan(true)
    if is_none(true) or is_none(shown):
        return is_none(true) and is_none(shown)
    if isinstance(true, bool):
        return str(shown).lower() == str(true).lower()
    if isinstance(true, int) and not isinstance(shown, InFile):
        return bool(shown == true)
    return math.isclose(float(shown), true, rel_tol=1e-9, abs_tol=1e-12)


class Comparison:
    """All values of one database, until one differs.

    Args:
        db: its file, or its URL.
        folder: one to write into.
        short: whether only a part is looked at.
    """

    def __init__(self, db: Path | str, folder: Path, *, short: bool = False) -> None:
        self.db, self.folder, self.short = str(db), folder, short
        self.facts = Facts(db)
        self.number = 0
        """Number of compared values."""

    def all(self) -> int:
        """Compares everything; returns the number of compared values."""
        self.views()
        self.commands()
        self.exports()
        self.python()
        self.comparisons()
        return self.number

    def value(self, what: str, shown: Any, true: Any) -> None:
        """Compares one value with the truth."""
        self.number += 1
        assert same(shown, true), f"{self.db}: {what}: shown {shown!r}, is {true!r}"

    def rows(
        self,
        what: str,
        shown: Iterable[Mapping[Any, Any]],
        true: Mapping[Any, Row],
        key: Callable[[Mapping[Any, Any]], Any],
    ) -> None:
        """Compares a table with all rows that it must have, each once, and no other, in the columns
        of both.
        """
        found = [(key(row), row) for row in shown]
        assert Counter(own for own, _ in found) == Counter([*true]), f"{self.db}: {what}: rows"
        for own, row in found:
            for name in true[own].keys() & row.keys():
                self.value(f"{what}, row {own}, {name}", row[name], true[own][name])

    def some(self, things: Iterable[Any], most: int = 50) -> list[Any]:
        """Things evenly apart; few of them where only a part is looked at."""
        listed = list(things)
        return listed[:: max(1, -(-len(listed) // (2 if self.short else most)))]

    def true_run(self, run_id: int, learned_at: float = 0.99, below: float = 1.0) -> Row:
        """A run as commands and files have it."""
        run, stored = self.facts.runs[run_id], self.facts.stored_runs[run_id]
        numbers = (*COUNTS, "errors", "accuracy", "solved_length", "model_seed", *UNPROVED)
        row = {name: stored[name] for name in RESULTS} | {name: run[name] for name in numbers}
        row |= {name: run[name] for name in (*RANGES, "accuracy_within", "accuracy_beyond")}
        row |= {"id": run_id, "sweeps": self.facts.sweeps_of[run_id]}
        row["outcome"] = outcome(run, learned_at, below)
        fields = self.facts.configs[run["config_id"]]
        if fields.get("imported"):
            # The training is not known, and of loaded weights no field beside their own.
            is_loaded = fields["architecture"] != "imported"
            known = set() if is_loaded else {"task", "dataset", "architecture"}
            fields = {x: y for x, y in fields.items() if x.startswith("config.") or x in known}
        return {**fields, **row}

    def views(self) -> None:
        """Compares documented views and sums with the stored errors and lengths."""
        for view, names in (
            ("misclassified", (*ERRORS, "target")),
            ("wrong_output", ("string", "length", *OUTPUT_COLUMNS, "occurrences")),
        ):
            true = {
                own: {name: error.get(name) for name in names}
                for own, error in self._errors().items()
                if view == "misclassified" or "output" in error
            }
            self.rows(view, self.facts.ask(f"SELECT * FROM {view}"), true, _error)
        for run in done(self.facts.runs.values()):
            run_id = run["run_id"]
            for name in (*COUNTS, "solved_length"):
                self.value(f"run {run_id}", self.facts.stored_runs[run_id][name], run[name])
            wrong = sum(x["occurrences"] for x in self.facts.errors[run_id].values())
            self.value(f"errors of run {run_id}", wrong, run["wrong"])

    def _errors(self, run_ids: Iterable[int] | None = None) -> dict[tuple[int, str], Row]:
        """The errors of these runs or of all that are finished."""
        ids = done_ids(self.facts) if run_ids is None else run_ids
        return {(x, y): row for x in ids for y, row in self.facts.errors[x].items()}

    def _lengths(self, run_ids: Iterable[int]) -> dict[tuple[int, int], Row]:
        return {(x, at): row for x in run_ids for at, row in self.facts.lengths[x].items()}

    # Commands.

    def command_output(self, *arguments: str) -> str:
        """The standard output of a command, whose exit status is compared too."""
        completed = run_main(*arguments, "--db", self.db)
        # The exit status of `status` reports failed runs.
        failed = any(run["state"] == "failed" for run in self.facts.runs.values())
        status = int(arguments[0] == "status" and failed)
        self.value(" ".join(arguments), completed.returncode, status)
        return completed.stdout

    def commands(self) -> None:
        """Compares `runs`, `errors` and `status`."""
        for options, chosen, judged in self._selections():
            rows = json.loads(self.command_output("runs", "--json", *options))
            true = {run_id: self.true_run(run_id, *judged) for run_id in chosen}
            self.rows(f"runs {options}", rows, true, lambda x: x["id"])
        for run_id in self.some(done_ids(self.facts), 100):
            for sort in ("length", "string", "logit", "occurrences"):
                if sort != "length" and (self.short or run_id % 5):
                    continue
                command = ("errors", str(run_id), "--json", "--sort", sort)
                rows = json.loads(self.command_output(*command))
                self.rows(" ".join(command), rows, self.facts.with_kinds(run_id), _string)
                keys = [row[sort] for row in rows if not is_none(row[sort])]
                assert keys == sorted(keys), command
        rows = json.loads(self.command_output("status", "--json"))
        true_sweeps = {}
        for row in self.facts.ask("SELECT * FROM sweep_state"):
            states = Counter(run["state"] for run in self.facts.sweeps.get(row["name"], []))
            counts = {state: states[state] for state in ("queued", "done", "failed")}
            true_sweeps[row["name"]] = {"state": row["state"], **counts}
        self.rows("status", rows, true_sweeps, lambda x: x["name"])

    def _selections(self) -> Iterator[tuple[list[str], list[int], tuple[float, float]]]:
        """Options of `runs`, the runs that they select, and both thresholds."""
        runs = self.facts.runs
        failing = [x for x, run in runs.items() if fails(run)]
        seed = min(run["model_seed"] for run in runs.values())
        yield [], list(runs), THRESHOLDS[0]
        own = [x for x in failing if runs[x]["model_seed"] == seed]
        yield ["--seed", str(seed), "--failing"], own, THRESHOLDS[0]
        for name in self.some(self.facts.sweeps):
            own = [run["run_id"] for run in self.facts.sweeps[name]]
            yield ["--sweep", name], own, THRESHOLDS[0]
        for judged in THRESHOLDS[1:2] if self.short else THRESHOLDS:
            for came_to in OUTCOMES:
                own = [x for x, run in runs.items() if is_among(run, came_to, *judged)]
                yield ["--outcome", came_to, *judged_by(judged)], own, judged

    # Files.

    def exports(self) -> None:
        """Compares files of every format, and of one sweep."""
        name = next(iter(self.facts.sweeps))
        own = [run["run_id"] for run in self.facts.sweeps[name]]
        for kind, run_ids, options in (
            ("csv", [*self.facts.runs], []),
            ("parquet", [*self.facts.runs], []),
            ("csv", own, ["--sweep", name]),
        ):
            folder = self.folder / f"{kind} {len(options)}"
            self.command_output("export", str(folder), "--format", kind, *options)
            self._exported(folder, run_ids)

    def _exported(self, folder: Path, run_ids: list[int]) -> None:
        tables = {path.stem: _read(path) for path in folder.iterdir()}
        runs = {run_id: self.true_run(run_id) for run_id in run_ids}
        for row in runs.values():
            row["sweeps"] = ", ".join(row["sweeps"])
        cells = {x: {name: _cell(value) for name, value in row.items()} for x, row in runs.items()}
        self.rows(f"{folder.name}: runs", tables["runs"], cells, lambda x: int(x["id"]))
        finished = [x for x in run_ids if self.facts.runs[x]["state"] == "done"]
        lengths = self._lengths(finished)
        self.rows(f"{folder.name}: lengths", tables["lengths"], lengths, _length)
        errors = {
            own: {name: error.get(name) for name in ("run_id", *ERRORS, *OUTPUT_COLUMNS)}
            for own, error in self._errors(finished).items()
        }
        self.rows(f"{folder.name}: errors", tables["errors"], errors, _error)

    # Python.

    def python(self) -> None:
        """Compares lengths and errors from `sweeps.api`."""
        store, finished = open_reader(self.db), done_ids(self.facts)
        rows = api.lengths(store, finished).to_dict("records")
        self.rows("api.lengths", rows, self._lengths(finished), _length)
        self.rows(
            "api.errors", api.errors(store, finished).to_dict("records"), self._errors(), _error
        )

    # Two configurations.

    def comparisons(self) -> None:
        """Compares `compare`."""
        groups = by_configuration(done(self.facts.runs.values()))
        tested = {x: self.facts.test_set_of(x) for x in groups}
        pairs = [
            (a, b)
            for a, b in combinations(sorted(groups), 2)
            if tested[a] == tested[b] or b == a + 2
        ]
        for number, (a, b) in enumerate(self.some(pairs)):
            ids = [str(groups[x][0]["run_id"]) for x in (a, b)]
            judged = THRESHOLDS[number % len(THRESHOLDS)]
            for given, own in (([], THRESHOLDS[0]), (judged_by(judged), judged))[self.short :]:
                shown = json.loads(self.command_output("compare", *ids, "--json", *given))
                self._compared(f"runs {ids} {given}", shown, (groups[a], groups[b]), own)

    def _compared(
        self,
        what: str,
        shown: Row,
        groups: tuple[list[Row], list[Row]],
        judged: tuple[float, float],
    ) -> None:
        paired = shown["pairing"].startswith("Seeds are paired")
        true = self.facts.comparison(*groups, paired=paired, learned_at=judged[0])
        self.value(f"{what}: runs", shown["runs"], true["runs"])
        for name, own in shown["questions"].items():
            subject = f"{what}: {name}"
            sides = self.facts.question(name, *groups, *judged)
            seeds = set(sides[0]) & set(sides[1]) if own["paired"] else None
            compared = [
                [y for x, y in side.items() if seeds is None or x in seeds] for side in sides
            ]
            self.value(f"{subject}: seeds", own["seeds"], [len(x) for x in compared])
            means = [float(np.mean(x)) if x else None for x in compared]
            for value, mean in zip(own["values"], means, strict=True):
                self.value(f"{subject}: value", value, mean)
            if means[0] is not None and means[1] is not None:
                apart = means[0] - means[1]
                self.value(f"{subject}: difference", own["interval"]["value"], apart)
            if name in ("learned", "generalizes", "fails"):
                counts = [[int(sum(side.values())), len(side)] for side in sides]
                self.value(f"{subject}: counts", own["counts"], counts)
        self.rows(f"{what}: lengths", shown["lengths"], true["lengths"], lambda x: x["length"])
        assert (shown["strings"] is None) == (true["strings"] is None), what
        if true["strings"] is not None:
            self.rows(f"{what}: strings", shown["strings"], true["strings"], _string)


def judged_by(judged: tuple[float, float]) -> list[str]:
    """The options of both thresholds."""
    return ["--learned-at", str(judged[0]), "--below", str(judged[1])]


def done_ids(facts: Facts) -> list[int]:
    """The finished runs."""
    return [run["run_id"] for run in done(facts.runs.values())]


def _string(row: Mapping[Any, Any]) -> str:
    return str(row["string"] or "")


def _error(row: Mapping[Any, Any]) -> tuple[int, str]:
    return int(row["run_id"]), _string(row)


def _length(row: Mapping[Any, Any]) -> tuple[int, int]:
    return int(row["run_id"]), int(row["length"])


def _cell(value: Any) -> Any:
    """A value as files hold it: lists are JSON."""
    return json.dumps(value) if isinstance(value, list | dict) else value


def _read(path: Path) -> list[Row]:
    """The rows of a file; an empty cell of CSV is missing."""
    if path.suffix == ".parquet":
        return list(pq.read_table(path).to_pylist())
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file)
        return [{n: InFile(x) if x else None for n, x in row.items()} for row in rows]
