"""Every value that commands, files and Python give, compared with SQL and SciPy.

What pages show is compared in `tests/pages`.
"""

import csv
import json
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
from tests.oracles.ledger import InFile, Ledger

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


class Comparison:
    """All surfaces of one database.

    Args:
        name: of the database, as the table calls it.
        db: its file, or its URL.
        folder: an empty one, to write into.
        short: whether only a part is looked at.
    """

    def __init__(self, name: str, db: Path | str, folder: Path, *, short: bool = False) -> None:
        self.db, self.folder, self.short = str(db), folder, short
        self.facts = Facts(db)
        self.ledger = Ledger(name)
        self.store = open_reader(self.db)

    def all(self) -> Ledger:
        """Compares every surface on runs and on pairs of configurations."""
        self.sql()
        self.commands()
        self.exports()
        self.python()
        self.comparisons()
        return self.ledger

    def some(self, things: Iterable[Any], most: int = 50) -> list[Any]:
        """Things evenly apart; few of them where only a part is looked at."""
        listed = list(things)
        return listed[:: max(1, -(-len(listed) // (2 if self.short else most)))]

    # What is true.

    def true_run(self, run_id: int, learned_at: float = 0.99, below: float = 1.0) -> Row:
        """A run as commands and files have it."""
        run, stored = self.facts.runs[run_id], self.facts.stored_runs[run_id]
        row = {name: stored[name] for name in RESULTS}
        row |= {
            "id": run_id,
            "model_seed": run["model_seed"],
            "sweeps": self.facts.sweeps_of[run_id],
        }
        row |= {name: run[name] for name in (*COUNTS, "errors", "accuracy", "solved_length")}
        row |= {name: run[name] for name in (*RANGES, "accuracy_within", "accuracy_beyond")}
        row |= {name: run[name] for name in UNPROVED}
        row["outcome"] = outcome(run, learned_at, below)
        fields = self.facts.configs[run["config_id"]]
        if fields["architecture"] == "imported":
            known = {"task", "dataset", "architecture"}
            fields = {x: y for x, y in fields.items() if x.startswith("config.") or x in known}
        elif fields.get("imported"):
            # Weights that were loaded: their training is not known.
            fields = {x: y for x, y in fields.items() if x.startswith("config.")}
        return {**fields, **row}

    # SQL.

    def sql(self) -> None:
        """Compares documented views and sums with the stored errors and lengths."""
        facts, ledger = self.facts, self.ledger
        for view, names in (
            ("misclassified", (*ERRORS, "target")),
            ("wrong_output", ("string", "length", *OUTPUT_COLUMNS, "occurrences")),
        ):
            shown: dict[int, list[Row]] = {}
            for row in facts.ask(f"SELECT * FROM {view}"):
                shown.setdefault(row["run_id"], []).append(row)
            for run_id in done_ids(facts):
                errors = facts.errors[run_id].items()
                true = {
                    string: {name: error.get(name) for name in names}
                    for string, error in errors
                    if view == "misclassified" or "output" in error
                }
                rows = shown.get(run_id, [])
                ledger.rows("SQL views", f"{view} of run {run_id}", rows, true, _string)
        for run_id, run in facts.runs.items():
            if run["state"] == "done":
                stored = facts.stored_runs[run_id]
                true = {name: run[name] for name in (*COUNTS, "solved_length")}
                ledger.row("SQL views", f"run {run_id}", stored, true)
                wrong = sum(x["occurrences"] for x in facts.errors[run_id].values())
                ledger.value("SQL views", f"errors of run {run_id}", wrong, run["wrong"])

    # Commands.

    def command_output(self, *arguments: str) -> str:
        """The standard output of a command, whose exit status is compared too."""
        completed = run_main(*arguments, "--db", self.db)
        # The exit status of `status` reports failed runs.
        failed = any(run["state"] == "failed" for run in self.facts.runs.values())
        status = int(arguments[0] == "status" and failed)
        self.ledger.value("exit status", " ".join(arguments), completed.returncode, status)
        return completed.stdout

    def commands(self) -> None:
        """`runs`, `errors` and `status`."""
        for options, chosen, judged in self._selections():
            rows = json.loads(self.command_output("runs", "--json", *options))
            true = {run_id: self.true_run(run_id, *judged) for run_id in chosen}
            self.ledger.rows("runs --json", f"runs {options}", rows, true, lambda x: x["id"])
        for run_id in self.some(done_ids(self.facts), 100):
            true_strings = self.facts.with_kinds(run_id)
            for sort in ("length", "string", "logit", "occurrences"):
                if sort != "length" and (self.short or run_id % 5):
                    continue
                rows = json.loads(
                    self.command_output("errors", str(run_id), "--json", "--sort", sort)
                )
                what = f"errors of run {run_id} by {sort}"
                self.ledger.rows("errors --json", what, rows, true_strings, _string)
                keys = [row[sort] for row in rows if not is_none(row[sort])]
                self.ledger.value("errors --json", f"{what}: order", keys, sorted(keys))
        rows = json.loads(self.command_output("status", "--json"))
        true_sweeps = {}
        for row in self.facts.ask("SELECT * FROM sweep_state"):
            runs = self.facts.sweeps.get(row["name"], [])
            states = Counter(run["state"] for run in runs)
            counts = {state: states[state] for state in ("queued", "done", "failed")}
            true_sweeps[row["name"]] = {"state": row["state"], **counts}
        self.ledger.rows("status --json", "status", rows, true_sweeps, lambda x: x["name"])

    def _selections(self) -> Iterator[tuple[list[str], list[int], tuple[float, float]]]:
        """Options of `runs`, the runs that they select, and both thresholds."""
        runs = self.facts.runs
        failing = [x for x, run in runs.items() if fails(run)]
        seed = min(run["model_seed"] for run in runs.values())
        yield [], list(runs), THRESHOLDS[0]
        yield ["--failing"], failing, THRESHOLDS[0]
        yield (
            ["--seed", str(seed), "--failing"],
            [x for x in failing if runs[x]["model_seed"] == seed],
            THRESHOLDS[0],
        )
        for name in self.some(self.facts.sweeps):
            own = [run["run_id"] for run in self.facts.sweeps[name]]
            yield ["--sweep", name], own, THRESHOLDS[0]
        for judged in THRESHOLDS[1:2] if self.short else THRESHOLDS:
            for came_to in OUTCOMES:
                own = [x for x, run in runs.items() if is_among(run, came_to, *judged)]
                yield ["--outcome", came_to, *judged_by(judged)], own, judged

    # Files.

    def exports(self) -> None:
        """Files of every format, and of one sweep."""
        for kind, surface in (("csv", "export csv"), ("parquet", "export parquet")):
            folder = self.folder / surface
            self.command_output("export", str(folder), "--format", kind)
            self._exported(surface, folder, list(self.facts.runs))
        name = next(iter(self.facts.sweeps))
        own = [run["run_id"] for run in self.facts.sweeps[name]]
        self.command_output("export", str(folder / "one"), "--sweep", name)
        self._exported("export csv", folder / "one", own)

    def _exported(self, surface: str, folder: Path, run_ids: list[int]) -> None:
        facts = self.facts
        tables = {path.stem: _read(path) for path in folder.glob("*.*") if path.is_file()}
        true_runs = {}
        for run_id in run_ids:
            row = self.true_run(run_id)
            row["sweeps"] = ", ".join(row["sweeps"])
            true_runs[run_id] = {name: _cell(value) for name, value in row.items()}
        finished = [x for x in run_ids if facts.runs[x]["state"] == "done"]
        lengths = {(x, at): row for x in finished for at, row in facts.lengths[x].items()}
        errors = {
            (x, string): {name: error.get(name) for name in ("run_id", *ERRORS, *OUTPUT_COLUMNS)}
            for x in finished
            for string, error in facts.errors[x].items()
        }
        true: dict[str, dict[Any, Row]] = {"runs": true_runs, "lengths": lengths, "errors": errors}
        keys: dict[str, Callable[[Mapping[Any, Any]], Any]] = {
            "runs": lambda x: int(x["id"]),
            "lengths": lambda x: (int(x["run_id"]), int(x["length"])),
            "errors": lambda x: (int(x["run_id"]), str(x["string"] or "")),
        }
        for name, known in true.items():
            self.ledger.rows(surface, name, tables[name], known, keys[name])

    # Python.

    def python(self) -> None:
        """Compares lengths and errors from `sweeps.api`."""
        facts, ledger = self.facts, self.ledger
        finished = done_ids(facts)
        rows = api.lengths(self.store, finished).to_dict("records")
        true_lengths = {(x, at): row for x in finished for at, row in facts.lengths[x].items()}
        ledger.rows("api.lengths", "", rows, true_lengths, lambda x: (x["run_id"], x["length"]))
        rows = api.errors(self.store, finished).to_dict("records")
        true_errors = {(x, y): row for x in finished for y, row in facts.errors[x].items()}
        ledger.rows("api.errors", "", rows, true_errors, lambda x: (x["run_id"], x["string"]))

    # Two configurations.

    def comparisons(self) -> None:
        """`compare`, as JSON, as text and from Python."""
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
            for given, own in (([], THRESHOLDS[0]), (judged_by(judged), judged)):
                shown = json.loads(self.command_output("compare", *ids, "--json", *given))
                self._compared(f"runs {ids} {given}", shown, (groups[a], groups[b]), own)

    def _compared(
        self,
        what: str,
        shown: Row,
        groups: tuple[list[Row], list[Row]],
        judged: tuple[float, float],
    ) -> None:
        ledger, surface = self.ledger, "compare --json"
        paired = shown["pairing"].startswith("Seeds are paired")
        true = self.facts.comparison(*groups, paired=paired, learned_at=judged[0])
        ledger.value(surface, f"{what}: runs", shown["runs"], true["runs"])
        for name, own in shown["questions"].items():
            subject = f"{what}: {name}"
            sides = self.facts.question(name, *groups, *judged)
            compared = sides
            if own["paired"]:
                compared = ({x: sides[0][x] for x in sides[1] if x in sides[0]}, sides[1])
                compared = (compared[0], {x: sides[1][x] for x in compared[0]})
            ledger.value(surface, f"{subject}: seeds", own["seeds"], [len(x) for x in compared])
            means = [float(np.mean([*x.values()])) if x else None for x in compared]
            for value, mean in zip(own["values"], means, strict=True):
                ledger.value(surface, f"{subject}: value", value, mean)
            if means[0] is not None and means[1] is not None:
                apart = means[0] - means[1]
                ledger.value(surface, f"{subject}: difference", own["interval"]["value"], apart)
            if name in ("learned", "generalizes", "fails"):
                counts = [[int(sum(side.values())), len(side)] for side in sides]
                ledger.value(surface, f"{subject}: counts", own["counts"], counts)
        ledger.rows(
            surface, f"{what}: lengths", shown["lengths"], true["lengths"], lambda x: x["length"]
        )
        none = [shown["strings"] is None, true["strings"] is None]
        ledger.value(surface, f"{what}: strings compared", none[0], none[1])
        if not any(none):
            ledger.rows(surface, f"{what}: strings", shown["strings"], true["strings"], _string)


def judged_by(judged: tuple[float, float]) -> list[str]:
    """The options of both thresholds."""
    return ["--learned-at", str(judged[0]), "--below", str(judged[1])]


def done_ids(facts: Facts) -> list[int]:
    """The finished runs."""
    return [run["run_id"] for run in done(facts.runs.values())]


def _string(row: Mapping[Any, Any]) -> str:
    return str(row["string"] or "")


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
