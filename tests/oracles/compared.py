"""Comparison of shown, printed or written numbers with those of SQL."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from seqcls.interpretability.wording import EMPTY
from tests.oracles.facts import Facts, configuration, done, outcome

COUNTS = {"tested", "wrong", "tn", "fp", "fn", "tp"}
RUN_COLUMNS = {
    *COUNTS, "errors", "accuracy", "solved_length", "false_positives", "false_negatives",
}  # fmt: skip
"""Names under which a run's numbers are shown, printed and exported."""
CONFIGURATION_COLUMNS = ("seeds", "judged", "learned", "judged_beyond", "generalize")
"""Names under which a configuration's numbers are shown and printed."""


@dataclass(frozen=True)
class Matrix:
    """The database, and the folder with the files of its kinds."""

    folder: Path

    @property
    def db(self) -> Path:
        return self.folder / "kinds.db"

    @cached_property
    def facts(self) -> Facts:
        """The facts of the database, read once: tests that change it take a copy."""
        return Facts(self.db)

    def facts_of(self, copy: Path) -> Facts:
        """The facts of a copy, which may have changed."""
        beside = copy.with_name(f"{copy.name}-wal")
        is_changed = beside.exists() and beside.stat().st_size > 0
        if is_changed or copy.read_bytes() != self.db.read_bytes():
            return Facts(copy)
        return self.facts


