"""What Compare, Map and the comparison of two say of shipped models and of several languages."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.views.importance import effect_text
from sweeps.api import lengths, runs
from sweeps.api.comparison_text import QUESTIONS, shown_values
from sweeps.api.comparisons import compare
from sweeps.api.old_pages import overview as pages
from sweeps.api.old_pages.judging_importance import MEASURES, importance
from sweeps.api.old_pages.judging_runs import compare_runs
from sweeps.statistics.differences import string_differences
from sweeps.statistics.intervals import mcnemar, paired_newcombe
from sweeps.store.database import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import misclassified, overview, queries
from sweeps.store.reads.selection import Selection
from tests.app import metrics, open_app, rerun, said
from tests.commands import run_main
from tests.conftest import ROOT
from tests.databases import rows
from tests.oracles.facts import Facts
from tests.shown import charts_of
from tests.stock import copy_of, stock

SHIPPED = ROOT / "runs.db"
INITIALIZATIONS = "all_initializations, generalization_errors, walkthrough"
AB = "regular, alphabet=ab, pattern=(ab)*"
TWO = "compare_two"


@pytest.fixture(scope="module")
def languages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three languages in five sweeps."""
    return copy_of("trained", "languages.db", tmp_path_factory.mktemp("languages"))


def plain(app: AppTest) -> str:
    return said(app).replace("\\", "")


def drawn_fields(app: AppTest, name: str) -> list[set[Any]]:
    """The values of a column in all charts' data that have it."""
    return [set(x[name]) for chart in charts_of(app) for x in chart if name in x]


def test_configurations_are_compared_the_worst_first(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, config=["3", "7"], moves="Failing share")
    tested = {"Models tested": "43", "Queued or in training": "0", "Training failed": "0"}
    assert metrics(app) == tested
    assert "41 of 43 models learned the trained lengths; of these 27 generalize" in plain(app)
    table = app.dataframe[0].value.set_index("sweeps")
    assert len(table) == 7
    assert table.index[0] == "all_fixed_length_sequences"
    initializations = table.loc[INITIALIZATIONS]
    assert (initializations["seeds"], initializations["learned_of"]) == (8, "8 of 8")
    assert initializations["generalize_of"] == "1 of 8"
    assert initializations["generalizing_interval"] == "2% to 47%"
    assert initializations["beyond_seeds"] == "0..4, 6, 7"
    assert initializations["interval"] == "89.1% to 97.9%"
    lower = table.loc["lower_magnitude_initializations"]
    assert (lower["learned_of"], lower["unlearned_seeds"]) == ("7 of 8", "2")
    assert table["interval"].isna()["attend_cls"], "one seed has no interval"
    assert {"hidden_size", "num_attention_heads", "train_sampler"} < set(table.columns)
    assert "train_seed" not in table.columns, "only fields that differ are shown"
    # Causes are not known yet, and that is said.
    assert "It isn't known yet why these models fail." in said(app)
    # Who cannot see a chart is told of it.
    specs = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    assert any(x["description"].startswith("Accuracy by string length") for x in specs)
    # Those that are selected are in the link, and drawn alone.
    assert sorted(app.query_params["config"]) == ["3", "7"]
    (points, *_) = [x for chart in charts_of(app) for x in chart if "run_id" in x and "middle" in x]
    facts = Facts(SHIPPED)
    assert {facts.runs[x]["config_id"] for x in points["run_id"]} == {3, 7}
    # What matters is of all of them, with its uncertainty.
    assert "the failing share most" in said(app)
    assert "95% interval" in said(app)


def test_a_map_sets_two_settings_against_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "map")
    assert app.selectbox(key="x").value == "hidden_size"
    titles = "".join(str(x.proto) for x in app.get("html"))
    for title in ("Share that learned", "Share that generalizes, of those that learned"):
        assert title in titles
    assert "Some cells hold models that differ in other settings" in said(app)
    # Of two heads and 2 dimensions there are models of the report's two samplers.
    frames = [x for chart in charts_of(app) for x in chart if "train_sampler" in x]
    narrow = frames[0].query("hidden_size == '2' and num_attention_heads == '2'")
    assert narrow["train_sampler"].item() == "fixed_length, variable_length"
    app.selectbox(key="y").set_value("hidden_size")
    assert "Choose different settings" in rerun(app).info[0].value
    app.multiselect(key="sweep").set_value(["all_initializations"])
    assert "no setting differs" in rerun(app).info[0].value


def test_configurations_of_one_sweep_are_told_apart_by_their_settings(
    monkeypatch: pytest.MonkeyPatch, languages: Path
) -> None:
    app = open_app(monkeypatch, languages, sweep="parity")
    table = app.dataframe[0].value
    assert table.columns[0] == "configuration", "what tells them apart is first"
    assert len({*table["configuration"]}) == len(table) == 4
    app.multiselect(key="columns").set_value(["interval", "positions"])
    assert [*rerun(app).dataframe[0].value] == ["configuration", "interval", "positions"]


