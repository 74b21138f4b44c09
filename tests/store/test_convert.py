"""A database of the version before is read into a new one, whole, and stays as it is."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from seqcls.errors import StoreError, StoreVersionError
from seqcls.interpretability.remedies import change_fields, named_fields
from sweeps.api import convert
from sweeps.grid.spec import parse_spec
from sweeps.store.database import Store
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import queries
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.commands import run_main
from tests.conftest import ASSETS
from tests.databases import change, file_of, rows
from tests.results import filled

OLD = ASSETS / "databases" / "0005.db"
"""Finished, failed, queued and imported runs, of languages and transductions."""

SAME = {
    "length_score": "run_id, length, tn, fp, fn, tp, tested, wrong, right_length_given, edits, "
    "target_tokens",
    "epoch": "run_id, epoch, train_loss, validation_loss",
    "generalization": "*",
    "config": "id, key, json, test_set_id",
    "test_set": "*",
    "test_string": "*",
    "checkpoint": "*",
    "failure": "*",
    "cause": "*",
    "perturbation": "*",
    "sweep_run": "*",
    "sweep": "id, name, description, spec, created_at, launch_token",
    "sweep_tag": "*",
    "sweep_note": "*",
    "verdict": "run_id, max_length, unit, inputs, false_positives, false_negatives",
    "run": "id, config_id, model_seed, state, attempt, failures, error, epochs, best_epoch, tn, "
    "fp, fn, tp, solved_length, tested, wrong, engine, train_seconds, started_at, finished_at",
}
WRONG = {
    "misclassified": "run_id, string, length, label, occurrences, target, logit",
    "wrong_output": "run_id, string, length, target, output, first_wrong, error_kind, occurrences, "
    "log_probability",
}


def sorted_rows(path: Path, table: str, columns: str) -> list[tuple[Any, ...]]:
    return sorted(rows(path, f"SELECT {columns} FROM {table}"), key=repr)


def test_a_conversion_preserves_every_row(tmp_path: Path) -> None:
    new, before = tmp_path / "new.db", OLD.read_bytes()
    for opened in (open_reader, open_writer):
        with pytest.raises(StoreVersionError, match="schema '0005'; `seqcls db convert OLD NEW`"):
            opened(str(OLD))
    completed = run_main("db", "convert", str(OLD), str(new))
    assert (completed.returncode, "11 runs" in completed.stdout) == (0, True), completed
    assert OLD.read_bytes() == before
    for table, columns in SAME.items():
        assert sorted_rows(new, table, columns) == sorted_rows(OLD, table, columns), table
    for table, columns in WRONG.items():
        old, now = (sorted_rows(path, table, columns) for path in (OLD, new))
        assert [row[:-1] for row in now] == [row[:-1] for row in old] != []
        # The fewest digits that give the same number in its own precision.
        before_, after = (np.array([row[-1] for row in own], dtype=float) for own in (old, now))
        np.testing.assert_allclose(after, before_, rtol=1e-7)
    store = open_writer(str(new))
    assert verify(store).damages == []
    # What is submitted afterwards gets ids that are free.
    assert verify(filled(store, name="more", model_seeds=[70, 71, 72])).damages == []
    with pytest.raises(StoreError, match="has sweeps already; name a new database"):
        convert(OLD, new)
    with pytest.raises(StoreVersionError, match="expected '0005'"):
        convert(new, tmp_path / "again.db")


def test_a_conversion_into_a_server_equals_one_into_a_file(
    tmp_path: Path, postgres_url: str
) -> None:
    of_file, _ = convert(OLD, tmp_path / "new.db")
    of_server, runs = convert(OLD, postgres_url)
    assert runs == 11
    assert contents(of_server) == contents(of_file)
    assert verify(filled(of_server, name="more", model_seeds=[70, 71, 72])).damages == []


def test_a_conversion_omits_causes_of_an_older_version(tmp_path: Path) -> None:
    path, new = Path(shutil.copy(OLD, tmp_path / "old.db")), tmp_path / "new.db"
    before = sorted_rows(path, "cause", "*")
    row = "0, 'dilution of a', NULL, 'a', 1.0, 3, NULL"
    change(path, f"INSERT INTO cause VALUES ((SELECT max(id) FROM run), {row})")
    convert(path, new)
    assert sorted_rows(new, "cause", "*") == before


def test_a_conversion_leaves_damaged_runs_damaged(tmp_path: Path) -> None:
    path = Path(shutil.copy(OLD, tmp_path / "old.db"))
    change(
        path,
        "UPDATE verdict SET inputs = 1 WHERE run_id = 1",
        "UPDATE length_score SET fn = fn + 1 WHERE run_id = 2 AND length = 9",
        "DELETE FROM error_pack WHERE run_id = 3",
        "UPDATE run SET tp = tp + 1 WHERE id = 4",
        "UPDATE length_score SET edits = edits + 1 WHERE run_id = 8 AND length = 4",
    )
    store, _ = convert(path, tmp_path / "new.db")
    damaged = [damage.what for damage in verify(store).damages]
    assert [x.split()[1] for x in damaged if x.startswith("run")] == ["1", "2", "3", "4", "8"]
    assert len(queries.runs(store)) == 11


def as_before_names(store: Store) -> Path:
    """The file as the schema 0007 has it: its configurations have no names."""
    with closing(sqlite3.connect(file_of(store))) as file, file:
        file.executescript(
            "PRAGMA foreign_keys=OFF; PRAGMA legacy_alter_table=ON;"
            "CREATE TABLE nameless AS SELECT id, key, json, test_set_id FROM config;"
            "DROP TABLE config; ALTER TABLE nameless RENAME TO config;"
            "UPDATE alembic_version SET version_num = '0007';"
        )
    return file_of(store)


def test_a_conversion_names_configurations_as_pages_did_and_remedies_by_their_parents(
    tmp_path: Path,
) -> None:
    before = open_writer(str(tmp_path / "before.db"))
    axes = {"positions": ["alibi", "fire"], "hidden_size": [4, 8]}
    filled(before, name="cells", axes=axes)
    (first, *_) = parse_spec({"name": "x", "model_seeds": "0..2", "axes": axes}).configs()
    slower = change_fields(first, {"learning_rate": 0.009})
    trial: dict[str, Any] = {
        "name": f"learning_rate=0.009 for {slower.key[:8]}",
        "model_seeds": "0..2",
    }
    trial |= {"description": "Against not learned: learning_rate=0.009 (now 0.001)."}
    filled(before, fixed=named_fields(slower), **trial)
    old = as_before_names(before)
    tables = {name: sorted_rows(old, name, "*") for name in (*SAME, "finding", "shortcut")}
    new = tmp_path / "new.db"
    store, runs = convert(old, new)
    assert (runs, verify(store).damages) == (15, [])
    for name, expected in tables.items():
        columns = "id, key, json, test_set_id" if name == "config" else "*"
        assert sorted_rows(new, name, columns) == expected, name
    assert [name for (name,) in rows(new, "SELECT name FROM config ORDER BY id")] == [
        "ALiBi, width 4", "ALiBi, width 8", "FIRE, width 4", "FIRE, width 8",
        "ALiBi, width 4, with learning_rate=0.009",
    ]  # fmt: skip
