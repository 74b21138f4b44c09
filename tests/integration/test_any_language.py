"""What the pages say of languages and networks other than the report's."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from dashboard.launch import strings
from seqcls.interpretability.mechanisms import SAMPLE
from seqcls.problem import Problem, configuration
from seqcls.strings.tokenizer import Tokenizer
from sweeps.api import causes, errors, errors_of_run, remedies, runs
from sweeps.api.strings import FirstStrings, first_strings
from sweeps.cli.app import app as seqcls
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, rerun, said
from tests.conftest import SHORT
from tests.databases import file_of

TINY = {**SHORT, "train_size": 64, "test_max_length": 30, "max_num_epochs": 1}
RECURRENT = {"architecture": "rnn", "readout": "last"}
LANGUAGES: dict[str, dict[str, Any]] = {
    "even_as": {"task": "counting", "alphabet": "ab", "formula": "a % 2 == 0"},
    "abab": {"task": "regular", "alphabet": "ab", "pattern": "(ab)*"},
    "brackets": {"task": "dyck", **RECURRENT},
}
SENTENCES = {
    "even_as": "Strings of ab with a % 2 == 0 are positive",
    "abab": "Strings of ab that match (ab)* as a whole are positive.",
    "brackets": "brackets",
}
UNTRUE = ("at least one a", "holds at least", "required", "wrongly", "order of letters does not")


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with two models of each language; nothing in it is of the report's task."""
    store = open_writer(str(tmp_path_factory.mktemp("languages") / "languages.db"))
    for name, fields in LANGUAGES.items():
        spec = {"name": name, "model_seeds": [0, 1], "fixed": {**TINY, **RECURRENT, **fields}}
        work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    return file_of(store)


def plain_text(app: AppTest) -> str:
    return said(app).replace("\\", "")


def of_command(db: Path, *arguments: str) -> str:
    result = CliRunner().invoke(seqcls, [*arguments, "--db", str(db)])
    assert result.exit_code == 0, (result.output, result.exception)
    return result.output


def test_strings_are_handed_out_as_stored_and_written_out_where_they_are_shown(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    store = open_reader(str(trained))
    run = int(runs(store, "brackets")["id"].iloc[0])
    stored = set(errors(store, [run])["string"])
    repeated = {text for text in stored if "({" in text}
    assert repeated
    assert set(errors_of_run(store, run)["string"]) == stored
    as_data = json.loads(of_command(trained, "errors", str(run), "--json"))
    assert {row["string"] for row in as_data} == stored
    shown = of_command(trained, "errors", str(run))
    assert "((" in shown
    assert not any(text in shown.split() for text in repeated)
    app = open_app(monkeypatch, trained, "failing", run=str(run), find="({2}")
    table = next(own.value for own in app.dataframe if "logit" in own.value)
    assert len(table) == sum("((" in Tokenizer("()[]").display(text) for text in stored)
    assert not table["string"].str.contains(r"\({[2-9]}").any()


def test_why_brackets_fail_is_told_of_every_string_that_they_get_wrong(trained: Path) -> None:
    store = open_writer(str(trained))
    run = int(runs(store, "brackets")["id"].iloc[0])
    wrong = errors(store, [run])["occurrences"].sum()
    found = causes(store, "brackets")
    assert found.loc[found["run_id"] == run, "strings"].sum() == min(SAMPLE, wrong)
    assert remedies(store, run).mechanisms


def test_a_string_is_asked_about_as_it_is_stored_or_as_it_is_shown(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    store = open_reader(str(trained))
    run = int(runs(store, "brackets")["id"].iloc[0])
    stored = next(text for text in errors(store, [run])["string"] if "({" in text)
    shown = Tokenizer("()[]").display(stored)
    assert stored != shown
    one, other = (of_command(trained, "minimal", str(run), text) for text in (stored, shown))
    assert one == other
    assert one.startswith(shown)
    for text in (stored, shown):
        app = open_app(monkeypatch, trained, "model", run=str(run), view="States", string=text)
        assert not app.error
        assert shown in app.selectbox(key="string").options
        assert app.selectbox(key="string").value == stored


@pytest.mark.parametrize("page", ["compare", "map", "failing", "sweeps", "guide"])
def test_no_page_says_what_is_true_of_the_report_alone(
    monkeypatch: pytest.MonkeyPatch, trained: Path, page: str
) -> None:
    app = open_app(monkeypatch, trained, page)
    assert not app.error
    if page != "guide":
        assert not [text for text in UNTRUE if text in plain_text(app)]


@pytest.mark.parametrize(("run", "name"), [("1", "even_as"), ("3", "abab"), ("5", "brackets")])
def test_the_page_model_says_the_task_and_what_is_absent_and_why(
    monkeypatch: pytest.MonkeyPatch, trained: Path, run: str, name: str
) -> None:
    app = open_app(monkeypatch, trained, "model", run=run)
    text = plain_text(app)
    assert SENTENCES[name] in text
    assert re.search("are left out: Why, Figures(,| and) Breaking point", text)
    assert "architecture='rnn' may tell strings of equal letter counts apart" in text
    assert not [words for words in UNTRUE if words in text]
    asked = next(x.value for x in app.dataframe if "string" in x.value)
    assert {"string", "label", "predicted", "correct", "logit"} == set(asked.columns)
    assert len(set(asked["label"])) == 2, "strings of either label are offered"


def test_errors_are_drawn_by_the_features_of_the_task(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    app = open_app(monkeypatch, trained, "failing", sweep="brackets")
    across = next(box for box in app.selectbox if box.label == "Horizontal axis")
    assert across.value == "nesting depth"
    assert {"nesting depth", "('s", ")'s", "length"} <= set(across.options)
    across.set_value("length")
    assert "Errors by length" in str(rerun(app).get("vega_lite_chart")[1].proto)


def panel(app: AppTest, **fields: str) -> AppTest:
    """The launch panel, opened, with a language typed into it."""
    app.session_state["launch"] = True
    app.session_state["launch_kind"] = "Your own"
    app.session_state["launch task"] = fields.pop("task")
    rerun(app)
    for field, text in fields.items():
        app.text_input(key=f"launch {field}").set_value(text)
    return rerun(app)


def test_a_language_is_typed_and_what_it_accepts_is_shown_at_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), task="counting", formula="a % 2 == 0")
    text = plain_text(app)
    assert SENTENCES["even_as"] in text
    assert "Positive: ε  b  aa  bb  aab  aba" in text
    assert "Negative: a  ab  ba" in text
    assert "**8 models to train**" in text
    assert "launch num_letters" not in [box.key for box in app.multiselect]
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), task="regular", pattern="(ab)*")
    assert "Positive: ε  ab  abab" in plain_text(app)
    names = {"task": "counting", "alphabet": "push pop", "formula": "push > pop"}
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), **names)
    assert "Positive: push · push push · push push push · push push pop" in plain_text(app)
    assert "Negative: ε · pop · push pop" in plain_text(app)


