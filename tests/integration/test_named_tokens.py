"""Languages from outside whose tokens have names: trained, stored, asked, exported and shown."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner, Result

from seqcls.interpretability.causes import attributions
from seqcls.strings.tokenizer import Tokenizer
from sweeps.api.models import trained_model
from sweeps.cli.app import app as seqcls
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import string_queries
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, rerun
from tests.conftest import ASSETS, SHORT
from tests.databases import file_of
from tests.plugins import forget_parts

TINY = {**SHORT, "train_size": 64, "max_num_epochs": 1, "train_max_length": 6}
TINY |= {"validation_max_length": 6, "test_max_length": 24, "hidden_size": 4}
COUNTS, PLACES, RECURRENT, CHOSEN = "1", "2", "3", "4"
SPECS: tuple[dict[str, Any], ...] = (
    {"task": "more_pushes"},
    {"task": "safe_pops", "positions": "sinusoidal", "readout": "last"},
    {"task": "safe_pops", "architecture": "lstm", "readout": "last"},
    {"task": "counting", "alphabet": "push pop a", "formula": "push > pop"},
)
TOKENS = {"push", "pop", "a"}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A database with a model of each configuration, in this order."""
    folder = tmp_path_factory.mktemp("named")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEQCLS_CACHE", str(folder / "cache"))
        patched.syspath_prepend(str(ASSETS / "plugin_package"))
        forget_parts()
        store = open_writer(str(folder / "named.db"))
        for number, fields in enumerate(SPECS):
            name = f"named_{number}"
            spec = {"name": name, "model_seeds": [0], "fixed": {**TINY, **fields}}
            work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(workers=0))
        patched.delenv("SEQCLS_CACHE")
        yield file_of(store)
    forget_parts()


def told(db: Path, *arguments: str) -> Result:
    return CliRunner().invoke(seqcls, [*arguments, "--db", str(db)])


def data(db: Path, *arguments: str) -> Any:
    result = told(db, *arguments, "--json")
    assert result.exit_code == 0, (result.output, result.exception)
    return json.loads(result.stdout)


def is_written(text: str) -> bool:
    """Whether a text is tokens and groups with exactly one space between them."""
    for sign in "<>{}0123456789":
        text = text.replace(sign, "")
    return text == "" or all(token in TOKENS for token in text.split(" "))


def shortest_error(db: Path, run: str) -> str:
    """With a repetition where there is one."""
    found = [own["string"] for own in data(db, "errors", run) if own["length"] > 2]
    return str(next((text for text in found if "{" in text), found[0]))


def test_strings_are_stored_with_one_space_between_tokens(db: Path) -> None:
    with closing(sqlite3.connect(db)) as connection:
        tested = connection.execute("SELECT string, length FROM test_string").fetchall()
        wrong = connection.execute("SELECT DISTINCT string FROM misclassified").fetchall()
        numbered = connection.execute(
            "SELECT string FROM test_string WHERE test_set_id = 1 ORDER BY number"
        ).fetchall()
    assert tested
    assert all(is_written(text) for text, _ in tested)
    assert all(text.count(" ") + 1 == length for text, length in tested if "{" not in text and text)
    assert {text for (text,) in wrong} <= {text for text, _ in tested}
    assert any("push" in text for (text,) in wrong)
    assert numbered == sorted(numbered)


@pytest.mark.parametrize("run", [COUNTS, PLACES, RECURRENT, CHOSEN])
def test_commands_read_and_write_names(db: Path, run: str) -> None:
    string = shortest_error(db, run)
    assert is_written(string)
    (answer,) = data(db, "predict", run, string)
    (spaced,) = data(db, "predict", run, f"  {string.replace(' ', '   ')} ")
    assert answer["logit"] == spaced["logit"]
    (stored,) = [own for own in data(db, "errors", run) if own["string"] == string]
    assert answer["logit"] == pytest.approx(stored["logit"], abs=1e-5)
    found = data(db, "minimal", run, string)
    assert is_written(found["given"]["string"])
    assert is_written(found["minimal"]["string"])
    assert found["minimal"]["length"] <= found["given"]["length"]
    family = data(db, "family", run, "push{n} <pop a>{2}")
    assert family["family"] == "push{n} <pop a>{2}"
    rules = [own["text"] for own in data(db, "rules", run)["rules"]]
    assert "positive iff the first token is push" in rules
    assert "positive iff more push than pop" in rules
    refused = told(db, "predict", run, "pusk pop")
    assert refused.exit_code != 0
    problem = str(refused.exception or refused.output)
    assert "unknown token 'pusk' in 'pusk pop': the tokens are push, pop, a" in problem
    assert "did you mean 'push'?" in problem


@pytest.mark.parametrize("run", [PLACES, RECURRENT])
def test_what_is_inside_is_told_token_by_token(db: Path, run: str) -> None:
    string = "push a pop pop"
    states = data(db, "states", run, string)
    letters = [token for token in states["tokens"] if token in TOKENS]
    assert letters == ["push", "a", "pop", "pop"]
    patched = data(db, "patch", run, string, "--source", "push a push pop")
    assert [x for x in patched["tokens"]["source"] if x in TOKENS] == ["push", "a", "push", "pop"]
    assert patched["base"]["string"] == "push a pop{2}"