# Several languages: none is pooled with another or split.


def test_the_settings_that_matter_are_those_of_one_language(
    monkeypatch: pytest.MonkeyPatch, languages: Path
) -> None:
    app = open_app(monkeypatch, languages)
    assert app.selectbox(key="language").value == "parity", "that of most models"
    assert set(app.selectbox(key="language").options) == {"parity", "first", AB}
    (shown,) = (x.value for x in app.markdown if "the median accuracy most" in x.value)
    assert shown.startswith("In parity, ")
    assert "chosen from these same models" in said(app)
    (fields,) = drawn_fields(app, "field")
    assert "positions" in str(fields)
    assert "hidden_size" not in str(fields), "it differs between languages only"
    # What theory predicts stands beside what is measured.
    (table,) = (x.value for x in app.dataframe if "predicted" in x.value)
    predicted = [
        set(table["predicted"][table["sweeps"].str.startswith(sweep)])
        for sweep in ("parity", "recurrent", "first", "ab")
    ]
    assert predicted == [{"cannot"}, {"can"}, {"cannot", "not known"}, {"cannot"}]
    assert "01 and 10 get one answer" in said(app)
    app.selectbox(key="language").set_value(AB)
    (fields,) = drawn_fields(rerun(app), "field")
    assert "disjoint" in str(fields)
    assert "positions" not in str(fields)
    # Where a measure does not differ, nothing is said to move it.
    app = open_app(monkeypatch, languages, moves="Failing share", below="0")
    assert "failing share most" not in said(app)
    assert "Failing share: 0% with every value of every setting." in said(app)
    assert "Predicted cannot, but not all models fail: " in said(app)


def test_no_model_stands_in_a_cell_of_a_setting_that_it_does_not_read(
    monkeypatch: pytest.MonkeyPatch, languages: Path
) -> None:
    app = open_app(monkeypatch, languages, "map", x="positions", y="num_attention_heads")
    assert app.selectbox(key="language").value == "parity"
    assert "12 of 36 models are in no cell" in said(app)
    assert "theory predicts that these networks cannot be right at every length" in said(app)
    assert "of 24 models of these cells fail" in said(app)
    assert "task" not in app.selectbox(key="x").options
    app = open_app(monkeypatch, languages, "map", language="All languages", x="task", y="positions")
    assert "12 of 73 models are in no cell" in said(app)
    (cells, *_) = [x for chart in charts_of(app) for x in chart if "cell" in x and "seeds" in x]
    parity = cells[cells["task"] == "parity"].set_index("positions")
    assert parity["seeds"].to_dict() == {"none": 12, "rotary": 12}, "no LSTM"
    # Filters leave fewer languages; no link is blamed.
    app.selectbox(key="language").select("first")
    rerun(app).query_params["language"] = "first"
    app.multiselect(key="task").set_value(["parity", "regular"])
    assert not rerun(app).warning


def test_the_page_and_the_command_give_one_interval_for_one_difference(languages: Path) -> None:
    store = open_reader(str(languages))
    configs = queries.configs(store)
    pair = [i for i, own in configs.items() if own.task == "first" and own.test_size == 200]
    compared = compare(store, "first:positions=none", "first:positions=rotary")
    told = "\n".join(compared.describe())
    for method in ("exact paired permutation test", "exact McNemar"):
        assert method in told
    models = pages.models(store, Selection(config_ids=tuple(pair)))
    settings = overview.settings(store).loc[pair]
    own = importance(models, settings, MEASURES["Share that learned"]).iloc[0]
    answer = compared.questions["learned"]
    assert own["fields"] == ("positions",)
    assert own["paired"] == answer.paired
    assert own["moves"] == pytest.approx(abs(answer.interval.value))
    ends = sorted(map(abs, (answer.interval.low, answer.interval.high)))
    assert sorted(map(abs, own[["low", "high"]])) == pytest.approx(ends)


def test_too_few_seeds_give_a_difference_without_an_interval() -> None:
    frame = pd.DataFrame(
        {"config_id": [1, 1, 2, 2], "model_seed": [0, 1] * 2, "accuracy": [0.5, 0.5, 0.7, 0.7]}
    )
    settings = pd.DataFrame({"positions": ["none", "rotary"]}, index=[1, 2])
    own = importance(frame, settings, MEASURES["Median accuracy"]).iloc[0]
    assert (own["worst"], own["best"]) == ("none", "rotary")
    assert own["moves"] == pytest.approx(0.2)
    assert pd.isna(own["low"])
    assert effect_text(own["at_worst"], "Median accuracy") == "50%"


