"""The page Model: the outcome, the bar, the tabs, and links; and the guide."""

import shutil
from math import comb
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from dashboard.model import automaton_sections, chosen, errors_sections, training
from dashboard.words.outcomes import describe_model
from seqcls.kinds import KINDS
from seqcls.results import Confusion
from seqcls.strings.tokenizer import Tokenizer
from sweeps import api
from sweeps.api.models import model as model_of
from sweeps.grid.spec import parse_spec
from sweeps.results import Outcome
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from tests.app import open_app, page_text, rerun
from tests.conftest import SHIPPED
from tests.databases import change, file_of, reseal, rows
from tests.inside import LSTM, WRITING
from tests.oracles.facts import Facts
from tests.pages.shown import Shown, shown

SEED_2, SEED_5 = "5", "8"
"""Runs of all_initializations in the shipped database: one fails beyond, one generalizes."""


def model(monkeypatch: pytest.MonkeyPatch, run: str, **query: str) -> AppTest:
    """The page on a model of the shipped database."""
    return open_app(monkeypatch, SHIPPED, "model", run=run, **query)


def typed(app: AppTest, key: str, text: str) -> Shown:
    """The page after something was typed into a box that offers choices."""
    box = app.selectbox(key=key)
    # As the browser does with what is typed: it becomes an option.
    box.options.append(text)
    box.set_value(text)
    return shown(rerun(app))


# The outcome, and the bar.


@pytest.mark.parametrize(
    ("run", "outcome", "first"),
    [
        ("38", "Not learned: it is right on 433 of 508 test strings of trained lengths 1", "Why"),
        ("5", "Learned, but fails beyond: it is right on all 508 test strings of", "Why"),
        ("8", "Learned and generalizes: it is right on all 508 test strings of trained", "Errors"),
    ],
)
def test_the_page_of_a_model_begins_with_its_outcome(
    monkeypatch: pytest.MonkeyPatch, run: str, outcome: str, first: str
) -> None:
    app = model(monkeypatch, run)
    page = shown(app)
    assert outcome in page.text
    assert page.tabs == ["Errors", "Why", "Inside", "Limits", "Automaton", "Training"]
    assert app.session_state["view"] == first
    assert ("It has not learned the trained lengths" in page.text) == (run == "38")
    assert ("max_num_epochs=120" in page.text) == (run == "38")
    assert not page.errors


def test_a_model_is_judged_by_the_thresholds_of_the_link(monkeypatch: pytest.MonkeyPatch) -> None:
    text = shown(model(monkeypatch, "38", learned="80", view="Errors")).text
    assert "Learned, but fails beyond: it is right on 433 of 508" in text
    text = shown(model(monkeypatch, "38", learned="80", below="20", view="Errors")).text
    assert "Learned and generalizes" in text
    assert "; a model generalizes from 20% on." in text


def test_the_bar_answers_any_string_at_any_epoch(monkeypatch: pytest.MonkeyPatch) -> None:
    app = model(monkeypatch, SEED_2, view="Training")
    assert app.selectbox(key="string").value == "ab{68}", "its shortest error"
    assert "ab{68} is positive, predicted negative (logit -0.2131" in shown(app).text.replace(
        "`", ""
    )
    text = typed(app, "string", "a{1000000}b").text.replace("`", "")
    assert "a{1000000}b is positive, predicted negative (logit -1.059" in text
    assert "".join(app.query_params["string"]) == "a{1000000}b"
    slider = app.select_slider(key="epoch")
    assert [int(x) for x in slider.options] == list(range(21))
    slider.set_value(0)
    page = shown(rerun(app))
    assert "logit -1.059" not in page.text, "0 is before training"
    assert "".join(app.query_params["epoch"]) == "0"
    assert "unknown letter 'x' in 'xyz'" in typed(app, "string", "xyz").errors[0]
    # The link alone shows the same.
    again = shown(model(monkeypatch, SEED_2, string="a{1000000}b", epoch="0", view="Training"))
    assert again.text == page.text


