"""Every page of the navigation on a database in every state: it shows what is there, or the reason
not; its numbers are those of SQL, and nothing that others wrote is interpreted.
"""

import re
import shutil
import sqlite3
from contextlib import closing
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from benchmarks.large import make_database
from dashboard.actions import REASON
from tests.app import FILTERED, PAGES, open_app, page_text
from tests.conftest import ROOT, SHIPPED
from tests.databases import change
from tests.oracles.facts import Facts, outcome
from tests.pages.shown import Shown, reads, shown
from tests.pages.stock import HOSTILE, LARGE_SEEDS, SMALL_GRID, begin
from tests.stock import stock

ALL = PAGES
OF_ONE_SWEEP = "all_initializations"

EXPLAINED = {
    "damaged": "not a SQLite database",
    "foreign": "of another program",
    "torn": "damaged",
    "newer": "upgrade seqcls",
    "older": "seqcls db convert",
    "oldest": "'0003'",
}
"""Files that cannot be shown, and a part of the message of each."""

WAITING = {
    "missing": "There are no models to show yet",
    "empty": "There are no models to show yet",
    "new": "No sweep yet. New sweep, in the sidebar, trains the first.",
    "queued": "No model is trained yet. The page Sweeps says how far training is.",
}
"""Texts in place of results that do not exist yet."""

GUIDE_ELSEWHERE = "none of the report's models"
NO_WEIGHTS = ("the weights of run", "no weights of epoch")
"""Messages on results without weights, as those of large databases here."""


def opened(
    monkeypatch: pytest.MonkeyPatch, db: Path | str, page: str, **query: str | list[str]
) -> Shown:
    """The content of a page, checked not to interpret text of others."""
    found = shown(open_app(monkeypatch, db, page, **query))
    for text in (re.sub("`[^`]*`", "", text) for text in found.markup):
        for sign in ("**bold**", "[link](", "<script>", ":red[x]", "<b>", "*new*"):
            assert sign not in text, text
    return found


@pytest.mark.parametrize(
    ("state", "page"), [("empty", "results"), *product(("missing", "new"), ALL)]
)
@pytest.mark.parametrize("visits", [False, True])
def test_a_page_without_models_advises_what_to_do(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str, page: str, visits: bool
) -> None:
    if visits:
        monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    db = tmp_path / "none.db"
    if state != "missing":
        shutil.copy(stock("states") / f"{state}.db", db)
    found = opened(monkeypatch, db, page)
    assert not found.errors
    assert db.exists() == (state != "missing"), "a page that is looked at makes nothing"
    if page == "launch":
        assert "Launch" in (found.refused if visits else found.pressable)
    elif page == "guide" and state == "new":
        assert GUIDE_ELSEWHERE in found.text
    else:
        advice = f"seqcls sweep report --db {db}" if state != "new" else "New sweep, in the sidebar"
        assert WAITING[state].split(".")[0] in found.text
        assert (advice in found.text) == (not visits), "visitors get no advice to train"


@pytest.mark.parametrize(
    ("state", "page"), [*product(EXPLAINED, ["results"]), *product(["torn"], ALL[1:])]
)
def test_a_file_that_cannot_be_shown_is_explained(
    monkeypatch: pytest.MonkeyPatch, state: str, page: str
) -> None:
    found = opened(monkeypatch, stock("states") / f"{state}.db", page)
    (message,) = found.errors
    assert EXPLAINED[state] in message
    assert f"{state}.db" in message
    assert not found.has_content