def test_random_languages_of_several_classes_are_mapped_by_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = copy_of("trained", "random.db", tmp_path)
    app = open_app(monkeypatch, db, lengths="10")
    assert app.segmented_control(key="lengths").value == 10
    assert app.multiselect(key="width").options == ["2", "3"]
    mapped = open_app(monkeypatch, db, "map")
    assert mapped.selectbox(key="language").value == "All languages"
    assert mapped.selectbox(key="x").value == "language_class"
    assert "means over languages" in said(mapped)


# Two configurations, or two models.


def questions(app: AppTest) -> dict[str, dict[Any, Any]]:
    """What is said of each question, by the columns of the table."""
    (table,) = (each.value for each in app.dataframe if "More than chance?" in each.value)
    return {row["Question"]: row for row in table.to_dict("records")}


def test_two_configurations_are_compared_as_the_command_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, TWO, config=["2", "5"])
    found = compare(open_reader(str(SHIPPED)), "all_initializations", "increased_dimensionality")
    assert f"**{found.verdict(('the first', 'the second'))}**" in said(app)
    assert "Seeds are not paired: hidden_size differs" in plain(app)
    asked = questions(app)
    assert list(asked) == [QUESTIONS[name].capitalize() for name in found.questions]
    for name, answer in found.questions.items():
        row = asked[QUESTIONS[name].capitalize()]
        assert (row["First"], row["Second"]) == shown_values(answer)
        assert row["p"] == f"p = {answer.p_value:.3g}"
        assert row["Test"] == answer.method
        assert (row["More than chance?"] == "yes") == answer.is_decided
    (row,) = (x for name, x in asked.items() if "generalizes" in name)
    assert "\N{MINUS SIGN}97.8% to \N{MINUS SIGN}40.1%" in row["Difference, 95%"]
    assert found.strings is not None
    alone = found.strings[(found.strings["wrong_a"] == 0) | (found.strings["wrong_b"] == 0)]
    assert f"{len(alone):,} different strings" in said(app)
    app.segmented_control(key="wrong_in").set_value("Second")
    own = [x.value for x in rerun(app).dataframe if "wrong_a" in x.value]
    assert len(own) == bool((alone["wrong_b"] > 0).any())
    assert all((table["wrong_b"] > 0).all() for table in own)
    # The same seed of both, where models are chosen after configurations.
    app.segmented_control(key="two_what").set_value("Models")
    rerun(app)
    assert app.query_params["run"] == ["3", "20"]
    assert "config" not in app.query_params


def test_it_opens_on_the_worst_and_the_best_of_its_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, TWO)
    (row,) = (x for name, x in questions(app).items() if "generalizes" in name)
    assert row["Second"] == "8 of 8", "of equal shares that of most seeds is taken"
    assert row["First"].startswith("0 of ")