@dataclass
class Compared:
    """Compares shown numbers with those of SQL."""

    facts: Facts
    sweep: str
    run_id: int | None = None
    """The run of rows that do not name it."""
    number: int = 0
    """Number of compared values."""
    seed: int | None = None
    """The only seed of which the numbers are."""
    below: float = 1.0
    """The accuracy on longer strings below which a model that has learned fails beyond."""
    learned_at: float = 0.99
    """The accuracy on trained lengths from which on a model has learned."""
    outcome: str | None = None
    """The only outcome of the models that are looked at; None where there is any."""

    def equal(self, what: str, shown: Any, true: Any) -> None:
        """Compares one number with the truth; both or neither may be missing."""
        if is_none(shown):
            shown = None
        elif isinstance(shown, str):
            number = shown.replace(",", "").strip()
            share = number.endswith("%")
            shown = float(number.rstrip("%")) / (100 if share else 1)
        else:
            shown = float(shown)
        if true is not None:
            true = pytest.approx(float(true), abs=6e-5)
        assert shown == true, f"{what} is shown as {shown}, and is {true}"
        self.number += 1

    def rows(self, rows: Iterable[Mapping[Any, Any]], what: str) -> None:
        """Compares rows in the columns that SQL knows."""
        rows = list(rows)
        for row in rows:
            if {"questions", "pairing"} <= set(row):
                self._pair(row, what)
            elif "string" in row and " of " in str(row.get("breaks", row.get("models"))):
                self._breaking(row, what)
            else:
                self._row(row, what)
        self._wrong_strings(rows, what)

    def _row(self, row: Mapping[str, Any], what: str) -> None:
        run_id = self._run_of(row)
        if run_id is None:
            if {"config_id", *CONFIGURATION_COLUMNS} <= set(row):
                self._configuration(row, what)
            elif {"sweep", "models"} < set(row) and {"result", "what_came_of_it"} & set(row):
                self._sweep_of_page(row, what)
            elif {"name", "state"} <= set(row):
                self._sweep(row, what)
            elif self.run_id is not None and {"first_length", "strings", "tested"} <= set(row):
                self._errors_of_lengths(self.run_id, row, what)
        elif {"lengths", "right"} <= set(row):
            first, *last = map(int, row["lengths"].split(" to "))
            true = self.facts.between(run_id, first, *(last or [first]))
            share = 1 - true["wrong"] / true["tested"]
            self.equal(f"{what}: run {run_id}, right on {row['lengths']}", row["right"], share)
        elif "length" in row and "string" not in row and "tested" in row:
            true = self.facts.lengths[run_id][int(row["length"])]
            for name in COUNTS & set(row):
                subject = f"{what}: run {run_id}, length {row['length']}, {name}"
                self.equal(subject, row[name], true[name])
        elif {"accuracy", "errors"} & set(row):
            for name in RUN_COLUMNS & set(row):
                run = self._true(run_id)
                if name == "solved_length" and not run["is_solved"] and is_none(row[name]):
                    continue
                self.equal(f"{what}: run {run_id}, {name}", row[name], run[name])

    def _run_of(self, row: Mapping[str, Any]) -> int | None:
        for name in ("run_id", "run") + (("id",) if "model_seed" in row else ()):
            if str(found := row.get(name)).isdigit() and int(str(found)) in self.facts.runs:
                return int(str(found))
        return None

    def _runs(self, sweep: str) -> list[dict[str, Any]]:
        runs = self.facts.sweeps[sweep]
        return [run for run in runs if self.seed is None or run["model_seed"] == self.seed]

    def _true(self, run_id: int) -> dict[str, Any]:
        return self.facts.runs[run_id]

    def _configuration(self, row: Mapping[str, Any], what: str) -> None:
        runs = [run for run in self._runs(self.sweep) if run["config_id"] == row["config_id"]]
        true = configuration(runs, self.below, self.learned_at)
        for name in CONFIGURATION_COLUMNS:
            self.equal(f"{what}: configuration {row['config_id']}, {name}", row[name], true[name])

    def _errors_of_lengths(self, run_id: int, row: Mapping[str, Any], what: str) -> None:
        """Errors of one kind in a span of lengths: of a language, among strings of one label."""
        first, last = int(row["first_length"]), int(row["last_length"])
        counts = self.facts.between(run_id, first, last)
        cells_of = {"false positive": ("fp", "tn"), "false negative": ("fn", "tp")}
        cells = cells_of.get(row.get("kind", ""), ())
        tested = sum(counts[name] for name in cells or ("tested",))
        self.equal(f"{what}: tested from {first} to {last}", row["tested"], tested)
        if cells:
            self.equal(f"{what}: {row['kind']}s", row["strings"], counts[cells[0]])

    def _pair(self, row: Mapping[str, Any], what: str) -> None:
        """The first and the last configuration of the sweep, compared."""
        runs = self.facts.sweeps[self.sweep]
        ends = [runs[0]["config_id"], runs[-1]["config_id"]]
        both = [done(run for run in runs if run["config_id"] == end) for end in ends]
        for index, own in enumerate(both):
            self.equal(f"{what}: runs", row["runs"][index], len(own))
        for name, found in row["questions"].items():
            sides = self.facts.question(name, both[0], both[1])
            if found["paired"]:
                seeds = set(sides[0]) & set(sides[1])
                sides = ({x: sides[0][x] for x in seeds}, {x: sides[1][x] for x in seeds})
            for value, side in zip(found["values"], sides, strict=True):
                true = sum(side.values()) / len(side) if side else None
                self.equal(f"{what}: {name}", value, true)
        wrong = [[self.facts.wrong_strings(run["run_id"]) for run in own] for own in both]
        for found in row["strings"]:
            for name, own in zip(("wrong_a", "wrong_b"), wrong, strict=True):
                models = sum(found["string"] in strings for strings in own)
                self.equal(f"{what}: {name} of {found['string']!r}", found[name], models)

    def _breaking(self, row: Mapping[str, Any], what: str) -> None:
        """Compares how many failing models get a string wrong, of those tested on it."""
        shown = row.get("breaks", row.get("models"))
        failing = [run["run_id"] for run in done(self._runs(self.sweep)) if self._fails(run)]
        readers = (self.facts.wrong_strings, self.facts.test_strings)
        for number, strings in zip(str(shown).split(" of "), readers, strict=True):
            own = [{*strings(run_id)} for run_id in failing]
            # One word alone, as `NP{2}`, does not show that its letters are no tokens.
            named = any(" " in x for x in set[str]().union(*own))
            string = spelled_out(row["string"], named=named)
            true = sum(string in {spelled_out(x, named=named) for x in spelled} for spelled in own)
            self.equal(f"{what}: models with {string!r}", number, true)

    def has_outcome(self, run: Mapping[str, Any]) -> bool:
        """True if the run is one of the models that are looked at, whatever its seed."""
        return self.outcome in (None, outcome(dict(run), self.learned_at, self.below))

    def _fails(self, run: Mapping[str, Any]) -> bool:
        came_to = outcome(dict(run), self.learned_at, self.below)
        errs = came_to == "not known" and run["wrong"] > 0
        return self.has_outcome(run) and (came_to in ("not learned", "fails beyond") or errs)

    def headline(self, text: str, what: str) -> None:
        """Compares the number of models that learned in a sentence."""
        for numbers in re.findall(r"(\d+) of (\d+) models learned", text):
            true = configuration(self._runs(self.sweep), self.below, self.learned_at)
            for name, number in zip(("learned", "judged"), numbers, strict=True):
                self.equal(f"{what}: models {name}", number, true[name])

    def _sweep(self, row: Mapping[str, Any], what: str) -> None:
        runs = self._runs(row["name"])
        subject = f"{what}: sweep {row['name']}, "
        if "failed" in row:
            failed = sum(run["state"] == "failed" for run in runs)
            self.equal(subject + "failed", row["failed"], failed)
        if "done" in row:
            self.equal(subject + "done", row["done"], len(done(runs)))

    def _sweep_of_page(self, row: Mapping[str, Any], what: str) -> None:
        runs = self.facts.sweeps[row["sweep"]]
        self.equal(f"{what}: models of {row['sweep']}", row["models"], len(runs))
        result = row["result"] if "result" in row else row["what_came_of_it"]
        if numbers := re.search(r"(\d+) of (\d+) learned", result):
            true = configuration(runs)
            self.equal(f"{what}: {row['sweep']}, learned", numbers[1], true["learned"])
            self.equal(f"{what}: {row['sweep']}, judged", numbers[2], true["judged"])

    def _wrong_strings(self, rows: list[Mapping[str, Any]], what: str) -> None:
        """All strings that runs get wrong, each with how often it occurs."""
        found: dict[int, list[Mapping[str, Any]]] = {}
        for row in rows:
            run_id = self._run_of(row) or self.run_id
            if run_id is not None and {"string", "occurrences"} <= set(row):
                found.setdefault(run_id, []).append(row)
        for run_id, own in found.items():
            shown = {spelled_out(row["string"]): int(row["occurrences"]) for row in own}
            wrong = self.facts.wrong_strings(run_id).items()
            true = {spelled_out(string): times for string, times in wrong}
            assert shown == true, f"{what}: strings of run {run_id}"
            occurring = sum(shown.values())
            self.equal(f"{what}: wrong of run {run_id}", occurring, self._true(run_id)["wrong"])


