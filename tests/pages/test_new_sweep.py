"""The form of a new sweep: a language typed, variants chosen, strings looked at, and the launch."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.launch import fields, starting_point, strings
from seqcls.problem import configuration
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries, sweep_queries
from sweeps.work import background_worker
from tests.app import open_app, rerun, said
from tests.conftest import ROOT, SHORT
from tests.databases import file_of, rows

THREE = ["transformer, positions rotary", "transformer, positions none", "lstm"]


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where no database is yet."""
    return tmp_path / "none.db"


def panel(app: AppTest, kind: str = "Your own") -> AppTest:
    """The form, opened."""
    app.session_state["launch"] = True
    app.session_state["launch_kind"] = kind
    return rerun(app)


def typed(app: AppTest, task: str, **texts: str) -> str:
    """What the form says of a language that is typed into it."""
    if app.selectbox(key="launch task").value != task:
        app.selectbox(key="launch task").set_value(task)
        rerun(app)
    for field, text in texts.items():
        app.text_input(key=f"launch {field}").set_value(text)
    return plain(rerun(app))


def plain(app: AppTest) -> str:
    # What Markdown would draw as an arrow or a sign is kept apart by a joiner that nobody sees.
    return said(app).replace("\\", "").replace("\N{WORD JOINER}", "")


def buttons(app: AppTest) -> list[str | None]:
    return [button.key for button in app.button]


def choose(app: AppTest, **values: Any) -> AppTest:
    """Values of fields, chosen at once."""
    for field, value in values.items():
        app.multiselect(key=f"launch {field}").set_value(value)
    return rerun(app)


def start_from(app: AppTest, label: str) -> None:
    app.selectbox(key="launch_start").set_value(label)
    rerun(app)


