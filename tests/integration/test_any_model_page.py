"""The page Model for models that letter counts say nothing of, on models trained for a moment."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from streamlit.testing.v1 import AppTest

from tests.app import open_app, rerun, said
from tests.conftest import ROOT
from tests.integration.test_states_commands import BLOCKS, LSTM, db

__all__ = ["db"]

SHIPPED = ROOT / "runs.db"
TABS = [
    *("Answers", "States", "Minimal and nearest", "Patching", "Ablation"),
    *("Live", "Automaton"),
]


def model(
    monkeypatch: pytest.MonkeyPatch, path: str, run: str, view: str, string: str = "0110"
) -> AppTest:
    return open_app(monkeypatch, Path(path), "model", run=run, view=view, string=string)


def charts(app: AppTest) -> list[str]:
    return [chart.proto.spec for chart in app.get("vega_lite_chart")]


def reached(app: AppTest, what: str) -> list[list[float]]:
    """What the axes of the charts with such a data set reach, chart by chart."""
    return [
        pa.ipc.open_stream(own.data.data).read_pandas().iloc[:, 0].tolist()
        for chart in app.get("vega_lite_chart")
        for own in chart.proto.datasets
        if own.name == what
    ]


def headers(app: AppTest) -> list[str]:
    return [own.value for own in app.subheader]


def test_a_transformers_parts_prefixes_and_heads_are_drawn(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, BLOCKS, "States")
    assert [tab.label for tab in app.tabs] == TABS
    assert headers(app)[:3] == ["What each part adds to the logit", "Running logit", "Attention"]
    steps, *along = charts(app)
    assert "Adds to the logit" in steps
    prefixes, heads, opened = along
    assert "Logit of the prefix" in prefixes
    assert "'block ' + floor(datum.value)" in heads
    for chart in along:
        (pointed,) = json.loads(chart)["params"]
        assert pointed["name"] == "pointed_letter"
        assert "width" not in json.loads(chart), "it takes the room that there is"
    assert "Token that attends" in opened
    assert "block 1, head 1" in str(app.get("button_group")[-1].proto)


def test_a_recurrent_models_gates_and_path_are_drawn(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, LSTM, "States")
    assert headers(app)[:2] == ["Running logit", "Units"], "it has no residual stream"
    _, units, path = charts(app)
    assert '"Unit"' in units
    assert "First principal component" in path
    # As elements of the page, scales are found by its address, which fails on brackets.
    assert all('"renderer": "canvas"' in chart for chart in (units, path))
    assert "forget_gate" in app.selectbox(key="state").options


@pytest.mark.parametrize("run", [BLOCKS, LSTM])
def test_failing_strings_are_reduced_and_states_carried_over(
    monkeypatch: pytest.MonkeyPatch, db: str, run: str
) -> None:
    app = model(monkeypatch, db, run, "Minimal and nearest")
    wrong = next(text for text in app.selectbox(key="string").options if text)
    app = model(monkeypatch, db, run, "Minimal and nearest", wrong)
    assert headers(app)[0] == "Minimal failing string"
    assert "no longer does if any one token is deleted" in said(app)
    app.button("look at minimal").click()
    rerun(app)
    shortest = app.selectbox(key="string").value
    assert shortest is not None
    assert len(shortest) <= len(wrong)
    app = model(monkeypatch, db, run, "Patching", wrong)
    (source,) = (box for box in app.text_input if box.label == "Source string")
    source.set_value("1" * len(wrong))
    told = "1" * len(wrong) if len(wrong) <= 2 else f"1{{{len(wrong)}}}"
    assert f"Source: {told}: is " in said(rerun(app)).replace("\\", "")


@pytest.mark.parametrize(("run", "part"), [(BLOCKS, "block 1, head 0"), (LSTM, "layer 0, unit 3")])
def test_parts_are_ablated_when_asked_for(
    monkeypatch: pytest.MonkeyPatch, db: str, run: str, part: str
) -> None:
    app = model(monkeypatch, db, run, "Ablation")
    assert charts(app) == []
    app.toggle(key="ablate").set_value(True)
    rerun(app)
    app.toggle(key="prune").set_value(True)
    rerun(app)
    costs, lengths, pruning = charts(app)
    assert part in costs
    assert "as trained" in lengths
    assert "Parts removed" in pruning


def test_two_models_are_shown_side_by_side_with_the_same_limits(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = open_app(
        monkeypatch, Path(db), "model", run=BLOCKS, view="States", string="0110", beside=LSTM
    )
    assert "**Model 1**" in said(app)
    assert "**Model 2**" in said(app)
    steps, *along = charts(app)
    assert "Adds to the logit" in steps
    assert "It has no residual stream." in said(app)
    assert len(along) == 6, "prefixes of both, heads of one and the open one, units and their path"
    first, second = reached(app, "reached_by_prefixes")
    assert first == second != [0.0, 0.0]
    app = open_app(
        monkeypatch, Path(db), "model", run=BLOCKS, view="States", string="0110", beside="9"
    )
    assert "no run '9'" in said(app).replace("\\", "")
    assert len(charts(app)) == 4


def test_models_that_letter_counts_explain_are_shown_side_by_side_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    query = {"run": "5", "view": "States", "string": "baac", "beside": "all_initializations/5"}
    app = open_app(monkeypatch, SHIPPED, "model", **query)
    assert len(charts(app)) == 8
    first, second = reached(app, "reached_by_steps")
    assert first == second != [0.0, 0.0]


def test_a_model_is_shown_beside_itself(monkeypatch: pytest.MonkeyPatch, db: str) -> None:
    query = {"run": BLOCKS, "view": "States", "string": "0110", "beside": BLOCKS}
    app = open_app(monkeypatch, Path(db), "model", **query)
    assert len(charts(app)) == 8
    assert "**Model 1 again**" in said(app)


def test_a_long_string_is_seen_to_its_end_and_where_its_sign_changes(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, BLOCKS, "States", "<01>{50}")
    _, prefixes = charts(app)
    assert "Tokens read" in prefixes
    assert "width" not in json.loads(prefixes), "nothing is beyond the edge of the page"
    assert '"turn"' in prefixes
    assert "drawn up to 64 tokens" in said(app)
    assert "Hover over" not in said(app), "there is nothing else that it would mark"


def test_a_string_of_another_alphabet_is_refused_in_a_line(
    monkeypatch: pytest.MonkeyPatch, db: str
) -> None:
    app = model(monkeypatch, db, BLOCKS, "States", "0210")
    assert "unknown letter '2'" in said(app).replace("\\", "")
    assert charts(app) == []