def test_a_written_output_is_shown_beside_its_target(
    monkeypatch: pytest.MonkeyPatch, inside: Path
) -> None:
    page = shown(open_app(monkeypatch, inside, "model", run=WRITING, view="Training"))
    assert "should give" in page.text
    assert "log probability" in page.text


# Links, and how models are found.


def test_a_link_to_a_former_section_opens_its_tab(monkeypatch: pytest.MonkeyPatch) -> None:
    for former, (tab, part) in {
        "Answers": ("Errors", None),
        "Surgery": ("Inside", "Ablation"),
        "Minimal and nearest": ("Why", None),
    }.items():
        app = model(monkeypatch, SEED_2, view=former)
        assert app.session_state["view"] == tab
        if part is not None:
            assert app.session_state["part"] == part


def test_a_model_is_chosen_by_typing_its_name_or_number(monkeypatch: pytest.MonkeyPatch) -> None:
    app = open_app(monkeypatch, SHIPPED, "model", view="Training")
    run = int("".join(app.query_params["run"]))
    facts = Facts(SHIPPED)
    assert facts.errors[run], "the first is one that fails"
    for text, expected in (("all_initializations/2", 5), ("8", 8)):
        typed(app, "model_run", text)
        assert int("".join(app.query_params["run"])) == expected
    for text in ("9999", "no/2", "x"):
        page = typed(app, "model_run", text)
        assert f"no run '{text}'" in page.errors[0]
        assert int("".join(app.query_params["run"])) == 8
    models = api.reading.models(open_reader(str(SHIPPED)), api.Selection())
    learned = models[models["outcome"] == "fails beyond"]
    assert chosen.worst_of(models) in set(learned["run_id"])


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ({"run": "999"}, "no run '999'"),
        ({"run": "<b>"}, "no run '<b>'"),
        ({"beside": "99", "view": "Training"}, "no run '99'"),
        ({"beside": "5@77", "view": "Training"}, "No weights of epoch 77 of run 5 are stored"),
    ],
)
def test_invalid_parameters_of_a_link_are_named_in_one_line(
    monkeypatch: pytest.MonkeyPatch, query: dict[str, str], says: str
) -> None:
    page = shown(open_app(monkeypatch, SHIPPED, "model", **{"run": SEED_2, **query}))
    assert says in page.errors[0]
    assert ("has no model to show" in page.text) == ("run" in query)


def test_a_run_without_a_model_shows_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_writer(str(tmp_path / "failed.db"))
    writer.submit(store, parse_spec({"name": "s", "model_seeds": [0]}))
    change(store, "UPDATE run SET state = 'failed', error = 'diverged *here*'")
    page = shown(open_app(monkeypatch, file_of(store), "model", run="1"))
    assert "run 1 is failed and has no model to look into: diverged *here*" in page.errors[0]
    light = Path(shutil.copy(SHIPPED, tmp_path / "light.db"))
    change(light, "DELETE FROM checkpoint")
    reseal(open_writer(str(light)))
    page = shown(open_app(monkeypatch, light, "model", run=SEED_2))
    assert "the weights of run 5 are not stored" in page.notes[0]
    assert page.tabs == ["Errors", "Training"]
    assert "697 of 9,984 test strings are wrong" in page.text, "what is stored is shown"


# Errors, Automaton and Training, as sections.


def test_errors_begin_with_the_confusion_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    page = shown(model(monkeypatch, SEED_2, view="Errors"))
    (table,) = (x.set_index("of_lengths") for x in page.tables if "of_lengths" in x)
    assert [*table.loc["all", ["tn", "fp", "fn", "tp"]]] == [4323, 6, 691, 4964]
    assert table["wrong_strings"][["1 to 10 (trained)", "longer"]].sum() == 697
    assert "697 of 9,984 test strings are wrong: 691 false negatives, 6 false" in page.text
    assert page.rows("strings")["strings"].sum() == 697
    assert "Which test strings are wrong?" in page.text
    listed = errors_sections.strings(open_reader(str(SHIPPED)), 5)
    assert listed is not None
    assert listed.table is not None
    assert set(listed.table["stored"]) == set(Facts(SHIPPED).errors[5])
    assert "What does a shortcut reach?" in page.text
    assert "decided by letter counts" in page.text
    right = shown(model(monkeypatch, SEED_5, view="Errors"))
    assert not [x for x in right.tables if "stored" in x]


