"""Every section of the page Model, and every page, on models of every kind there is.

Sections come from the page itself: one that is added is tried here, without a line of this file.
What a page shows is content whose numbers are those of SQL and whose answers are those of Python;
or it refuses in one line, for a reason that follows from the kind.
"""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from dashboard.model.page import TABS, WITHOUT_WEIGHTS
from seqcls.problem import resolve
from seqcls.text import count
from sweeps import api
from sweeps.api import configs, names_of, predict
from sweeps.api.presentation import display_strings
from sweeps.api.protocols import protocol
from sweeps.store.opening import open_reader
from tests.app import open_app, rerun
from tests.conftest import LONG
from tests.oracles.compared import Compared
from tests.oracles.facts import Facts
from tests.oracles.reasons import Models, check_refusal, natures
from tests.pages.shown import Shown, shown
from tests.world import KINDS, UNKNOWN, Kind, spelled

OF_FILES = [kind for kind in KINDS if kind.letters is not None and not kind.imported]


def choose(app: AppTest, tab: str, part: str = "") -> AppTest:
    """The page with a tab open, and of *Inside* a part of it."""
    app.session_state["view"] = tab
    if part:
        app.session_state["part"] = part
    return rerun(app)


def parts_of(app: AppTest, tab: str) -> list[str]:
    """The parts of an open tab, of which one is shown."""
    boxes = [box for box in app.segmented_control if tab == "Inside" and box.key == "part"]
    return [str(part) for box in boxes for part in box.options] or [""]


def spoken(app: AppTest, string: str) -> str:
    """The sentence of the bar on a string, without the signs of code."""
    lines = shown(app).text.replace("`", "").splitlines()
    return next(line for line in lines if line.startswith(f"{string} "))


def reader(kind: Kind) -> tuple[object, ...]:
    """The properties that decide how a model is inspected: its network, and whether it writes."""
    writes = kind.task["task"] in ("pairs", "reverse", "addition", "copy")
    network = (kind.model.get(name) for name in ("architecture", "positions", "hidden_size"))
    return (writes, kind.imported, kind.fails, kind.overflows, *network)


ALIKE = [[kind for kind in KINDS if reader(kind) == own] for own in {*map(reader, KINDS)}]
"""Kinds by their readers; commands test the same questions on every kind."""


@pytest.mark.parametrize(
    "alike",
    sorted(ALIKE if not LONG else [[kind] for kind in KINDS], key=str),
    ids=lambda alike: "-".join(map(str, alike)),
)
def test_every_section_of_a_model_has_content(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts, alike: list[Kind]
) -> None:
    """Each section on one kind of those that are read alike, its answers on every kind."""
    looked_at: set[tuple[str, str]] = set()
    for kind in alike:
        models = Models(kind, facts)
        query = {"run": str(models.run_id), "string": models.string}
        app = open_app(monkeypatch, db, "model", **query, view="Errors", every_input="true")
        page = shown(app)
        check_page(models, page)
        assert page.has_content == (not kind.fails)
        every = WITHOUT_WEIGHTS if kind.imported else TABS
        assert page.tabs == ([] if kind.fails else [*every])
        if not kind.fails:
            check_answer(app, db, models)
        for tab in page.tabs:
            for part in parts_of(choose(app, tab), tab):
                if (tab, part) not in looked_at:
                    check_section(app, models, tab, part, len(page.notes))
                looked_at.add((tab, part))


def check_section(app: AppTest, models: Models, tab: str, part: str, num_notes: int) -> None:
    """Refuses a section without content, unless it waits or has more than `num_notes` notes."""
    page = shown(choose(app, tab, part))
    check_page(models, page)
    of_numbers = models.kind.overflows and tab not in ("Errors", "Why")
    # Proofs take longer, and are made on request.
    has_proof_toggle = "Prove it" in [own.label for own in app.toggle]
    is_refused = len(page.notes) > num_notes
    # Of a string that is right there may be nothing to draw.
    is_explained = tab == "Why" and "Why " in page.text
    has_reason = of_numbers or is_refused or is_explained
    assert page.has_content or page.codes or has_proof_toggle or has_reason, tab
    if LONG:
        check_controls(app, models)


def check_page(models: Models, page: Shown) -> int:
    """Checks a page about models of one kind; returns how many numbers were compared with SQL."""
    for message in (*page.errors, *page.notes):
        check_refusal(models, message)
    compared = Compared(models.facts, models.kind.name)
    for table in page.tables:
        compared.rows(table.to_dict("records"), "a table")
    for frame in (frame for chart in page.charts for frame in chart):
        compared.rows(frame.to_dict("records"), "a chart")
    return compared.number


def answer_of(db: Path, models: Models, string: str) -> dict[str, Any]:
    """The answer of Python and the commands, as it is displayed."""
    store = open_reader(str(db))
    config = configs(store)[models.runs[0]["config_id"]]
    frame = display_strings(predict(store, str(models.run_id), [string]), config)
    return {str(name): value for name, value in frame.iloc[0].items()}