def is_none(shown: Any) -> bool:
    """True if a value is shown as missing."""
    return bool(pd.isna(shown)) or str(shown).strip() in ("", "none")


def spelled_out(string: str, *, named: bool = False) -> str:
    """A string without repetitions, which pages may write otherwise than they are stored, and
    without spaces between its words.

    Args:
        named: True if its tokens are words; by default if it has spaces.
    """
    written = "" if string in ('""', EMPTY) else string
    token = r"(\S+)" if named or " " in written else "(.)"
    for repeated in (r"<([^<>]*)>", token):
        written = re.sub(repeated + r"\{(\d+)\}", lambda x: x[1] * int(x[2]), written)
    return written.replace(" ", "")


def stored_counts_agree(facts: Facts) -> None:
    """Asserts that every run's row has the sums over its lengths and strings."""
    for row in facts.ask("SELECT * FROM run"):
        run = facts.runs[row["id"]]
        if run["state"] == "done":
            for name in ("tested", "wrong", "tn", "fp", "fn", "tp", "solved_length"):
                assert row[name] == run[name], f"run {row['id']}: {name}"
            assert run.get("occurring", 0) == run["wrong"], f"run {row['id']}: its strings"


def records(found: Any) -> Iterator[Mapping[str, Any]]:
    """Every object within a JSON text."""
    if isinstance(found, dict):
        yield found
    for inner in found.values() if isinstance(found, dict) else found:
        if isinstance(inner, dict | list):
            yield from records(inner)
