"""What every page, report, and command says under the same filters: what SQL says."""

import json
import re
import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dashboard import data
from dashboard.report.sweep_report import report
from dashboard.views import heat_map, scores
from sweeps import api
from sweeps.api.configurations import view_of
from sweeps.api.reading import View
from sweeps.store.opening import open_reader
from tests.app import PAGES, open_app, said
from tests.commands import run_main
from tests.conftest import ROOT

DB = ROOT / "runs.db"

# The query of docs/database.md, and what fails on the whole test.
RUNS = """
WITH threshold AS (SELECT :learned_at AS learned_at, :below AS below)
SELECT run.id, run.config_id, run.model_seed, wrong, json_extract(json, '$.hidden_size') AS width,
       1.0 * (tested - wrong) / tested < below AS failing,
       CASE WHEN accuracy_within IS NULL THEN 'not known'
            WHEN accuracy_within < learned_at THEN 'not learned'
            WHEN accuracy_beyond IS NULL THEN 'not known'
            WHEN accuracy_beyond < below THEN 'fails beyond'
            ELSE 'generalizes' END AS outcome
FROM run JOIN config ON config.id = run.config_id
JOIN generalization ON run_id = run.id CROSS JOIN threshold
WHERE (:sweep IS NULL OR run.id IN (SELECT run_id FROM sweep_run JOIN sweep
       ON sweep.id = sweep_id WHERE sweep.name = :sweep))
"""


@dataclass(frozen=True)
class Filters:
    """What a user chooses."""

    sweep: str | None = None
    seeds: tuple[int, ...] = ()
    outcomes: tuple[str, ...] = ()
    failing: bool = False
    width: int | None = None
    learned_at: float = 0.99
    below: float = 1.0

    @property
    def chosen(self) -> dict[str, Any]:
        """As Python has it."""
        return {
            "model_seeds": self.seeds, "outcome": self.outcomes, "failing": self.failing,
            "conditions": [f"hidden_size={self.width}"] if self.width else [],
            "learned_at": self.learned_at, "below": self.below,
        }  # fmt: skip

    @property
    def options(self) -> list[str]:
        """As commands have it, but for the sweep."""
        given = [*(f"--seed={x}" for x in self.seeds), *(f"--outcome={x}" for x in self.outcomes)]
        given += ["--failing"] if self.failing else []
        given += [f"--where=hidden_size={self.width}"] if self.width else []
        return [*given, f"--learned-at={self.learned_at}", f"--below={self.below}"]

    @property
    def link(self) -> Mapping[str, Any]:
        """As links to pages have it."""
        given = {
            "sweep": [self.sweep] if self.sweep else [], "seed": list(map(str, self.seeds)),
            "outcome": list(self.outcomes), "failing": ["true"] if self.failing else [],
            "hidden_size": [str(self.width)] if self.width else [],
            "learned": f"{100 * self.learned_at:g}", "below": f"{100 * self.below:g}",
        }  # fmt: skip
        return {name: value for name, value in given.items() if value}

    def scope(self) -> list[dict[str, Any]]:
        """The finished runs that there are, by SQL."""
        with closing(sqlite3.connect(DB)) as connection:
            connection.row_factory = sqlite3.Row
            given = {"sweep": self.sweep, "learned_at": self.learned_at, "below": self.below}
            rows = [dict(row) for row in connection.execute(RUNS, given)]
        seeds = self.seeds or {row["model_seed"] for row in rows}
        widths = {self.width} if self.width else {row["width"] for row in rows}
        return [x for x in rows if x["model_seed"] in seeds and x["width"] in widths]

    def picked(self) -> list[dict[str, Any]]:
        """Those of them that results pick."""
        outcomes = self.outcomes or ("generalizes", "fails beyond", "not learned", "not known")
        return [
            x for x in self.scope() if x["outcome"] in outcomes and x["failing"] >= self.failing
        ]


ALL = [
    Filters(),
    Filters("all_initializations", seeds=(0, 1, 2, 3), failing=True),
    Filters(below=0.95, failing=True),
    Filters(outcomes=("fails beyond",), learned_at=0.85, below=0.97),
    Filters(outcomes=("generalizes", "not learned"), width=16, learned_at=1.0),
]
filtered = pytest.mark.parametrize("filters", ALL, ids=["all", "seeds", "below", "beyond", "width"])


