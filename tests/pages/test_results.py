"""Results of the shipped models and of several languages, on the page and as sections."""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import parse_qs

import pandas as pd
import pytest
from scipy import stats
from streamlit.testing.v1 import AppTest

from dashboard.results import sections
from dashboard.section import figure, svg
from dashboard.words.columns import as_text
from sweeps import api
from sweeps.api import baselines, by_settings
from sweeps.api.comparisons import compare
from sweeps.results import Outcome
from sweeps.statistics.importance import importance
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from sweeps.store.reads.selection import Selection
from tests.app import open_app, page_text, plain, rerun
from tests.conftest import SHIPPED
from tests.databases import new_database
from tests.oracles.chosen import Chosen
from tests.oracles.facts import GENERALIZING, Facts, Row, fails, is_judged, outcome
from tests.stock import copy_of
from tests.world import KINDS

AB = "regular, alphabet=ab, pattern=(ab)*"
WIDE, BASE = 5, 2
"""Configurations of width 16 and 2, the second of which is proposed as the baseline."""

FILTERS = (
    Chosen(),
    Chosen(("all_initializations", "increased_dimensionality")),
    Chosen(seeds=(0, 1, 2, 3)),
    Chosen(outcomes=("fails beyond",)),
    Chosen(outcomes=("generalizes", "not learned"), width=16),
)
THRESHOLDS = ((0.99, 1.0), (0.85, 0.97))


