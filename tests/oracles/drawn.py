"""The tables of pages and reports, and some of their charts, against what SQL alone says."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from streamlit.testing.v1 import AppTest

from sweeps.api.comparison_text import QUESTIONS
from tests.app import metrics
from tests.oracles import facts as true_of
from tests.oracles.compared import is_none, spelled_out
from tests.oracles.facts import Facts, Row, by_configuration, configuration, done, fails
from tests.oracles.ledger import Ledger, Told, numbers_in, same
from tests.shown import charts_of

ERRORS = (
    "length", "label", "logit", "occurrences", "kind", "first_wrong", "log_probability",
    "error_kind",
)  # fmt: skip
SHOWN_OF_RUNS = (
    "model_seed", "accuracy", "errors", "false_positives", "false_negatives", "config_id",
    "accuracy_within", "accuracy_beyond",
)  # fmt: skip

Rows = Sequence[Mapping[Any, Any]]


@dataclass(frozen=True)
class Chosen:
    """Which runs a surface is about, as its filters say."""

    sweeps: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    failing: bool = False
    kind: str | None = None
    below: float = 1.0
    learned_at: float = 0.99
    outcomes: tuple[str, ...] = ()
    width: int | None = None

    @property
    def query(self) -> dict[str, Any]:
        """The parameters of a link to a page."""
        given: dict[str, Any] = {"sweep": list(self.sweeps), "seed": list(map(str, self.seeds))}
        given |= {"failing": "true"} if self.failing else {}
        given |= {"kind": self.kind} if self.kind else {}
        given |= {"below": f"{100 * self.below:g}"} if self.below < 1 else {}
        given |= {"outcome": list(self.outcomes)} if self.outcomes else {}
        given |= {"learned": f"{100 * self.learned_at:g}"} if self.learned_at != 0.99 else {}
        given |= {"hidden_size": str(self.width)} if self.width else {}
        return {name: value for name, value in given.items() if value}

    @property
    def options(self) -> list[str]:
        """Options of commands, but for the sweeps and the kind of errors."""
        given = [*(f"--seed={x}" for x in self.seeds), *(f"--outcome={x}" for x in self.outcomes)]
        given += ["--failing"] if self.failing else []
        given += [f"--where=hidden_size={self.width}"] if self.width else []
        return [*given, f"--learned-at={self.learned_at}", f"--below={self.below}"]

    def scope(self, facts: Facts) -> list[Row]:
        """The runs that there are at all."""
        runs = facts.scope(self.sweeps, self.seeds)
        if self.width is None:
            return runs
        return [x for x in runs if facts.configs[x["config_id"]]["hidden_size"] == self.width]

    def picks(self, run: Row) -> bool:
        """Whether a run is listed and drawn."""
        if self.failing and not fails(run, self.below):
            return False
        judged = (self.learned_at, self.below)
        if self.outcomes and not any(true_of.is_among(run, x, *judged) for x in self.outcomes):
            return False
        cell = {"false positives": "fp", "false negatives": "fn"}.get(self.kind or "")
        return cell is None or bool(run["state"] == "done" and run[cell] and run[cell] > 0)


class Drawn:
    """The tables and charts of one page, or of one report.

    Args:
        facts: what is true.
        ledger: where it is noted.
        surface: what it is called.
        chosen: its filters.
        pair: the configurations that it compares.
        moved: what settings are held against.
    """

    def __init__(
        self,
        facts: Facts,
        ledger: Ledger,
        surface: str,
        chosen: Chosen,
        *,
        pair: tuple[int, int] | None = None,
        moved: str = "Median accuracy",
    ) -> None:
        self.facts, self.ledger = facts, ledger
        self.surface, self.chosen, self.moved, self.pair = surface, chosen, moved, pair
        self.scope = chosen.scope(self.facts)
        if pair is not None:
            self.scope = [run for run in self.facts.runs.values() if run["config_id"] in pair]
        self.groups = by_configuration(self.scope)
        self.run_id: int | None = None
        self.language: str | None = None
        """What is chosen where the page is about one of several languages."""

    def value(self, what: str, shown: Any, true: Any) -> None:
        where = f"{self.chosen.query or ''} {what}"
        self.ledger.value(self.surface, where, shown, true)

    def row(self, what: str, shown: Mapping[Any, Any], true: Row) -> None:
        """Holds a row against a true one, in the columns that both have."""
        self.ledger.row(self.surface, f"{self.chosen.query or ''} {what}", shown, true)

    def outcome(self, run: Row) -> str:
        return str(true_of.outcome(run, self.chosen.learned_at, self.chosen.below))

    def page(self, app: AppTest, *, tables: bool = True) -> None:
        """All of a page; an error in place of it, or of a part, is a difference."""
        self.value("errors", [str(error.value) for error in app.error], [])
        for heading in app.subheader:
            if named := re.fullmatch(r"Model (\d+)", str(heading.value)):
                self.run_id = int(named[1])
        self.language = next((x.value for x in app.selectbox if x.key == "language"), None)
        if tables:
            for table in app.dataframe:
                self.table(table.value)
            self.glance(metrics(app))
            if self.surface == "page compare":
                for element in app.markdown[:3]:
                    if found := re.match(r"\*\*(.*learned.*)\*\*$", str(element.value)):
                        self.headline(found[1])
        self.charts(charts_of(app))

    # Numbers at a glance.

    def headline(self, said: str) -> None:
        """How many learned, and how many of those generalize."""
        true = configuration(self.scope, self.chosen.below, self.chosen.learned_at)
        numbers = [true["learned"], true["judged"]]
        if true["seeds"] == 1:
            (run,) = done(self.scope)
            came_to = self.outcome(run)
            named = {"not learned": "has not learned", true_of.AT_EVERY_LENGTH: "generalizes"}
            words = named.get(came_to, came_to)
            self.value(f"{said}: {words}", words in said, True)
            return
        if not true["judged"]:
            numbers = [true["seeds"]]
        elif true["judged_beyond"] == true["learned"] > 0:
            numbers += [true["generalize"]]
        elif true["judged_beyond"]:
            numbers += [true["generalize"], true["judged_beyond"]]
        self.value(said, said, Told(numbers))

    def model(self, app: AppTest, run_id: int) -> None:
        """What a model came to, at the head of its page."""
        run = self.facts.runs[run_id]
        came_to = self.outcome(run)
        begins = {
            "generalizes": "Learned and generalizes: ",
            "fails beyond": "Learned, but fails beyond: ",
            "not learned": "Not learned: ",
            "at every length": "Right at every length: it is proved right on every string",
        }.get(came_to, "Learned; whether it" if run["tested_within"] else "Whether it learned")
        texts = [str(element.value).replace("\\", "") for element in app.markdown]
        said = r"(Learned|Not learned|Right at every length|Whether it learned)\b"
        told = [x for x in texts if re.match(said, x)]
        self.value(f"run {run_id}: {told}", [x.startswith(begins) for x in told], [True])
        parts = ["within", "beyond"] if came_to in true_of.OUTCOMES[:3] else []
        for part, after in zip(parts, re.findall(r"right on ([^(;.]*)", told[0]), strict=False):
            of, wrong = run[f"tested_{part}"], run[f"wrong_{part}"]
            numbers = numbers_in(after)[: 2 if wrong else 1]
            true = [of - wrong, of] if wrong else [of]
            if of:
                self.value(
                    f"run {run_id}: {after}", [*map(same, numbers, true)], [True] * len(true)
                )

    def glance(self, shown: dict[str, str]) -> None:
        finished = done(self.scope)
        states = Counter(run["state"] for run in self.scope)
        true: Row = {"Match the filters": sum(map(self.chosen.picks, self.scope))}
        if "Models tested" in shown:
            failing = sum(fails(run, self.chosen.below) for run in finished)
            # Where all are judged on trained and on longer lengths, the headline says it.
            is_said = "not known" in map(self.outcome, finished)
            true |= {
                "Models tested": len(finished),
                "Queued or in training": states["queued"] + states["running"],
                "Training failed": states["failed"],
                "Failing models": Told((failing, failing / len(finished)) if is_said else ()),
            }
            shown = {"Failing models": "", **shown}
        if self.run_id is not None:
            run = self.facts.runs[self.run_id]
            true |= {"Solved length": run["solved_length"] if run["is_solved"] else None}
            true |= {"False positives": run["fp"], "False negatives": run["fn"]}
        self.row(f"at a glance, {self.run_id}", shown, true)

    # Tables.

    def table(self, frame: pd.DataFrame) -> None:
        rows = [{str(n): x for n, x in row.items()} for row in frame.to_dict("records")]
        names = {str(name) for name in frame.columns}
        if "median_accuracy" in names and {"failing_share", "learned_of"} & names:
            self._configurations(rows)
        elif {"accuracy", "errors", "run_id", "outcome"} <= names:
            self._failing_models(rows)
        elif {"string", "models", "of", "share"} <= names:
            self._breaking(rows)
        elif {"string", "wrong_a", "wrong_b"} <= names and self.pair is not None:
            self._of_two(rows)
        elif {"string", "occurrences"} <= names and self.run_id is not None:
            self._strings(rows)
        elif {"name", "models", "median", "done"} <= names:
            self._sweeps(rows)
        elif {"Question", "More than chance?"} <= names and self.pair is not None:
            self._questions(rows)

    def _identified(self, row: Mapping[str, Any], known: Iterable[int]) -> list[int]:
        """The configurations that a row may be, by its sweeps and settings."""
        found = []
        for config_id in known:
            sweeps = {x for y in self.facts.runs.values() if y["config_id"] == config_id
                      for x in self.facts.sweeps_of[y["run_id"]]}  # fmt: skip
            named = row.get("sweeps", row.get("sweep"))
            if named is not None and ", ".join(self.facts.in_order(sweeps)) != named:
                continue
            fields = self._shown(config_id)
            is_ours = fields["architecture"] != "imported"
            read = fields if is_ours else ("task", "architecture")
            settings = [x for x in row if x.startswith("config.") or x in read]
            # What a configuration does not read is missing.
            if all(_alike(row[x], fields.get(x)) for x in settings if row[x] == row[x]):
                found.append(config_id)
        return found

    def _shown(self, config_id: int) -> Row:
        """Fields as pages show them: a file by its name, and of a language's classes, which no
        field says, only those that it was drawn from.
        """
        fields = dict(self.facts.configs[config_id])
        digest = fields.get("dataset", "")
        if fields["task"] != "subregular":
            fields.pop("language_class", None)
        return {**fields, "dataset": self.facts.dataset_names.get(digest, digest)}

    def true_configuration(self, config_id: int) -> Row:
        """What its runs come to, and how that is told."""
        chosen = self.chosen
        true = configuration(self.groups[config_id], chosen.below, chosen.learned_at)
        every = {"proved": "proved", "refuted": "refuted", "undecided": "not decided"}
        listed = true["failing_seeds"]
        if len(listed) > 100:
            listed = [*listed[:100], len(listed) - 100]
        return true | {
            "failing_interval": Told(true["failing_wilson"] or ()),
            "generalizing_interval": Told(true["generalizing_wilson"] or ()),
            "interval": Told(true["bootstrap"] or ()),
            "learned_of": Told((true["learned"], true["judged"]) if true["judged"] else ()),
            "generalize_of": Told(
                (true["generalize"], true["judged_beyond"]) if true["judged_beyond"] else ()
            ),
            "every_length": ", ".join(
                f"{true[name]:,} {words}" for name, words in every.items() if true[name]
            ),
            "failing_seeds": listed,
        }

    def _picked(self) -> list[int]:
        return [x for x, runs in self.groups.items() if any(map(self.chosen.picks, runs))]

    def _configurations(self, rows: list[Row]) -> None:
        left = self._picked()
        self.value("configurations", len(rows), len(left))
        keys = []
        for row in rows:
            found = self._identified(row, left)
            if len(found) != 1:
                self.value(f"a row of {row.get('sweeps')}", len(found), 1)
                continue
            left.remove(found[0])
            true = self.true_configuration(found[0])
            shares = [true[x] for x in ("generalizing_share", "learned_share")]
            key = [2 if share is None else share for share in shares]
            failing = true["failing_share"]
            key += [2, 2] if failing is None else [-failing, true["median_accuracy"]]
            keys.append(key)
            self._configuration(row, true)
        self.value("configurations: the worst first", keys, sorted(keys))

    def _configuration(self, row: Row, true: Row) -> None:
        shown = {"interval": None, **row}
        if "failing_seeds" in row:
            spans = re.findall(r"(\d+)(?:\.\.(\d+))?", row["failing_seeds"] or "")
            shown["failing_seeds"] = [x for a, b in spans for x in range(int(a), int(b or a) + 1)]
        self.row(f"configuration {true['config_id']}", shown, true)

    def configuration_of_report(self, row: Row) -> None:
        """A row of the table of a report."""
        found = self._identified(row, self._picked())
        tested = [x for x in found if done(self.groups[x])]
        if not row["failing"]:
            self.value("untested configuration", bool(found) and len(tested) < len(found), True)
            return
        self.value(f"a row of {row.get('sweep')}", len(tested), 1)
        if len(tested) != 1:
            return
        true = self.true_configuration(tested[0])
        failing, seeds = numbers_in(row["failing"])
        # A column of which nothing is known is left out.
        renamed = {
            "failing": failing, "seeds": seeds, "failing_interval": row["95%_of_failing"],
            "failing_seeds": row["failing_seeds"], "median_accuracy": row["median_accuracy"],
            "learned_of": row["learned"],
            "interval": row.get("95%_of_accuracy", ""),
            "median_solved_length": row.get("solved_length", ""),
            "generalize_of": row.get("generalize,_of_those", ""),
            "generalizing_interval": row.get("95%_of_generalizing", ""),
            "every_length": row.get("every_length", ""),
        }  # fmt: skip
        self._configuration(renamed, true)

    def _failing_models(self, rows: list[Row]) -> None:
        counted = {"false positives": "fp", "false negatives": "fn"}.get(
            self.chosen.kind or "", "wrong"
        )
        failing = [
            x
            for x in done(self.scope)
            if self.chosen.picks(x) and x[counted] and fails(x, self.chosen.below)
        ]
        worst = sorted((run[counted] / run["tested"] for run in failing), reverse=True)[:100]
        shown = [self.facts.runs[int(row["run_id"])] for row in rows]
        shares = [run[counted] / run["tested"] for run in shown]
        self.value("failing models: the worst first", shares, worst)
        known = {run["run_id"] for run in failing}
        for row in rows:
            run_id = int(row["run_id"])
            self.value(f"run {run_id} fails", run_id in known, True)
            self._model(row)

    def _model(self, row: Mapping[Any, Any]) -> None:
        run = self.facts.runs[int(row["run_id"])]
        told = str(row.get("every_length"))
        every = run["every_length"] or ""
        if " by " in told:
            # Tables name the string besides.
            every = f"{every} by {run['refuted_by'] or 'the empty string'}"
        true = {name: run[name] for name in SHOWN_OF_RUNS} | {
            "solved_length": run["solved_length"] if run["is_solved"] else None,
            "outcome": self.outcome(run),
            "every_length": every,
            "failing": int(fails(run, self.chosen.below)),
        }
        self.row(f"run {run['run_id']}", row, true)

    def _strings(self, rows: list[Row]) -> None:
        assert self.run_id is not None
        errors = self.facts.with_kinds(self.run_id)
        label = {"false positives": 0, "false negatives": 1}.get(self.chosen.kind or "")
        errors = {x: y for x, y in errors.items() if label is None or y["label"] == label}
        lengths = sorted(error["length"] for error in errors.values())[:200]
        what = f"strings of run {self.run_id}"
        self.value(f"{what}: the shortest", [row["length"] for row in rows], lengths)
        spelled = {spelled_out(string): error for string, error in errors.items()}
        for row in rows:
            true = spelled.get(spelled_out(row["string"]))
            self.value(f"{what}: {row['string']}", true is not None, True)
            own = {x: y for x, y in (true or {}).items() if x in ERRORS}
            self.row(f"{what}: {row['string']}", row, own)

    def _breaking(self, rows: list[Row]) -> None:
        """The strings that most models misclassify, of the language that is shown."""
        below = self.chosen.below
        failing = [x for x in done(self.scope) if self.chosen.picks(x) and fails(x, below)]
        ids = self._of_language({run["config_id"] for run in failing})
        if ids is None:
            return
        failing = [run for run in failing if run["config_id"] in ids]
        counts: Counter[str] = Counter()
        labels = {}
        for run in failing:
            for string, error in self.facts.errors[run["run_id"]].items():
                counts[string] += 1
                labels[string] = error["label"]
        label = {"false positives": 0, "false negatives": 1}.get(self.chosen.kind or "")
        most = sorted((n for x, n in counts.items() if label in (None, labels[x])), reverse=True)
        self.value("most models", [row["models"] for row in rows], most[:100])
        spelled = {spelled_out(string): string for string in counts}
        sets = {
            x: {said["string"]: said["length"] for said in self.facts.test_sets[x].values()}
            for x in {run["config_id"] for run in failing}
        }
        for row in rows:
            string = spelled.get(spelled_out(row["string"]), "")
            of = sum(
                sets[run["config_id"]].get(string) in self.facts.lengths[run["run_id"]]
                for run in failing
            )
            true = {"models": counts[string], "of": of, "share": counts[string] / of}
            self.row(f"models wrong on {string!r}", row, true)

    def _of_language(self, config_ids: Iterable[int]) -> set[int] | None:
        """Those of the language that is chosen; None where the page alone knows which that is."""
        tasks: dict[str, set[int]] = {}
        for config_id in config_ids:
            fields = self.facts.configs[config_id]
            tasks.setdefault(json.dumps([fields["task"], fields["dataset"]]), set()).add(config_id)
        if len(tasks) == 1 or (self.language or "").startswith("All "):
            return {x for ids in tasks.values() for x in ids}
        # Without a box to choose from, only one has several configurations to be compared.
        found = [ids for ids in tasks.values() if len(ids) > 1]
        if self.language is not None:
            own = [self.language.split(",")[0], ""]
            found = [ids for task, ids in tasks.items() if json.loads(task) == own]
        return found[0] if len(found) == 1 else None

    def _of_two(self, rows: list[Row]) -> None:
        assert self.pair is not None
        a, b = (done(self.groups[x]) for x in self.pair)
        true = self.facts.comparison(a, b, paired=False)["strings"]
        alone = {spelled_out(x): y for x, y in true.items() if not y["wrong_a"] * y["wrong_b"]}
        most = sorted((y["wrong_a"] + y["wrong_b"] for y in alone.values()), reverse=True)[:100]
        self.value("of most models", [row["wrong_a"] + row["wrong_b"] for row in rows], most)
        for row in rows:
            own = dict.fromkeys(("length", "label", "wrong_a", "wrong_b"))
            own |= alone.get(spelled_out(row["string"]), {})
            self.row(row["string"], row, {**own, "string": row["string"]})

    def _questions(self, rows: list[Row]) -> None:
        assert self.pair is not None
        a, b = (done(self.groups[x]) for x in self.pair)
        names = {text.capitalize(): name for name, text in QUESTIONS.items()}
        for row in rows:
            name = names[row["Question"]]
            sides = self.facts.question(name, a, b, self.chosen.learned_at, self.chosen.below)
            shown = [row["First"], row["Second"]]
            paired = row["Seeds"].endswith(("pair", "pairs"))
            seeds = set(sides[0]) & set(sides[1])
            means = [
                float(np.mean([y for x, y in side.items() if x in seeds or not paired]))
                for side in sides
            ]
            self.value(f"{name}: difference", row["Difference"], means[0] - means[1])
            if name in ("learned", "generalizes", "fails"):
                counts = [f"{int(sum(x.values())):,} of {len(x):,}" for x in sides]
                self.value(f"{name}: counts", shown, counts)
                continue
            for text, mean in zip(shown, means, strict=True):
                self.value(f"{name}: mean", text, mean)

    def _sweeps(self, rows: list[Row]) -> None:
        names = {row["name"]: row for row in self.facts.ask("SELECT * FROM sweep_state")}
        true = {}
        picked = {run["run_id"] for run in self.scope if self.chosen.picks(run)}
        filtered = len(picked) < len(self.facts.scope())
        for name in set(names) - self.facts.archived:
            runs = self.facts.sweeps.get(name, [])
            is_picked = any(run["run_id"] in picked for run in runs)
            is_named = not self.chosen.sweeps or name in self.chosen.sweeps
            if filtered and not (is_picked and is_named):
                # Filters hide it.
                continue
            states = Counter(run["state"] for run in runs)
            finished = done(runs)
            true[name] = {
                "state": names[name]["state"], "models": len(runs), "failed": states["failed"],
                "done": len(finished) / max(1, len(runs)),
                "failing": (
                    sum(fails(run, self.chosen.below) for run in finished) / len(finished)
                    if finished
                    else None
                ),
                "median": float(np.median([x["accuracy"] for x in finished])) if finished else None,
            }  # fmt: skip
            if finished:
                thresholds = self.chosen.below, self.chosen.learned_at
                came_to = true_of.configuration(finished, *thresholds)
                true[name]["learned"] = came_to["learned_share"]
                true[name]["generalize"] = came_to["generalizing_share"]
        self.ledger.rows(self.surface, "sweeps", rows, true, lambda x: x["name"])

    # Charts, of which the numbers in cells and of settings are compared, and those of models.

    def charts(self, charts: Sequence[Sequence[pd.DataFrame]]) -> None:
        for frame in (frame for chart in charts for frame in chart):
            names, rows = set(map(str, frame.columns)), frame.to_dict("records")
            if {"run_id", "config_id", "accuracy", "errors"} <= names:
                for row in rows:
                    self._model(row)
            elif {"seeds", "configurations", "failing_share", "cell"} <= names:
                self._cells(rows, [str(name) for name in frame.columns])
            elif {"moves", "at_worst", "at_best"} <= names:
                self._importance(rows)

    def _cells(self, rows: Rows, names: list[str]) -> None:
        grouped = names[: names.index("median")]
        found: dict[tuple[str, ...], list[Row]] = {}
        ids = self._of_language({run["config_id"] for run in done(self.scope)})
        if ids is None:
            return
        for run in done(self.scope):
            if run["config_id"] not in ids:
                continue
            fields = self._shown(run["config_id"])
            if all(fields.get(name) is not None for name in grouped):
                found.setdefault(tuple(str(fields[name]) for name in grouped), []).append(run)
        if "short_count" not in names:
            # Labels may be of some cells only.
            self.value("cells", len(rows), len(found))
        for row in rows:
            key = tuple(str(row[name]) for name in grouped)
            runs = found.get(key, [])
            self.value(f"cell {key}", bool(runs), True)
            if not runs:
                continue
            values = [run["accuracy"] for run in runs]
            failing = sum(fails(run, self.chosen.below) for run in runs)
            true: Row = {
                "median": float(np.median(values)), "best": max(values), "worst": min(values),
                "failing": failing, "seeds": len(runs), "failing_share": failing / len(runs),
                "configurations": len(by_configuration(runs)),
            }  # fmt: skip
            came_to = configuration(runs, self.chosen.below, self.chosen.learned_at)
            for name in ("judged", "learned", "judged_beyond", "generalize"):
                true[name] = came_to[name]
            true["failing_interval"] = Told(true_of.wilson(failing, len(runs)))
            true["median_interval"] = Told(true_of.bootstrap(tuple(values)) or ())
            self.row(f"cell {key}", row, true)

    def _importance(self, rows: Rows) -> None:
        """What each value comes to; intervals of several configurations are not computed here."""
        tested = {x: self.true_configuration(x) for x in self._picked() if done(self.groups[x])}
        ids = self._of_language(tested)
        if ids is None:
            return
        column = {
            "Median accuracy": "median_accuracy",
            "Share that learned": "learned_share",
            "Share that generalizes": "generalizing_share",
        }[self.moved]
        tested = {x: true for x, true in tested.items() if x in ids and true[column] is not None}
        for row in rows:
            found: dict[str, list[float]] = {}
            for config_id, true in tested.items():
                fields = self.facts.configs[config_id]
                if not all(name in fields for name in row["fields"]):
                    # It has no such setting: another kind of model.
                    continue
                value = ", ".join(str(fields[name]) for name in row["fields"])
                found.setdefault(value, []).append(true[column])
            means = {value: float(np.mean(each)) for value, each in found.items()}
            low, high = min(means.values()), max(means.values())
            what = f"importance of {row['field']}"
            true = {"values": len(means), "at_worst": low, "at_best": high, "moves": high - low}
            self.row(what, row, true)
            for end in ("worst", "best"):
                self.value(f"{what}: {row[end]}", row[f"at_{end}"], means.get(row[end]))


def _alike(shown: Any, true: Any) -> bool:
    """Whether a setting that is shown is a configuration's."""
    if shown in ("not read", ""):
        # Which fields those are is not stored; a table of HTML leaves them empty.
        return True
    if is_none(shown):
        return is_none(true) or true == "none"
    if isinstance(shown, str) and not isinstance(true, str):
        shown, true = shown.lower(), str(true).lower()
        try:
            return float(shown) == float(true)
        except ValueError:
            return bool(shown == true)
    return bool(shown == true)
