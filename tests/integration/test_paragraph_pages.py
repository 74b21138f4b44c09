"""Pages on models that read pictures: what they look at, and pictures of one's own."""

import io
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from streamlit.testing.v1 import AppTest

from dashboard.views import output_errors
from seqcls.problem import configuration
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, rerun, said
from tests.conftest import SHORT
from tests.databases import file_of

TINY: dict[str, Any] = {
    **SHORT, "task": "paragraph", "line_length": 3, "max_lines": 3, "hidden_size": 8,
    "picture_channels": 4, "train_size": 64, "test_size": 60, "validation_size": 16,
    "max_num_epochs": 1, "learning_rate": 0.003,
    "train_max_length": 7, "validation_max_length": 7, "test_max_length": 11,
    **{f"{part}_min_length": 1 for part in ("train", "validation", "test")},
}  # fmt: skip
READER: dict[str, Any] = {
    "architecture": "paragraph_reader", "num_attention_heads": 2, "attention_head_size": 4,
    "feed_forward_size": 8, "num_blocks": 2, "positions": "sinusoidal",
}  # fmt: skip
READER_RUN, RECURRENT_RUN = "1", "2"


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reader and its recurrent ancestor, which have hardly been trained."""
    folder = tmp_path_factory.mktemp("paragraphs")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEQCLS_CACHE", str(folder / "cache"))
        store = open_writer(str(folder / "paragraphs.db"))
        for name, fields in {
            "reader": READER,
            "recurrent": {"architecture": "recurrent_attention"},
        }.items():
            spec = parse_spec({"name": name, "model_seeds": [0], "fixed": {**TINY, **fields}})
            work(store, [writer.submit(store, spec)], WorkOptions(workers=0))
    return file_of(store)


def writing(monkeypatch: pytest.MonkeyPatch, db: Path, run: str = READER_RUN) -> AppTest:
    return open_app(monkeypatch, db, "model", run=run, view="Writing", string="12/3")


def button(app: AppTest, label: str) -> Any:
    return next(each for each in app.button if each.label == label)


def step(app: AppTest) -> int:
    """How many characters are written so far, as the heat map plays."""
    value: Any = app.slider(key="seen  step").value
    return int(value)


def images(app: AppTest) -> int:
    return len(app.image)


def test_the_heat_map_plays_along_with_the_text(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    app = writing(monkeypatch, db)
    (written,) = [each for each in app.slider if each.label == "Written so far"]
    assert (written.min, written.value) == (1, 1)
    button(app, "Play").click()
    rerun(app)
    places = [step(app)]
    while any(each.label == "Pause" for each in app.button):
        rerun(app)
        places.append(step(app))
    assert places[0] == 2
    assert places[-1] == written.max
    assert sorted(set(places)) == list(range(2, int(written.max) + 1))
    assert "orange-background" in said(app)


def test_playing_can_be_paused_and_the_place_chosen(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = writing(monkeypatch, db)
    button(app, "Play").click()
    rerun(app)
    button(app, "Pause").click()
    rerun(app)
    before = step(app)
    rerun(app)
    assert step(app) == before
    app.slider(key="seen  step").set_value(1)
    rerun(app)
    assert step(app) == 1


@pytest.mark.parametrize("run", [READER_RUN, RECURRENT_RUN])
def test_a_text_of_ones_own_is_drawn_and_read(
    monkeypatch: pytest.MonkeyPatch, db: Path, run: str
) -> None:
    app = writing(monkeypatch, db, run)
    assert "Type a text: it is drawn, and the model reads it" in said(app)
    drawn = images(app)
    app.text_input(key="own_text").set_value("7a/9")
    rerun(app)
    assert "The model reads" in said(app)
    assert images(app) == drawn + 1


def test_what_cannot_be_drawn_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    app = writing(monkeypatch, db)
    app.text_input(key="own_text").set_value("\u2603")
    rerun(app)
    assert any("has no glyph in font" in str(each.value) for each in app.info)
    app.text_input(key="own_text").set_value("12345")
    rerun(app)
    assert any("the page has room for 3 of 3" in str(each.value) for each in app.info)


def uploaded(app: AppTest, content: bytes) -> AppTest:
    app.segmented_control(key="own_picture").set_value("Uploaded")
    rerun(app)
    app.file_uploader(key="own_png").set_value(("a.png", content, "image/png"))
    return rerun(app)


def test_a_picture_of_ones_own_is_read(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    content = io.BytesIO()
    Image.new("RGB", (100, 200), "white").save(content, "PNG")
    app = uploaded(writing(monkeypatch, db), content.getvalue())
    assert "The model reads" in said(app)


def test_what_is_no_picture_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    app = uploaded(writing(monkeypatch, db), b"no picture")
    assert any("expected a PNG" in str(each.value) for each in app.info)


def test_a_page_that_only_reads_takes_no_picture(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    app = writing(monkeypatch, db)
    app.segmented_control(key="own_picture").set_value("Uploaded")
    rerun(app)
    assert app.file_uploader(key="own_png").disabled
    assert "The model reads" not in said(app)
    app.segmented_control(key="own_picture").set_value("Drawn from text")
    rerun(app)
    app.text_input(key="own_text").set_value("7/9")
    rerun(app)
    assert "The model reads" in said(app)


def test_outputs_are_measured_by_characters_and_lines(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    app = open_app(monkeypatch, db, "failing", run=READER_RUN)
    assert "Character error rate: edits from outputs to texts" in said(app)
    drawn = str([x.proto for x in app.get("vega_lite_chart")])
    assert "Outputs by number of characters" in drawn
    assert "Outputs by number of lines" in drawn


def test_the_measures_by_lines_are_those_of_all_lengths_together(
    monkeypatch: pytest.MonkeyPatch, db: Path
) -> None:
    monkeypatch.setenv("SEQCLS_DB", str(db))
    config = configuration({**TINY, **READER})
    found = output_errors._measure_features(int(READER_RUN), config)
    with closing(sqlite3.connect(db)) as connection:
        query = "SELECT tested, wrong FROM run WHERE id = ?"
        ((tested, wrong),) = connection.execute(query, READER_RUN).fetchall()
        query = "SELECT sum(edits), sum(target_tokens) FROM length_score WHERE run_id = ?"
        ((edits, tokens),) = connection.execute(query, READER_RUN).fetchall()
    for feature in ("characters", "lines"):
        exact, rate = (
            found[(found["feature"] == feature) & (found["measure"] == measure)]
            for measure in (output_errors.EXACT, output_errors.ERRORS)
        )
        assert exact["tested"].sum() == tested
        assert (exact["share"] * exact["tested"]).sum() == pytest.approx(tested - wrong)
        assert rate["of"].sum() == tokens
        assert (rate["share"] * rate["of"]).sum() == pytest.approx(edits)
    assert set(found[found["feature"] == "lines"]["value"]) == {1, 2, 3}


@pytest.mark.parametrize("run", [READER_RUN, RECURRENT_RUN])
def test_the_decoders_states_are_drawn(monkeypatch: pytest.MonkeyPatch, db: Path, run: str) -> None:
    app = open_app(monkeypatch, db, "model", run=run, view="States", string="12/3")
    assert "The decoder reads SEP and the output that it writes" in said(app)
    drawn = str([x.proto for x in app.get("vega_lite_chart")])
    assert f"Decoder {'block' if run == READER_RUN else 'layer'} " in drawn


def test_parts_of_the_decoder_are_ablated(monkeypatch: pytest.MonkeyPatch, db: Path) -> None:
    query = {"view": "Ablation", "ablate": "true"}
    app = open_app(monkeypatch, db, "model", run=READER_RUN, **query)
    drawn = str([x.proto for x in app.get("vega_lite_chart")])
    assert "decoder block 1, cross-attention head 0" in drawn
    assert "The encoder of pictures is not ablated" in said(app)
    app = open_app(monkeypatch, db, "model", run=RECURRENT_RUN, **query)
    assert "decoder layer 0, unit 0" in str([x.proto for x in app.get("vega_lite_chart")])


@pytest.mark.parametrize("run", [READER_RUN, RECURRENT_RUN])
def test_no_states_of_pictures_are_patched(
    monkeypatch: pytest.MonkeyPatch, db: Path, run: str
) -> None:
    app = open_app(monkeypatch, db, "model", run=run, view="Patching", string="12/3")
    app.text_input[0].set_value("12/4")
    app.run()
    assert "with pictures names no states that could be carried over" in said(app)