@pytest.fixture
def untrained(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is launched is stored, and nobody begins to train it."""
    monkeypatch.setattr(background_worker, "start_worker", lambda *_, **__: None)


def launched(app: AppTest, db: Path, name: str = "my_sweep") -> dict[str, Any]:
    """The specification that the button stores."""
    app.button("launch_button").click()
    rerun(app)
    found: dict[str, Any] = json.loads(sweep_queries.specifications(open_reader(str(db)))[name])
    return found


# A language.


def test_a_language_is_typed_and_what_it_accepts_is_shown_at_once(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = panel(open_app(monkeypatch, db))
    text = typed(app, "counting", formula="a % 2 == 0")
    assert "Strings of ab with a % 2 == 0 are positive" in text
    assert "Positive: ε  b  aa  bb  aab  aba" in text
    assert "Negative: a  ab  ba" in text
    assert "**8 models to train**" in text
    assert "launch num_letters" not in [box.key for box in app.multiselect]
    text = typed(app, "counting", alphabet="push pop", formula="push > pop")
    assert "Positive: push · push push · push push push · push push pop" in text
    assert "Negative: ε · pop · push pop" in text
    # Mistakes are named, and nothing can be launched.
    for task, typed_in, names in (
        ("counting", {"alphabet": "ab", "formula": "a >= d"}, "formula='a >= d'"),
        ("regular", {"pattern": "(ab"}, "pattern='(ab'"),
        ("regular", {"alphabet": "up down", "pattern": "u"}, "one character a token"),
    ):
        assert names in typed(app, task, **typed_in)
        assert "launch_button" not in buttons(app), typed_in
    # Near negatives are chosen where there are any, and else it is said.
    text = typed(app, "regular", alphabet="ab", pattern="(ab)*")
    assert "Positive: ε  ab  abab" in text
    assert "negatives mixed → near" not in text
    text = plain(choose(app, negatives=["near"]))
    assert text.count("no near negative was found among 2,000 positive strings") == 1
    choose(app, negatives=[])
    assert "negatives mixed → near" in typed(app, "dyck")


def test_an_automaton_is_dropped_as_a_file_and_what_it_accepts_is_shown(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = panel(open_app(monkeypatch, db))
    assert "**8 models to train**" not in typed(app, "automaton")
    content = b"0 1 push\n1 0 pop\n0 0 skip\n0 1 skip\n0\n"
    app.file_uploader(key="strings_file").set_value(("lang.att", content, "text/plain"))
    text = plain(rerun(app))
    for told in (
        "4 states", "3 tokens: pop push skip", "nondeterministic", "'lang.att'", "over 3 tokens",
        "→ lang.att", "Positive: ε · skip · push pop", "star-free", "**8 models to train**",
    ):  # fmt: skip
        assert told in text
    app.file_uploader(key="strings_file").set_value(("bad.att", b"0 1 a b\n", "text/plain"))
    assert "bad.att: line 1: symbol 'a' has the output 'b'" in plain(rerun(app))


def test_what_shortcuts_reach_is_said_and_the_field_set_by_a_press(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    """As where the panel was left alone: readers are fitted beside it, once for each test."""
    app = open_app(monkeypatch, db)
    app.session_state["launch_start"] = "The report's model"
    panel(app)
    typed(app, "cycle_navigation")
    few = {"train_size": 2_000, "max_num_epochs": 1, "test_size": 500, "test_max_length": 30}
    app.multiselect(key="launch_more Strings").set_value(["train_size", "test_size"])
    app.multiselect(key="launch_more Training").set_value(["max_num_epochs"])
    rerun(app)
    for field, value in few.items():
        app.session_state[f"launch {field}"] = [str(value)]
    choose(app, negatives=["mixed"])
    assert "launch_take_near" not in buttons(app)
    fit_readers(few | {"negatives": "mixed"})
    assert 'take negatives = "near"' in plain(rerun(app))
    app.button("launch_take_near").click()
    rerun(app)
    assert app.multiselect(key="launch negatives").value == ["near"]
    fit_readers(few | {"negatives": "near"})
    assert "Shortcut readers reach at most" in plain(rerun(app))
    assert "launch_take_near" not in buttons(app)


def fit_readers(fields: dict[str, Any]) -> None:
    """What the panel has done in the background after a pause, for such a test."""
    made = {"task": "cycle_navigation", "negative_lengths": "uniform", **fields}
    config = configuration(made)
    strings.begin_reading({strings.test_key(config): config}, set())
    strings.READ.begin_making(strings.test_key(config), lambda: pytest.fail("begun")).result()


# Settings and variants.


@pytest.mark.usefixtures("untrained")
def test_three_variants_and_five_seeds_take_one_form(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = panel(open_app(monkeypatch, db))
    start_from(app, "The report's model")
    app.text_input(key="launch_seeds").set_value("5")
    app.multiselect(key="launch_variants").set_value(THREE)
    rerun(app)
    assert "15 models" in said(app)
    assert "Seeds 0..4" in said(app)
    assert not any("encoder" in x for x in app.multiselect(key="launch_variants").options)
    for told in ("attention_head_size = 2", "readout = last"):
        assert f"Set so that training works: {told}" in plain(app)
    spec = launched(app, db)
    assert spec["model_seeds"] == "0..4"
    rotary, none, lstm = spec["configurations"]
    assert (rotary["positions"], rotary["attention_head_size"]) == ("rotary", 2)
    assert none["positions"] == "none"
    assert "attention_head_size" not in none
    assert lstm == {"architecture": "lstm", "readout": "last"}


@pytest.mark.usefixtures("untrained")
def test_every_task_is_trained_with_every_variant_and_theory_has_a_line_of_each(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = panel(open_app(monkeypatch, db))
    app.selectbox(key="launch task").set_value("parity")
    app.multiselect(key="launch_more tasks").set_value(["regular", "dyck"])
    app.multiselect(key="launch_variants").set_value(THREE)
    assert "Type the pattern of the language." in plain(rerun(app))
    app.text_input(key="launch pattern").set_value("(ab)*; (ba)*")
    choose(app, bracket_types=[2])
    assert "96 models" in said(app)
    assert "Doesn't use" not in plain(app)
    assert "Kept, but" not in plain(app)
    lines = [x.value.replace("\\", "") for x in app.caption]
    assert any(x.startswith("lstm: can: it is regular") for x in lines)
    assert any(x.startswith("transformer, positions none: cannot: ") for x in lines)
    spec = parse_spec(launched(app, db))
    made = {(x.task, x.pattern, x.bracket_types, x.architecture, x.positions)
            for x in spec.configs()}  # fmt: skip
    assert len(made) == 12
    assert {x[:3] for x in made} == {
        ("parity", "", 1), ("regular", "(ab)*", 1), ("regular", "(ba)*", 1), ("dyck", "", 2)
    }  # fmt: skip
    again = panel(open_app(monkeypatch, db))
    assert again.text_input(key="launch_name").value == "my_sweep_2", "it would replace the first"
    start_from(again, "Sweep my_sweep")
    assert "96 models" in said(again)
    more = parse_spec(launched(again, db, "my_sweep_2"))
    assert {x.key for x in more.configs()} == {x.key for x in spec.configs()}


@pytest.mark.usefixtures("untrained")
def test_what_a_base_makes_of_other_fields_follows_them_and_what_is_not_read_is_kept(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = panel(open_app(monkeypatch, db))
    choose(app, num_attention_heads=[4])
    choose(app, architecture=["lstm"])
    assert "Set so that training works: readout = last" in plain(app)
    assert "Kept, but not used with these settings: num_attention_heads = 4" in plain(app)
    choose(app, architecture=["transformer"])
    assert app.multiselect(key="launch num_attention_heads").value == [4], "it was kept"
    choose(app, num_attention_heads=[], hidden_size=[16, 64], train_max_length=[20])
    choose(app, architecture=["transformer", "lstm"])
    spec = parse_spec(launched(app, db))
    own = [x for x in spec.configs() if x.architecture == "transformer"]
    assert [(x.feed_forward_size, x.attention_head_size) for x in own] == [(64, 4), (256, 16)]
    assert {x.validation_max_length for x in spec.configs()} == {20}
    readouts = {x.architecture: x.readout for x in spec.configs()}
    assert readouts == {"transformer": "first", "lstm": "last"}
    # What nobody set is not said to be left out.
    app = panel(open_app(monkeypatch, db))
    typed(app, "regular")
    app.multiselect(key="launch_variants").set_value(["lstm"])
    text = typed(app, "copy")
    assert "Kept, but" not in text
    assert "Doesn't use" not in text


SEVERAL: list[dict[str, Any]] = [
    {"architecture": "transformer", "positions": "rotary", "attention_head_size": 2},
    {"architecture": "lstm", "readout": "last"},
    {"architecture": "lstm", "readout": "last", "hidden_size": 3, "model_seeds": [1, 5]},
]


@pytest.mark.usefixtures("untrained")
def test_a_stored_sweeps_configurations_and_seeds_are_variants_again(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    stored = {"name": "mine", "model_seeds": "0..1", "fixed": SHORT, "configurations": SEVERAL}
    writer.submit(store, parse_spec(stored))
    app = panel(open_app(monkeypatch, file_of(store)))
    start_from(app, "Sweep mine")
    assert app.multiselect(key="launch_variants").value == [
        "transformer, positions rotary", "lstm", "Variant 3"
    ]  # fmt: skip
    assert app.multiselect(key="launch variant Variant 3 hidden_size").value == ["3"]
    assert app.text_input(key="launch_seeds").value == "0, 1, 5"
    assert app.text_input(key="launch_name").value == "mine_2"
    spec = parse_spec(launched(app, file_of(store), "mine_2"))
    assert {x.key for x in spec.configs()} == {x.key for x in parse_spec(stored).configs()}
    assert [[*seeds] for _, seeds in spec.members()] == [[0, 1, 5]] * 3


# The launch.


def test_a_preset_says_what_is_there_before_it_is_launched(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = panel(open_app(monkeypatch, ROOT / "runs.db", "sweeps"), "Preset")
    assert app.selectbox(key="launch_preset").options[0] == "report"
    assert "**43 models**, all already trained." in said(app)
    assert app.button("launch_button").disabled


def write_own(app: AppTest) -> AppTest:
    """Three models that train in a moment, typed and chosen in the form."""
    panel(app)
    app.text_input(key="launch_name").set_value("mine")
    app.text_input(key="launch_seeds").set_value("0, 1, 2")
    for group, names in fields.GROUPS.items():
        if own := [name for name in SHORT if name in names]:
            app.multiselect(key=f"launch_more {group}").set_value(own)
    app.selectbox(key="launch_start").set_value(starting_point.DEFAULTS)
    choose(app, hidden_size=[4])
    for field, value in SHORT.items():
        app.session_state[f"launch {field}"] = [str(value)]
    return rerun(app)


def test_a_sweep_of_ones_own_is_launched_once_and_trained(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    first, second = (write_own(open_app(monkeypatch, db)) for _ in range(2))
    assert "**3 models to train**." in said(first)
    assert not db.exists(), "looking makes no database"
    for app in (first, second):
        app.button("launch_button").click()
        rerun(app)
    store = open_reader(str(db))
    assert rows(store, "SELECT name FROM sweep") == [("mine",)]
    logs = list(background_worker.log_folder(store).glob("*.log"))
    assert len(logs) == 1, "a second tab starts none"
    assert "mine" in [text.value for text in first.text], "it is shown as running"
    assert first.subheader[0].value == "Sweep 1", "one lands where it is followed"
    again = panel(first)
    entered = [again.text_input(key=f"launch_{name}").value for name in ("name", "seeds")]
    assert entered == ["mine_2", "0, 1, 2"], "what was entered can be changed and launched again"
    assert again.multiselect(key="launch hidden_size").value == [4]
    while background_worker.has_worker(store, 1):
        time.sleep(0.1)
    assert sweep_queries.counts_by_state(store, [1]) == {"done": 3}
    assert queries.run_config(store, 1).hidden_size == 4
    app = panel(open_app(monkeypatch, db), "Preset")
    assert "to train** (about " in said(app), "the estimate rests on what was measured"
    app = open_app(monkeypatch, db, "sweeps")
    assert any("trained 3 runs" in code.value for code in app.code), "the log can be read"