def test_attributions_name_tokens(db: Path) -> None:
    (cause, *_) = data(db, "causes", "named_2")["causes"]
    assert cause["mechanism"] == "not learned", "after an epoch that comes before all that follows"
    store = open_reader(str(db))
    wrong = string_queries.string_errors(store, int(RECURRENT))["string"].tolist()
    found = attributions(trained_model(store, int(RECURRENT)), wrong)
    edits = [cause.tokens for cause in found if cause.mechanism == "one edit away"]
    assert edits
    names = "(push|pop|a)"
    edit = re.compile(f"(insert|delete) {names}|replace {names} by {names}")
    assert all(edit.fullmatch(text) for text in edits)


def test_an_export_has_the_same_texts(db: Path, tmp_path: Path) -> None:
    assert told(db, "export", str(tmp_path / "out")).exit_code == 0
    errors = pd.read_csv(tmp_path / "out" / "errors.csv", keep_default_na=False)
    own = {row["string"] for row in data(db, "errors", PLACES)}
    assert set(errors.loc[errors["run_id"] == int(PLACES), "string"]) == own
    assert all(map(is_written, errors["string"]))


def asked(app: AppTest) -> list[str]:
    table = next(own.value for own in app.dataframe if "correct" in own.value)
    return [str(text) for text in table["string"]]


@pytest.mark.parametrize("run", [COUNTS, PLACES, RECURRENT])
def test_the_page_of_a_model_asks_and_shows_names(
    monkeypatch: pytest.MonkeyPatch, db: Path, run: str
) -> None:
    app = open_app(monkeypatch, db, "model", run=run, view="Answers")
    assert not app.error
    (box,) = [box for box in app.text_input if box.label.startswith("Strings, ")]
    assert box.label == "Strings, separated by two spaces"
    assert asked(app) == list(filter(None, str(box.value).split("  ")))
    assert all(map(is_written, asked(app)))
    box.set_value("push pop   push{3} a")
    assert asked(rerun(app)) == ["push pop", "push{3} a"]


def data_sets(app: AppTest, name: str) -> pd.DataFrame:
    """Rows of every chart's data set of that name."""
    frames: list[pd.DataFrame] = [
        pa.ipc.open_stream(own.data.data).read_pandas()
        for chart in app.get("vega_lite_chart")
        for own in chart.proto.datasets
        if own.name == name
    ]
    return pd.concat(frames)


@pytest.mark.parametrize("run", [PLACES, RECURRENT])
@pytest.mark.parametrize("tab", ["States", "Patching"])
def test_every_name_is_one_place_of_an_axis(
    monkeypatch: pytest.MonkeyPatch, db: Path, run: str, tab: str
) -> None:
    app = open_app(monkeypatch, db, "model", run=run, view=tab, string="push a pop pop")
    if tab == "Patching":
        (source,) = [box for box in app.text_input if box.label == "Source string"]
        source.set_value("push a  push  pop")
        rerun(app)
    assert not app.error
    names = ["", "push", "a", "pop", "pop", "END"]
    own = data_sets(app, "tokens")["name"].tolist()
    # Of every figure the same.
    assert own == names * (len(own) // len(names))
    if tab == "States":
        prefixes = data_sets(app, "prefixes")["prefix"].tolist()
        assert prefixes[-1] == "push a pop pop"
        # Names are longer than their places are wide.
        drawn = [chart.proto.spec for chart in app.get("vega_lite_chart")]
        assert any('"labelAngle": -90' in spec for spec in drawn)
    else:
        assert {"push", "pop"} <= set(data_sets(app, "patched")["source_token"])


@pytest.mark.parametrize("run", [PLACES, RECURRENT])
def test_minimal_strings_are_shown_and_looked_at(
    monkeypatch: pytest.MonkeyPatch, db: Path, run: str
) -> None:
    string = shortest_error(db, run)
    app = open_app(monkeypatch, db, "model", run=run, view="Minimal and nearest", string=string)
    assert not app.error
    minimal = app.code[0].value.partition(": ")[0]
    assert is_written(minimal) or minimal == "the empty string"
    app.button(key="look at minimal").click()
    rerun(app)
    looked_at = Tokenizer(sorted(TOKENS)).display("".join(app.query_params["string"]))
    assert looked_at == minimal.replace("the empty string", "")


def test_all_strings_up_to_a_length_are_tried_by_counts(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "model", run=COUNTS, view="All strings")
    assert not app.error
    (letters,) = [own for own in app.get("button_group") if "Letters on" in str(own.proto)]
    assert "push and pop" in str(letters.proto)
    shortest = app.dataframe[0].value
    assert all(map(is_written, shortest["string"]))
    verdict = data(db, "verdict", COUNTS)
    assert is_written(verdict[0]["shortest_error"])


def test_figures_are_written_of_strings_of_names(db: Path, tmp_path: Path) -> None:
    for run in (COUNTS, PLACES):
        out = str(tmp_path / run)
        written = told(db, "figures", run, "push a{2}", "push pop", "--out", out)
        assert written.exit_code == 0, written.output


def test_figures_by_letter_counts_color_every_name(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "model", run=COUNTS, view="Figures", string="push a{2}")
    assert not app.error
    specs = [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]
    assert any('"domain": ["CLS", "push", "pop", "a"]' in json.dumps(spec) for spec in specs)


@pytest.mark.parametrize("page", ["compare", "map", "failing", "sweeps"])
def test_the_other_pages_show_the_languages(
    monkeypatch: pytest.MonkeyPatch, db: Path, page: str
) -> None:
    app = open_app(monkeypatch, db, page)
    assert not app.error
    if page == "failing":
        assert all(map(is_written, app.dataframe[-1].value["string"]))
