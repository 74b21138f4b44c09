"""Facts of a database by SQL, SciPy and NumPy alone.

Only the training rows of files are read by the program.
"""

import json
import math
import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import closing
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from seqcls.config import RunConfig
from seqcls.problem import resolve
from sweeps.store.opening import open_reader

Row = dict[str, Any]

CONFIDENCE = 0.95

OUTPUTS = ("right_length_given", "edits", "target_tokens")
CELLS = ("tn", "fp", "fn", "tp")
UNPROVED = {"every_length": None, "refuted_by": None}
RANGES = ("tested_within", "wrong_within", "within_from", "tested_beyond", "wrong_beyond")


class Facts:
    """Counts of runs, strings and lengths of a database, by SQL alone.

    Args:
        db: the file of SQLite, or the URL of a PostgreSQL database.
    """

    def __init__(self, db: Path | str) -> None:
        self._db = str(db)

    def ask(self, sql: str, *given: Any) -> list[Row]:
        """The rows of a query, by their columns."""
        if "://" not in self._db:
            with closing(sqlite3.connect(self._db)) as connection:
                connection.row_factory = sqlite3.Row
                return [dict(row) for row in connection.execute(sql, given)]
        psycopg = pytest.importorskip("psycopg")
        with psycopg.connect(self._db, row_factory=psycopg.rows.dict_row) as connection:
            rows = connection.execute(sql.replace("?", "%s"), given).fetchall()
        # Sums of large whole numbers are decimal ones there.
        return [
            {name: int(x) if isinstance(x, Decimal) else x for name, x in row.items()}
            for row in rows
        ]

    @cached_property
    def runs(self) -> dict[int, Row]:
        """Every run: its state, and its counts summed up from those of its lengths and strings."""
        runs = {
            row["run_id"]: row
            for row in self.ask(
                "SELECT run.id AS run_id, config_id, model_seed, state, solved_length AS stored,"
                " sum(score.tested) AS tested, sum(score.wrong) AS wrong, sum(score.tn) AS tn,"
                " sum(score.fp) AS fp, sum(score.fn) AS fn, sum(score.tp) AS tp"
                " FROM run LEFT JOIN length_score AS score ON score.run_id = run.id"
                " GROUP BY run.id ORDER BY run.id"
            )
        }
        for row in self.ask(
            "SELECT run_id, count(*) AS strings, sum(occurrences) AS occurring,"
            " min(length) AS shortest FROM misclassified GROUP BY run_id"
        ):
            runs[row["run_id"]].update(row)
        for run in runs.values():
            run |= {"errors": run["wrong"], "false_positives": run["fp"]}
            run |= {"false_negatives": run["fn"], "accuracy": None, "solved_length": None}
            run["is_solved"] = False
            run |= self.on_lengths(run)
            run |= self.proofs.get(run["run_id"], UNPROVED)
            if run["state"] == "done":
                run["accuracy"] = (run["tested"] - run["wrong"]) / run["tested"]
                run["solved_length"] = run.get("shortest", run["stored"] + 1) - 1
                tested = min(self.lengths[run["run_id"]])
                run["is_solved"] = run["solved_length"] >= tested
        return runs

    def on_lengths(self, run: Row) -> Row:
        """Counts and accuracy of a run on strings of trained lengths, and on longer ones.

        Counted from the lengths of its test; those of validation are read as stored, where the test
        has fewer than 100.
        """
        nothing = dict.fromkeys((*RANGES, "accuracy_within", "accuracy_beyond"))
        stored = self.stored_runs[run["run_id"]]
        if run["state"] != "done" or (ends := self.trained(run["config_id"])) is None:
            return nothing
        if self.configs[run["config_id"]].get("dataset"):
            # Rows of files are packed, so SQL cannot read their lengths.
            counts = {name: stored[name] for name in RANGES}
            return nothing | counts | _shares(counts)
        within = self.between(run["run_id"], *ends)
        beyond = self.between(run["run_id"], ends[1] + 1, 10**9)
        counts = {"tested_within": within["tested"], "wrong_within": within["wrong"]}
        counts["within_from"] = "test"
        if within["tested"] < 100:
            if stored["within_from"] is None:
                return nothing
            if stored["within_from"] == "validation" and stored["tested_within"] > within["tested"]:
                counts = {name: stored[name] for name in counts}
        counts |= {"tested_beyond": beyond["tested"], "wrong_beyond": beyond["wrong"]}
        return counts | _shares(counts)

    def trained(self, config_id: int) -> tuple[int, int] | None:
        """The shortest and the longest string that training may draw; None where nobody knows."""
        fields = self.configs[config_id]
        if fields.get("imported"):
            # What was trained elsewhere.
            return None
        if fields.get("dataset"):
            # Its rows are packed, and drawn; the open database is where they are found.
            open_reader(self._db)
            lengths = resolve(RunConfig.from_mapping(fields)).trained_lengths
            return lengths[0], lengths[-1]
        if fields["train_sampler"] == "fixed_length":
            # `CLS` is counted.
            return fields["sequence_length"] - 1, fields["sequence_length"] - 1
        first = fields["train_min_length"]
        if fields["train_sampler"] == "variable_length":
            first = 1
        return first, fields["train_max_length"]

    @cached_property
    def proofs(self) -> dict[int, Row]:
        """Results of proofs by the automata of languages, by run id."""
        sql = "SELECT run_id, result, string FROM proof WHERE of_language = 1"
        return {
            row["run_id"]: {"every_length": row["result"], "refuted_by": row["string"]}
            for row in self.ask(sql)
        }

    @cached_property
    def stored_runs(self) -> dict[int, Row]:
        """The rows of the table of runs, by their ids."""
        return {row["id"]: row for row in self.ask("SELECT * FROM run ORDER BY id")}

    @cached_property
    def sweeps(self) -> dict[str, list[Row]]:
        """The runs of every sweep, by its name."""
        sweeps: dict[str, list[Row]] = {}
        for row in self.ask(
            "SELECT name, run_id FROM sweep JOIN sweep_run ON sweep_id = sweep.id ORDER BY run_id"
        ):
            sweeps.setdefault(row["name"], []).append(self.runs[row["run_id"]])
        return sweeps

    @cached_property
    def sweeps_of(self) -> dict[int, list[str]]:
        """The names of every run's sweeps, in the order of their making."""
        found: dict[int, list[str]] = {run_id: [] for run_id in self.runs}
        for row in self.ask(
            "SELECT name, run_id FROM sweep JOIN sweep_run ON sweep_id = sweep.id ORDER BY sweep.id"
        ):
            found[row["run_id"]].append(row["name"])
        return found

    @cached_property
    def archived(self) -> set[str]:
        """The names of the sweeps that are archived."""
        sql = "SELECT name FROM sweep WHERE archived_at IS NOT NULL"
        return {row["name"] for row in self.ask(sql)}

    @cached_property
    def configs(self) -> dict[int, Row]:
        """The fields of every configuration that are not their defaults, and a model's settings."""
        configs = {row["id"]: json.loads(row["json"]) for row in self.ask("SELECT * FROM config")}
        for fields in configs.values():
            if text := fields.get("imported"):
                settings = json.loads(text)
                fields.update({f"config.{name}": x for name, x in settings["config"].items()})
                fields["config.model"] = settings["model"]
        return configs

    @cached_property
    def lengths(self) -> dict[int, dict[int, Row]]:
        """The counts of every run at every length."""
        lengths: dict[int, dict[int, Row]] = {}
        for row in self.ask("SELECT * FROM length_score ORDER BY run_id, length"):
            lengths.setdefault(row["run_id"], {})[row["length"]] = row
        return lengths

    def between(self, run_id: int, first: int, last: int) -> Row:
        """Sums of the counts of a run from one length to another; None if one is missing."""
        found = [row for at, row in self.lengths[run_id].items() if first <= at <= last]
        return {
            name: None if any(row[name] is None for row in found) else sum(x[name] for x in found)
            for name in ("tested", "wrong", *CELLS, *OUTPUTS)
        }

    def wrong_strings(self, run_id: int) -> dict[str, int]:
        """The test strings that a run gets wrong, with how often each occurs."""
        sql = "SELECT string, occurrences FROM misclassified WHERE run_id = ? ORDER BY length"
        return {row["string"]: row["occurrences"] for row in self.ask(sql, run_id)}

    def test_strings(self, run_id: int) -> dict[str, int]:
        """The strings that a run was tested on, with their lengths."""
        sql = (
            "SELECT string, said.length FROM test_string AS said"
            " JOIN config ON config.test_set_id = said.test_set_id"
            " JOIN run ON run.config_id = config.id WHERE run.id = ? ORDER BY said.length, number"
        )
        return {row["string"]: row["length"] for row in self.ask(sql, run_id)}

    @cached_property
    def test_sets(self) -> dict[int, dict[int, Row]]:
        """The strings of every configuration's test set, by their numbers."""
        sets: dict[int, dict[int, Row]] = {}
        for row in self.ask("SELECT * FROM test_string ORDER BY test_set_id, number"):
            sets.setdefault(row["test_set_id"], {})[row["number"]] = row
        rows = self.ask("SELECT id, test_set_id FROM config")
        return {row["id"]: sets.get(row["test_set_id"], {}) for row in rows}

    @cached_property
    def errors(self) -> dict[int, dict[str, Row]]:
        """All strings that every run gets wrong, read from the run's JSON."""
        found: dict[int, dict[str, Row]] = {run_id: {} for run_id in self.runs}
        for row in self.ask("SELECT id, errors FROM run WHERE errors IS NOT NULL"):
            strings = self.test_sets[self.runs[row["id"]]["config_id"]]
            for number, logit, *output in json.loads(row["errors"]):
                tested = strings[number]
                logit = float("nan") if logit is None else logit
                error = {**tested, "run_id": row["id"], "logit": logit}
                if output:
                    error |= dict(zip(("output", "first_wrong", "error_kind"), output, strict=True))
                    error["log_probability"] = logit
                found[row["id"]][tested["string"]] = error
        return found

    def scope(
        self, sweeps: Iterable[str] = (), seeds: Iterable[int] = (), *, archived: bool = False
    ) -> list[Row]:
        """The runs of a selection, by their ids; archived sweeps only where they are named."""
        named, seeds = set(sweeps), set(seeds)
        hidden = set() if archived or named else self.archived
        chosen = []
        for run_id, run in self.runs.items():
            own = set(self.sweeps_of[run_id])
            if named and not own & named:
                continue
            if own and own <= hidden:
                continue
            if seeds and run["model_seed"] not in seeds:
                continue
            chosen.append(run)
        return chosen

    def with_kinds(self, run_id: int) -> dict[str, Row]:
        """The strings that a run gets wrong, with the kind of each error."""
        found = {}
        for string, error in self.errors[run_id].items():
            kind = {0: "false positive", 1: "false negative", None: "wrong"}[error["label"]]
            kind = "no answer" if self.is_unanswered(run_id, error) else kind
            found[string] = {**error, "kind": error.get("error_kind", kind)}
            found[string].pop("run_id")
        return found

    def is_unanswered(self, run_id: int, error: Row) -> bool:
        """True if the model computed NaN; imported answers need no logit."""
        fields = self.configs[self.runs[run_id]["config_id"]]
        logit = error["logit"]
        return not fields.get("imported") and (logit is None or math.isnan(logit))

    def test_set_of(self, config_id: int) -> int:
        """The number of the strings that a configuration is tested on."""
        sql = "SELECT test_set_id FROM config WHERE id = ?"
        return int(self.ask(sql, config_id)[0]["test_set_id"])

    def comparison(
        self, a: list[Row], b: list[Row], *, paired: bool, learned_at: float = 0.99
    ) -> Row:
        """Differences between finished runs of two configurations, the first less the second.

        Args:
            a: the runs of the first.
            b: those of the second.
            paired: whether the same seed makes a pair.
            learned_at: accuracy from which a run has learned; longer strings count of no other.
        """
        sides = [{run["model_seed"]: run for run in runs} for runs in (a, b)]
        same_strings = self.test_set_of(a[0]["config_id"]) == self.test_set_of(b[0]["config_id"])
        return {
            "runs": [len(a), len(b)],
            "lengths": self._length_differences(sides, learned_at, paired=paired),
            "strings": self._string_differences(a, b) if same_strings else None,
        }

    def question(
        self, name: str, a: list[Row], b: list[Row], learned_at: float = 0.99, below: float = 1.0
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Values of a question by seed, for two configurations, of seeds that have one."""
        sides = []
        for runs in self._on_the_same_longer(a, b):
            seeds = {run["model_seed"]: run for run in runs}
            came_to = {x: outcome(run, learned_at, below) for x, run in seeds.items()}
            values: dict[int, float | None] = {}
            for x, run in seeds.items():
                if name == "learned":
                    values[x] = float(came_to[x] != "not learned") if is_judged(run) else None
                elif name == "generalizes":
                    known = came_to[x] in (*GENERALIZING, "fails beyond")
                    values[x] = float(came_to[x] in GENERALIZING) if known else None
                elif name == "fails":
                    values[x] = float(fails(run, below))
                elif name == "beyond":
                    known = came_to[x] in (*GENERALIZING, "fails beyond")
                    values[x] = run["accuracy_beyond"] if known else None
                else:
                    values[x] = run["accuracy" if name == "accuracy" else f"accuracy_{name}"]
            sides.append({x: y for x, y in values.items() if y is not None})
        return sides[0], sides[1]

    def _on_the_same_longer(self, a: list[Row], b: list[Row]) -> list[list[Row]]:
        """Both with their accuracy on strings longer than either was trained on, where that is
        other than their own.
        """
        ends = [
            (self.trained(x[0]["config_id"]), max(self.lengths[x[0]["run_id"]])) for x in (a, b)
        ]
        known = [(trained[1], tested) for trained, tested in ends if trained is not None]
        if len(set(known)) < 2:
            return [a, b]
        first, last = max(x for x, _ in known) + 1, min(tested for _, tested in known)
        sides = []
        for side, (trained, _) in zip((a, b), ends, strict=True):
            counts = [self.between(run["run_id"], first, last) for run in side]
            shares = [1 - x["wrong"] / x["tested"] if x["tested"] else None for x in counts]
            judged = [
                {**run, "accuracy_beyond": share} if run["accuracy_within"] is not None else run
                for run, share in zip(side, shares, strict=True)
            ]
            sides.append(side if trained is None else judged)
        return sides

    def _length_differences(
        self, sides: list[dict[int, Row]], learned_at: float, *, paired: bool
    ) -> dict[int, Row]:
        found: dict[int, list[dict[int, float]]] = {}
        for index, side in enumerate(sides):
            for seed, run in side.items():
                ends = self.trained(run["config_id"])
                for length, counts in self.lengths[run["run_id"]].items():
                    is_longer = ends is not None and length > ends[1]
                    if is_longer and outcome(run, learned_at) == "not learned":
                        continue
                    if counts["tested"]:
                        own = found.setdefault(length, [{}, {}])[index]
                        own[seed] = 1 - counts["wrong"] / counts["tested"]
        rows = {}
        for length, (first, second) in found.items():
            if paired:
                seeds = set(first) & set(second)
                first, second = ({x: y[x] for x in seeds} for y in (first, second))
            if not first or not second:
                continue
            a, b = np.array([*first.values()]), np.array([*second.values()])
            low, high = (student(list(a - b)) if paired else welch(a, b)) or (None, None)
            rows[length] = {
                "seeds": min(len(a), len(b)),
                "accuracy_a": float(a.mean()), "accuracy_b": float(b.mean()),
                "difference": float(a.mean() - b.mean()), "low": low, "high": high,
            }  # fmt: skip
        return rows

    def _string_differences(self, a: list[Row], b: list[Row]) -> dict[str, Row]:
        counts = [
            Counter(string for run in side for string in self.errors[run["run_id"]])
            for side in (a, b)
        ]
        # Strings beyond the positions of one were tested on the other alone.
        readable = [set(self.lengths[side[0]["run_id"]]) for side in (a, b)]
        known = {
            x["string"]: x for x in self.test_sets[a[0]["config_id"]].values()
            if x["length"] in readable[0] & readable[1]
        }  # fmt: skip
        return {
            string: {
                "string": string, "length": known[string]["length"],
                "label": known[string]["label"], "wrong_a": counts[0][string],
                "wrong_b": counts[1][string],
            }
            for string in {*counts[0], *counts[1]} & set(known)
            if counts[0][string] != counts[1][string]
        }  # fmt: skip


def done(runs: Iterable[Row]) -> list[Row]:
    """Those of these runs that are finished."""
    return [run for run in runs if run["state"] == "done"]


def fails(run: Row, below: float = 1.0) -> bool:
    """True if a run's accuracy is below a threshold."""
    return bool(run["state"] == "done" and run["accuracy"] < below)


def _shares(counts: Row) -> Row:
    """The accuracy on trained and on longer lengths; None where there is no string."""
    return {
        f"accuracy_{part}": (n - counts[f"wrong_{part}"]) / n if n else None
        for part in ("within", "beyond")
        for n in [counts[f"tested_{part}"]]
    }


AT_EVERY_LENGTH = "at every length"
OUTCOMES = ("generalizes", "fails beyond", "not learned", AT_EVERY_LENGTH, "not known")
GENERALIZING = (AT_EVERY_LENGTH, "generalizes")


def outcome(run: Row, learned_at: float = 0.99, below: float = 1.0) -> str | None:
    """The outcome of a run; None where it is not tested."""
    if run["state"] != "done":
        return None
    if run["every_length"] == "proved":
        return AT_EVERY_LENGTH
    within, beyond = run["accuracy_within"], run["accuracy_beyond"]
    if within is None:
        return "not known"
    if within < learned_at:
        return "not learned"
    if beyond is None:
        return "not known"
    return "fails beyond" if beyond < below else "generalizes"


def is_among(run: Row, requested: str, learned_at: float = 0.99, below: float = 1.0) -> bool:
    """True if a run has an outcome; one that is right at every length generalizes, too."""
    came_to = outcome(run, learned_at, below)
    return came_to == requested or (requested == "generalizes" and came_to == AT_EVERY_LENGTH)


def is_judged(run: Row) -> bool:
    """True if it is known if a run learned: it was tested on trained lengths, or is proved."""
    return run["accuracy_within"] is not None or run["every_length"] == "proved"


def by_configuration(runs: Iterable[Row]) -> dict[int, list[Row]]:
    """Runs by the ids of their configurations."""
    found: dict[int, list[Row]] = {}
    for run in runs:
        found.setdefault(run["config_id"], []).append(run)
    return found


def configuration(runs: Sequence[Row], below: float = 1.0, learned_at: float = 0.99) -> Row:
    """Numbers of runs of a configuration that are judged, learned and generalize."""
    finished = done(runs)
    came_to = Counter(outcome(run, learned_at, below) for run in finished)
    judged = sum(map(is_judged, finished))
    generalize = sum(came_to[name] for name in GENERALIZING)
    return {
        "seeds": len(finished),
        "judged": judged,
        "learned": judged - came_to["not learned"],
        "judged_beyond": generalize + came_to["fails beyond"],
        "generalize": generalize,
    }


Ends = tuple[float, float]


def student(differences: Sequence[float]) -> Ends | None:
    """The t interval of a mean difference of shares, within -1 and 1."""
    if len(differences) < 3:
        return None
    mean, error = float(np.mean(differences)), float(stats.sem(differences))
    low, high = (mean, mean)
    if error > 0:
        low, high = stats.t.interval(CONFIDENCE, len(differences) - 1, loc=mean, scale=error)
    return max(-1.0, float(low)), min(1.0, float(high))


def welch(a: np.ndarray, b: np.ndarray) -> Ends | None:
    """Welch's interval of the difference of two mean shares, within -1 and 1."""
    if min(len(a), len(b)) < 3:
        return None
    low = high = float(a.mean() - b.mean())
    parts = [float(x.var(ddof=1)) / len(x) for x in (a, b)]
    if sum(parts) > 0:
        weights = [x**2 / (len(y) - 1) for x, y in zip(parts, (a, b), strict=True)]
        freedom, error = sum(parts) ** 2 / sum(weights), math.sqrt(sum(parts))
        low, high = stats.t.interval(CONFIDENCE, freedom, loc=low, scale=error)
    return max(-1.0, float(low)), min(1.0, float(high))