def view(filters: Filters) -> View:
    sweeps = [filters.sweep] if filters.sweep else []
    return view_of(open_reader(str(DB)), sweeps, **filters.chosen)


def counts(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(row["outcome"] for row in rows)


@filtered
def test_what_pages_ask_is_what_sql_says(filters: Filters) -> None:
    scope, picked, chosen = filters.scope(), filters.picked(), view(filters)
    assert picked, "there is something to compare"
    fails = [row for row in picked if row["failing"]]
    with data.reading_from(open_reader(str(DB))):
        # Compare, and its charts.
        table, came_to = data.configurations(chosen), counts(scope)
        assert table["seeds"].sum() == len(scope)
        assert table["failing"].sum() == sum(row["failing"] for row in scope)
        assert table["picked"].sum() == len(picked)
        assert table["generalize"].sum() == came_to["generalizes"]
        assert (table["judged"] - table["learned"]).sum() == came_to["not learned"]
        models = data.models(chosen)
        told = zip(models["run_id"], models["outcome"], models["failing"], strict=True)
        assert set(told) == {(row["id"], row["outcome"], row["failing"]) for row in scope}
        ids = tuple(table["config_id"])
        drawn = scores.by_seed(chosen, ids)["run_id"]
        assert set(drawn) == {row["id"] for row in picked}
        # Map.
        cells = heat_map.cells(chosen, None, ["hidden_size", "num_attention_heads"])
        summed = ["seeds", "failing", "generalize"]
        for row in cells.groupby("hidden_size")[summed].sum().itertuples():
            own = [x for x in scope if str(x["width"]) == row.Index]
            failing, came = sum(x["failing"] for x in own), counts(own)
            assert tuple(row)[1:] == (len(own), failing, came["generalizes"])
        # Failing models.
        assert data.count_failing_models(chosen) == len(fails)
        assert set(data.failing_models(chosen, 100)["run_id"]) == {row["id"] for row in fails}
        assert data.breaking_strings(chosen, 1).models == len(fails)
        # Sweeps.
        if filters.sweep is None and not (filters.seeds or filters.width):
            judging = View(below=filters.below, learned_at=filters.learned_at)
            for sweep_id, name in data.sweep_names().items():
                own = Filters(name, learned_at=filters.learned_at, below=filters.below).scope()
                found = data.sweep_outcomes(judging)[sweep_id]
                assert found.failing == sum(row["failing"] for row in own)
                assert found.generalize == counts(own)["generalizes"]


@filtered
def test_commands_and_files_give_what_sql_says(filters: Filters, tmp_path: Path) -> None:
    scope, picked = filters.scope(), filters.picked()
    ids = sorted(row["id"] for row in picked)
    asked = partial(run_main, SEQCLS_DB=str(DB))
    sweep = [f"--sweep={filters.sweep}"] if filters.sweep else []
    found = json.loads(asked("runs", "--json", *sweep, *filters.options).stdout)
    assert [run["id"] for run in found] == ids
    assert [run["outcome"] for run in found] == [
        row["outcome"] for row in sorted(picked, key=lambda row: row["id"])
    ]
    done = asked("export", str(tmp_path / "out"), *sweep, *filters.options)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "out" / "runs.csv").read_text().splitlines()
    assert len(lines) == len(ids) + 1
    came_to = counts(scope)
    # Of a report, and of the site's page on all sweeps.
    text = report(open_reader(str(DB)), view(filters), title="chosen")
    assert text is not None
    judged = len(scope) - came_to["not known"]
    learned = f"{judged - came_to['not learned']} of {judged} models learned"
    assert learned in text or judged == judged - came_to["not learned"]
    assert f"{sum(row['failing'] for row in scope)} of {len(scope)} models" in text
    listed = {int(x) for x in re.findall(r'<details id="run-(\d+)"', text)}
    assert listed == {row["id"] for row in picked if row["failing"]}
    names = [filters.sweep] if filters.sweep else sorted(data_sweeps())
    done = asked("report", *names, "-o", str(tmp_path / "r.html"), *filters.options)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "r.html").read_text()
    assert {int(x) for x in re.findall(r'<details id="run-(\d+)"', written)} == listed


def data_sweeps() -> list[str]:
    with closing(sqlite3.connect(DB)) as connection:
        return [row[0] for row in connection.execute("SELECT name FROM sweep")]


