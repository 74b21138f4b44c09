"""Whatever a database holds, commands and pages say a line about it and show the rest."""

import os
import random
import resource
import shutil
import sqlite3
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from datetime import date
from functools import partial
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

from dashboard.cli import app
from seqcls.errors import SeqclsError
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from sweeps.store.survey import kind_of
from sweeps.store.tables import Base
from sweeps.store.verification import verify
from tests.app import INSIDE, PAGES, run
from tests.chaos.damaged import (
    COLUMNS,
    VALUES,
    WRITES,
    cases,
    make,
    replace,
    seeming,
    unchecked,
)
from tests.conftest import ROOT
from tests.databases import rows

pytestmark = pytest.mark.timeout(4 * 3600)

Case = tuple[str, str, str]

MOST_SECONDS = 60.0
"""Processor seconds: how busy the machine is says nothing of a command."""

PATIENCE_SECONDS = 900.0
"""For a page on a busy machine."""

MOST_BYTES = 1_000_000_000

CAMPAIGN_SECONDS = 2_400.0
"""After so long a campaign ends: all its cases take hours, and each day begins with others."""

READING = (
    ["db", "check"],
    ["runs", "--json"],
    ["errors", "1"],
    ["verdict", "1"],
    ["predict", "1", "ab{20}"],
    ["explain", "1", "abb"],
    ["family", "1", "ab{n}"],
    ["rules", "1"],
    ["minimal", "1"],
    ["states", "1", "abb"],
    ["patch", "1", "abb"],
    ["ablate", "1"],
    ["errors", str(WRITES)],
    ["verdict", str(WRITES)],
    ["predict", str(WRITES), "ab", "--beam", "2"],
    ["family", str(WRITES), "ab{n}"],
    ["states", str(WRITES), "ab"],
    ["patch", str(WRITES), "ab", "--source", "bb"],
    ["remedies", "1"],
    ["status", "--json"],
    ["sensitive"],
    ["compare", "small:hidden_size=2", "small:hidden_size=3"],
    ["estimate", "report/walkthrough", "--workers", "1"],
    ["verify"],
)
WRITING = (
    ["stop", "small"],
    ["retry", "waiting"],
    ["causes", "small"],
    ["db", "outcomes"],
    ["more", "small", "--budget", "2x", "--learned-at", "1", "--submit"],
    ["work", "--workers", "0"],
    ["delete", "small", "--yes"],
    ["pack"],
)
"""Each on a copy of its own; they must leave no traceback either."""

NEVER_WRITTEN = 2
"""What writes into tables that check nothing is refused before it looks: so many are asked."""

MOST_LOST = {"test_set": 4, "test_string": 4, "config": 2}
"""Finished runs that rest on the first row of these tables; one rests on a row of any other."""

VERDICT = "but the model predicts"
"""What a page says of a string in a box like an error's."""

LACKING = "its runs are not those that its specification asks for"

