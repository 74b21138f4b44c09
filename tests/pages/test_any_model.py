"""The page Model on models that letter counts say nothing of: what it draws is what Python says."""

import math
from pathlib import Path

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from seqcls.engines.member import draw_initial
from seqcls.interpretability.states_by_strings import attention_kinds, attention_patterns
from seqcls.questions import RunModel
from sweeps import api
from sweeps.store.opening import open_reader
from tests.app import open_app, rerun
from tests.conftest import ROOT
from tests.inside import (
    ADDITIVE,
    BLOCKS,
    LSTM,
    NEXT_SYMBOLS,
    NO_ATTENTION,
    PREFIXES,
    STATES,
    STREAMS,
    WRITING,
    WRITING_LSTM,
)
from tests.oracles.facts import Facts
from tests.oracles.reasons import Models
from tests.pages.shown import look, shown
from tests.world import BY_NAME

STRING = "abca"


def model(monkeypatch: pytest.MonkeyPatch, db: Path, run: str, view: str, **query: str) -> AppTest:
    return open_app(monkeypatch, db, "model", run=run, view=view, **query)


def limits(app: AppTest, name: str) -> list[list[float]]:
    """What the axes of charts reach, by the name of the data set that says so."""
    return [
        pa.ipc.open_stream(own.data.data).read_pandas().iloc[:, 0].tolist()
        for chart in app.get("vega_lite_chart")
        for own in chart.proto.datasets
        if own.name == name
    ]


def test_states_of_every_part_are_those_of_the_model(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    app = model(monkeypatch, inside, BLOCKS, "States", string="0110")
    page = shown(app)
    assert page.headings[:3] == ["What each part adds to the logit", "Running logit", "Attention"]
    told = api.states(open_reader(str(inside)), BLOCKS, "0110")
    assert told.prefixes is not None
    prefixes = page.rows("prefix", "logit")
    assert prefixes["logit"].tolist() == pytest.approx(told.prefixes.logits.tolist())
    assert "block 1, head 1" in str(app.get("button_group")[-1].proto)
    app = model(monkeypatch, inside, BLOCKS, "States", string="<01>{50}")
    assert "drawn up to 64 tokens" in shown(app).said
    assert len(shown(app).charts) == 2
    page = shown(model(monkeypatch, inside, BLOCKS, "States", string="0210"))
    assert "unknown letter '2'" in page.said
    assert page.charts == []
    app = model(monkeypatch, inside, LSTM, "States", string="0110")
    assert shown(app).headings[:2] == ["Running logit", "Units"], "it has no residual stream"
    assert "forget_gate" in app.selectbox(key="state").options


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_failing_strings_are_reduced_and_states_carried_over(
    monkeypatch: pytest.MonkeyPatch, inside: Path, run: str
) -> None:
    store = open_reader(str(inside))
    wrong = max(api.errors(store, [run])["string"], key=len)
    app = model(monkeypatch, inside, run, "Minimal and nearest", string=wrong)
    page = shown(app)
    assert page.headings[0] == "Minimal failing string"
    assert "no longer does if any one token is deleted" in page.said
    told = api.minimal(store, run, wrong)
    app.button("look at minimal").click()
    rerun(app)
    assert app.selectbox(key="string").value == told.minimal.found.string
    app = model(monkeypatch, inside, run, "Patching", string="0110")
    (source,) = (box for box in app.text_input if box.label == "Source string")
    source.set_value("1111")
    page = shown(rerun(app))
    assert "Source: 1{4}: is " in page.said
    patched = api.patch(store, run, "0110", "1111").patched
    drawn = page.rows("site", "letter", "logit")["logit"]
    assert sorted(drawn) == pytest.approx(sorted(patched.logits.ravel().tolist()), abs=1e-5)


@pytest.mark.parametrize(("run", "part"), [(BLOCKS, "block 1, head 0"), (LSTM, "layer 0, unit 3")])
def test_parts_are_ablated_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, inside: Path, run: str, part: str
) -> None:
    app = model(monkeypatch, inside, run, "Ablation")
    assert shown(app).charts == []
    app.toggle(key="ablate").set_value(True)
    rerun(app)
    app.toggle(key="prune").set_value(True)
    costs, lengths, pruning = shown(rerun(app)).charts
    assert any(part in frame.to_string() for frame in costs)
    assert any("as trained" in frame.to_string() for frame in lengths)
    assert pruning