def test_an_automaton_is_dropped_as_a_file_and_what_it_accepts_is_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), task="automaton")
    assert "**8 models to train**" not in plain_text(app)
    content = b"0 1 push\n1 0 pop\n0 0 skip\n0 1 skip\n0\n"
    app.file_uploader(key="strings_file").set_value(("lang.att", content, "text/plain"))
    text = plain_text(rerun(app))
    assert "4 states, task = 'automaton'; 3 tokens: pop push skip; nondeterministic" in text
    assert "Strings that the automaton of the file 'lang.att' accepts are positive" in text
    # The letters that other languages begin with are none of its tokens.
    assert "over 3 tokens" in text
    assert "→ lang.att" in text
    assert "Positive: ε · skip · push pop" in text
    assert "star-free" in text
    assert "**8 models to train**" in text
    app.file_uploader(key="strings_file").set_value(("bad.att", b"0 1 a b\n", "text/plain"))
    assert "bad.att: line 1: symbol 'a' has the output 'b'" in plain_text(rerun(app))


def test_near_negatives_are_chosen_where_there_are_any_and_else_it_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), task="dyck")
    assert "negatives mixed → near" in plain_text(app)
    assert "near negative" not in plain_text(app)
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), task="regular", pattern="(ab)*")
    assert "negatives mixed → near" not in plain_text(app)
    app.multiselect(key="launch negatives").set_value(["near"])
    text = plain_text(rerun(app))
    assert text.count("no near negative was found among 2,000 positive strings") == 1
    assert "negatives are drawn as mixed" in text


