"""The page Model on models that read pictures: what they look at, and pictures of one's own."""

import io
from pathlib import Path

import pandas as pd
import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from tests.app import open_app, rerun, said
from tests.oracles.facts import Facts
from tests.oracles.reasons import Models
from tests.pages.shown import shown
from tests.world import BY_NAME

READS, RECURRENT = "pictures_read", "pictures"


@pytest.fixture
def runs(facts: Facts) -> dict[str, str]:
    """The model of each architecture."""
    # Of the reader the second, which writes several characters.
    return {
        name: str(Models(BY_NAME[name], facts).runs[place]["run_id"])
        for name, place in ((READS, 1), (RECURRENT, 0))
    }


def writing(monkeypatch: pytest.MonkeyPatch, db: Path, run: str) -> AppTest:
    return open_app(monkeypatch, db, "model", run=run, view="Writing", string="112")


def test_the_heat_map_is_of_the_step_that_is_chosen(
    monkeypatch: pytest.MonkeyPatch, db: Path, runs: dict[str, str]
) -> None:
    app = writing(monkeypatch, db, runs[READS])
    (written,) = [each for each in app.slider if each.label == "Written so far"]
    assert (written.min, written.value) == (1, 1)
    assert int(written.max) > 2
    first = said(app)
    app.slider(key="seen  step").set_value(2)
    assert "orange-background" in said(rerun(app)) != first
    next(each for each in app.button if each.label == "Play").click()
    assert "Pause" in [each.label for each in rerun(app).button]


@pytest.mark.parametrize("name", [READS, RECURRENT])
def test_a_text_or_a_picture_of_ones_own_is_read(
    monkeypatch: pytest.MonkeyPatch, db: Path, runs: dict[str, str], name: str
) -> None:
    app = writing(monkeypatch, db, runs[name])
    drawn = shown(app).pictures

    def asks(text: str) -> str:
        app.text_input(key="own_text").set_value(text)
        return shown(rerun(app)).said

    assert "has no glyph in font" in asks("\u2603")
    assert "the page has room for 2 of 3" in asks("1212/12/12/12")
    assert "The model reads" in asks("2a/1")
    assert shown(app).pictures == drawn + 1
    app.segmented_control(key="own_picture").set_value("Uploaded")
    rerun(app)
    content = io.BytesIO()
    Image.new("RGB", (100, 200), "white").save(content, "PNG")
    for file, says in ((b"no picture", "expected a PNG"), (content.getvalue(), "The model reads")):
        app.file_uploader(key="own_png").set_value(("a.png", file, "image/png"))
        assert says in shown(rerun(app)).said


def test_a_page_that_only_reads_takes_no_picture(
    monkeypatch: pytest.MonkeyPatch, db: Path, runs: dict[str, str]
) -> None:
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    app = writing(monkeypatch, db, runs[READS])
    app.segmented_control(key="own_picture").set_value("Uploaded")
    rerun(app)
    assert app.file_uploader(key="own_png").disabled
    assert "The model reads" not in shown(app).said
    app.segmented_control(key="own_picture").set_value("Drawn from text")
    rerun(app)
    app.text_input(key="own_text").set_value("2/1")
    assert "The model reads" in shown(rerun(app)).said


def test_outputs_are_measured_by_characters_and_lines(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts, runs: dict[str, str]
) -> None:
    run = runs[READS]
    page = shown(open_app(monkeypatch, db, "model", run=run, view="Answers"))
    assert "Character error rate: edits from outputs to texts" in page.said
    columns = ["feature", "measure", "share", "tested", "of"]
    sets = [frame for chart in page.charts for frame in chart if set(columns) <= set(frame)]
    measured = pd.concat(sets).drop_duplicates()
    (counted,) = facts.ask(
        "SELECT sum(tested) AS tested, sum(wrong) AS wrong, sum(edits) AS edits, "
        "sum(target_tokens) AS tokens FROM length_score WHERE run_id = ?",
        int(run),
    )
    assert set(measured["feature"]) == {"characters", "lines"}
    for _, own in measured.groupby("feature"):
        exact, rate = (
            own[own["measure"].str.contains(measure, case=False)] for measure in ("exact", "error")
        )
        assert exact["tested"].sum() == counted["tested"]
        right = counted["tested"] - counted["wrong"]
        assert (exact["share"] * exact["tested"]).sum() == pytest.approx(right)
        assert rate["of"].sum() == counted["tokens"]
        assert (rate["share"] * rate["of"]).sum() == pytest.approx(counted["edits"])


def test_the_decoders_states_and_parts_are_told(
    monkeypatch: pytest.MonkeyPatch, db: Path, runs: dict[str, str]
) -> None:
    for name, part in ((READS, "decoder block 1, cross-attention head 0"), (RECURRENT, "unit 0")):
        query = {"run": runs[name], "string": "12/1"}
        page = shown(open_app(monkeypatch, db, "model", **query, view="States"))
        assert "The decoder reads SEP and the output that it writes" in page.said
        assert page.charts
        page = shown(open_app(monkeypatch, db, "model", **query, view="Ablation", ablate="true"))
        assert any(part in frame.to_string() for chart in page.charts for frame in chart)
        assert "The encoder of pictures is not ablated" in page.said
        app = open_app(monkeypatch, db, "model", **query, view="Patching")
        app.text_input[0].set_value("12/2")
        assert "names no states that could be carried over" in shown(rerun(app)).said
