"""The page Model on models that read pictures: where they look, states and parts."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from dashboard.model import pictures
from dashboard.section import Panel
from seqcls.interpretability.states_by_strings import picture_attention
from sweeps import api
from sweeps.store.opening import open_reader
from tests.app import open_app
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


def pixels(panel: Panel) -> np.ndarray:
    """A picture of a section, as it is drawn."""
    (row,) = panel.spec["data"]["values"]
    content = base64.b64decode(row["url"].partition(",")[2])
    return np.asarray(Image.open(io.BytesIO(content)), dtype=float)


@pytest.mark.parametrize("name", [READS, RECURRENT])
def test_each_written_character_has_a_picture_of_the_attention(
    db: Path, runs: dict[str, str], name: str
) -> None:
    model = api.model(open_reader(str(db)), runs[name])
    letters = model.letters("112")
    section = pictures.gaze(model, letters)
    assert section is not None
    written = [x.token for x in model.states("112").output or ()]
    assert [x.title for x in section.panels] == written[: len(section.panels)]
    weights = picture_attention(model, letters)
    heads = pictures.heads_of(weights)
    assert len(heads) == weights.shape[0] * weights.shape[1]
    # Where the weight is largest, the paper is the most orange.
    place = heads[last := list(heads)[-1]]
    alone = pictures.gaze(model, letters, last)
    assert alone is not None
    for token, panel in enumerate(alone.panels):
        heat = weights[place][token]
        picture = pixels(panel)
        orange = picture[..., 0] - picture[..., 2]
        row, column = np.unravel_index(int(heat.argmax()), heat.shape)
        tall, wide = (x // y for x, y in zip(orange.shape, heat.shape, strict=True))
        own = orange[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide]
        assert own.max() == orange.max()


def test_the_picture_of_an_input_has_a_frame_around_a_character(
    db: Path, runs: dict[str, str]
) -> None:
    task = api.model(open_reader(str(db)), runs[READS]).task
    plain, framed = (pictures.picture(task, "12/1", marked) for marked in (None, 3))
    assert plain is not None
    assert framed is not None
    changed = np.argwhere((pixels(plain) != pixels(framed)).any(axis=2))
    height, width = pixels(plain).shape[:2]
    assert changed[:, 0].min() >= height / 2 - 2, "it is in the second line"
    assert changed[:, 1].max() <= width / 2


def test_states_and_parts_of_the_decoder_are_shown(
    monkeypatch: pytest.MonkeyPatch, db: Path, runs: dict[str, str]
) -> None:
    for name, part in ((READS, "decoder block 1, cross-attention head 0"), (RECURRENT, "unit 0")):
        query = {"run": runs[name], "view": "Inside", "string": "12/1"}
        page = shown(open_app(monkeypatch, db, "model", **query, part="Writing"))
        assert "Orange is where the model looks" in page.text
        page = shown(open_app(monkeypatch, db, "model", **query, part="States"))
        assert "The state of decoder" in page.text
        page = shown(open_app(monkeypatch, db, "model", **query, part="Ablation"))
        assert any(part in frame.to_string() for frame in page.tables)
        page = shown(open_app(monkeypatch, db, "model", **query, part="Patching", source="12/2"))
        assert any("names no states that could be carried over" in x for x in page.notes)
