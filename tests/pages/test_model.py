"""Clicks on the page Model: a model is found, asked, looked into and compared; and the guide."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.choosing.run import OFFERED_MODELS
from sweeps import api
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from tests.app import open_app, rerun
from tests.conftest import ROOT
from tests.databases import file_of, reseal
from tests.pages.shown import Shown, look, shown
from tests.pages.stock import MANY_SEEDS
from tests.stock import stock

SHIPPED = ROOT / "runs.db"
SEED_2, SEED_5 = "5", "8"
"""Runs of all_initializations in the shipped database."""


def model(monkeypatch: pytest.MonkeyPatch, run: str, **query: str | list[str]) -> AppTest:
    """The page on a model of the shipped database."""
    return open_app(monkeypatch, SHIPPED, "model", run=run, **query)


def typed(app: AppTest, key: str, text: str) -> Shown:
    """The page after something was typed into a box that offers choices."""
    box = app.selectbox(key=key)
    # As the browser does with what is typed: it becomes an option.
    box.options.append(text)
    box.set_value(text)
    return shown(rerun(app))


def one_line(page: Shown, says: str) -> bool:
    """Whether a page says this in a line of an error or a note."""
    return any(says in said and "\n" not in said for said in (*page.errors, *page.notes))


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (
            "38",
            "Not learned: it is right on 433 of 508 test strings of trained lengths 1 to 10 "
            "(85.24%); a model has learned from 99% on. That it is right on ",
        ),
        ("5", "Learned, but fails beyond: it is right on all 508 test strings of trained lengths"),
        (
            "8",
            "Learned and generalizes: it is right on all 508 test strings of trained lengths 1 to "
            "10, and on all ",
        ),
    ],
)
def test_a_model_begins_with_what_it_came_to(
    monkeypatch: pytest.MonkeyPatch, run: str, outcome: str
) -> None:
    said = shown(model(monkeypatch, run)).said
    assert outcome in said
    assert ("It has not learned the trained lengths" in said) == (run == "38")
    assert ("max_num_epochs=120" in said) == (run == "38")


def test_a_model_is_judged_by_the_thresholds_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, "38", learned="80")
    said = shown(app).said
    assert "Learned, but fails beyond: it is right on 433 of 508" in said
    assert "not learned" not in said.lower()
    said = look(app, below=20.0).said
    assert "Learned and generalizes" in said
    assert "; a model generalizes from 20% on." in said


def test_why_a_model_and_a_string_fail_follows_what_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = model(monkeypatch, SEED_2)
    page = shown(app)
    assert app.selectbox(key="string").value == "ab{68}"
    assert "wrong on 697 of 9,984 test strings: 6 false positives and 691 false" in page.said
    assert page.headings[:2] == ["Why does this model fail?", "Why this string?"]
    assert "dilution in head 0: a is drowned by b" in page.said
    next(own for own in app.button if "value interference" in (own.key or "")).click()
    page = shown(rerun(app))
    assert str(app.selectbox(key="string").value).startswith("b")
    assert "a false positive" in page.errors[0]
    page = typed(app, "string", "ab{100}c{55}")
    assert "ab{100}c{55} is positive, but the model predicts negative" in page.said
    assert "The 55 c's have no part in it" in page.said
    assert len(page.charts) == 4
    slider = app.select_slider(key="epoch")
    assert slider.value == 2
    assert [int(x) for x in slider.options] == list(range(21))
    for epoch in (20, 0):
        app.select_slider(key="epoch").set_value(epoch)
        assert shown(rerun(app)).errors != page.errors, "0 is before training"
    for view in ("Figures", "Breaking point", "Ablation", "Why"):
        app.select_slider(key="epoch").set_value(5)
        other = app.selectbox(key="string").options[7]
        look(app, view=view, string=other)
        assert (app.select_slider(key="epoch").value, app.selectbox(key="string").value) == (
            5, other,
        )  # fmt: skip


def test_each_group_of_figures_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    for group, number in {
        "Tokens": 3, "Attention": 6, "The stream": 6, "Circuits": 6, "Training": 2
    }.items():  # fmt: skip
        page = shown(model(monkeypatch, SEED_5, view="Figures", group=group))
        assert len(page.charts) == number, group
        assert not page.errors
    app = model(monkeypatch, SEED_2, view="Figures", group="Circuits", string="baac")
    app.toggle(key="shuffle").set_value(True)
    orders = shown(rerun(app)).tables[0]
    assert len(set(orders["string"])) > 1
    assert orders["logit"].max() - orders["logit"].min() < 1e-9, "it does not mind the order"


def test_families_and_all_strings_tell_where_a_model_breaks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = model(monkeypatch, SEED_2, view="Breaking point", family="ab{n}")
    assert "From n = 66 on it predicts negative (wrong)" in shown(app).said
    for text in ("ab{n", "ab"):
        app.text_input(key="family").set_value(text)
        assert one_line(shown(rerun(app)), "has no free counts")
    app.text_input(key="family").set_value("a{m}b{n}")
    assert len(shown(rerun(app)).charts) == 1
    said = look(app, view="All strings").said
    assert "there are 1,373,700, and the model is wrong on 11,426" in said
    assert "The shortest is ab{66}." in said
    assert "certified right" in said


def test_parts_are_switched_off_and_everything_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, SEED_2, view="Surgery", string="baac")
    page = shown(app)
    assert "Ablation" in page.tabs, "as the section is called now"
    assert page.numbers["Test strings wrong"] == "697"
    assert "Nothing is ablated yet" in page.said
    assert not page.tables
    app.multiselect(key="heads_off").set_value([1])
    page = shown(rerun(app))
    assert int(page.numbers["Test strings wrong"].replace(",", "")) > 697
    assert page.tables[0].set_index("string").loc["baac", "change"] != 0
    assert "".join(app.query_params["heads_off"]) == "1"
    query: dict[str, str | list[str]] = {"heads_frozen": ["0", "7"], "dimensions_off": "1"}
    app = model(monkeypatch, SEED_2, view="Ablation", **query)
    assert app.multiselect(key="heads_off").value == []
    assert app.multiselect(key="heads_frozen").value == [0], "it has no head 7"
    assert app.multiselect(key="dimensions_off").value == [1]
    assert int(shown(app).numbers["Test strings wrong"].replace(",", "")) > 697


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"string": "xyz"}, "unknown letter 'x' in 'xyz'"),
        ({"strings": "aac b{0}"}, "cannot read the count '0'"),
        ({"strings": " ".join("a" * n for n in range(1, 12))}, "too many to draw"),
        ({"run": "999"}, "no run '999'"),
        ({"run": "<b>"}, "no run '<b>'"),
        ({"beside": "99", "view": "States"}, "no run '99'"),
    ],
)
def test_a_link_of_nonsense_is_named(
    monkeypatch: pytest.MonkeyPatch, query: dict[str, str], says: str
) -> None:
    page = shown(open_app(monkeypatch, SHIPPED, "model", **{"run": SEED_2, **query}))
    assert says in page.said
    assert ("has no model to show" in page.said) == ("run" in query)


def test_a_run_without_a_model_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    store = open_writer(str(tmp_path / "failed.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]}))
    with store.write(quiet=True) as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'failed', error = 'diverged *here*'")
    page = shown(open_app(monkeypatch, file_of(store), "model", run="1"))
    assert "run 1 is failed and has no model to look into: diverged *here*" in page.errors[0]
    light = Path(shutil.copy(SHIPPED, tmp_path / "light.db"))
    with closing(sqlite3.connect(light)) as file, file:
        file.execute("DELETE FROM checkpoint")
    reseal(open_writer(str(light)))
    page = shown(open_app(monkeypatch, light, "model", run=SEED_2))
    assert "the weights of run 5 are not stored" in page.errors[0]
    assert not page.charts


def test_the_guide_tells_all_steps_of_the_shipped_models(monkeypatch: pytest.MonkeyPatch) -> None:
    page = shown(open_app(monkeypatch, SHIPPED, "guide"))
    steps = [f"{line[3]}." for line in page.said.splitlines() if line.startswith("## ")]
    assert steps == [f"{number}." for number in range(1, len(steps) + 1)]
    assert len(page.charts) > len(steps), "steps have figures"
    for told in (
        "The logits are -8.2945 and 10.9587",
        "head 0 scores a higher by 3.74, so that one weighs as much as 42 of the other",
        "Of the report's 43 models 16 fail. 14 of these had learned the trained lengths",
        "seed 4 of `default_embeddings_initialization` is wrong on 75 of the 508 test strings",
        "seed 2 of `lower_magnitude_initializations` is wrong on 75 of the 508 test strings",
        "Of the models that saw every string, 2 of 2 fail",
        "With 2 heads 6 of 8 fail, and with 16 none of 8",
        "of the 16 of seed 0, 14 can go",
    ):
        assert told in page.said.replace("\n", " ")
    assert len(page.links) >= 6
    assert not page.notes


def test_the_guide_says_which_models_the_database_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = Path(shutil.copy(SHIPPED, tmp_path))
    with closing(sqlite3.connect(db)) as connection, connection:
        connection.execute("DELETE FROM checkpoint WHERE run_id = ?", SEED_5)
    reseal(open_writer(str(db)))
    api.delete(open_writer(str(db)), "lower_magnitude_initializations")
    page = shown(open_app(monkeypatch, db, "guide"))
    absent = "no model of lower_magnitude_initializations is in this database"
    assert f"Drawn smaller, at the same width, (not known: {absent})" in page.said.replace(
        "\n", " "
    )
    assert sum("the weights of run 8 are not stored" in note for note in page.notes) == 3
    assert any("no run 'lower_magnitude_initializations/2'" in note for note in page.notes)
    assert not page.errors


def run_of(db: Path, hidden_size: int, heads: int, seed: int) -> int:
    fields: dict[str, Any] = {"hidden_size": hidden_size, "num_attention_heads": heads}
    found = api.runs(open_reader(str(db)), model_seeds=seed, **fields)
    return int(found["id"].iloc[0])


def chosen(app: AppTest) -> int:
    return int("".join(app.query_params["run"]))


def test_any_of_many_models_is_found_by_what_is_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    many = stock("states") / "many.db"
    app = open_app(monkeypatch, many, "model")
    offered = app.selectbox(key="model_run").options
    wrong = [int(label.split(": ")[1].split()[0]) for label in offered]
    assert len(wrong) == OFFERED_MODELS < MANY_SEEDS * 4, "the worst are offered, and not all"
    assert wrong == sorted(wrong, reverse=True)
    right = next(
        run for seed in range(9) if (run := run_of(many, 2, 1, seed)) % 4 == 0
    )  # It makes no error, and so is not offered.
    typed(app, "model_run", f"run {right}")
    assert chosen(app) == right
    assert "no test string wrong" in app.selectbox(key="model_run").options[0]
    for text in ("Model 17", "model 17", "17"):
        page = typed(app, "model_run", text)
        assert chosen(app) == 17
    offered = app.selectbox(key="model_run").options
    assert len(offered) == 5
    assert sum("seed 17: " in label for label in offered) == 4
    assert "5 of the models that match '17' are listed" in page.said
    for text in (
        "hidden_size=4 num_attention_heads=2 seed 9",
        "hidden_size=4, num_attention_heads=2, 9",
        "seed=9 hidden_size = 4 num_attention_heads = 2",
    ):
        typed(app, "model_run", text)
        assert chosen(app) == run_of(many, 4, 2, 9)
    for text, problem in (
        ("seed 999", "no trained model matches in sweep 'large'"),
        ("run 99999", "no trained model matches"),
        ("run x", "expected a number, not 'x'"),
        ("hidden_sise=4", "did you mean 'hidden_size'?"),
        ("train_size=4", "train_size is the same for all models"),
        ("hidden_size=5", "no trained model matches"),
        ("9" * 30, "expected a number"),
    ):
        assert problem in typed(app, "model_run", text).errors[0]
        assert chosen(app) == run_of(many, 4, 2, 9)


def test_a_sweep_and_a_seed_mean_a_model_of_another_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, "43")
    typed(app, "model_run", "all_initializations/2")
    assert chosen(app) == 5
    assert app.selectbox(key="model_sweep").value == "all_initializations"