def test_two_models_are_shown_side_by_side_with_the_same_limits(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    for other, again in ((LSTM, False), (BLOCKS, True)):
        app = model(monkeypatch, inside, BLOCKS, "States", string="0110", beside=other)
        page = shown(app)
        assert f"**Model {other}{' again' * again}**" in page.said
        assert ("It has no residual stream." in page.said) != again
        first, second = limits(app, "reached_by_prefixes")
        assert first == second != [0.0, 0.0]
        assert len(page.charts) == (8 if again else 7)
    query = {"run": "5", "view": "States", "string": "baac", "beside": "all_initializations/5"}
    app = open_app(monkeypatch, ROOT / "runs.db", "model", **query)
    first, second = limits(app, "reached_by_steps")
    assert first == second != [0.0, 0.0]
    assert len(shown(app).charts) == 8


@pytest.mark.parametrize("epoch", [{}, {"epoch": "0"}])
def test_writing_is_watched_token_by_token(
    monkeypatch: pytest.MonkeyPatch, inside: Path, epoch: dict[str, str]
) -> None:
    query = {"string": STRING, "head": "block 1, head 1", **epoch}
    app = model(monkeypatch, inside, STREAMS, "Writing", **query)
    page = shown(app)
    assert page.headings == ["Token by token", "Attention while it writes", "Likeliest outputs"]
    tokens, outputs = page.tables
    opened = api.model(open_reader(str(inside)), STREAMS)
    if epoch:
        opened = RunModel(opened.problem, draw_initial([(opened.problem, 0)])[0])
    else:
        told = api.states(open_reader(str(inside)), STREAMS, STRING).output
        assert told is not None
        assert tokens["token"].tolist() == [token.token for token in told]
    assert tokens["probability"].between(0, 1).all()
    assert outputs["probability"].is_monotonic_decreasing
    first = outputs.iloc[0]
    assert first["probability"] == pytest.approx(math.exp(first["log_probability"]))
    for kind in attention_kinds(opened):
        app.segmented_control(key="attends").set_value(kind)
        cells = shown(rerun(app)).rows("to", "row", "letter", "weight")
        found = attention_patterns(opened, opened.letters(STRING), kind=kind)
        assert set(cells["to"]) <= set(found.tokens)
        for row, letter, weight in cells[["row", "letter", "weight"]].itertuples(index=False):
            assert weight == pytest.approx(found.weights[1, 1, row, letter], abs=1e-3)


def test_what_has_no_attention_says_so_and_writes(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    for run, says in (
        (ADDITIVE, "the state before that token"),
        (NO_ATTENTION, "this recurrent_attention has none"),
        (WRITING_LSTM, "lstm names no attention"),
    ):
        page = shown(model(monkeypatch, inside, run, "Writing", string=STRING))
        assert says in page.said
        assert ("Attention while it writes" in page.headings) == (run == ADDITIVE)
        assert page.headings[-1] == "Likeliest outputs"
        if run == ADDITIVE:
            assert set(page.rows("to", "weight")["to"]) <= {"CLS", *STRING}


def test_an_epoch_stands_beside_the_kept_one(monkeypatch: pytest.MonkeyPatch, inside: Path) -> None:
    query = {"string": STRING, "beside": WRITING, "beside_epoch": "0"}
    page = shown(model(monkeypatch, inside, WRITING, "Writing", **query))
    assert "epoch 0" in page.said
    assert len(page.charts) == 4
    kept, untrained, *_ = [x["probability"].tolist() for x in page.tables if "token" in x]
    app = model(monkeypatch, inside, WRITING, "Writing", string=STRING, epoch="0")
    assert len(app.select_slider(key="epoch").options) == 2, "only the kept one is stored"
    assert shown(app).tables[0]["probability"].tolist() == untrained != kept


@pytest.mark.parametrize("run", [WRITING, STREAMS])
def test_states_of_what_writes_are_patched(
    monkeypatch: pytest.MonkeyPatch, inside: Path, run: str
) -> None:
    app = model(monkeypatch, inside, run, "Patching", string=STRING)
    app.text_input[0].set_value("abda")
    page = shown(rerun(app))
    assert "the output is teacher forced" in page.said
    cells = page.rows("site", "letter", "logit")
    assert not cells["logit"].isna().any()
    if run != WRITING:
        assert "decoder states only at SEP" in page.said
        sides = cells["site"].str.split().str[0]
        assert set(sides) == {"encoder", "decoder"}
        assert cells[sides == "decoder"]["letter"].nunique() == 1
        assert cells[sides == "encoder"]["letter"].nunique() == 5


def test_families_and_all_inputs_of_what_writes(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    app = model(monkeypatch, inside, WRITING_LSTM, "Breaking point", string=STRING)
    assert app.text_input[0].value == "a{n}"
    told = api.family(open_reader(str(inside)), WRITING_LSTM, "a{n}")
    assert told.of_outputs
    assert len(shown(app).tables[0]) == len(told.members)
    app.text_input[0].set_value("a{m}b{n}")
    assert len(shown(rerun(app)).charts) == 1
    app.text_input[0].set_value("xyz{n}")
    assert "unknown letter" in shown(rerun(app)).errors[0]
    page = shown(model(monkeypatch, inside, WRITING_LSTM, "All inputs", every_input="true"))
    assert "inputs of up to 7 tokens" in page.said
    assert len(page.charts) == 1


def test_a_film_of_epochs_needs_all_of_them(monkeypatch: pytest.MonkeyPatch, inside: Path) -> None:
    page = shown(model(monkeypatch, inside, BLOCKS, "Live", string="0110"))
    assert "only the best epoch of this model is stored" in page.said
    assert "No film" not in shown(model(monkeypatch, ROOT / "runs.db", "5", "Live")).said


@pytest.mark.parametrize("run", [PREFIXES, NEXT_SYMBOLS, STATES])
def test_what_answers_at_every_place_is_marked_where_it_is_wrong_first(
    monkeypatch: pytest.MonkeyPatch, inside: Path, run: str
) -> None:
    page = shown(model(monkeypatch, inside, run, "Answers"))
    assert "Marked: the first wrong place" in page.said
    app = model(monkeypatch, inside, run, "States")
    assert "Marked: the first wrong place" in shown(app).said
    for view in shown(app).tabs if run == PREFIXES else ("Answers",):
        assert not look(app, view=view).errors, view


def test_names_of_tokens_are_places_and_texts(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts
) -> None:
    run = str(Models(BY_NAME["named_tokens"], facts).run_id)
    app = model(monkeypatch, db, run, "States", string="push a pop pop")
    assert shown(app).rows("prefix", "logit")["prefix"].tolist()[-1] == "push a pop pop"
    look(app, view="Answers")
    box = app.text_input(f"asked {run}")
    assert box.label == "Strings, separated by two spaces"
    box.set_value("push pop   push{3} a")
    assert shown(rerun(app)).tables[0]["string"].tolist() == ["push pop", "push{3} a"]
    look(app, view="Patching")
    (source,) = [box for box in app.text_input if box.label == "Source string"]
    source.set_value("push a  push  pop")
    patched = shown(rerun(app)).rows("source_token")
    assert {"push", "pop"} <= set(patched["source_token"])
    run = str(Models(BY_NAME["tokens_from_outside"], facts).run_id)
    app = model(monkeypatch, db, run, "All strings", string="push a{2}")
    assert "push and pop" in str([own.proto for own in app.get("button_group")])
    page = look(app, view="Figures")
    assert not page.errors
    assert page.charts