KNOWN: list[Case] = [
    ("config", "json", "list"),
    ("config", "key", "text"),
    ("length_score", "edits", "half"),
    ("output_pack", "outputs", "cut"),
    ("output_pack", "run_id", "null"),
    ("revision", "members", "text"),
    ("run", "id", "huge"),
    ("saved_view", "page", "null"),
    ("sweep_tag", "tag", "blob"),
]
"""What once ended a merge, or left a page without its content, and outputs."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("whole") / "whole.db")


def damaged_copies(
    whole: Path, folder: Path, case: Case, *, first: bool = False
) -> dict[str, Path]:
    """The same damage in tables that check nothing, and in tables that say they check all."""
    copies = {"unchecked": unchecked(whole, folder / "unchecked.db")}
    replace(copies["unchecked"], *case, first=first)
    try:
        copies["seeming"] = seeming(whole, folder / "seeming.db", *case, first=first)
    except sqlite3.IntegrityError:
        # The number of a row is a whole number in any table that has one.
        return copies
    return copies


def commands(path: Path, folder: Path, writing: int = len(WRITING)) -> list[list[str]]:
    """Every command on a database; what writes writes into a copy."""
    listed = [[*command, "--db", str(path)] for command in READING]
    listed.append(["report", "small", "--out", str(folder / "x.html"), "--db", str(path)])
    listed.append(["export", str(folder / "files"), "--db", str(path)])
    listed.append(["merge", str(path), "--db", str(folder / "merged.db")])
    for number, command in enumerate(WRITING[:writing]):
        copy = shutil.copy(path, folder / f"copy{number}.db")
        listed.append([*command, "--db", str(copy)])
    return listed


def said_by(arguments: list[str]) -> str | None:
    """What a command does that none may do; None where it does as it should."""
    began = time.process_time()
    error = CliRunner().invoke(app, arguments).exception
    if time.process_time() - began > MOST_SECONDS:
        return f"{arguments[0]} took {time.process_time() - began:.0f} s"
    if error is None or isinstance(error, SystemExit | SeqclsError | OSError | UnicodeError):
        return None
    return f"{' '.join(arguments[:2])}: {_last_lines(error)}"


def done(path: Path) -> list[int]:
    """The ids of finished runs of a database that is not damaged."""
    return [run_id for (run_id,) in rows(path, "SELECT id FROM run WHERE state = 'done'")]


def merged_by(path: Path, to: Path, at_least: int) -> str | None:
    """What a merge of a damaged database into a new one does that none may do."""
    error = CliRunner().invoke(app, ["merge", str(path), "--db", str(to)]).exception
    if error is not None and not isinstance(error, SystemExit):
        return f"merge: {_last_lines(error)}"
    if len(done(to)) < at_least:
        return f"merge took {len(done(to))} finished runs over, expected {at_least}"
    # A sweep lacks its damaged runs.
    found = [own for own in verify(open_reader(str(to))).damages if LACKING not in own.how]
    return f"merge made a damaged database: {found[0]}" if found else None


def shown_by(
    path: Path,
    page: str,
    monkeypatch: pytest.MonkeyPatch,
    sound: int | None = None,
    shown_run: int = 1,
    view: str = "",
) -> str | None:
    """What a page does that none may do.

    Args:
        path: the damaged database.
        page: which page.
        monkeypatch: pytest's.
        sound: a run that is not damaged, whose page has its content, as all other pages have.
        shown_run: else the run that the page is asked for.
        view: the section of the page, if one is asked for.
    """
    monkeypatch.setenv("SEQCLS_DB", str(path))
    began = time.process_time()
    shown = AppTest.from_file(str(ROOT / "dashboard" / "app.py"), default_timeout=PATIENCE_SECONDS)
    shown.query_params["run"] = str(sound or shown_run)
    if view:
        shown.query_params["view"] = view
    shown.query_params["sweep_id"] = "1"
    if page != "compare":
        shown.switch_page(f"screens/{page}.py")
    run(shown)
    if shown.exception:
        return f"page {page}: {shown.exception[0].value}"
    errors = [own.value for own in shown.error if VERDICT not in own.value]
    if sound is not None and errors:
        said = " ".join(" ".join(own.value.split()) for own in shown.code)
        return f"page {page} shows an error in place of content: {errors[0]} {said[:500]}"
    if time.process_time() - began > MOST_SECONDS:
        return f"page {page} took {time.process_time() - began:.0f} s"
    return None


def _last_lines(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [f"{Path(x.filename).name}:{x.lineno}" for x in frames if str(ROOT) in x.filename]
    return f"{type(error).__name__}: {str(error)[:200]} at {' '.join(own[-3:])}"


def campaign(
    whole: Path,
    folder: Path,
    chosen: list[Case],
    look: Callable[[Path, Path, Case], list[str | None]],
    *,
    first: bool = False,
) -> list[str]:
    """What goes wrong on all damaged copies of these cases."""
    wrong, began = [], time.monotonic()
    for number, case in enumerate(chosen):
        print(f"{number} of {len(chosen)}", flush=True)
        if time.monotonic() - began > CAMPAIGN_SECONDS:
            break
        own = folder / str(number)
        own.mkdir()
        for kind, path in damaged_copies(whole, own, case, first=first).items():
            (own / kind).mkdir()
            found = [x for x in look(path, own / kind, case) if x is not None]
            wrong += [f"{kind} {' '.join(case)}: {x}" for x in found]
            for line in found:
                print(kind, *case, line, flush=True)
        shutil.rmtree(own)
    return wrong


def most_bytes() -> int:
    """The most memory that this process ever had; other tests may have had theirs."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def some(long: bool) -> list[Case]:
    """All cases in an order of the day, so that a part of them is a sample; where short, one."""
    every = list(cases())
    mixed = random.Random(date.today().toordinal() if long else 0).sample(every, len(every))
    part, parts = os.environ.get("SEQCLS_CHAOS_PART", "0/1").split("/")
    return mixed[int(part) :: int(parts)] if long else mixed[:1]


