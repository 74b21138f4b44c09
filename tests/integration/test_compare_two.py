"""Two configurations, or two models, compared on a page: what is so, and what cannot be said."""

from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from sweeps.api import lengths, runs, submit
from sweeps.api import work as train
from sweeps.api.comparisons import QUESTIONS, compare, compare_runs, shown_values
from sweeps.cli.app import app
from sweeps.grid.spec import parse_spec
from sweeps.statistics.differences import string_differences
from sweeps.statistics.intervals import mcnemar, paired_newcombe
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import string_queries
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, rerun, said
from tests.chaos.compare_values import fill_imported
from tests.conftest import ROOT, SHORT
from tests.databases import file_of, rows
from tests.shown import charts_of

SHIPPED = ROOT / "runs.db"
PAGE = "compare_two"


def questions(app: AppTest) -> dict[str, dict[Any, Any]]:
    """What is said of each question, by the columns of the table."""
    (table,) = (each.value for each in app.dataframe if "More than chance?" in each.value)
    return {row["Question"]: row for row in table.to_dict("records")}


def generalizing(app: AppTest) -> dict[Any, Any]:
    return next(row for name, row in questions(app).items() if "generalizes" in name)


def test_two_configurations_are_compared_as_the_command_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, PAGE, config=["2", "5"])
    assert "of trained lengths" in said(app), "and how much of the test was trained on"
    found = compare(open_reader(str(SHIPPED)), "all_initializations", "increased_dimensionality")
    assert f"**{found.verdict(('the first', 'the second'))}**" in said(app)
    assert "(the second has more)" in said(app)
    assert "Seeds are not paired" in said(app)
    assert "Seeds are not paired: hidden_size differs, so the same seed" in found.pairing
    assert list(questions(app)) == [QUESTIONS[name].capitalize() for name in found.questions]
    for name, answer in found.questions.items():
        row = questions(app)[QUESTIONS[name].capitalize()]
        assert (row["First"], row["Second"]) == shown_values(answer)
        assert row["p"] == f"p = {answer.p_value:.3g}"
        assert row["Test"] == answer.method
        assert (row["More than chance?"] == "yes") == answer.is_decided
    interval = generalizing(app)["Difference, 95%"]
    assert "\N{MINUS SIGN}97.8% to \N{MINUS SIGN}40.1%" in interval
    assert found.strings is not None
    alone = found.strings[(found.strings["wrong_a"] == 0) | (found.strings["wrong_b"] == 0)]
    assert f"{len(alone):,} different strings" in said(app)
    assert app.query_params["config"] == ["2", "5"]
    assert not app.error
    assert "0 of 8 right" not in said(app)


def test_it_opens_on_the_first_row_of_compare_and_the_best_of_its_language(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, "compare")
    (table,) = (each.value for each in app.dataframe if "generalizing_share" in each.value)
    app = open_app(monkeypatch, SHIPPED, PAGE)
    first = app.selectbox(key="two_config_0")
    assert first.format_func(first.value) == table["configuration"].iloc[0]
    row = generalizing(app)
    best = set(table[table["generalizing_share"] == 1]["generalize_of"])
    assert "8 of 8" in best, "of equal shares that of most seeds is taken"
    assert row["Second"] == "8 of 8"


def test_models_are_judged_by_the_thresholds_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("all_initializations", "lower_magnitude_initializations")
    store = open_reader(str(SHIPPED))
    found = compare(store, *names, learned_at=0.8, below=0.9)
    ids = [str(each) for each in found.config_ids]
    app = open_app(monkeypatch, SHIPPED, PAGE, config=ids, learned="80", below="90")
    learned = questions(app)["Share that learned"]
    assert (learned["First"], learned["Second"]) == ("8 of 8", "8 of 8")
    counts = shown_values(found.questions["generalizes"])
    assert (generalizing(app)["First"], generalizing(app)["Second"]) == counts
    assert "Thresholds, and filters for other pages" in [panel.label for panel in app.expander]
    app = open_app(monkeypatch, SHIPPED, PAGE, config=ids)
    learned = questions(app)["Share that learned"]
    assert (learned["First"], learned["Second"]) == ("8 of 8", "7 of 8")
    assert (generalizing(app)["First"], generalizing(app)["Second"]) != counts
    ((unlearned,),) = rows(
        store,
        "SELECT run.id FROM run JOIN sweep_run ON run_id = run.id JOIN sweep s ON s.id = sweep_id "
        f"WHERE s.name = '{names[1]}' AND 100 * wrong_within > tested_within",
    )
    app = open_app(monkeypatch, SHIPPED, PAGE, run=["3", str(unlearned)])
    assert "**fails beyond** of the first, **not learned** of the second" in said(app)
    app = open_app(monkeypatch, SHIPPED, PAGE, run=["3", str(unlearned)], learned="80")
    assert "**fails beyond** of the first, **fails beyond** of the second" in said(app)


