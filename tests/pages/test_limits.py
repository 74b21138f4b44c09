"""Tab *Limits*: families, the shortest errors, all strings, and what is proved."""

from pathlib import Path

import numpy as np
import pytest

from dashboard.model import family_sections
from seqcls.engines.member import draw_initial
from seqcls.interpretability.domains import multisets_of
from seqcls.problem import configuration, resolve
from seqcls.questions import RunModel
from sweeps import api
from tests.app import open_app
from tests.conftest import ROOT
from tests.inside import WRITING
from tests.pages.shown import shown

RUN = "all_initializations/2"
"""It makes errors of both kinds."""


@pytest.fixture(scope="module")
def model() -> RunModel:
    return api.model(api.open_reader(str(ROOT / "runs.db")), RUN)


def test_a_family_is_proposed_through_the_string_in_the_form_of_inputs(model: RunModel) -> None:
    assert family_sections.usual_family(model, "ab{100}c{55}") == "ab{n}", "of the minimal error"
    assert family_sections.usual_family(model, "aab") == "aab{n}", "it is right"
    assert family_sections.family_through(model, "aabb<ab>{5}a{2}") == "aabb<ab>{n}a{2}"
    families = {"w0r": "<w0>{n}r", "ab": "ab{n}", "a0a": "<a0>{n}a"}
    tasks = ("write_flip_flop", "copy", "associative_recall")
    for task, (string, family) in zip(tasks, families.items(), strict=True):
        problem = resolve(configuration({"task": task}))
        (weights,) = draw_initial([(problem, 0)])
        assert family_sections.family_through(RunModel(problem, weights), string) == family


def test_the_tab_shows_limits_from_its_link_as_the_model_has_them(
    monkeypatch: pytest.MonkeyPatch, model: RunModel
) -> None:
    link = {"run": "5", "view": "Limits", "string": "ab{100}c{55}"}
    app = open_app(monkeypatch, ROOT / "runs.db", "model", **link)
    assert app.segmented_control(key="letters").value == "b and c", "errors hold most of them"
    page = shown(app)
    # The family through the string.
    assert "Wrong answers: 169, the first with n = 66." in page.text
    assert "is not excluded" in page.text
    frame = page.rows("n", "score")
    assert (frame["verdict"].eq("wrong") == frame["n"].ge(66)).all()
    tried = [f"ab{{{n}}}" for n in frame["n"].iloc[[0, 20, -1]]]
    answers = model.predict(tried)["logit"]
    np.testing.assert_allclose(frame["score"].iloc[[0, 20, -1]], answers, rtol=1e-5)
    # Every error is counted in one cell and in one bar.
    every = multisets_of(model.problem, model.problem.longest_tested)
    texts = [model.tokenizer.text_of_counts(x) for x in every[:2000].tolist()]
    logits = np.array(model.predict(texts)["logit"])
    wrong = (logits > 0) != model.problem.count_task.labels_of_counts(every[:2000])
    lengths, whole = page.rows("length", "errors"), every[:2000].sum(axis=1)
    # The shortest multisets come first.
    some = lengths[lengths["length"] < whole[-1]]["errors"].sum()
    assert some == wrong[whole < whole[-1]].sum()
    assert page.rows("share", "errors")["errors"].sum() == lengths["errors"].sum() == 11_426
    assert "It is wrong on 11,426 of all 1,373,700 multisets of up to 200 letters" in page.text
    assert "ab{66}" in [x["string"].iloc[0] for x in page.tables if "string" in x]
    # Proofs of longer strings have a row for each set of letters.
    assert "Proved for strings of every length" in page.text
    (proofs,) = (x for x in page.tables if "proved_right" in x)
    assert proofs["letters"].tolist() == ["a", "b", "c", "a, b", "a, c", "b, c", "a, b, c"]
    shares = proofs[["proved_right", "proved_wrong", "not_proved"]].sum(axis=1)
    np.testing.assert_allclose(shares, 1)
    page = shown(open_app(monkeypatch, ROOT / "runs.db", "model", **link, family="ab{n"))
    assert any("expected one or two" in x for x in page.errors)


def test_a_map_has_a_cell_for_each_pair_of_counts(
    monkeypatch: pytest.MonkeyPatch, model: RunModel
) -> None:
    link = {"run": "5", "view": "Limits", "family": "a{m}b{n}"}
    page = shown(open_app(monkeypatch, ROOT / "runs.db", "model", **link))
    assert "the first with m = 1 and n = 66." in page.text
    cells = page.rows("strength")
    grid = sorted(set(cells["m"]))
    assert len(cells) == len(grid) ** 2
    cell = cells[(cells["m"] == 1) & (cells["n"] == grid[-1])].iloc[0]
    assert cell["verdict"] == "wrong"
    assert cell["score"] == pytest.approx(model.predict([f"ab{{{grid[-1]}}}"])["logit"][0])
    assert (cells["x"] < cells["m"]).all()
    assert (cells["m"] < cells["x2"]).all()
    (table,) = (x for x in page.tables if "row_of" in x)
    assert table["row_of"].iloc[0] == "m = 1"


def test_outputs_of_a_family_are_colored_by_their_errors(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    model = api.model(api.open_reader(str(inside)), WRITING)
    found = family_sections.family(model, "a{n}b")
    table = found.table
    assert table is not None
    assert set(table["output_is"]) <= {"right", *found.legend}
    first = table.iloc[0]
    answer = model.answer("ab")
    assert (first["target"], first["output_is"] == "right") == (answer.label, not answer.is_wrong)
    link = {"run": WRITING, "view": "Limits", "family": "a{n}b", "every_input": "true"}
    page = shown(open_app(monkeypatch, inside, "model", **link))
    assert "Tried:" in page.text
    assert "inputs of up to" in page.text
    assert not page.errors