def test_every_command_says_a_line_about_damage(whole: Path, tmp_path: Path, long: bool) -> None:
    def look(path: Path, folder: Path, _: Case) -> list[str | None]:
        writing = NEVER_WRITTEN if path.stem == "unchecked" else len(WRITING)
        return [said_by(arguments) for arguments in commands(path, folder, writing)]

    before = most_bytes()
    assert campaign(whole, tmp_path, some(long), look) == []
    assert most_bytes() - before < MOST_BYTES


def test_every_page_shows_what_can_be_trusted(
    whole: Path, tmp_path: Path, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(path: Path, _: Path, __: Case) -> list[str | None]:
        pages = (*PAGES, *INSIDE) if long or path.stem == "seeming" else ("sweeps", "model")
        shown = [shown_by(path, page, monkeypatch) for page in pages]
        of_outputs = partial(shown_by, path, "model", monkeypatch, shown_run=WRITES)
        return [*shown, of_outputs(view="Writing"), of_outputs(view="Patching")]

    before = most_bytes()
    assert campaign(whole, tmp_path, some(long), look) == []
    assert most_bytes() - before < MOST_BYTES


def test_a_damaged_row_costs_no_other_its_page_nor_its_place_in_a_merge(
    whole: Path, tmp_path: Path, long: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = done(whole)
    # Pages first, to which the damage is news; of them that which shows it in a part of its own.
    pages = ("sweeps", *PAGES[:-1], *INSIDE) if long else ("sweeps",)

    def look(path: Path, folder: Path, case: Case) -> list[str | None]:
        at_least = len(every) - MOST_LOST.get(case[0], 1)
        shown = [shown_by(path, page, monkeypatch, max(every)) for page in pages]
        return [*shown, merged_by(path, folder / "new.db", at_least)]

    chosen = [*KNOWN, *some(long)] if long else KNOWN[::2]
    assert campaign(whole, tmp_path, chosen, look, first=True) == []


def test_no_value_that_its_table_refuses_is_taken_for_sound(whole: Path, tmp_path: Path) -> None:
    refused = 0
    with closing(sqlite3.connect(shutil.copy(whole, tmp_path / "x.db"))) as connection:
        for table, column in COLUMNS:
            kind = kind_of(Base.metadata.tables[table], column)
            for value in (*VALUES.values(), 0, 2, b"", b"1234"):
                try:
                    connection.execute(f"UPDATE {table} SET {column} = ?", (value,))
                except sqlite3.IntegrityError as error:
                    # Numbers and logits are held against each other where they are unpacked, and
                    # what is counted of outputs where it is read.
                    together = ("logits", "all_or_none", "read_or_not", "as_it_ended")
                    several = any(name in str(error) for name in together)
                    if str(error).startswith("CHECK") and not several:
                        refused += 1
                        assert not kind.fits(value), (table, column, value)
                connection.rollback()
    assert refused > 100


def test_a_file_that_checks_nothing_is_not_called_writable(whole: Path, tmp_path: Path) -> None:
    path = unchecked(whole, tmp_path / "x.db")
    refused = CliRunner().invoke(app, ["stop", "small", "--db", str(path)]).exception
    said = CliRunner().invoke(app, ["db", "check", "--db", str(path)]).stdout
    assert f"writable  no: {refused}" in said
    assert "writable  yes" in CliRunner().invoke(app, ["db", "check", "--db", str(whole)]).stdout


COUNTS_DIFFER = "its tested and wrong are not those of its tn, fp, fn and tp"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            "UPDATE run SET fp = 'many' WHERE id = 2",
            "run 2: fp is 'many', expected a whole number",
        ),
        (
            "UPDATE run SET wrong = 'many' WHERE id = 2",
            "run 2: wrong is 'many', expected a whole number",
        ),
        ("UPDATE run SET tested = NULL WHERE id = 2", "run 2: it is done and has no results"),
        (
            "UPDATE run SET solved_length = NULL WHERE id = 2",
            "run 2: it is done and has no results",
        ),
        ("UPDATE run SET tested = tested + 1 WHERE id = 2", f"run 2: {COUNTS_DIFFER}"),
        ("UPDATE run SET tp = NULL WHERE id = 2", f"run 2: {COUNTS_DIFFER}"),
        (
            "UPDATE length_score SET wrong = tested + 1 WHERE run_id = 2 AND length = 9",
            "run 2 (length_score length 9): it got more strings wrong than it was tested on",
        ),
        (
            f"UPDATE output_pack SET outputs = substr(outputs, 1, 20) WHERE run_id = {WRITES}",
            f"run {WRITES} (output_pack): outputs is ",
        ),
        (
            "UPDATE length_score SET wrong = NULL WHERE run_id = 2 AND length = 9",
            "run 2 (length_score length 9): wrong is None, expected a whole number",
        ),
    ],
)
def test_a_damaged_run_is_named_and_all_others_are_shown(
    whole: Path, tmp_path: Path, change: str, said: str
) -> None:
    path = unchecked(whole, tmp_path / "x.db")
    everything = len(queries.runs(open_reader(str(path))))
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    store = open_reader(str(path))
    assert len(queries.runs(store)) == everything - 1
    assert store.survey is not None
    assert said in store.survey.lines[0]
    run_id = said.split()[1].rstrip(":")
    named = said if said.startswith("run 2: ") else f"run {run_id}: damaged"
    with pytest.raises(SeqclsError, match=named):
        queries.find_run(store, run_id)
    shown = CliRunner().invoke(app, ["runs", "--json", "--db", str(path)])
    assert shown.exit_code == 0