def test_only_seeds_that_learned_are_compared_by_whether_they_generalize() -> None:
    store = open_reader(str(SHIPPED))
    names = ("lower_magnitude_initializations", "all_initializations")
    found = compare(store, *names)
    right = {
        name: rows(
            store,
            "SELECT wrong_beyond = 0 FROM run JOIN sweep_run ON run_id = run.id "
            f"JOIN sweep s ON s.id = sweep_id WHERE s.name = '{name}' "
            "AND 100 * wrong_within <= tested_within",
        )
        for name in names
    }
    counts = tuple((sum(bool(x) for (x,) in right[name]), len(right[name])) for name in names)
    assert [of for _, of in counts] == [7, 8], "one errs on 75 of 508 strings of trained lengths"
    assert found.questions["generalizes"].counts == counts


def test_two_models_are_compared_string_by_string() -> None:
    store = open_reader(str(SHIPPED))
    found = compare_runs(store, 5, 10)
    wrong = [set(string_queries.errors_of(store, [run_id])["string"]) for run_id in (5, 10)]
    table = found.table
    assert table is not None
    assert (table.both, table.only_first, table.only_second) == (
        len(wrong[0] & wrong[1]), len(wrong[0] - wrong[1]), len(wrong[1] - wrong[0]),
    )  # fmt: skip
    (strings,) = rows(store, "SELECT count(*) FROM test_string")
    assert table.pairs == strings[0], "each string of the test counts once"
    assert found.p_value == mcnemar(table)
    assert found.difference == paired_newcombe(table)
    assert found.strings is not None
    assert len(found.strings) == len(wrong[0] ^ wrong[1])


def test_a_string_is_asked_of_both_models_and_the_link_keeps_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, SHIPPED, PAGE, run=["5", "8"], string="ab{100}c{55}")
    assert "hidden_size" not in said(app)
    answers = [frame.value for frame in app.dataframe if "logit" in frame.value]
    assert len(answers) == 2
    assert answers[0]["logit"].iloc[0] < 0 < answers[1]["logit"].iloc[0]
    assert "**wrong**" in said(app)
    assert "**right**" in said(app)
    links = [link.label for link in app.page_link]
    assert "Look inside model 5 at this string" in links
    # The same seed of both configurations, where models are chosen after configurations.
    app = open_app(monkeypatch, SHIPPED, PAGE, config=["2", "5"])
    app.segmented_control(key="two_what").set_value("Models")
    rerun(app)
    assert app.query_params["run"] == ["3", "20"]
    assert "config" not in app.query_params


def test_what_a_link_asks_for_in_vain_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, PAGE, run=["999", "5"])
    assert "The link asks for run 999" in app.warning[0].value
    assert not app.error


def test_of_different_tests_and_kinds_it_says_why_no_string_is_compared(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "kinds.db"))
    fixed: list[dict[str, Any]] = [
        {"task": "parity", **SHORT},
        {"task": "copy", "num_tokens": 3, "positions": "sinusoidal", **SHORT},
    ]
    for place, each in enumerate(fixed):
        spec = {"name": f"s{place}", "model_seeds": [0, 1], "fixed": each}
        work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    ids = [row[0] for row in rows(store, "SELECT id FROM config ORDER BY id")]
    app = open_app(monkeypatch, file_of(store), PAGE, config=[str(x) for x in ids])
    assert "tested on different strings" in said(app)
    assert not app.error
    app = open_app(monkeypatch, file_of(store), PAGE, run=["1", "3"])
    assert "compared as independent samples (p " in said(app)
    assert "No answer: " in said(app), "a string of the one is none of the other"
    both = open_app(monkeypatch, file_of(store), PAGE, run=["3", "4"])
    assert "test strings" in said(both)
    assert "compared as independent samples" not in said(both)
    assert not both.error