def test_the_automaton_of_a_model_is_described_and_probed(inside: Path) -> None:
    opened = model_of(open_reader(str(inside)), LSTM)
    learned = opened.automaton(states=20)
    found = automaton_sections.learning(opened, learned)
    assert found.says
    made = learned.main_hypothesis
    sentence = automaton_sections.hypothesis(opened, learned, made)
    assert sentence.startswith(f"{made.states} state")
    probes = automaton_sections.inside(opened, learned)
    assert probes.table is not None
    assert probes.table["of_trained"].between(0, 1).all()


def test_losses_and_the_effect_of_rounding_are_shown(tmp_path: Path) -> None:
    db = str(shutil.copy(SHIPPED, tmp_path / "runs.db"))
    found = training.losses(open_reader(db), 5)
    assert "Trained for 20 epochs of at most 30; epoch 2" in found.says[0]
    assert len(found.panels) == 1
    own = [Confusion(4329, 0, 1333, 4322), Confusion(4329, 0, 0, 5655)]
    writer.record_findings(open_writer(db), 41, "perturbation", own)
    (_, sentence) = training.losses(open_reader(db), 41).says
    assert "it gets 0 to 1,333 test strings wrong" in sentence


def test_unknown_parts_and_epochs_of_a_link_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    page = shown(model(monkeypatch, SEED_2, view="Inside", part="Basement", epoch="-1"))
    notes = "".join(page.notes).replace("\\", "")
    assert "The link asks for part Basement, which is not offered here." in notes
    assert "No weights of epoch -1 of run 5 are stored: expected 0, 1, 2" in notes
    (note,) = shown(model(monkeypatch, SEED_2, view="Outside")).notes
    assert "The link asks for view Outside, which is not offered here" in note


# The guide.