def test_the_last_line_of_status_is_judged_by_its_thresholds() -> None:
    filters = Filters("lower_magnitude_initializations", learned_at=0.85, below=0.97)
    came_to = counts(filters.scope())
    text = run_main(
        "status", str(filters.sweep), "--learned-at=0.85", "--below=0.97", SEQCLS_DB=str(DB)
    ).stdout
    assert re.search(rf"of these {came_to['generalizes']} generalize", text), text


SAID = {
    "generalizes": "Learned and generalizes",
    "fails beyond": "Learned, but fails beyond",
    "not learned": "Not learned",
}
"""What the page of a model begins with."""


@pytest.mark.parametrize("page", PAGES)
@filtered
def test_every_page_obeys_its_link(
    monkeypatch: pytest.MonkeyPatch, page: str, filters: Filters
) -> None:
    app = open_app(monkeypatch, DB, page, **filters.link)
    assert not app.error, "an error in place of a page"
    scope, text = filters.scope(), said(app).replace("\\", "")
    came_to, fails = counts(scope), [x for x in filters.picked() if x["failing"]]
    if page == "sweeps":
        shown = {x["name"]: x for x in rows_of(app)}
        names = [filters.sweep] if filters.sweep else data_sweeps()
        assert set(shown) == {x for x in names if replace(filters, sweep=x).picked()}
        for name, row in shown.items():
            whole = Filters(name, learned_at=filters.learned_at, below=filters.below).scope()
            judged, came = len(whole), counts(whole)
            assert row["failing"] == pytest.approx(sum(x["failing"] for x in whole) / judged)
            learned = judged - came["not learned"]
            assert row["learned"] == pytest.approx(learned / judged)
            if learned:
                assert row["generalize"] == pytest.approx(came["generalizes"] / learned)
    elif page == "failing":
        assert len(rows_of(app)) == len(fails)
        below = "misclassify test strings"
        if filters.below < 1:
            below = f"have an accuracy below {100 * filters.below:g}%"
        assert f"{len(fails)} models {below}" in text or len(fails) == 1
    elif page == "map":
        drawn = [x.proto for x in app.get("vega_lite_chart")]
        assert drawn or "needs two settings" in text
    else:
        learned = len(scope) - came_to["not learned"]
        assert f"{learned} of {len(scope)} models learned" in text or learned == len(scope)
        assert f"{came_to['generalizes']} generalize" in text or not came_to["generalizes"]
        # Only configurations with a picked model are listed, each with all of its models.
        listed = {x["config_id"] for x in filters.picked()}
        own = [[x for x in scope if x["config_id"] == config_id] for config_id in listed]
        expected = Counter(
            f"{len(runs) - counts(runs)['not learned']} of {len(runs)}" for runs in own
        )
        assert Counter(x["learned_of"] for x in rows_of(app)) == expected


@pytest.mark.parametrize("filters", [ALL[1], ALL[3]], ids=["usual", "beyond"])
def test_pages_of_what_their_link_names_obey_its_thresholds(
    monkeypatch: pytest.MonkeyPatch, filters: Filters
) -> None:
    run = min(filters.picked(), key=lambda row: row["id"])
    shown = said(open_app(monkeypatch, DB, "model", run=str(run["id"]), **filters.link))
    assert SAID[run["outcome"]] in shown
    all_seeds = Filters(learned_at=filters.learned_at, below=filters.below).scope()
    often = Counter(row["config_id"] for row in all_seeds).most_common(2)
    ids = [str(config_id) for config_id, _ in often]
    app = open_app(monkeypatch, DB, "compare_two", **{**filters.link, "config": ids})
    table = {row["Question"]: row for row in rows_of(app)}
    for side, (config_id, seeds) in zip(("First", "Second"), often, strict=True):
        came_to = counts([row for row in all_seeds if row["config_id"] == config_id])
        learned = seeds - came_to["not learned"]
        assert table["Share that learned"][side] == f"{learned} of {seeds}"
        of_learned = table.get("Share that generalizes, of seeds that learned", {side: None})
        assert of_learned[side] in (None, f"{came_to['generalizes']} of {learned}")


def rows_of(app: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = app.dataframe[0].value.to_dict("records")
    return found


def test_what_is_no_setting_is_refused_in_a_line() -> None:
    done = run_main("populations", "--where=heads=2", SEQCLS_DB=str(DB))
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert "--where heads=2" in line
    with pytest.raises(Exception, match="expected an accuracy from 0 to 1"):
        api.causes(open_reader(str(DB)), "all_initializations", below=95)