def test_strings_are_drawn_once_somebody_looks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    drawn: list[str] = []

    def draw(problem: Problem, part: str, number: int) -> FirstStrings:
        drawn.append(part)
        return first_strings(problem, part, number)

    monkeypatch.setattr(strings, "first_strings", draw)
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), task="even_pairs")
    assert "Look at the strings first" in [x.label for x in app.expander]
    assert not drawn
    app.session_state["launch_strings"] = True
    rerun(app)
    summary, *of_kinds = (frame.value for frame in app.dataframe)
    assert summary["kind"].tolist() == ["positive", "uniform", "edited", "near"]
    assert summary["strings"].sum() == 10_000
    assert [len(frame) for frame in of_kinds] == [10] * 4
    assert all(frame["length"].is_monotonic_increasing for frame in of_kinds)
    app.segmented_control(key="launch_strings_part").set_value("test")
    rerun(app)
    assert drawn == ["train", "test"]
    assert not (tmp_path / "none.db").exists(), "looking makes no database"


def test_what_shortcuts_reach_is_said_and_the_field_set_by_a_press(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As where the panel was left alone: readers are fitted beside it, once for each test."""
    app = open_app(monkeypatch, tmp_path / "none.db")
    app.session_state["launch_start"] = "The report's model"
    app = panel(app, task="cycle_navigation")
    few = {"train_size": 2_000, "max_num_epochs": 1, "test_size": 500, "test_max_length": 30}
    app.multiselect(key="launch_more Strings").set_value(["train_size", "test_size"])
    app.multiselect(key="launch_more Training").set_value(["max_num_epochs"])
    rerun(app)
    for field, value in few.items():
        app.session_state[f"launch {field}"] = [str(value)]
    app.multiselect(key="launch negatives").set_value(["mixed"])
    rerun(app)
    assert "launch_take_near" not in [button.key for button in app.button]
    fit_readers(few | {"negatives": "mixed"})
    text = plain_text(rerun(app))
    assert 'without knowing the language: take negatives = "near"' in text
    assert "What each reader reaches" in [x.label for x in app.expander]
    app.button("launch_take_near").click()
    rerun(app)
    assert app.multiselect(key="launch negatives").value == ["near"]
    fit_readers(few | {"negatives": "near"})
    text = plain_text(rerun(app))
    assert "Shortcut readers reach at most" in text
    assert "launch_take_near" not in [button.key for button in app.button]


def fit_readers(fields: dict[str, Any]) -> None:
    """What the panel has done in the background after a pause, for such a test."""
    made = {"task": "cycle_navigation", "negative_lengths": "uniform", **fields}
    config = configuration(made)
    strings.begin_reading({strings.test_key(config): config}, set())
    strings.READ.begin_making(strings.test_key(config), lambda: pytest.fail("begun")).result()


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"task": "regular", "pattern": "(ab"}, "pattern='(ab'"),
        ({"task": "counting", "formula": "a >"}, "formula='a >'"),
        ({"task": "counting", "formula": "a >= d"}, "formula='a >= d'"),
        ({"task": "regular"}, "Type the pattern of the language."),
        ({"task": "regular", "alphabet": "up down", "pattern": "u"}, "one character a token"),
    ],
)
def test_a_mistake_in_a_language_is_said_and_nothing_can_be_launched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fields: dict[str, str], says: str
) -> None:
    app = panel(open_app(monkeypatch, tmp_path / "none.db"), **fields)
    # What Markdown would draw as an arrow or a sign is kept apart by a joiner that nobody sees.
    assert says in plain_text(app).replace("\N{WORD JOINER}", "")
    assert "launch_button" not in [button.key for button in app.button]


def test_the_guide_says_nothing_of_other_models_under_a_name_of_the_report(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "other.db"))
    fields = {**TINY, "task": "counting", "alphabet": "ab", "formula": "a % 2 == 0"}
    spec = {"name": "all_initializations", "model_seeds": [2, 5], "fixed": fields}
    work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
    app = open_app(monkeypatch, file_of(store), "guide")
    assert not app.error
    text = plain_text(app)
    assert "has none of the report's models" in text
    assert "The logits are" not in text
    assert not app.get("vega_lite_chart"), "no figure of a model that the guide does not speak of"


def test_strings_that_break_models_are_those_of_one_language(
    monkeypatch: pytest.MonkeyPatch, trained: Path
) -> None:
    app = open_app(monkeypatch, trained, "failing")
    (offered,) = [box.options for box in app.selectbox if box.label == "Language"]
    assert {name.split(",")[0] for name in offered} == {"counting", "regular", "dyck"}
    for name in offered:
        (chosen,) = [box for box in app.selectbox if box.label == "Language"]
        chosen.set_value(name)
        table = rerun(app).dataframe[-1].value
        letters = set("()[]") if name.startswith("dyck") else set("ab")
        assert {x for text in table["string"] for x in text if x in "ab()[]"} <= letters
        assert table["models"].iloc[0] == table["models"].max()
        assert (table["share"] <= 1).all()