@pytest.mark.parametrize("page", ALL)
def test_a_sweep_without_a_finished_run_is_shown_as_unfinished(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    for state in ("queued", "running") if page == "sweeps" else ("queued",):
        db = Path(shutil.copy(stock("states") / "queued.db", tmp_path / f"{state}.db"))
        if state == "running":
            begin(db)
        found = opened(monkeypatch, db, page)
        assert not found.errors
        assert "<b>*new*</b>** · 0 of 4 models" in found.text, "its progress is seen on every page"
        if page == "sweeps":
            assert ("Stop" if state == "running" else "Resume") in found.pressable
            assert found.tables[0]["models"].tolist() == [4]
        elif page != "launch":
            assert WAITING["queued"] in found.text or GUIDE_ELSEWHERE in found.text


def check_content(page: str, found: Shown, *, has_weights: bool) -> None:
    """Refuses a page of a database with results that lacks content, or has other messages."""
    if page == "launch":
        assert "Launch" in (*found.pressable, *found.refused)
    elif page == "guide" and not has_weights:
        assert GUIDE_ELSEWHERE in found.text
    else:
        assert found.has_content or not has_weights
    messages = [text for text in (*found.errors, *found.notes) if GUIDE_ELSEWHERE not in text]
    expected = ("but the model predicts",) if has_weights else NO_WEIGHTS
    for text in messages:
        assert page == "model", text
        assert any(reason in text for reason in expected), text


def check_table(facts: Facts, table: pd.DataFrame, sweep: str) -> None:
    """Holds the counts of configurations against SQL."""
    runs = [run for run in facts.sweeps[sweep] if run["state"] == "done"]
    assert len(table) == len({run["config_id"] for run in runs})
    for row in table.to_dict("records"):
        came_to = [outcome(run) for run in runs if run["config_id"] == row["config_id"]]
        assert row["seeds"] == row["judged"] == len(came_to)
        assert row["learned"] == len(came_to) - came_to.count("not learned")
        assert row["generalize"] == came_to.count("generalizes")


@pytest.mark.parametrize(
    ("state", "page"), [*product(["large"], FILTERED), *product(["hostile"], ALL)]
)
def test_a_large_database_and_one_of_hostile_texts_are_shown(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, state: str, page: str
) -> None:
    db = Path(shutil.copy(stock("states") / f"{state}.db", tmp_path))
    query = {"shown": f"large{HOSTILE}"} if (page, state) == ("sweeps", "hostile") else {}
    found = opened(monkeypatch, db, page, **query)
    check_content(page, found, has_weights=False)
    facts = Facts(db)
    if (page, state) == ("results", "large"):
        check_table(facts, found.tables[0], "large")
        assert len(found.tables[0]) == len(facts.runs) / LARGE_SEEDS == 50
        assert len(found.charts) == 12
        assert "The first 12 of 50; select rows to see others." in found.text
    if (page, state) == ("failures", "large"):
        failing = sum(run["wrong"] > 0 for run in facts.runs.values())
        assert f"{failing} of {len(facts.runs)} tested models fail" in found.text
        assert max(map(len, found.tables)) == 50 < failing, "only a part is read at once"
    if query:
        # Name, description, title and note.
        assert found.text.count(HOSTILE) >= 4


def test_a_database_of_a_server_is_shown(
    monkeypatch: pytest.MonkeyPatch, postgres_url: str
) -> None:
    make_database(postgres_url, SMALL_GRID, seeds=4)
    found = opened(monkeypatch, postgres_url, "results")
    check_content("results", found, has_weights=False)
    check_table(Facts(postgres_url), found.tables[0], "large")
    found = opened(monkeypatch, postgres_url, "failures", seed=["1", "2"])
    check_content("failures", found, has_weights=False)
    assert "of 8 tested models fail" in found.text
    check_content("sweeps", opened(monkeypatch, postgres_url, "sweeps"), has_weights=False)


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped database, alone in a folder."""
    return Path(shutil.copy(SHIPPED, tmp_path_factory.mktemp("public")))


@pytest.mark.parametrize("page", ALL)
def test_visitors_see_the_shipped_database_and_can_write_nothing(
    monkeypatch: pytest.MonkeyPatch, public: Path, page: str
) -> None:
    links = {
        "results": {"sweep": OF_ONE_SWEEP},
        "model": {"run": "5"},
        "sweeps": {"shown": OF_ONE_SWEEP},
    }
    monkeypatch.setenv("SEQCLS_READ_ONLY", "1")
    found = opened(monkeypatch, public, page, **links.get(page, {}))
    check_content(page, found, has_weights=True)
    if page == "results":
        check_table(Facts(SHIPPED), found.tables[0], OF_ONE_SWEEP)
    assert [label for label in found.pressable if not reads(label)] == []
    assert {found.refused[label] for label in found.refused if not reads(label)} <= {REASON}
    assert {"Title", "Note"}.isdisjoint(found.typed_into)
    writes = {"sweeps": ("Save", "Archive", "Train"), "launch": ("Launch",)}
    for name in writes.get(page, ()):
        assert any(label.startswith(name) for label in found.refused), name
    assert public.read_bytes() == SHIPPED.read_bytes()
    assert [path.name for path in public.parent.iterdir()] == ["runs.db"]


@pytest.mark.parametrize("page", FILTERED)
def test_filters_without_a_match_are_reported(monkeypatch: pytest.MonkeyPatch, page: str) -> None:
    found = opened(monkeypatch, SHIPPED, page, seed="5", sweep="generalization_errors")
    assert found.notes == ["No trained model matches the filters."]


def test_a_page_holds_no_lock(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    db = Path(shutil.copy(stock("states") / "queued.db", tmp_path))
    for page in FILTERED:
        open_app(monkeypatch, db, page)
    with closing(sqlite3.connect(db, timeout=0, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        connection.execute("ROLLBACK")


@pytest.mark.parametrize("page", ["results", "failures", "sweeps"])
def test_a_page_of_a_damaged_run_has_no_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, page: str
) -> None:
    db = Path(shutil.copy(ROOT / "runs.db", tmp_path / "runs.db"))
    change(
        db, "PRAGMA ignore_check_constraints = ON", "UPDATE run SET lengths = '[[1' WHERE id = 3"
    )
    app = open_app(monkeypatch, db, page)
    assert "Traceback" not in page_text(app)
    if app.error:
        assert "restore a copy" in page_text(app)
    else:
        assert app.dataframe, "all others are shown"
