"""New sweep: lists typed, how they were read, the specification, previews, the launch."""

import json
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.training import form, offer
from seqcls.config import RunConfig
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries, sweep_queries
from sweeps.work import background_worker
from sweeps.work.estimate import Estimate
from tests.app import open_app, page_text, plain, rerun
from tests.conftest import ROOT, SHORT
from tests.databases import file_of, rows


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A path without a database."""
    return tmp_path / "none.db"


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launched sweeps are stored, and no worker starts."""
    monkeypatch.setattr(background_worker, "start_worker", lambda *_, **__: None)


@pytest.fixture(autouse=True)
def _untimed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is timed beside the tests."""
    monkeypatch.setattr(offer, "_time", lambda _: Estimate(0, 0, None, ""))
    monkeypatch.setattr(offer, "prepare", lambda: None)


def typed(app: AppTest, tasks: str = "", networks: str = "") -> str:
    """The text of the page once these lists are typed."""
    for key, text in ((form.TASKS, tasks), (form.NETWORKS, networks)):
        if text:
            app.text_area(key=key).set_value(text)
    return plain(rerun(app))


def shown(app: AppTest) -> dict[str, Any]:
    """The specification beside the form."""
    return tomllib.loads(app.code[0].value)


def launched(app: AppTest, db: Path, name: str = "sweep 1", place: str = "page") -> dict[str, Any]:
    """The specification that the button stores."""
    app.button(f"launch {place}").click()
    rerun(app)
    found: dict[str, Any] = json.loads(sweep_queries.specifications(open_reader(str(db)))[name])
    return found


def configs(spec: dict[str, Any]) -> list[RunConfig]:
    return list(parse_spec(spec).configs())


# Lists.


@pytest.mark.usefixtures("untrained")
def test_a_list_of_tasks_and_one_of_networks_make_a_sweep(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "launch")
    text = typed(app, "(ab|ba)*, even pairs, a > b", "transformer rotary, lstm")
    for line in (
        "`(ab|ba)*`: regular expression over `ab`", "`even pairs`: over `01`: Strings whose last",
        "`a > b`: formula over `ab`", "`transformer rotary`: Transformer, rotary",
        "**48 models** · ",
    ):  # fmt: skip
        assert line in text
    app.text_input(key=form.SEEDS).set_value("5")
    app.number_input(key=form.TRAINED).set_value(10)
    assert "**30 models**" in page_text(rerun(app))
    assert not db.exists(), "looking makes no database"
    spec = launched(app, db)
    assert spec["model_seeds"] == "0..4"
    made = {(x.task, x.pattern, x.formula, x.architecture, x.positions) for x in configs(spec)}
    assert made == {
        (*task, *network)
        for task in (("regular", "(ab|ba)*", ""), ("even_pairs", "", ""), ("counting", "", "a > b"))
        for network in (("transformer", "rotary"), ("lstm", "none"))
    }
    assert {(x.train_max_length, x.test_max_length) for x in configs(spec)} == {(10, 100)}
    assert "Sweeps" not in app.title[0].value
    assert "sweep 1" in plain(app), "one lands where it is followed"


@pytest.mark.usefixtures("untrained")
def test_a_mistake_is_named_in_one_line_and_disables_the_launch(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "launch")
    for tasks, networks, names in (
        ("even pears", "lstm", "did you mean 'even_pairs'?"),
        ("a >= = b", "lstm", "formula='a >= = b'"),
        ("(ab", "lstm", "a parenthesis is not closed"),
        ("parity", "trasformer", "did you mean 'transformer'?"),
        ("parity", "encoder decoder", "architecture='encoder_decoder'"),
    ):
        text = typed(app, tasks, networks)
        assert names in text, tasks
        assert "\n" not in app.error[0].value
        assert app.button("launch page").disabled, tasks
    assert "**8 models**" in typed(app, "copy", "encoder decoder")


def test_other_tasks_are_chosen_with_their_parameters_and_added_as_they_are_typed(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "launch")
    typed(app, "parity")
    app.selectbox(key="other task").set_value("counting")
    rerun(app)
    app.text_input(key="other task alphabet").set_value("push pop")
    app.text_input(key="other task formula").set_value("push > pop")
    rerun(app)
    next(x for x in app.button if x.label == "Add to the list").click()
    text = plain(rerun(app))
    assert app.text_area(key=form.TASKS).value == (
        'parity, counting alphabet="push pop" formula="push > pop"'
    )
    assert "over `push pop`" in text
    assert shown(app)["configurations"][-1]["formula"] == "push > pop"


def test_an_automaton_and_strings_are_dropped_as_files(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "launch")
    content = b"0 1 push\n1 0 pop\n0 0 skip\n0 1 skip\n0\n"
    app.file_uploader(key="uploaded file").set_value(("lang.att", content, "text/plain"))
    text = plain(rerun(app))
    for part in ("4 states", "3 tokens: pop push skip", "nondeterministic", "star-free"):
        assert part in text
    assert str(app.text_area(key=form.TASKS).value).endswith(", lang.att")
    assert "`lang.att`: over `pop push skip`" in text
    assert "**72 models**" in text
    app.file_uploader(key="uploaded file").set_value(("bad.att", b"0 1 a b\n", "text/plain"))
    assert "bad.att: line 1: symbol 'a' has the output 'b'" in plain(rerun(app))
    own = b"tokens,label\n" + b"".join(b"%d,%d\n" % (x, x % 2) for x in range(10, 400))
    app.file_uploader(key="uploaded file").set_value(("my own.csv", own, "text/csv"))
    rerun(app)
    assert str(app.text_area(key=form.TASKS).value).endswith(', "my own.csv"')
    assert shown(app)["configurations"][-1]["task"] == "file"


# Settings, and what is started from.


@pytest.mark.usefixtures("untrained")
def test_rows_of_settings_vary_or_hold_for_all(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    import pandas as pd

    rows_typed = pd.DataFrame(
        {"setting": ["hidden_size", "max_num_epochs", None], "values": ["16, 64", "3", None]}
    )
    app = open_app(monkeypatch, db, "launch")
    app.session_state["begun settings"] = app.session_state["typed settings"] = rows_typed
    app.session_state["settings"] = {"edited_rows": {}, "added_rows": [], "deleted_rows": []}
    assert "**32 models**" in typed(app, "parity, first", "transformer")
    spec = launched(app, db)
    own = configs(spec)
    sizes = {(x.hidden_size, x.feed_forward_size, x.max_num_epochs) for x in own}
    assert sizes == {(16, 64, 3), (64, 256, 3)}, "what a base makes of other fields follows them"


SEVERAL: list[dict[str, Any]] = [
    {"architecture": "transformer", "positions": "rotary", "attention_head_size": 2},
    {"architecture": "lstm", "readout": "last", "hidden_size": 3, "model_seeds": [1, 5]},
]


@pytest.mark.usefixtures("untrained")
def test_a_new_sweep_starts_from_another_whose_text_can_be_edited(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    stored = {"name": "mine", "model_seeds": "0..1", "fixed": SHORT, "configurations": SEVERAL}
    writer.submit(store, parse_spec(stored))
    app = open_app(monkeypatch, file_of(store), "launch", start="mine")
    box = app.text_area(key="toml mine")
    begun = tomllib.loads(str(box.value))
    assert begun == {**stored, "name": "mine 2"}, "launched as it is called it would replace it"
    assert "4 are there" not in page_text(app)
    box.set_value(str(box.value).replace("hidden_size = 3", "hidden_size = 5"))
    rerun(app)
    spec = launched(app, file_of(store), "mine 2")
    assert [x.hidden_size for x in configs(spec)] == [2, 5]
    app = open_app(monkeypatch, file_of(store), "launch", start="mine")
    app.text_area(key="toml mine").set_value('name = "x"\nmodel_seeds = 3')
    assert "model_seeds=3: expected a range" in plain(rerun(app))
    assert app.button("launch page").disabled
    app.text_area(key="toml mine").set_value("name = ")
    assert "Invalid value" in plain(rerun(app))


def test_the_form_of_a_shipped_specification_counts_trained_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = open_app(monkeypatch, ROOT / "runs.db", "launch", start="report")
    assert "All **43 models** are trained already." in page_text(app)
    assert app.button("launch page").disabled
    assert app.code[0].value.count("model_seeds") == 9


def test_a_launch_that_replaces_a_sweep_is_announced(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    writer.submit(store, parse_spec({"name": "mine", "model_seeds": [0, 1], "fixed": SHORT}))
    app = open_app(monkeypatch, file_of(store), "launch")
    app.text_input(key=form.NAME).set_value("mine")
    rerun(app)
    text = "".join(x.value for x in app.warning).replace("\\", "")
    assert "A sweep mine exists; launching replaces its specification." in text
    assert "2 runs leave the sweep 'mine'" in text


# What is looked at before it is trained.


def test_strings_theory_and_overlap_are_shown_before_training(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "launch", look="Strings")
    text = typed(app, "dyck", "transformer none, lstm")
    assert "10,000 training strings, of 0 to 20 tokens: " in text
    table = app.dataframe[-1].value
    assert {"positive", "uniform", "edited"} == set(table["look_kind"])
    app.segmented_control(key="look").set_value("Theory")
    rerun(app)
    says = app.dataframe[-1].value.set_index("configuration")["look_says"]
    assert says["LSTM"].startswith("can: ")
    assert says["Transformer"].startswith("cannot: ")
    app.segmented_control(key="look").set_value("Overlap")
    assert "of trained lengths" in plain(rerun(app))


def test_shortcut_accuracies_are_shown_with_a_remedy_before_training(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "launch", look="Shortcuts")
    text = typed(app, "cycle navigation train_size=2000 test_size=500", "transformer")
    for _ in range(600):
        if 'take negatives = "near"' in text:
            break
        time.sleep(0.1)
        text = plain(rerun(app))
    assert 'take negatives = "near"' in text
    assert {"look_reader", "look_within", "look_beyond"} <= set(app.dataframe[-1].value)


# The launch, and the short form.


def test_a_sweep_is_launched_once_and_trained(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    short = " ".join(f"{x}={y}" for x, y in SHORT.items())
    first, second = (open_app(monkeypatch, db, "launch") for _ in range(2))
    for app in (first, second):
        typed(app, f"parity {short}", "transformer width=4")
        app.text_input(key=form.SEEDS).set_value("0, 1, 2")
        app.text_input(key=form.NAME).set_value("mine")
        assert "**3 models**" in page_text(rerun(app))
    for app in (first, second):
        app.button("launch page").click()
        rerun(app)
    store = open_reader(str(db))
    assert rows(store, "SELECT name FROM sweep") == [("mine",)]
    logs = list(background_worker.log_folder(store).glob("*.log"))
    assert len(logs) == 1, "a second tab starts none"
    assert first.header[0].value == "mine", "one lands where it is followed"
    while background_worker.has_worker(store, 1):
        time.sleep(0.1)
    assert sweep_queries.runs_by_state(store, [1]) == {"done": 3}
    assert queries.run_config(store, 1).hidden_size == 4
    app = open_app(monkeypatch, db, "launch")
    assert "· about " in page_text(app), "the estimate rests on what was measured"
    app = open_app(monkeypatch, db, "sweeps", shown="mine")
    assert any("trained 3 runs" in code.value for code in app.code), "the log can be read"


@pytest.mark.usefixtures("untrained")
def test_every_page_launches_from_its_sidebar(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0], "fixed": SHORT}))
    for page in ("results", "failures", "sweeps", "guide"):
        app = open_app(monkeypatch, file_of(store), page)
        app.session_state[form.SHORT] = True
        rerun(app)
        text = typed(app, "first, parity", "lstm, gru, rnn")
        assert "over `01`" in text, page
        assert "**48 models** · " in text, page
    assert not app.button("launch short").disabled
    app.switch_page("training/launch.py")
    rerun(app)
    assert app.text_area(key=form.TASKS).value == "first, parity"
    assert app.text_area(key=form.NETWORKS).value == "lstm, gru, rnn"
    app = open_app(monkeypatch, file_of(store), "sweeps")
    app.session_state[form.SHORT] = True
    rerun(app)
    spec = launched(app, file_of(store), place="short")
    assert {x.architecture for x in configs(spec)} == {"transformer", "lstm"}


def test_a_read_only_page_offers_no_launch_and_accepts_no_file(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0], "fixed": SHORT}))
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    app = open_app(monkeypatch, file_of(store), "launch")
    assert app.button("launch page").disabled
    assert app.file_uploader(key="uploaded file").disabled
    assert "**48 models**" in page_text(app)
    app.text_input(key=form.SEEDS).set_value("0..9999")
    assert "a visitor of a read-only page may look" in plain(rerun(app))
    app = open_app(monkeypatch, file_of(store))
    assert form.SHORT not in app.session_state
    (bar,) = app.get("progress")
    assert bar.proto.text.startswith("**s** · 0 of 1 model"), "what runs is seen"


def test_a_visitors_form_of_too_many_models_is_refused_before_parsing(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    app = open_app(monkeypatch, db, "launch")
    made: list[object] = []
    monkeypatch.setattr(offer, "_parse", made.append)
    app.text_input(key=form.SEEDS).set_value("9999")
    rerun(app)
    refusal = "models are asked for; a visitor of a read-only page may look"
    assert refusal in plain(app)
    assert made == []
