"""A changed row is found and named, and is in no merge."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from sweeps.store.opening import open_reader
from sweeps.store.verification import verify
from tests.chaos.damaged import WRITES
from tests.commands import run_main
from tests.databases import rows
from tests.stock import stock


@pytest.fixture(scope="module")
def whole() -> Path:
    return stock("rows") / "rows.db"


CHANGED = {
    "run": ("wrong = wrong + 1, fp = fp + 1, tn = tn - 1 WHERE id = 2", "run 2", 1),
    "run (losses)": ("losses = '[]' WHERE id = 2", "run 2", 1),
    "run (lengths)": ("lengths = replace(lengths, '[9,', '[10,') WHERE id = 2", "run 2", 1),
    "run (errors)": (f"errors = '[]' WHERE id = {WRITES}", "run 6", 1),
    "checkpoint": (
        "weights = zeroblob(length(weights)) WHERE run_id = 2 AND epoch = 1",
        "run 2",
        1,
    ),
    "finding": ("json = replace(json, 'inputs\":', 'inputs\":1') WHERE run_id = 2", "run 2", 0),
    "finding (proof)": ("json = replace(json, 's\":2', 's\":3') WHERE kind = 'proof'", "run 1", 0),
    "config": ("json = replace(json, 'e\":2', 'e\":5') WHERE id = 1", "configuration 1", 2),
    "test_set": ("digest = 'x' WHERE id = 1", "test set 1", 4),
    "test_string": ("label = 1 - label WHERE test_set_id = 1 AND number = 3", "test set 1", 4),
    "shortcut": ("correct = zeroblob(length(correct)) WHERE rowid = 1", "test set", 0),
    "dataset": ("rows = zeroblob(length(rows))", "dataset", 0),
}
"""A change that a table's types allow, what is named, and the runs that rest on it.

What is found out of runs later is left behind alone; sums are made anew.
"""


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
    changed(path, f"UPDATE {table.partition(' ')[0]} SET {change}")
    assert any(str(own).startswith(named) for own in verify(open_reader(str(path))).damages)
    run_main("merge", str(path), "--db", str(merged))
    assert done(merged) == done(whole) - lost
    assert verify(open_reader(str(merged))).damages == []
