"""A changed row is found and named, is in no merge, and costs no other its page."""

import itertools
import math
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from seqcls.errors import SeqclsError
from sweeps.store.opening import open_reader
from sweeps.store.reads import queries
from sweeps.store.survey import kind_of
from sweeps.store.tables import Base
from sweeps.store.verification import verify
from tests.app import open_app
from tests.chaos.damaged import WRITES, unchecked
from tests.commands import run_main
from tests.conftest import ROOT
from tests.databases import rows
from tests.stock import stock


@pytest.fixture(scope="module")
def whole() -> Path:
    return stock("rows") / "rows.db"


CHANGED = {
    "run": ("wrong = wrong + 1, fp = fp + 1, tn = tn - 1 WHERE id = 2", "run 2", 1),
    "epoch": ("train_loss = train_loss + 1 WHERE run_id = 2 AND epoch = 1", "run 2", 1),
    "length_score": ("wrong = wrong + 1 WHERE run_id = 2 AND length = 9", "run 2", 1),
    "length_sum": ("tested = tested + 1 WHERE length = 9 AND config_id = 1", "configuration 1", 0),
    "error_pack": ("logits = zeroblob(length(logits)) WHERE run_id = 2", "run 2", 1),
    "output_pack": (f"outputs = substr(outputs, 1, 20) WHERE run_id = {WRITES}", "run 6", 1),
    "checkpoint": (
        "weights = zeroblob(length(weights)) WHERE run_id = 2 AND epoch = 1",
        "run 2",
        1,
    ),
    "verdict": ("inputs = inputs + 1 WHERE run_id = 2", "run 2", 0),
    "proof": ("states = states + 1", "run 1", 0),
    "config": ("json = replace(json, 'e\":2', 'e\":5') WHERE id = 1", "configuration 1", 2),
    "test_set": ("digest = 'x' WHERE id = 1", "test set 1", 4),
    "test_string": ("label = 1 - label WHERE test_set_id = 1 AND number = 3", "test set 1", 4),
    "shortcut": ("correct = zeroblob(length(correct)) WHERE rowid = 1", "test set", 0),
    "sweep_run": ("sweep_id = 3 WHERE run_id = 2", "sweep 'small'", 0),
    "dataset": ("rows = zeroblob(length(rows))", "dataset", 0),
}
"""A change that a table's types allow, what is named, and the runs that rest on it.

What is found out of runs later is left behind alone; sums are made anew.
"""

LACKING = "its runs are not those that its specification asks for"


def done(path: Path) -> int:
    return int(rows(path, "SELECT count(*) FROM run WHERE state = 'done'")[0][0])


def changed(path: Path, *statements: str) -> Path:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        for statement in statements:
            assert connection.execute(statement).rowcount
    return path


@pytest.mark.parametrize("table", CHANGED)
def test_a_changed_row_is_found_and_named_and_is_in_no_merge(
    whole: Path, tmp_path: Path, table: str
) -> None:
    change, named, lost = CHANGED[table]
    path, merged = Path(shutil.copy(whole, tmp_path / "x.db")), tmp_path / "merged.db"
    changed(path, f"UPDATE {table} SET {change}")
    assert any(str(own).startswith(named) for own in verify(open_reader(str(path))).damages)
    run_main("merge", str(path), "--db", str(merged))
    assert done(merged) == done(whole) - lost
    # A sweep lacks its damaged runs.
    left = verify(open_reader(str(merged))).damages
    assert [own for own in left if LACKING not in own.how] == []


UNFIT = {
    "fp = 'many' WHERE id = 2": "run 2: fp is 'many', expected a whole number",
    "wrong = 'many' WHERE id = 2": "run 2: wrong is 'many', expected a whole number",
    "tested = NULL WHERE id = 2": "run 2: it is done and has no results",
    "solved_length = NULL WHERE id = 2": "run 2: it is done and has no results",
    "tested = tested + 1 WHERE id = 2": "run 2: its tested and wrong are not those of its tn, fp",
    "tp = NULL WHERE id = 2": "run 2: its tested and wrong are not those of its tn, fp",
}
"""Changes of a run that no table of this program would take, and what is said of them."""


