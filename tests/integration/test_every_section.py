"""Every section of every page, opened for a model of every kind there can be."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.words.measures import NOT_KNOWN
from seqcls.problem import resolve
from seqcls.text import count
from sweeps import api
from sweeps.api import configs, predict
from sweeps.api.naming import names_of
from sweeps.api.protocols import protocol
from sweeps.store.opening import open_reader
from tests.app import PAGES, open_app, rerun, said
from tests.databases import rows
from tests.every_kind import IMPORTED, NAMES, SWEEPS, WRITTEN, every_kind, every_kind_file, spelled

__all__ = ["every_kind", "every_kind_file"]


def test_whoever_asks_about_nothing_gets_nothing(every_kind: Path) -> None:
    store = api.open_store(every_kind)
    for sweep in SWEEPS:
        assert api.predict(store, run_of(sweep), []).empty
        # Code from outside is asked for the targets of no string, which it cannot give here.
        if sweep not in (*IMPORTED, "class from outside"):
            assert len(api.model(store, run_of(sweep)).ask_all([]).strings) == 0
        assert api.figures(store, run_of(sweep), []) == []
    assert api.predict(store, run_of("writing"), [], beam=3).empty
    for asked in (api.errors, api.lengths, api.by_drawn):
        assert asked(store, []).empty
    assert api.runs(store, state="failed").empty


CONTENT = ("vega_lite_chart", "arrow_data_frame", "dataframe", "metric", "image", "bidi_component")
UNKNOWN = "aaaaaaab"
"""Longer than all rows of the files."""


def run_of(sweep: str) -> str:
    return str(SWEEPS.index(sweep) + 1)


def check(app: AppTest, where: str) -> None:
    """Refuses a page that says an error in place of its content."""
    errors = [own.value for own in app.error if "but the model predicts" not in own.value]
    assert not errors, (where, errors)
    assert any(len(app.get(part)) for part in CONTENT), where
    instead = [own.value for own in app.info if "is not in the file" in own.value]
    assert not instead, (where, instead)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_section_of_a_model_has_content(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path, sweep: str
) -> None:
    app = open_app(monkeypatch, every_kind, "model", run=run_of(sweep))
    check(app, "first")
    sections = [tab.label for tab in app.tabs]
    assert sections or sweep in IMPORTED
    for section in sections[1:]:
        app = open_app(monkeypatch, every_kind, "model", run=run_of(sweep), view=section)
        check(app, section)


@pytest.mark.parametrize("sweep", WRITTEN)
def test_a_model_of_a_file_is_asked_about_strings_that_are_not_in_it(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path, sweep: str
) -> None:
    string = spelled(UNKNOWN, WRITTEN[sweep])
    asked = {"run": run_of(sweep), "string": string}
    sections = ["Answers", "States", "Minimal and nearest", "Live"]
    for section in [*sections, "Writing"] if "pairs" in sweep else sections:
        app = open_app(monkeypatch, every_kind, "model", **asked, view=section)
        check(app, section)
        if section == "Minimal and nearest":
            assert "not known, predicted" in said(app).replace("\\", "")
    app = open_app(monkeypatch, every_kind, "model", **asked)
    app.text_input(f"asked {run_of(sweep)}").set_value(string)
    answers = app.run().dataframe[0].value.iloc[0]
    right = "target" if "pairs" in sweep else "label"
    assert answers[right] == NOT_KNOWN
    assert answers["output" if "pairs" in sweep else "predicted"] not in (NOT_KNOWN, None)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_lists_models_of_every_kind(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path, page: str
) -> None:
    for language in ("file", "pairs", "paragraph", "ones_modulo") if page != "sweeps" else ("",):
        query = {"language": language} if language else {}
        check(open_app(monkeypatch, every_kind, page, **query), f"{page} {language}")


@pytest.mark.parametrize("sweep", SWEEPS)
def test_every_model_can_be_chosen_among_the_failing_and_compared(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path, sweep: str
) -> None:
    check(open_app(monkeypatch, every_kind, "failing", sweep=sweep, run=run_of(sweep)), "failing")
    of_its_task = {"imported": "file of names", "imported outputs": "foreign pairs"}
    others = {name: other for other, name in of_its_task.items()} | of_its_task
    runs = [run_of(sweep), run_of(others.get(sweep, sweep))]
    if runs[0] != runs[1]:
        check(open_app(monkeypatch, every_kind, "compare_two", run=runs), "compare two")


def test_the_guide_is_drawn_where_no_model_is_the_reports(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path
) -> None:
    app = open_app(monkeypatch, every_kind, "guide")
    assert not app.error
    assert NAMES["a"] not in said(app)


@pytest.mark.parametrize("sweep", ["counted", "file", "pairs of names"])
def test_the_page_answers_what_the_command_answers(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path, sweep: str
) -> None:
    # So many letters are counted, not spelled out.
    strings = ["0{2000000}1"] if sweep == "counted" else [spelled(UNKNOWN, WRITTEN[sweep])]
    asked = predict(open_reader(str(every_kind)), run_of(sweep), strings)
    app = open_app(monkeypatch, every_kind, "model", run=run_of(sweep), view="Answers")
    app.text_input(f"asked {run_of(sweep)}").set_value("  ".join(strings))
    shown = rerun(app).dataframe[0].value
    assert not app.error
    assert shown["string"].tolist() == strings
    number = asked.select_dtypes("float").columns[0]
    assert shown[number].tolist() == pytest.approx(asked[number].tolist())


def test_of_a_string_that_is_not_in_the_file_compare_two_says_neither_right_nor_wrong(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path
) -> None:
    for sweep in ("file", "pairs"):
        run = run_of(sweep)
        app = open_app(monkeypatch, every_kind, "compare_two", run=[run, run])
        (asked,) = (box for box in app.text_input if str(box.key).startswith("two_asked"))
        asked.set_value(UNKNOWN)
        rerun(app)
        assert "The correct answer is not known" in said(app)
        assert "**wrong**" not in said(app)


def test_the_bar_of_a_sweep_is_full_where_all_of_it_is_done(
    monkeypatch: pytest.MonkeyPatch, every_kind: Path
) -> None:
    table = open_app(monkeypatch, every_kind, "sweeps").dataframe[0]
    bar = json.loads(table.proto.columns)["done"]["type_config"]
    assert (bar["min_value"], bar["max_value"]) == (0, 1)
    assert set(table.value["done"]) == {1.0}


def test_configurations_of_every_kind_have_names_of_their_own(every_kind: Path) -> None:
    store = open_reader(str(every_kind))
    named = names_of(store, list(configs(store)))
    assert len({*named.values()}) == len(named) >= len(SWEEPS)


@pytest.mark.parametrize("sweep", SWEEPS)
def test_the_protocol_of_every_kind_says_what_is_stored(every_kind: Path, sweep: str) -> None:
    store = open_reader(str(every_kind))
    ((config_id, epochs, best, tested, digest, finished),) = rows(
        store,
        "SELECT config_id, epochs, best_epoch, tested, digest, finished_at FROM run "
        f"WHERE id = {run_of(sweep)}",
    )
    problem = resolve(configs(store, [config_id])[config_id])
    text = " ".join(protocol(store, run_of(sweep)))
    assert f"It answered {tested:,} test" in text
    assert digest.rpartition(":")[2][:16] in text
    assert finished[:10] in text
    assert f"Tested on {problem.test.epoch_size:,} " in text
    if problem.is_imported:
        assert "Trained elsewhere as " in text
        assert "was kept" not in text
        return
    assert f"was trained for {count(epochs, 'epoch')}, and epoch {best:,} was kept, " in text
    assert f"ends after {count(problem.config.max_num_epochs, 'epoch')}" in text
    assert f"Trained on {problem.train.epoch_size:,} " in text
    longest = problem.validation.lengths[-1], problem.train.lengths[-1]
    assert ("They are longer than those trained on" in text) == (longest[0] > longest[1])
    assert problem.writes == ("Outputs are written by" in text)