def test_strings_without_labels_are_counted_too() -> None:
    a = pd.DataFrame(
        {"string": ["ab", "b"], "length": [2, 1], "label": None, "target": ["ab", "b"]}
    )
    found = string_differences(a, a.head(1))
    assert found.to_dict("records") == [
        {"string": "b", "length": 1, "label": None, "target": "b", "wrong_a": 1, "wrong_b": 0}
    ]


@pytest.mark.parametrize(("most_points", "drawn"), [(20, (12, 4)), (14, (7, 4))])
def test_models_that_are_not_drawn_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, most_points: int, drawn: tuple[int, int]
) -> None:
    # All lengths of these strings are one point of a line.
    monkeypatch.setattr("dashboard.views.scores.MAX_POINTS", most_points)
    db = tmp_path / "several.db"
    fill_imported(open_writer(str(db)), tmp_path, (12, 4))
    app = open_app(monkeypatch, db, "compare_two", config=["1", "2"])
    points = next(x for chart in charts_of(app) for x in chart if "run_id" in x and "middle" in x)
    models = points.groupby("configuration_number")["run_id"].nunique()
    assert tuple(models) == drawn
    assert ("shows up to 7 models of each configuration" in said(app)) == (drawn != (12, 4))


@pytest.fixture(scope="module")
def two_trainings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seeds trained to length 6 and to length 10, and tested to length 30."""
    path = tmp_path_factory.mktemp("two") / "runs.db"
    network = {"architecture": "lstm", "readout": "last", "task": "dyck"}
    sizes = {"train_size": 1280, "test_size": 600, "test_max_length": 30, "max_num_epochs": 6}
    axes = {"train_max_length": [6, 10], "hidden_size": [3, 4]}
    spec = {"name": "two", "model_seeds": "0..2", "fixed": {**network, **sizes}, "axes": axes}
    store = open_writer(str(path))
    submit(store, spec)
    train(store)
    return path


LOW: dict[str, Any] = {"learned_at": 0.5, "below": 0.72}
SAID = (
    "Trained or tested on different lengths: longer strings are those of lengths 11 to 30, which "
    "none was trained on and all are tested on."
)


def test_models_of_other_trained_lengths_are_compared_beyond_the_longer_of_them(
    two_trainings: Path,
) -> None:
    store = open_reader(str(two_trainings))
    named = [f"two:hidden_size=4,train_max_length={longest}" for longest in (6, 10)]
    shares, generalize = [], []
    for longest in (6, 10):
        trained = runs(store, train_max_length=longest, hidden_size=4, **LOW)
        scores = lengths(store, trained["id"])
        sums = scores[scores["length"] > 10].groupby("run_id")[["tested", "wrong"]].sum()
        right = (1 - sums["wrong"] / sums["tested"]).reindex(trained["id"])
        learned = trained.set_index("id")["outcome"] != "not learned"
        shares.append(right[learned].mean())
        generalize.append((int((right[learned] >= 0.72).sum()), int(learned.sum())))
    found = compare(store, *named, **LOW)
    assert found.longer == range(11, 31)
    assert found.questions["beyond"].values == pytest.approx(shares)
    assert found.questions["generalizes"].counts == tuple(generalize)
    first = runs(store, train_max_length=6, hidden_size=4)["accuracy_beyond"].mean()
    assert first != pytest.approx(shares[0]), "that is on lengths 7 to 30"
    for record in (found.record(), compare(store, *named).record()):
        assert record["longer_lengths"] == [11, 30]
        assert record["longer_strings"] == SAID
    asked = ["compare", *named, "--db", str(two_trainings)]
    assert SAID in CliRunner().invoke(app, asked).output
    assert (
        SAID not in CliRunner().invoke(app, ["compare", named[0], *asked[1:2], *asked[3:]]).output
    )


@pytest.mark.parametrize("page", ["compare_two", "compare", "map"])
def test_pages_say_on_which_lengths_they_are_compared(
    two_trainings: Path, monkeypatch: pytest.MonkeyPatch, page: str
) -> None:
    link: dict[str, Any] = {"learned": "50", "below": "72", "moves": "Share that generalizes"}
    if page == "compare_two":
        link |= {"config": ["1", "3"]}
    shown = open_app(monkeypatch, two_trainings, page, **link)
    assert SAID in said(shown)