def test_the_guide_shows_every_step_with_the_shipped_models(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    page = shown(open_app(monkeypatch, SHIPPED, "guide"))
    steps = [f"{line[3]}." for line in page.text.splitlines() if line.startswith("## ")]
    assert steps == [f"{number}." for number in range(1, len(steps) + 1)]
    assert len(page.charts) > len(steps), "steps have figures"
    for sentence in (
        "The logits are -8.2945 and 10.9587",
        "head 0 scores a higher by 3.74, so that one weighs as much as 42 of the other",
        "Of the report's 43 models 16 fail. 14 of these had learned the trained lengths",
        "seed 4 of `default_embeddings_initialization` is wrong on 75 of the 508 test strings",
        "seed 2 of `lower_magnitude_initializations` is wrong on 75 of the 508 test strings",
        "Of the models that saw every string, 2 of 2 fail",
        "With 2 heads 6 of 8 fail, and with 16 none of 8",
        "of the 16 of seed 0, 14 can go",
    ):
        assert sentence in page.text.replace("\n", " ")
    assert len(page.links) >= 6
    assert not page.notes


def test_the_guide_names_the_models_that_the_database_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    db = Path(shutil.copy(SHIPPED, tmp_path))
    change(db, f"DELETE FROM checkpoint WHERE run_id = {SEED_5}")
    reseal(open_writer(str(db)))
    api.delete(open_writer(str(db)), "lower_magnitude_initializations")
    page = shown(open_app(monkeypatch, db, "guide"))
    absent = "no model of lower_magnitude_initializations is in this database"
    assert f"Drawn smaller, at the same width, (not known: {absent})" in page.text.replace(
        "\n", " "
    )
    assert sum("the weights of run 8 are not stored" in note for note in page.notes) == 3
    assert any("no run 'lower_magnitude_initializations/2'" in note for note in page.notes)
    assert not page.errors


def row(outcome: str, within: int = 0, beyond: int = 0, **more: object) -> dict[str, object]:
    """A model with its numbers of errors on 500 strings of trained lengths and 200 longer ones."""
    counts = {"tested_within": 500, "wrong_within": within, "within_from": "test"}
    counts |= {"tested_beyond": 200, "wrong_beyond": beyond, "first_wrong_length": None}
    return {"outcome": outcome, **counts, **more}


LEARNED, FAILS, NOT = "Learned and generalizes: ", "Learned, but fails beyond: ", "Not learned: "
DESCRIBED_MODELS: list[tuple[dict[str, object], dict[str, Any], str, str]] = [
    (row(Outcome.GENERALIZES), {}, LEARNED, "all 500; all 200"),
    (row(Outcome.GENERALIZES, 1, 10, first_wrong_length=4), {"below": 0.9}, LEARNED,
     "190 of 200; 95%; 90%; length 4"),
    (row(Outcome.FAILS_BEYOND, 2, 62, first_wrong_length=18), {}, FAILS,
     "498 of 500 test strings; 1 to 20 (99.6%); 138 of 200; (69%); length 18 (trained to 20)"),
    (row(Outcome.NOT_LEARNED, 60, 100), {}, NOT,
     "440 of 500; (88%); 99%; 100 of 200; nothing about length"),
    (row(Outcome.NOT_LEARNED, 60, tested_beyond=0, within_from="validation"),
     {"words": KINDS["transduction"]().words, "learned_at": 0.975}, NOT,
     "440 of 500 validation inputs of trained lengths 1 to 20; 97.5%"),
    (row(Outcome.NOT_KNOWN, tested_within=None), {"knows_trained_lengths": False},
     "Whether it learned is not known", "trained elsewhere"),
    (row(Outcome.NOT_KNOWN, tested_within=0), {}, "Whether it learned is not known", "validation"),
    (row(Outcome.NOT_KNOWN, 2, tested_beyond=0, first_wrong_length=18), {},
     "Learned; whether it generalizes is not known",
     "498 of 500; no test string is longer; length 18"),
]  # fmt: skip


def test_the_sentence_on_a_model_states_its_outcome_and_first_wrong_length() -> None:
    """The outcome with its numbers: at trained lengths, beyond, and the first wrong length."""
    for found, named, start, parts in DESCRIBED_MODELS:
        sentence = describe_model(found, range(1, 21), **named)
        assert sentence.startswith(start), sentence
        assert all(part in sentence for part in parts.split("; ")), sentence


@pytest.mark.parametrize(("first", "second"), [(3, 20), (3, 4), (5, 5)])
def test_two_models_are_compared_string_by_string(
    monkeypatch: pytest.MonkeyPatch, first: int, second: int
) -> None:
    facts = Facts(SHIPPED)
    a, b = (set(facts.errors[run_id]) for run_id in (first, second))
    page = open_app(
        monkeypatch, SHIPPED, "model", run=str(first), beside=str(second), view="Errors"
    )
    ((tested,),) = rows(SHIPPED, "SELECT count(*) FROM test_string WHERE test_set_id = 1")
    text = page_text(page).replace("\\", "")
    both = f"{len(a & b):,} {'is' if len(a & b) == 1 else 'are'} wrong in both models"
    assert f"Of {tested:,} test strings, {both}, {len(a - b):,} only in model {first}" in text
    assert f"{len(b - a):,} only in model {second}" in text
    n, least = len(a ^ b), min(len(a - b), len(b - a))
    p = min(1.0, 2 * sum(comb(n, x) for x in range(least + 1)) / 2**n) if n else 1.0
    assert f"p = {p:.3g}" in text if p else "p < 1e-300" in text
    display = Tokenizer("abc").display
    tables = [x.value for x in page.dataframe if "wrong_in" in x.value]
    shown = {(row["string"], row["wrong_in"]) for x in tables for row in x.to_dict("records")}
    true = {(display(x), f"model {first}") for x in a - b}
    true |= {(display(x), f"model {second}") for x in b - a}
    assert shown <= true
    assert len(shown) == min(len(true), 1_000)