def shown(app: AppTest) -> pd.DataFrame:
    """The table of configurations."""
    table: pd.DataFrame = app.dataframe[0].value
    return table


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def shipped(request: pytest.FixtureRequest) -> str:
    """The shipped models in a database of each sort."""
    if request.param == "sqlite":
        return str(SHIPPED)
    url = new_database(request.getfixturevalue("postgres_server"), "made")
    writer.merge(open_writer(url), open_reader(str(SHIPPED)))
    return url


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three languages in five sweeps."""
    return copy_of("trained", "languages.db", tmp_path_factory.mktemp("languages"))


# Numbers, compared with SQL.


def chosen_selections(facts: Facts) -> Iterator[tuple[Chosen, Selection]]:
    for chosen in FILTERS:
        for learned_at, below in THRESHOLDS:
            judged = Chosen(
                chosen.sweeps, chosen.seeds, outcomes=chosen.outcomes, width=chosen.width,
                learned_at=learned_at, below=below,
            )  # fmt: skip
            ids = {run["config_id"] for run in judged.scope(facts)}
            yield judged, Selection(
                sweeps=judged.sweeps, model_seeds=judged.seeds, config_ids=tuple(sorted(ids)),
                outcomes=tuple(map(Outcome, judged.outcomes)), learned_at=learned_at, below=below,
            )  # fmt: skip


def true_row(runs: list[Row], chosen: Chosen) -> dict[str, Any]:
    """The expected row of a configuration, from its runs."""
    came_to = [outcome(run, chosen.learned_at, chosen.below) for run in runs]
    pairs = list(zip(runs, came_to, strict=True))
    learned = [run for run, x in pairs if is_judged(run) and x != "not learned"]
    beyond = [x for x in came_to if x in (*GENERALIZING, "fails beyond")]
    first = [run["solved_length"] + 1 for run, x in pairs if x == "fails beyond"]
    values = [run["accuracy_beyond"] for run in learned if run["accuracy_beyond"] is not None]
    return {
        "seeds": len(runs),
        "judged": sum(map(is_judged, runs)),
        "learned": len(learned),
        "judged_beyond": len(beyond),
        "generalize": sum(x in GENERALIZING for x in beyond),
        "accuracy_beyond": median(values) if values else None,
        "fails_from": min(first, default=None),
        "fails_to": max(first, default=None),
        "false_positives": sum(run["fp"] for run in runs),
        "false_negatives": sum(run["fn"] for run in runs),
        "failing": sum(fails(run, chosen.below) for run in runs),
    }


def test_every_number_of_the_table_equals_that_of_sql(shipped: str) -> None:
    facts, store = Facts(shipped), open_reader(shipped)
    for chosen, selection in chosen_selections(facts):
        scope = [run for run in chosen.scope(facts) if run["state"] == "done"]
        picked = {run["config_id"] for run in scope if chosen.picks(run)}
        section = sections.configurations(store, selection)
        assert section.table is not None
        assert set(section.table["config_id"]) == picked
        if chosen.query.keys() <= {"learned", "below"}:
            python = api.configurations(store, learned_at=chosen.learned_at, below=chosen.below)
            names = [x for x in python if x in section.table]
            assert len(names) > 12
            pd.testing.assert_frame_equal(python[names], section.table[names], check_dtype=False)
        for row in section.table.to_dict("records"):
            own = [run for run in scope if run["config_id"] == row["config_id"]]
            true = true_row(own, chosen)
            for name, value in true.items():
                assert (None if pd.isna(row[name]) else row[name]) == value, (chosen, name)
            assert row["learned_of"] == f"{true['learned']} of {true['judged']}"
            if true["judged_beyond"]:
                generalizing, judged_seeds = true["generalize"], true["judged_beyond"]
                ends = stats.binomtest(generalizing, judged_seeds).proportion_ci(method="wilson")
                assert row["generalize_of"].startswith(
                    f"{generalizing} of {judged_seeds} ({ends.low:.0%} to "
                )
                shares = (row["generalize_low"], row["generalize_high"])
                assert shares == pytest.approx((ends.low, ends.high))
        # Those first of whose judged seeds the greatest share generalizes.
        of_judged = section.table["generalize"] / section.table["judged"]
        assert of_judged.is_monotonic_decreasing
        judged = [run for run in scope if is_judged(run)]
        came_to = [outcome(run, chosen.learned_at, chosen.below) for run in judged]
        learned = len(judged) - came_to.count("not learned")
        generalize = came_to.count("generalizes")
        assert section.says[0] == (
            f"{learned} of {len(judged)} models learned; of these {generalize} "
            f"generalize{'s' * (generalize == 1)}."
        )


def test_differences_from_the_baseline_equal_those_of_exact_tests(shipped: str) -> None:
    facts, store = Facts(shipped), open_reader(shipped)
    for learned_at, below in THRESHOLDS:
        selection = Selection(learned_at=learned_at, below=below)
        for measure in ("learned", "generalizes"):
            section = sections.configurations(store, selection, BASE, measure)
            assert section.table is not None
            assert f"difference {measure}" in section.shown
            found = section.table.dropna(subset=["p_value"]).set_index("config_id")
            p_values = {}
            runs = {x: [r for r in facts.runs.values() if r["config_id"] == x] for x in range(1, 8)}
            for other in found.index:
                first, second = (
                    [*side.values()]
                    for side in facts.question(measure, runs[other], runs[BASE], learned_at, below)
                )
                cells = [[sum(x), len(x) - sum(x)] for x in (first, second)]
                value = sum(first) / len(first) - sum(second) / len(second)
                assert found.loc[other, "difference"] == pytest.approx(value)
                p_values[other] = stats.fisher_exact(cells).pvalue
                assert found.loc[other, "p_value"] == pytest.approx(p_values[other])
            least, corrected = 0.0, []
            for rank, other in enumerate(sorted(p_values, key=p_values.__getitem__)):
                least = max(least, min(1.0, p_values[other] * (len(p_values) - rank)))
                assert found.loc[other, "p_holm"] == pytest.approx(least)
                corrected.append(least)
            sentence = (
                f"{sum(p <= 0.05 for p in corrected) or 'none'} of {len(corrected)} in the share"
            )
            assert sentence in next(x for x in section.says if x.startswith("Against"))
    # The third by the same function that the command calls.
    found = baselines.differences(store, Selection(), BASE, [WIDE])
    answer = compare(store, "increased_dimensionality", "all_initializations").questions["beyond"]
    row = found[found["question"] == "beyond"].iloc[0]
    assert (row["value"], row["p_value"]) == (answer.interval.value, answer.p_value)


def test_lines_and_cells_equal_those_of_sql(shipped: str) -> None:
    facts, store = Facts(shipped), open_reader(shipped)
    section = sections.by_length(store, Selection(), [1, 2, 4])
    assert [panel.opens for panel in section.panels] == [1, 3, 16], "the worst seed of each"
    assert "Right by length" in section.caption
    drawn = 0
    for panel in section.panels:
        rows = [
            row for dataset in panel.spec["datasets"].values() for row in dataset if "seed" in row
        ]
        for row in rows:
            first, last = map(int, row["lengths"].split(" to "))
            counts = facts.between(row["run"], first, last)
            assert row["right"] == pytest.approx(1 - counts["wrong"] / counts["tested"])
            assert row["outcome"] == outcome(facts.runs[row["run"]])
            drawn += 1
    assert drawn == 20 * 18
    fields = ("hidden_size", "num_attention_heads")
    # Among the first five, one that has not learned would be the worst of its cell.
    chosen = (range(2, 8), range(2, 7))
    for ids, measure in product(chosen, ("learned", "generalize", "median", "best", "worst")):
        table = sections.heat_map(store, Selection(), ids, *fields, measure).table
        assert table is not None
        for row in table.to_dict("records"):
            own = [
                run for run in facts.runs.values()
                if run["config_id"] in ids
                and all(facts.configs[run["config_id"]].get(x, 2) == row[x] for x in fields)
            ]  # fmt: skip
            learned = [x["accuracy_beyond"] for x in own if outcome(x) != "not learned"]
            assert (row["models"], row["learned_of"]) == (len(own), f"{len(learned)} of {len(own)}")
            assert (row["best"], row["worst"]) == (max(learned), min(learned))
            assert row["accuracy_beyond"] == pytest.approx(median(learned))


# The page.


def test_results_begin_with_the_answer_and_the_link_restores_the_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED)
    assert "**41 of 43 models learned; of these 27 generalize.**" in plain(app)
    assert "14 fail beyond, wrong first at lengths from 37 to 122" in plain(app)
    assert "The task is decided by letter counts: to read nothing else is no shortcut." in plain(
        app
    )
    table = shown(app)
    assert len(table) == 7
    assert table.iloc[0]["generalize_of"] == "8 of 8 (68% to 100%)"
    assert list(table["generalize_of"])[-2] == "1 of 8 (2% to 47%)"
    assert {"hidden_size", "num_attention_heads", "num_parameters"} < set(table), (
        "in the table's file"
    )
    charts = len(app.get("vega_lite_chart"))
    assert charts == 7
    # Another baseline, another measure: the link alone gives the same.
    app.selectbox(key="baseline").set_value("width 16, 16 heads")
    app.selectbox(key="measure").set_value("beyond")
    table = shown(rerun(app))
    assert "Against width 16, 16 heads, by more than chance" in plain(app)
    by_name = table.set_index("configuration")["difference beyond"]
    assert by_name["width 16, 16 heads"] == "baseline"
    again = open_app(monkeypatch, SHIPPED, baseline="width 16, 16 heads", measure="beyond")
    assert shown(again).equals(table)
    # Of a sweep of one configuration nothing is compared.
    app = open_app(monkeypatch, SHIPPED, sweep="increased_dimensionality")
    assert not [box for box in app.selectbox if box.key == "baseline"]
    app = open_app(monkeypatch, SHIPPED, outcome="not known")
    assert "No trained model matches the filters" in page_text(app)


def test_two_selected_rows_are_compared_as_the_command_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, rows=["2", "5"])
    found = compare(open_reader(str(SHIPPED)), "all_initializations", "increased_dimensionality")
    assert f"**{found.verdict(('the first', 'the second'))}**" in plain(app)
    assert "Seeds are not paired: hidden_size differs" in plain(app)
    table, strings = app.dataframe[1].value, app.dataframe[2].value
    for row, (name, answer) in zip(table.to_dict("records"), found.questions.items(), strict=True):
        assert row["p_value"] == answer.p_value, name
        assert row["difference"] == answer.interval.value
        assert row["to_decide"] == answer.to_decide or pd.isna(row["to_decide"])
    assert found.strings is not None
    listed = strings[["wrong_a", "wrong_b"]].to_numpy().tolist()
    assert listed == found.strings[["wrong_a", "wrong_b"]].head(200).to_numpy().tolist()
    assert f"{len(found.strings):,} test strings are misclassified by more seeds" in plain(app)
    # Pictures follow the selection; and all that was compared is in no link of another task.
    assert len(app.get("vega_lite_chart")) == 2 + 2


FORMER: dict[str, tuple[dict[str, Any], str]] = {
    "compare?seed=2": ({"seed": "2"}, "4 of 5 models learned; of these 3 generalize."),
    "?config=2&config=5&lengths=10&measure=Accuracy": ({"rows": ["2", "5"]}, "The first: width 2,"),
    "compare_two?config=2&config=5": ({"rows": ["2", "5"]}, "The first: width 2, CLS unattended"),
    "compare_two?run=3&run=20": ({"run": "3", "beside": "20"}, "1,378 of 9,984 test strings"),
    "map?x=hidden_size&y=num_attention_heads&mapped=Accuracy": (
        {"across": "hidden_size", "up": "num_attention_heads", "of": "median", "show": "Map"},
        "Across: hidden_size; up: num_attention_heads.",
    ),
    "failing?failing=true&seed=2": (
        {"outcome": ["not learned", "fails beyond"], "seed": "2"}, "2 of 2 tested models fail",
    ),
    "failing?run=5&string=ab{100}c{55}": (
        {"run": "5", "string": "ab{100}c{55}"}, "on 8,779 of 9,476 longer strings",
    ),
}  # fmt: skip
"""Addresses of earlier versions: their parameters now, and a text of the page."""


@pytest.mark.parametrize("old", FORMER)
def test_former_addresses_open_the_same_view(monkeypatch: pytest.MonkeyPatch, old: str) -> None:
    page, _, query = old.partition("?")
    app = open_app(monkeypatch, SHIPPED, page or "results", **parse_qs(query))
    now, text = FORMER[old]
    assert {name: app.query_params.get(name) for name in now} == now
    former = {"config", "x", "y", "mapped", "failing", "lengths", "measure"}
    assert not former & {*app.query_params}
    assert text in plain(app)


def test_the_map_and_the_settings_are_pictures_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, show="Map", across="hidden_size", of="worst")
    assert "Some cells hold models that differ in other settings." in plain(app)
    assert "worst accuracy on longer strings of those that learned" in plain(app)
    app = open_app(monkeypatch, SHIPPED, show="Settings")
    assert "chosen from these same models" in page_text(app)
    assert "moves the share of these that generalizes most" in plain(app)
    app = open_app(monkeypatch, SHIPPED, show="Map", sweep="all_initializations")
    assert "A map needs two settings" in page_text(app)


def test_rows_are_grouped_by_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = Facts(SHIPPED)
    table = shown(open_app(monkeypatch, SHIPPED, by="hidden_size"))
    for row in table.to_dict("records"):
        own = [
            run for run in facts.runs.values()
            if str(facts.configs[run["config_id"]].get("hidden_size", 2)) == row["value"]
        ]  # fmt: skip
        assert row["judged"] == row["seeds"] == len(own)
        assert row["generalize"] == sum(outcome(x) in GENERALIZING for x in own)
        configs = {run["config_id"] for run in own}
        assert row["members"] == len(configs)
        learned = [
            median([float(outcome(x) != "not learned") for x in own if x["config_id"] == config])
            for config in configs
        ]
        assert row["learned_share"] == pytest.approx(sum(learned) / len(learned), abs=0.13)


# Several tasks.


def test_every_task_has_a_separate_answer(monkeypatch: pytest.MonkeyPatch, languages: Path) -> None:
    app = open_app(monkeypatch, languages)
    assert len([x for x in app.dataframe if "learned_of" in x.value]) == 1, "one task"
    known = queries.configs(open_reader(str(languages)))
    app = open_app(monkeypatch, languages, task="Every task, one below the other")
    tables = [x.value for x in app.dataframe if "learned_of" in x.value]
    assert len(tables) == len({(x.task, x.pattern) for x in known.values()}) == 3
    # Theory has a column where its answers differ, and a sentence where all are one.
    theory = [set(table["theory"]) for table in tables]
    assert {"can", "cannot"} in theory


def test_a_chosen_baseline_applies_to_every_task(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    names = [kind.name for kind in KINDS if not (kind.model or kind.imported or kind.fails)]
    app = open_app(monkeypatch, db, sweep=names[:2])
    other = next(x for x in app.selectbox(key="baseline").options if "0.03" in x)
    app.selectbox(key="baseline").set_value(other)
    tables = [x.value for x in rerun(app).dataframe if "learned_of" in x.value]
    assert len(tables) == 2
    for table in tables:
        (column,) = (x for x in table if str(x).startswith("difference "))
        marked = table.loc[table[column] == "baseline", "learning_rate"]
        assert marked.tolist() == [0.03]


def test_a_map_leaves_out_models_that_do_not_read_its_setting(languages: Path) -> None:
    store = open_reader(str(languages))
    parity = [x for x, own in queries.configs(store).items() if own.task == "parity"]
    found = sections.heat_map(store, Selection(), parity, "positions", "num_attention_heads")
    assert "12 of 36 models are in no cell" in found.caption
    cells, left_out, _ = by_settings.cells(store, Selection(), parity, ["positions"])
    assert (cells.set_index("positions")["models"].to_dict(), left_out) == (
        {"none": 12, "rotary": 12},
        12,
    )
    # A setting that distinguishes only languages has no effect.
    effects, _ = by_settings.which_matters(store, Selection(), parity, "learned")
    assert "hidden_size" not in set(effects["field"])


def test_random_languages_are_grouped_by_class(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = copy_of("trained", "random.db", tmp_path)
    app = open_app(monkeypatch, db, by="language_class")
    table = shown(app)
    assert set(table["value"]) == {
        own.language_class for own in queries.configs(open_reader(str(db))).values()
    }
    assert table["languages"].sum() == len(app.selectbox(key="task").options) - 1


def test_the_page_and_the_command_give_equal_intervals(languages: Path) -> None:
    store = open_reader(str(languages))
    configs = queries.configs(store)
    pair = [i for i, own in configs.items() if own.task == "first" and own.test_size == 200]
    answer = compare(store, "first:positions=none", "first:positions=rotary").questions["learned"]
    own, _ = by_settings.which_matters(store, Selection(), pair, "learned")
    assert own.iloc[0]["fields"] == ("positions",)
    assert own.iloc[0]["paired"] == answer.paired
    assert own.iloc[0]["moves"] == pytest.approx(abs(answer.interval.value))
    found = sorted(map(abs, own.iloc[0][["low", "high"]]))
    assert found == pytest.approx(sorted(map(abs, (answer.interval.low, answer.interval.high))))


def test_the_table_without_a_seed_that_learned_omits_generalization() -> None:
    unlearned = [run for run in Facts(SHIPPED).runs.values() if outcome(run) == "not learned"]
    assert len({run["config_id"] for run in unlearned}) == 2
    chosen = Selection(run_ids=tuple(run["run_id"] for run in unlearned))
    section = sections.configurations(open_reader(str(SHIPPED)), chosen)
    assert "learned_of" in section.shown
    assert "generalize_of" not in section.shown


def test_too_few_seeds_give_a_difference_without_an_interval() -> None:
    frame = pd.DataFrame(
        {"config_id": [1, 1, 2, 2], "model_seed": [0, 1] * 2, "value": [0.5, 0.5, 0.7, 0.7]}
    )
    settings = pd.DataFrame({"positions": ["none", "rotary"]}, index=[1, 2])
    own = importance(frame, settings, "value", is_share=False).iloc[0]
    assert (own["worst"], own["best"]) == ("none", "rotary")
    assert own["moves"] == pytest.approx(0.2)
    assert pd.isna(own["low"])


# Sections elsewhere than on the page.


def test_a_section_is_rendered_as_text_figure_and_record() -> None:
    store: Store = open_reader(str(SHIPPED))
    table = sections.configurations(store, Selection(), BASE)
    assert table.table is not None
    printed = as_text(table.table, table.shown).to_string()
    assert "Generalize ± baseline" in printed
    assert "8 of 8 (68% to 100%)" in printed
    assert "hidden_size" not in printed, "settings stand in the file"
    assert table.record()["table"][0]["generalize"] == 8
    lengths = sections.by_length(store, Selection(), [2, 5])
    drawn = figure(lengths, "contains all, by length: all sweeps").decode()
    for part in ("contains all, by length", "fails beyond", "7 of 8 learned"):
        assert part in drawn.replace("&nbsp;", " ") or part == "7 of 8 learned"
    for section in (
        sections.heat_map(store, Selection(), [2, 5, 6], "hidden_size", "num_attention_heads"),
        sections.settings(store, Selection(), range(1, 8), "learned"),
        *sections.pair(store, Selection(), WIDE, BASE),
    ):
        assert all("<svg" in svg(panel.spec) for panel in section.panels)
