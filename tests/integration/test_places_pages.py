"""Pages and commands on models that answer at every place."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from seqcls.errors import SeqclsError
from seqcls.interpretability.verdicts import OutputVerdict
from sweeps.api import automaton, errors, lengths, states, verdict
from sweeps.cli.app import app as seqcls
from sweeps.grid.spec import parse_spec
from sweeps.store import writer
from sweeps.store.opening import open_reader, open_writer
from sweeps.work.machine import WorkOptions
from sweeps.work.worker import work
from tests.app import open_app, said
from tests.conftest import SHORT
from tests.databases import file_of

TINY = {**SHORT, "train_size": 128, "max_num_epochs": 1, "test_size": 200, "hidden_size": 4}
TINY |= {"train_max_length": 4, "validation_max_length": 4, "test_max_length": 8}
LANGUAGE = {"task": "regular", "alphabet": "ab", "pattern": "(ab|b)*"}
ANSWERS = ["string", "prefixes", "next_symbols", "states"]
PREFIXES, NEXT, STATES = 2, 3, 4


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of each reading of one language; next symbols and states by a Transformer."""
    folder = tmp_path_factory.mktemp("places")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEQCLS_CACHE", str(folder / "cache"))
        store = open_writer(str(folder / "places.db"))
        spec = {"name": "places", "model_seeds": [0], "fixed": {**TINY, **LANGUAGE}}
        spec["axes"] = {"answers": ANSWERS}
        work(store, [writer.submit(store, parse_spec(spec))], WorkOptions(0, engine="torch"))
    return file_of(store)


def test_what_is_stored_of_answers_at_every_place(db: Path) -> None:
    store = open_reader(str(db))
    for run, first in ((PREFIXES, "0"), (NEXT, "b"), (STATES, "0")):
        wrong = errors(store, [run])
        assert len(wrong)
        assert set(wrong["error_kind"]) <= {"too much", "too little", "wrong answer"}
        assert (wrong["first_wrong"] <= wrong["length"]).all()
        assert wrong["target"].str.contains(first, regex=False).any()
        scores = lengths(store, [run])
        assert (scores["target_tokens"] == scores["tested"] * (scores["length"] + 1)).all()
        assert (scores["edits"] >= scores["wrong"]).all()
    checked = CliRunner().invoke(seqcls, ["verify", "--db", str(db)])
    assert "nothing is damaged" in checked.stdout


def test_questions_about_a_model_that_answers_at_every_place(db: Path) -> None:
    store = open_reader(str(db))
    for run in (PREFIXES, NEXT, STATES):
        tried = verdict(store, run)
        assert isinstance(tried, OutputVerdict)
        assert tried.wrong == sum(tried.error_kinds.values()) > 0
        wrong = errors(store, [run]).iloc[0]
        prefixes = states(store, run, wrong["string"]).prefixes
        assert prefixes is not None
        right = [x == y for x, y in zip(prefixes.labels, prefixes.answers, strict=True)]
        assert right.index(False) == wrong["first_wrong"]
        assert prefixes.logits.min() == pytest.approx(wrong["logit"], abs=1e-4)
        learned = automaton(store, run, strings=64, seconds=20)
        assert learned.names
        assert learned.language is not None
        assert learned.error is None or learned.error.is_wrong


@pytest.mark.parametrize(
    "arguments",
    [
        ["errors", "3"],
        ["predict", "3", "abab"],
        ["states", "3", "abab"],
        ["verdict", "3"],
        ["minimal", "2"],
        ["ablate", "2"],
        ["family", "2", "<ab>{n}"],
        ["automaton", "3", "--strings", "64"],
        ["compare", "2", "4"],
        ["compare", "1", "2"],
    ],
)
def test_commands_know_them(db: Path, arguments: list[str]) -> None:
    result = CliRunner().invoke(seqcls, [*arguments, "--db", str(db)])
    assert result.exit_code == 0, result.exception


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["explain", "2", "ab"], "asked at every place, answers more than yes or no"),
        (["rules", "2"], "asked at every place, answers more than yes or no"),
        (["predict", "3", "aa"], "expected a string of the language"),
    ],
)
def test_what_they_cannot_is_said_with_the_reason(
    db: Path, arguments: list[str], reason: str
) -> None:
    result = CliRunner().invoke(seqcls, [*arguments, "--db", str(db)])
    assert isinstance(result.exception, SeqclsError)
    assert reason in str(result.exception)


@pytest.mark.parametrize("page", ["compare", "map", "failing", "sweeps"])
def test_pages_are_drawn(monkeypatch: pytest.MonkeyPatch, db: Path, page: str) -> None:
    app = open_app(monkeypatch, db, page)
    assert not app.exception


@pytest.mark.parametrize("run", [PREFIXES, NEXT, STATES])
def test_the_model_page_marks_the_first_wrong_place(
    monkeypatch: pytest.MonkeyPatch, db: Path, run: int
) -> None:
    app = open_app(monkeypatch, db, "failing", run=str(run))
    assert not app.exception
    assert "Marked: the first wrong place" in said(app)
    views = ("Answers", "States", "Minimal and nearest", "Patching", "Ablation", "All inputs")
    for view in (*views, "Breaking point", "Automaton", "Live"):
        app = open_app(monkeypatch, db, "model", run=str(run), view=view)
        assert not app.exception, view
        if view == "States":
            assert "Marked: the first wrong place" in said(app)
