"""The page inside a model, and the guide."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from sweeps.grid.spec import load_specs, parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import metrics, open_app, rerun, said
from tests.conftest import ROOT, SHORT
from tests.databases import file_of

SHIPPED = ROOT / "runs.db"
SEED_2, SEED_5 = "5", "8"
"""Runs of all_initializations in the shipped database."""


def model(monkeypatch: pytest.MonkeyPatch, db: Path = SHIPPED, **query: str) -> AppTest:
    return open_app(monkeypatch, db, "model", **query)


def charts(app: AppTest) -> int:
    return len(app.get("vega_lite_chart"))


def test_it_says_at_a_glance_which_run_it_is_and_how_long_strings_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = model(monkeypatch, run="1")
    glance = "Run 1: trained on strings of 9 tokens, tested on strings of 1 to 200 tokens."
    assert glance in said(app).replace("\\", "")


def test_it_says_first_why_the_model_fails_and_then_why_the_string_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = model(monkeypatch, run=SEED_2, string="ab{100}c{55}")
    text = said(app).replace("\\", "")
    assert "wrong on 697 of 9,984 test strings: 6 false positives and 691 false negatives" in text
    assert "dilution in head 0: a is drowned by b" in text
    assert "value interference in head 0: c is taken for a" in text
    assert "ab{100}c{55} is positive, but the model predicts negative" in text
    assert "The 55 c's have no part in it" in text
    assert [header.value for header in app.subheader][:2] == [
        "Why does this model fail?",
        "Why this string?",
    ]
    assert charts(app) == 4


def test_a_click_on_a_cause_explains_its_shortest_string(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, run=SEED_2)
    assert app.selectbox(key="string").value == "ab{68}"
    next(b for b in app.button if "value interference" in (b.key or "")).click()
    rerun(app)
    explained = app.selectbox(key="string").value
    assert explained is not None
    assert explained.startswith("b")
    assert "a false positive" in app.error[0].value


def test_the_epoch_changes_what_is_said_and_0_is_before_training(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = model(monkeypatch, run=SEED_2, string="ab{100}c{55}")
    assert app.select_slider(key="epoch").value == 2
    assert [int(x) for x in app.select_slider(key="epoch").options] == list(range(21))
    at_best = app.error[0].value
    for epoch in (20, 0):
        app.select_slider(key="epoch").set_value(epoch)
        rerun(app)
        answers = [*app.error, *app.success]
        assert answers[0].value != at_best


@pytest.mark.parametrize(
    ("group", "number"),
    [("Tokens", 3), ("Attention", 6), ("The stream", 6), ("Circuits", 6), ("Training", 2)],
)
def test_each_group_of_figures_is_drawn(
    monkeypatch: pytest.MonkeyPatch, group: str, number: int
) -> None:
    app = model(monkeypatch, run=SEED_5, view="Figures", group=group)
    assert charts(app) == number
    assert not app.error


def test_a_model_without_positions_does_not_mind_the_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = model(monkeypatch, run=SEED_2, view="Figures", group="Circuits", string="baac")
    app.toggle(key="shuffle").set_value(True)
    rerun(app)
    orders = app.dataframe[0].value
    assert len(set(orders["string"])) > 1
    assert orders["logit"].max() - orders["logit"].min() < 1e-9


def test_a_family_shows_where_it_flips(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, run=SEED_2, view="Breaking point", family="ab{n}")
    assert "From n = 66 on it predicts negative (wrong)" in said(app).replace("\\", "")
    app.text_input(key="family").set_value("a{m}b{n}")
    assert charts(rerun(app)) == 1


def test_all_strings_are_checked_and_longer_ones_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, run=SEED_2, view="All strings")
    text = said(app).replace("\\", "")
    assert "there are 1,373,700, and the model is wrong on 11,426" in text
    assert "The shortest is ab{66}." in text
    assert "certified right" in text


def test_a_head_is_switched_off_and_everything_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, run=SEED_2, view="Surgery", string="baac")
    assert metrics(app)["Test strings wrong"] == "697"
    app.multiselect(key="heads_off").set_value([1])
    rerun(app)
    assert int(metrics(app)["Test strings wrong"].replace(",", "")) > 697
    logits = app.dataframe[0].value.set_index("string")
    assert logits.loc["baac", "change"] != 0
    assert "".join(app.query_params["heads_off"]) == "1"
    assert "Ablation" in [tab.label for tab in app.tabs], "as the section is called now"
    assert "Surgery" not in [tab.label for tab in app.tabs]


def test_nothing_is_drawn_as_ablated_before_anything_is(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "model", run=SEED_2, view="Ablation")
    by_length, *_ = [chart.proto.spec for chart in app.get("vega_lite_chart")]
    assert json.loads(by_length)["encoding"]["color"]["scale"]["domain"] == ["as trained"]
    assert "Nothing is ablated yet" in said(app)
    assert not app.dataframe


def test_what_is_ablated_is_in_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    query: dict[str, str | list[str]] = {"heads_frozen": ["0", "7"], "dimensions_off": "1"}
    app = open_app(monkeypatch, SHIPPED, "model", run=SEED_2, view="Ablation", **query)
    assert app.multiselect(key="heads_off").value == []
    assert app.multiselect(key="heads_frozen").value == [0], "it has no head 7"
    assert app.multiselect(key="dimensions_off").value == [1]
    assert int(metrics(app)["Test strings wrong"].replace(",", "")) > 697


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"string": "xyz"}, "unknown letter 'x' in 'xyz'"),
        ({"strings": "aac b{0}"}, "cannot read the count '0'"),
        ({"view": "Breaking point", "family": "ab{n"}, "'ab{n' has no free counts"),
        ({"view": "Breaking point", "family": "ab"}, "has no free counts"),
        ({"strings": " ".join("a" * n for n in range(1, 12))}, "too many to draw"),
    ],
)
def test_bad_input_gets_one_line(
    monkeypatch: pytest.MonkeyPatch, query: dict[str, str], says: str
) -> None:
    app = open_app(monkeypatch, SHIPPED, "model", run=SEED_2, **query)
    lines = [error.value.replace("\\", "") for error in app.error]
    assert any(says in line for line in lines), lines
    assert "\n" not in "".join(lines)


@pytest.mark.parametrize(("run", "says"), [("999", "no run '999'"), ("<b>", "no run '<b>'")])
def test_a_link_to_no_run_says_so(monkeypatch: pytest.MonkeyPatch, run: str, says: str) -> None:
    app = model(monkeypatch, run=run)
    assert app.error[0].value == "This run has no model to show."
    assert says in app.code[-1].value


def test_a_run_that_is_not_done_says_so_and_its_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "failed.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]}))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE run SET state = 'failed', error = 'diverged *here*'")
    app = model(monkeypatch, file_of(store), run="1")
    assert "run 1 is failed and has no model to look into: diverged *here*" in app.code[-1].value


def test_a_run_without_weights_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    db = tmp_path / "light.db"
    shutil.copy(SHIPPED, db)
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("DELETE FROM checkpoint")
        connection.commit()
    app = model(monkeypatch, db, run=SEED_2)
    assert app.error[0].value == "This run has no model to show."
    assert "the weights of run 5 are not stored" in app.code[-1].value
    assert not charts(app)


def test_where_only_the_kept_epoch_is_stored_there_are_two_epochs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "small.db"))
    spec = {"name": "a_*b*", "model_seeds": [0], "fixed": SHORT, "checkpoints": "best_epoch"}
    work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(0))
    app = model(monkeypatch, file_of(store), run="1")
    slider = app.select_slider(key="epoch")
    assert len(slider.options) == 2
    assert slider.options[0] == "0"
    assert app.selectbox(key="model_sweep").value == "a_*b*"


def test_the_guide_tells_all_steps_of_the_shipped_models(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "guide")
    assert [header.value[0] for header in app.subheader] == list("123456789")
    text = said(app).replace("\\", "")
    assert "The logits are -8.2945 and 10.9587" in text
    assert "head 0 scores a higher by 3.74, so that one weighs as much as 42 of the other" in text
    assert "Of the report's 43 models 16 fail. 14 of these had learned the trained lengths" in text
    assert "seed 4 of `default_embeddings_initialization` is wrong on 75 of the 508 test" in text
    assert (
        "seed 2 of `lower_magnitude_initializations` is wrong on 75 of the 508 test strings" in text
    )
    assert "Of the models that saw every string, 2 of 2 fail" in text
    assert "none of 8 with 16" in text
    assert "of the 16 of seed 0, 14 can go" in text
    assert len(app.get("page_link")) >= len(app.subheader)
    assert not app.info


def test_the_guide_says_which_models_the_database_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "other.db"))
    (report,) = load_specs("report/all_initializations")
    spec = {**json.loads(report.submitted), "model_seeds": [0], "verdict": False}
    work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    app = open_app(monkeypatch, file_of(store), "guide")
    text = said(app).replace("\\", "")
    assert "all_initializations/5, which cannot be shown" in text
    assert "no finished model of lower_magnitude_initializations" in text
    assert not app.error


@pytest.mark.parametrize("view", ["Why", "Figures", "Breaking point", "Ablation"])
def test_a_changed_string_or_epoch_is_answered(monkeypatch: pytest.MonkeyPatch, view: str) -> None:
    app = model(monkeypatch, run=SEED_2, view=view)
    app.select_slider(key="epoch").set_value(5)
    rerun(app)
    other = app.selectbox(key="string").options[7]
    app.selectbox(key="string").set_value(other)
    rerun(app)
    assert app.select_slider(key="epoch").value == 5
    assert app.selectbox(key="string").value == other
    assert not app.exception


def test_why_a_model_fails_is_told_without_pytorch() -> None:
    check = (
        "import sys\n"
        "from streamlit.testing.v1 import AppTest\n"
        "app = AppTest.from_file('dashboard/app.py', default_timeout=60)\n"
        "app.query_params['run'] = '5'\n"
        "app.query_params['view'] = 'Breaking point'\n"
        "app.switch_page('screens/model.py').run()\n"
        "assert not app.exception, app.exception[0].stack_trace\n"
        "assert app.text_input(key='family').value, [own.value for own in app.error]\n"
        "print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout == "False\n", done.stderr


@pytest.mark.parametrize(
    ("run_id", "outcome"),
    [
        (
            38,
            "Not learned: it is right on 433 of 508 test strings of trained lengths 1 to 10 "
            "(85.24%); a model has learned from 99% on. That it is right on ",
        ),
        (5, "Learned, but fails beyond: it is right on all 508 test strings of trained lengths"),
        (
            8,
            "Learned and generalizes: it is right on all 508 test strings of trained lengths 1 to "
            "10, and on all ",
        ),
    ],
)
def test_a_model_begins_with_what_it_came_to(
    monkeypatch: pytest.MonkeyPatch, run_id: int, outcome: str
) -> None:
    app = model(monkeypatch, run=str(run_id))
    assert outcome in said(app).replace("\\", "")
    has_not = "It has not learned the trained lengths" in said(app)
    assert has_not == (run_id == 38)
    assert ("max_num_epochs=120" in said(app).replace("\\", "")) == (run_id == 38)


def test_a_model_is_judged_by_the_thresholds_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, run="38", learned="80")
    text = said(app).replace("\\", "")
    assert "Learned, but fails beyond: it is right on 433 of 508" in text
    assert "Not learned" not in text
    assert "has not learned" not in text
    assert "First, it has to learn" not in text
    assert "Thresholds, and filters for other pages" in [panel.label for panel in app.expander]
    text = said(model(monkeypatch, run="38", learned="80", below="20")).replace("\\", "")
    assert "Learned and generalizes" in text
    assert "; a model generalizes from 20% on." in text
