"""The tab *Inside*: its pictures of any model agree with Python."""

from math import exp
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard import token_marks
from dashboard.model import circuits, string_states, writing
from dashboard.section import Panel
from seqcls.interpretability.states_by_strings import attention_kinds, attention_patterns
from seqcls.questions import RunModel
from sweeps import api
from sweeps.store.opening import open_reader
from tests.app import open_app, rerun
from tests.conftest import SHIPPED
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
from tests.pages.shown import Shown, look, shown
from tests.world import BY_NAME

STRING = "abca"


def opened(monkeypatch: pytest.MonkeyPatch, db: Path, run: str, part: str, **query: str) -> AppTest:
    return open_app(monkeypatch, db, "model", run=run, view="Inside", part=part, **query)


def page_of(monkeypatch: pytest.MonkeyPatch, db: Path, run: str, part: str, **query: str) -> Shown:
    return shown(opened(monkeypatch, db, run, part, **query))


def model_of(db: Path, run: str) -> RunModel:
    return api.model(open_reader(str(db)), run)


def sets_with(page: Shown, *columns: str) -> list[pd.DataFrame]:
    """The data sets of charts that have these columns, in order."""
    return [x for chart in page.charts for x in chart if set(columns) <= set(x)]


def test_drawn_logits_parts_and_attention_equal_those_of_the_model(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    page = page_of(monkeypatch, inside, BLOCKS, "States", string="0110")
    found = model_of(inside, BLOCKS).states("0110")
    assert found.prefixes is not None
    assert found.steps is not None
    assert found.attention is not None
    logits = page.rows("prefix", "value")["value"]
    assert logits.tolist() == pytest.approx(found.prefixes.logits.tolist())
    adds = page.rows("part", "adds")["adds"].tolist()
    assert adds == pytest.approx([*(x.adds for x in found.steps), found.steps[-1].logit])
    # The answer is read at the last token.
    read = found.attention.weights[:, :, -1].reshape(-1, len(found.attention.tokens))
    bars = [x["weight"].tolist() for x in sets_with(page, "place", "weight", "label")]
    assert np.array(bars) == pytest.approx(read)
    page = page_of(monkeypatch, inside, BLOCKS, "States", string="0110", every="true")
    maps = [x["value"].tolist() for x in sets_with(page, "of", "to", "value")]
    assert np.array(maps).ravel() == pytest.approx(found.attention.weights.ravel(), abs=1e-6)


def test_equal_letters_share_one_bar_where_order_is_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = page_of(monkeypatch, SHIPPED, "5", "States", string="ab{100}c{55}")
    heads = sets_with(page, "token", "weight", "label")
    assert [x["token"].tolist() for x in heads] == [["CLS", "a", "b{100}", "c{55}"]] * 2
    for weights in heads:
        assert weights["weight"].sum() == pytest.approx(1)


@pytest.mark.parametrize("state", ["state", "forget_gate", "cell"])
def test_drawn_units_and_gates_equal_those_after_every_token(
    monkeypatch: pytest.MonkeyPatch, inside: Path, state: str
) -> None:
    page = page_of(monkeypatch, inside, LSTM, "States", string="0110", state=state)
    units = model_of(inside, LSTM).states("0110").units
    assert units is not None
    values = (units.states if state == "state" else units.gates[state])[-1]
    drawn = page.rows("row", "place", "value").sort_values(["place", "row"])["value"]
    assert drawn.tolist() == pytest.approx(values.ravel().tolist(), abs=1e-4)
    assert f"The {state.replace('_', ' ')} of layer 0 has {values.shape[1]} units" in page.text


def test_strings_that_cannot_be_inspected_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    page = page_of(monkeypatch, inside, BLOCKS, "States", string="0210")
    assert any("unknown letter '2'" in note for note in page.notes)
    assert page.charts == []
    page = page_of(monkeypatch, inside, BLOCKS, "States", string="<01>{50}", every="true")
    assert "up to 64 tokens" in page.text
    assert sets_with(page, "prefix", "value")


def test_a_link_to_a_part_that_a_model_lacks_shows_the_first(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    app = opened(monkeypatch, inside, LSTM, "Circuits", string="0110")
    assert app.segmented_control(key="part").value == "States"
    assert shown(app).rows("prefix", "value") is not None


def test_states_are_patched_from_the_typed_string(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    app = opened(monkeypatch, inside, BLOCKS, "Patching", string="0110")
    app.text_input(key="source").set_value("1111")
    page = shown(rerun(app))
    patched = model_of(inside, BLOCKS).patch("0110", "1111")
    drawn = page.rows("state", "place", "restored")["restored"]
    assert sorted(drawn) == pytest.approx(sorted(patched.restored.ravel().tolist()), abs=1e-5)
    flips = int(patched.flips.sum())
    assert f"{flips} of {patched.flips.size} states of" in page.text
    app.text_input(key="source").set_value("111")
    assert any("length" in note or "tokens" in note for note in shown(rerun(app)).notes)


@pytest.mark.parametrize("run", [WRITING, STREAMS])
def test_states_of_writing_models_are_patched(
    monkeypatch: pytest.MonkeyPatch, inside: Path, run: str
) -> None:
    page = page_of(monkeypatch, inside, run, "Patching", string=STRING, source="abda")
    assert "teacher forced" in page.text
    cells = page.rows("state", "place", "restored")
    patched = model_of(inside, run).patch(STRING, "abda")
    known = patched.restored[patched.is_place]
    assert sorted(cells["restored"]) == pytest.approx(sorted(known.tolist()), abs=1e-5)


@pytest.mark.parametrize(("run", "part"), [(BLOCKS, "block 1, head 0"), (LSTM, "layer 0, unit 3")])
def test_drawn_ablations_equal_those_from_python(
    monkeypatch: pytest.MonkeyPatch, inside: Path, run: str, part: str
) -> None:
    def as_rows(outcomes: Any) -> list[tuple[str, int]]:
        return [(x.parts[-1].text if x.parts else "nothing", x.errors) for x in outcomes]

    page = page_of(monkeypatch, inside, run, "Ablation", without=part)
    model = model_of(inside, run)
    whole, *without = model.ablate().outcomes
    (table,) = (x for x in page.tables if "wrong_without" in x)
    shown_rows = [*table[["part", "wrong_without"]].itertuples(index=False, name=None)]
    assert shown_rows == as_rows(without)
    lengths = page.rows("which", "accuracy", "tested")
    (own,) = (x for x in without if x.parts[0].text == part)
    for which, outcome in (("as trained", whole), (f"without {part}", own)):
        rows = lengths[lengths["which"] == which]
        assert rows["tested"].sum() == outcome.strings.sum()
        assert (rows["accuracy"] * rows["tested"]).sum() == pytest.approx(outcome.right.sum())
    page = page_of(monkeypatch, inside, run, "Ablation", remove="one after another", way="its mean")
    (table,) = (x for x in page.tables if "wrong_without" in x)
    shown_rows = [*table[["part", "wrong_without"]].itertuples(index=False, name=None)]
    assert shown_rows == as_rows(model.ablate(how="mean", prune=True).outcomes)


def test_drawn_circuits_and_orders_equal_those_of_the_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = page_of(monkeypatch, SHIPPED, "5", "Circuits", string="abc")
    model = model_of(SHIPPED, "5")
    heads = model.circuits()
    scores = [x["value"].tolist() for x in sets_with(page, "of", "to", "value")]
    assert np.array(scores).ravel() == pytest.approx(np.ravel([x.scores for x in heads]))
    direct = [x["adds"].tolist() for x in sets_with(page, "token", "adds")]
    assert np.array(direct) == pytest.approx(np.array([x.direct_logit for x in heads]))
    assert "In any order of the letters the logit is the same" in page.text
    (orders,) = (x for x in page.tables if "shuffled" in x)
    assert orders["score"].tolist() == pytest.approx(list(model.orders("abc").logits))


def test_the_order_of_letters_matters_to_a_model_with_positions(inside: Path) -> None:
    model = model_of(inside, BLOCKS)
    found = circuits.orders(model, model.letters("0110"))
    assert "differs by up to" in found.says[0]
    assert circuits.circuits(model_of(inside, LSTM)) == ()


def test_two_models_are_drawn_on_one_scale(monkeypatch: pytest.MonkeyPatch, inside: Path) -> None:
    page = page_of(monkeypatch, inside, BLOCKS, "States", string="0110", beside=LSTM)
    assert len(sets_with(page, "prefix", "value")) == 2
    ends = [x["value"].tolist() for x in sets_with(page, "value") if [*x] == ["value"]]
    assert ends[0] == ends[1], "the running logits reach as far as each other"
    logits = [x["value"] for x in sets_with(page, "prefix", "value")]
    assert min(ends[0]) <= min(x.min() for x in logits)
    assert max(ends[0]) >= max(x.max() for x in logits)
    page = page_of(monkeypatch, inside, WRITING, "Writing", string=STRING, beside=f"{WRITING}@0")
    assert "epoch 0" in page.text


@pytest.mark.parametrize("run", [WRITING, WRITING_LSTM, STREAMS, ADDITIVE, NO_ATTENTION])
def test_written_tokens_are_listed_with_their_probabilities(
    monkeypatch: pytest.MonkeyPatch, inside: Path, run: str
) -> None:
    page = page_of(monkeypatch, inside, run, "Writing", string=STRING)
    model = model_of(inside, run)
    found = model.states(STRING)
    assert found.output is not None
    tokens, outputs = (x for x in page.tables if {"probability", "of_beam"} & set(x))
    assert tokens["token"].tolist() == [x.token for x in found.output]
    assert tokens["probability"].tolist() == pytest.approx([x.probability for x in found.output])
    assert outputs["whole_probability"].is_monotonic_decreasing
    first = outputs.iloc[0]
    assert first["whole_probability"] == pytest.approx(exp(first["log_probability"]))
    has_heads = bool(sets_with(page, "of", "to", "value"))
    assert has_heads == (run not in (WRITING_LSTM, NO_ATTENTION))


def test_drawn_attention_of_a_written_output_equals_that_of_the_model(inside: Path) -> None:
    for run in (WRITING, STREAMS, ADDITIVE):
        model = model_of(inside, run)
        letters = model.letters(STRING)
        written = [x.token for x in model.states(STRING).output or ()]
        section = writing.attention(model, letters)
        assert section is not None
        weights = []
        for kind in attention_kinds(model):
            found = attention_patterns(model, letters, kind)
            assert found is not None
            start = len(letters) + 1 if kind == "attention" else 0
            maps = found.weights.reshape(-1, *found.weights.shape[2:])
            weights += [x[start : start + len(written)] for x in maps]
        drawn = [
            [row["value"] for rows in x.spec["datasets"].values() for row in rows]
            for x in section.panels
        ]
        assert len(drawn) == len(weights)
        for own, known in zip(drawn, weights, strict=True):
            assert own == pytest.approx(known.ravel().tolist(), abs=1e-6)


def test_the_first_wrong_token_is_marked() -> None:
    spec = Panel.of(token_marks.alignment({"Target": "abcd", "Output": "abdd"}, 2)).spec
    (cells,) = spec["datasets"].values()
    marked = [(x["name"], x["place"], x["token"]) for x in cells if x["is_wrong"]]
    assert marked == [("Output", 2, "d")]
    assert [x["ink"] for x in cells if x["name"] == "Output"][-2:] == ["~wrong", "~muted"]
    rows = {"Target": "x" * 400, "Output": "x" * 399 + "y"}
    long = Panel.of(token_marks.alignment(rows, 399)).spec
    (cells,) = long["datasets"].values()
    assert {x["place"] for x in cells if x["is_wrong"]} == {399}
    assert min(x["place"] for x in cells) == 399 - token_marks.BEFORE


@pytest.mark.parametrize("run", [PREFIXES, NEXT_SYMBOLS, STATES])
def test_answers_at_every_position_are_marked_where_first_wrong(inside: Path, run: str) -> None:
    model = model_of(inside, run)
    store = open_reader(str(inside))
    wrong = api.errors(store, [run])["string"].iloc[0]
    states = model.states(wrong)
    section = string_states.running_of(model, model.letters(wrong), states)
    assert section is not None
    assert states.prefixes is not None
    (cells,) = section.panels[1].spec["datasets"].values()
    (marked,) = (x["place"] for x in cells if x["is_wrong"])
    pairs = zip(states.prefixes.labels, states.prefixes.answers, strict=True)
    assert marked == [a == b for a, b in pairs].index(False)


def test_a_string_is_answered_while_it_is_typed(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    app = opened(monkeypatch, inside, BLOCKS, "Live", string="0110")
    (box,) = (x for x in app.text_input if x.label == "Type a string")
    box.set_value("1101")
    page = shown(rerun(app))
    found = model_of(inside, BLOCKS).states("1101").prefixes
    assert found is not None
    logits = page.rows("prefix", "value")["value"]
    assert logits.tolist() == pytest.approx(found.logits.tolist())
    box = next(x for x in app.text_input if x.label == "Type a string")
    box.set_value("12")
    assert any("unknown letter '2'" in note for note in shown(rerun(app)).notes)
    next(x for x in app.text_input if x.label == "Type a string").set_value("111")
    rerun(app)
    next(x for x in app.button if x.label == "Look at it").click()
    assert rerun(app).selectbox(key="string").value == "111"


def test_strings_of_named_tokens_can_be_inspected(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts
) -> None:
    run = str(Models(BY_NAME["named_tokens"], facts).run_id)
    app = opened(monkeypatch, db, run, "States", string="push a pop pop")
    assert shown(app).rows("prefix", "value")["prefix"].tolist()[-1] == "push a pop pop"
    page = look(app, part="Patching", source="push a  push  pop")
    patched = page.rows("source_token")
    assert {"push", "pop"} <= set(patched["source_token"])
