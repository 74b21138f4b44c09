"""Tab *Why*: the cause, the string, its minimal part and nearest right one, and what would help."""

import shutil
from pathlib import Path

import pytest

from dashboard.model import why_sections
from seqcls.errors import InvalidStringError
from sweeps import api
from sweeps.api import Selection
from sweeps.api.models import model
from sweeps.store.opening import open_reader
from tests.app import open_app
from tests.conftest import SHIPPED
from tests.inside import BLOCKS, LSTM, WRITING
from tests.pages.shown import shown


def test_the_tab_why_begins_with_the_cause_and_the_minimal_string(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = shown(open_app(monkeypatch, SHIPPED, "model", run="5"))
    assert "Its attention is diluted (head 0: a by b)" in page.text
    assert "Why `ab{68}`?" in page.text
    assert "The answer would flip with 65 b's instead of 68" in page.text
    assert "What is left of it that still fails: `ab{66}` (67 letters)" in page.text
    assert len(page.charts) == 2, "what both heads attend to"
    assert page.tables[0]["string"].tolist() == ["ab{68}", "ab{66}", "aab{67}"]
    assert "What would help?" in page.text
    assert any(label.startswith("Try it: 8 models") for label in page.pressable)
    page = shown(open_app(monkeypatch, SHIPPED, "model", run="8", view="Why"))
    assert "It gets no test string wrong." in page.text
    assert not page.pressable


@pytest.mark.parametrize("run", [BLOCKS, LSTM, WRITING])
def test_a_failing_string_is_reduced_in_any_model(inside: Path, run: str) -> None:
    store = open_reader(str(inside))
    opened = model(store, run)
    wrong = min(api.errors(store, [run])["string"], key=len)
    found = why_sections.string(opened, wrong)
    reduced = opened.minimal(wrong)
    assert found.table is not None
    assert found.table["stored"].iloc[0] == wrong
    if reduced.minimal.string != wrong:
        assert found.table["stored"].iloc[1] == reduced.minimal.string
    last = found.table.iloc[-1]
    assert last["what"] == "nearest that is right"
    assert last["is"] == last["predicted"]
    right = why_sections.string(opened, str(last["stored"]))
    assert right.table is not None
    assert len(right.table) == 1, "what is right is not reduced"
    with pytest.raises(InvalidStringError):
        why_sections.string(opened, "xyz")


def test_a_handout_explains_one_string_on_one_page(tmp_path: Path) -> None:
    store = open_reader(str(shutil.copy(SHIPPED, tmp_path / "runs.db")))
    text = why_sections.handout(store, model(store, 5), "ab{68}", ["A model."], Selection())
    for part in (
        "Why does a small network answer ab{68}",
        "A model.",
        "attention is diluted",
        "What would help?",
        "attention_scale=log_length",
        "Made by seqcls of run 5",
    ):
        assert part in text
    assert text.count("<svg") >= 3, "what the heads attend to, and the running logit"
    assert "https://" not in text, "it asks nothing of the network"
    long = why_sections.handout(store, model(store, 5), "a{1000000}b", [], Selection())
    assert "drown the b" in long, "no length is too long where letter counts decide"