def check_answer(app: AppTest, db: Path, models: Models) -> None:
    """Checks that a typed string is answered as by Python and the commands."""
    # So many letters are counted, not spelled out.
    string = "0{2000000}1" if models.kind.name == "counted" else models.string
    answer = answer_of(db, models, string)
    app.query_params["string"] = string
    if models.kind.overflows:
        assert pd.isna(answer["predicted"])
        assert f"The model has no answer to `{string}`." in shown(rerun(app)).text
        return
    sentence = spoken(rerun(app), answer["string"])
    for name, value in answer.items():
        if isinstance(value, str):
            assert value in sentence, name
        elif isinstance(value, float) and value == value:
            number = re.search(rf"{name.replace('_', ' ')} ([^ ,)]+)", sentence)
            assert number is not None, name
            assert float(number[1]) == pytest.approx(value, rel=1e-3), name


def check_controls(app: AppTest, models: Models) -> None:
    """Tries every option of the controls that a page offers."""
    for key, options in [(str(x.key), x.options) for x in app.segmented_control]:
        for option in options:
            app.segmented_control(key=key).set_value(option)
            check_page(models, shown(rerun(app)))


EVERY = {"failures": 3, "results": 3, "sweeps": 24}
"""Pages, and one kind of how many each is tried on, but where all are."""


@pytest.mark.parametrize(
    ("page", "kind"),
    [
        (page, kind)
        for page, every in EVERY.items()
        for place, kind in enumerate(KINDS)
        if LONG or place % every == 0
    ],
    ids=str,
)
def test_every_page_shows_every_kind(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts, page: str, kind: Kind
) -> None:
    models = Models(kind, facts)
    (sweep,) = facts.ask("SELECT id FROM sweep WHERE name = ?", kind.name)
    links: dict[str, dict[str, Any]] = {
        "failures": {"sweep": kind.name},
        "sweeps": {"sweep_id": str(sweep["id"])},
        "results": {
            "sweep": kind.name,
            "rows": [str(models.runs[place]["config_id"]) for place in (0, -1)],
        },
    }
    app = open_app(monkeypatch, db, page, **links[page])
    found = shown(app)
    numbers = check_page(models, found)
    if "untrained" not in natures(models):
        assert numbers, "no number was held against SQL"
        assert found.has_content
    if LONG:
        check_controls(app, models)


@pytest.mark.parametrize(
    "kind", [kind for kind in OF_FILES if LONG or "of" not in kind.name], ids=str
)
def test_strings_outside_the_file_have_no_known_label_or_target(
    monkeypatch: pytest.MonkeyPatch, db: Path, facts: Facts, kind: Kind
) -> None:
    assert kind.letters is not None
    models, string = Models(kind, facts), spelled(UNKNOWN, kind.letters)
    writes = kind.task["task"] == "pairs"
    app = open_app(monkeypatch, db, "model", run=str(models.run_id), string=string, view="Why")
    sentence = spoken(app, answer_of(db, models, string)["string"])
    assert f"its {'target' if writes else 'label'} is not known" in sentence
    assert ("gives " if writes else "is predicted ") in sentence
    for tab, part in (("Why", ""), ("Inside", "States"), *([("Inside", "Writing")] * writes)):
        page = shown(choose(app, tab, part))
        assert page.has_content or tab == "Why"
        assert not page.errors
        assert "is not in the file" not in page.text


def test_questions_about_no_strings_or_runs_return_nothing(db: Path, facts: Facts) -> None:
    store = open_reader(str(db))
    for kind in KINDS:
        run = str(Models(kind, facts).run_id)
        if kind.fails:
            continue
        assert predict(store, run, []).empty, kind
        assert api.figures(store, run, []) == [], kind
        # Code from outside cannot compute the targets of no string.
        if not kind.imported and kind.task["task"] != "ones_modulo":
            assert len(api.model(store, run).ask_all([]).strings) == 0, kind
    for query in (api.errors, api.lengths, api.by_drawn):
        assert query(store, []).empty
    assert len(api.runs(store, state="failed")) == 4


def test_configurations_of_every_kind_have_distinct_names(db: Path) -> None:
    store = open_reader(str(db))
    named = names_of(store, list(configs(store)))
    assert len({*named.values()}) == len(named) >= len(KINDS)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_the_protocol_of_every_kind_states_the_stored_numbers(
    db: Path, facts: Facts, kind: Kind
) -> None:
    store, models = open_reader(str(db)), Models(kind, facts)
    if kind.fails:
        return
    (run,) = facts.ask("SELECT * FROM run WHERE id = ?", models.run_id)
    problem = resolve(configs(store, [run["config_id"]])[run["config_id"]])
    text = " ".join(protocol(store, str(models.run_id)))
    assert f"It answered {run['tested']:,} test" in text
    assert run["digest"].rpartition(":")[2][:16] in text
    assert run["finished_at"][:10] in text
    assert f"Tested on {problem.test.epoch_size:,} " in text
    if problem.config.is_imported:
        assert "Trained elsewhere as " in text
        return
    epochs = count(run["epochs"], "epoch")
    assert f"was trained for {epochs}, and epoch {run['best_epoch']:,} was kept, " in text
    assert f"ends after {count(problem.config.max_num_epochs, 'epoch')}" in text
    assert f"Trained on {problem.train.epoch_size:,} " in text
    longest = problem.validation.lengths[-1], problem.train.lengths[-1]
    assert ("They are longer than those trained on" in text) == (longest[0] > longest[1])
    assert problem.writes == ("Outputs are written by" in text)