@pytest.mark.parametrize(
    ("change", "said", "lost"),
    [
        (
            f"UPDATE length_score SET run_id = NULL WHERE run_id = {WRITES}",
            f"run {WRITES} (output_pack): it has 34 outputs of 0 misclassified strings",
            1,
        ),
        (
            "UPDATE test_string SET target = NULL WHERE label IS NULL AND number = 3",
            "(test_string number 3): it has neither a label nor a target",
            2,
        ),
    ],
)
def test_runs_without_scores_or_targets_are_left_out(
    whole: Path, tmp_path: Path, change: str, said: str, lost: int
) -> None:
    path = unchecked(whole, tmp_path / "x.db")
    everything = len(queries.runs(open_reader(str(path))))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(change)
        connection.commit()
    store = open_reader(str(path))
    assert len(queries.runs(store)) == everything - lost
    assert store.survey is not None
    assert any(said in line for line in store.survey.lines)


def test_an_export_without_a_torn_run_says_which(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db, out = tmp_path / "torn.db", tmp_path / "out"
    shutil.copy(ROOT / "runs.db", db)
    with closing(sqlite3.connect(db)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        connection.execute("UPDATE error_pack SET logits = substr(logits, 1, 7) WHERE run_id = 5")
        connection.commit()
    said = CliRunner().invoke(app, ["export", str(out), "--db", str(db)])
    assert said.exit_code == 0, said.output
    assert "is damaged and shown without: run 5 (error_pack)" in caplog.text
    exported = {line.partition(",")[0] for line in (out / "errors.csv").read_text().splitlines()}
    assert "5" not in exported
    assert "3" in exported