@pytest.mark.parametrize(
    ("change", "said", "lost"),
    [
        *((f"UPDATE run SET {change}", said, 1) for change, said in UNFIT.items()),
        (
            "UPDATE length_score SET wrong = tested + 1 WHERE run_id = 2 AND length = 9",
            "run 2 (length_score length 9): it got more strings wrong than it was tested on",
            1,
        ),
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
def test_a_damaged_run_is_named_and_all_others_are_shown(
    whole: Path, tmp_path: Path, change: str, said: str, lost: int
) -> None:
    path = unchecked(whole, tmp_path / "x.db")
    everything = len(queries.runs(open_reader(str(path))))
    store = open_reader(str(changed(path, change)))
    assert len(queries.runs(store)) == everything - lost
    assert store.survey is not None
    assert any(said in line for line in store.survey.lines)
    if said.startswith("run 2"):
        with pytest.raises(SeqclsError, match="run 2: "):
            queries.find_run(store, "2")
    assert run_main("runs", "--json", "--db", str(path)).returncode == 0


VERDICT = "but the model predicts"
"""What a page says of a string in a box like an error's."""


def test_damaged_rows_cost_no_other_run_its_page(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = changed(
        unchecked(whole, tmp_path / "x.db"),
        "UPDATE config SET json = '[]' WHERE id = 1",
        "UPDATE length_score SET edits = 0.5 WHERE run_id = 3",
        f"UPDATE output_pack SET run_id = NULL WHERE run_id = {WRITES}",
        "UPDATE revision SET members = 'text'",
        "UPDATE saved_view SET page = NULL",
        "UPDATE sweep_tag SET tag = x'00ff01'",
        "UPDATE run SET id = 9223372036854775807 WHERE id = 5",
    )
    for page in ("sweeps", "compare", "failing", "model"):
        shown = open_app(monkeypatch, path, page, run="7", sweep_id="1")
        assert [own.value for own in shown.error if VERDICT not in own.value] == [], page
    assert run_main("runs", "--json", "--db", str(path)).returncode == 0


def test_no_value_that_its_table_refuses_is_taken_for_sound(whole: Path, tmp_path: Path) -> None:
    values = ("", "text", -1, 2**63 - 1, 0.5, math.inf, None, b"\x00\xff", "[]", 0, 2, b"", b"1234")
    refused = 0
    with closing(sqlite3.connect(shutil.copy(whole, tmp_path / "x.db"))) as connection:
        for table in set(Base.metadata.sorted_tables) - {Base.metadata.tables["revision"]}:
            for column, value in itertools.product(table.columns, values):
                try:
                    connection.execute(f"UPDATE {table.name} SET {column.name} = ?", (value,))
                except sqlite3.IntegrityError as error:
                    # What is held against other columns is looked at where it is read.
                    together = ("logits", "all_or_none", "read_or_not", "as_it_ended")
                    several = any(name in str(error) for name in together)
                    if str(error).startswith("CHECK") and not several:
                        refused += 1
                        kind = kind_of(table, column.name)
                        assert not kind.fits(value), (table.name, column.name, value)
                connection.rollback()
    assert refused > 100


def test_a_file_that_checks_nothing_is_not_called_writable(whole: Path, tmp_path: Path) -> None:
    path = unchecked(whole, tmp_path / "x.db")
    refused = run_main("stop", "small", "--db", str(path))
    assert refused.returncode != 0
    assert "writable  no: " in run_main("db", "check", "--db", str(path)).stdout
    sound = shutil.copy(whole, tmp_path / "sound.db")
    assert "writable  yes" in run_main("db", "check", "--db", str(sound)).stdout


def test_an_export_without_a_torn_run_says_which(tmp_path: Path) -> None:
    db, out = tmp_path / "torn.db", tmp_path / "out"
    shutil.copy(ROOT / "runs.db", db)
    changed(db, "UPDATE error_pack SET logits = substr(logits, 1, 7) WHERE run_id = 5")
    said = run_main("export", str(out), "--db", str(db))
    assert said.returncode == 0
    assert "is damaged and shown without: run 5 (error_pack)" in said.stderr
    exported = {line.partition(",")[0] for line in (out / "errors.csv").read_text().splitlines()}
    assert "5" not in exported
    assert "3" in exported