def test_two_models_are_compared_string_by_string(monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_reader(str(SHIPPED))
    found = compare_runs(store, 5, 10)
    wrong = [set(misclassified.errors_of(store, [run_id])["string"]) for run_id in (5, 10)]
    table = found.table
    assert table is not None
    assert (table.both, table.only_first, table.only_second) == (
        len(wrong[0] & wrong[1]), len(wrong[0] - wrong[1]), len(wrong[1] - wrong[0]),
    )  # fmt: skip
    ((strings,),) = rows(store, "SELECT count(*) FROM test_string")
    assert table.pairs == strings, "each string of the test counts once"
    assert (found.p_value, found.difference) == (mcnemar(table), paired_newcombe(table))
    assert found.strings is not None
    assert len(found.strings) == len(wrong[0] ^ wrong[1])
    app = open_app(monkeypatch, SHIPPED, TWO, run=["5", "8"], string="ab{100}c{55}")
    answers = [frame.value for frame in app.dataframe if "logit" in frame.value]
    assert answers[0]["logit"].iloc[0] < 0 < answers[1]["logit"].iloc[0]
    assert "**wrong**" in said(app)
    assert "**right**" in said(app)
    assert "Look inside model 5 at this string" in [link.label for link in app.page_link]
    # What one has not learned is said, by the thresholds of the link.
    ((unlearned,),) = rows(
        store,
        "SELECT run.id FROM run JOIN sweep_run ON run_id = run.id JOIN sweep s ON s.id = sweep_id "
        "WHERE s.name LIKE 'lower%' AND 100 * wrong_within > tested_within",
    )
    app = open_app(monkeypatch, SHIPPED, TWO, run=["3", str(unlearned)], learned="80")
    assert "**fails beyond** of the first, **fails beyond** of the second" in said(app)


def test_the_guide_says_nothing_of_other_models_under_a_name_of_the_report(
    monkeypatch: pytest.MonkeyPatch, languages: Path, tmp_path: Path
) -> None:
    db = tmp_path / "other.db"
    db.write_bytes(languages.read_bytes())
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("UPDATE sweep SET name = 'all_initializations' WHERE id = 1")
    app = open_app(monkeypatch, db, "guide")
    assert "has none of the report's models" in said(app)
    assert not app.get("vega_lite_chart"), "no figure of a model that the guide does not speak of"


def test_of_different_tests_and_kinds_it_says_why_no_string_is_compared(
    monkeypatch: pytest.MonkeyPatch, kinds: Path, tmp_path: Path
) -> None:
    db = copy_of("kinds", "kinds.db", tmp_path)
    facts = Facts(kinds / "kinds.db")
    counted, writes = facts.sweeps["counted"], facts.sweeps["transduction"]
    ids = [str(x[0]["config_id"]) for x in (counted, writes)]
    app = open_app(monkeypatch, db, TWO, config=ids)
    assert "tested on different strings" in said(app)
    assert not app.error
    app = open_app(monkeypatch, db, TWO, run=[str(x[0]["run_id"]) for x in (counted, writes)])
    assert "independent samples (p " in said(app)
    assert "No answer: " in said(app), "a string of the one is none of the other"


def test_strings_without_labels_are_counted_too() -> None:
    a = pd.DataFrame(
        {"string": ["ab", "b"], "length": [2, 1], "label": None, "target": ["ab", "b"]}
    )
    assert string_differences(a, a.head(1)).to_dict("records") == [
        {"string": "b", "length": 1, "label": None, "target": "b", "wrong_a": 1, "wrong_b": 0}
    ]


def test_models_that_are_not_drawn_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = copy_of("compared", "imported.db", tmp_path)
    # All lengths of these strings are one point of a line.
    for most_points, drawn in ((13, (7, 6)), (10, (5, 5))):
        monkeypatch.setattr("dashboard.views.scores.MAX_POINTS", most_points)
        app = open_app(monkeypatch, db, TWO, config=["1", "2"])
        frames = [x for chart in charts_of(app) for x in chart if "run_id" in x and "middle" in x]
        models = frames[0].groupby("configuration_number")["run_id"].nunique()
        assert tuple(models) == drawn
        told = "shows up to 5 models of each configuration"
        assert (told in said(app)) == (drawn != (7, 6))


@pytest.fixture(scope="module")
def other_lengths() -> Store:
    """Seeds trained to length 6 and to length 10, and tested to length 30."""
    return open_reader(str(stock("trained") / "lengths.db"))


LOW: dict[str, Any] = {"learned_at": 0.5, "below": 0.72}
LONGER = "longer strings are those of lengths 11 to 30"


def test_models_of_other_trained_lengths_are_compared_beyond_the_longer_of_them(
    other_lengths: Store,
) -> None:
    named = [f"two:hidden_size=4,train_max_length={longest}" for longest in (6, 10)]
    shares, generalize = [], []
    for longest in (6, 10):
        trained = runs(other_lengths, train_max_length=longest, hidden_size=4, **LOW)
        scores = lengths(other_lengths, trained["id"])
        sums = scores[scores["length"] > 10].groupby("run_id")[["tested", "wrong"]].sum()
        right = (1 - sums["wrong"] / sums["tested"]).reindex(trained["id"])
        learned = trained.set_index("id")["outcome"] != "not learned"
        shares.append(right[learned].mean())
        generalize.append((int((right[learned] >= 0.72).sum()), int(learned.sum())))
    found = compare(other_lengths, *named, **LOW)
    assert found.longer == range(11, 31)
    assert found.questions["beyond"].values == pytest.approx(shares)
    assert found.questions["generalizes"].counts == tuple(generalize)
    first = runs(other_lengths, train_max_length=6, hidden_size=4)["accuracy_beyond"].mean()
    assert first != pytest.approx(shares[0]), "that is on lengths 7 to 30"
    assert found.record()["longer_lengths"] == [11, 30]
    assert LONGER in run_main("compare", *named, SEQCLS_DB=other_lengths.location).stdout
    alike = run_main("compare", named[0], named[0], SEQCLS_DB=other_lengths.location)
    assert LONGER not in alike.stdout


def test_pages_say_on_which_lengths_they_are_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    link: dict[str, Any] = {"learned": "50", "below": "72", "moves": "Share that generalizes"}
    db = copy_of("trained", "lengths.db", tmp_path)
    for page in (TWO, "compare", "map"):
        asked = {"config": ["1", "3"]} if page == TWO else {}
        assert LONGER in said(open_app(monkeypatch, db, page, **link, **asked)), page
