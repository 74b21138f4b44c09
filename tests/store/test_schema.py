"""Promises of the tables themselves: strict values, ids that are never reused."""

import pytest

from dashboard import data
from seqcls.errors import StoreError
from sweeps.store import writer
from sweeps.store.database import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import queries
from sweeps.store.verification import verify
from tests.databases import change, rows, spec
from tests.results import filled

MEANINGLESS = [
    "UPDATE run SET state = 'dune'",
    "UPDATE run SET tp = -1",
    "UPDATE run SET wrong = -1",
    "UPDATE run SET lengths = 'no array'",
    "UPDATE run SET losses = '{}'",
    "UPDATE run SET errors = '[1'",
    "UPDATE test_string SET label = 2",
    "UPDATE test_string SET drawn = 'far'",
    f"INSERT INTO shortcut VALUES (1, '{'0' * 64}', 'length', '[]', NULL, NULL, '')",
    f"INSERT INTO shortcut VALUES (1, '{'0' * 64}', 'length', NULL, NULL, NULL, '')",
    f"INSERT INTO shortcut VALUES (99, '{'0' * 64}', 'length', NULL, NULL, 'no labels', '')",
    "INSERT INTO shortcut VALUES (1, 'none', 'length', NULL, NULL, 'no labels', '')",
    "INSERT INTO finding VALUES (1, 'cause', 0, '[]', '', NULL)",
    "INSERT INTO finding VALUES (1, 'guess', 0, '{}', '', NULL)",
    "INSERT INTO finding VALUES (99, 'cause', 0, '{}', '', NULL)",
    "UPDATE sweep SET spec = 'no object'",
    "UPDATE sweep SET spec = '[1]'",
    "UPDATE config SET json = '[1]'",
    "UPDATE worker SET pid = -5",
    "UPDATE run SET epochs = 'many'",
]


def test_the_database_refuses_meaningless_values(store: Store) -> None:
    filled(store)
    for statement in MEANINGLESS:
        try:
            change(store, statement)
        except StoreError:
            continue
        pytest.fail(f"it is stored: {statement}")
    assert verify(store).damages == []


def test_ids_are_never_reused(store: Store) -> None:
    first = writer.submit(store, spec())
    before = rows(store, "SELECT max(id) FROM run UNION ALL SELECT max(id) FROM config")
    writer.delete(store, first)
    assert writer.submit(store, spec()) > first
    assert rows(store, "SELECT min(id) > 3 FROM run") == [(True,)]
    after = rows(store, "SELECT min(id) FROM run UNION ALL SELECT min(id) FROM config")
    assert all(new > old for (new,), (old,) in zip(after, before, strict=True))


def test_settings_and_seeds_of_a_deleted_sweep_are_not_shown_for_the_next(
    any_db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEQCLS_DB", any_db)
    store = open_writer(any_db)
    sweep_id = writer.submit(store, spec(axes={"hidden_size": [4, 8]}, model_seeds=[20, 21]))
    assert data.settings()["hidden_size"].tolist() == [4, 8]
    assert data.model_seeds() == [20, 21]
    writer.delete(store, sweep_id)
    writer.submit(store, spec(axes={"hidden_size": [32, 64]}, model_seeds=[30, 31]))
    assert data.settings()["hidden_size"].tolist() == [32, 64]
    assert data.model_seeds() == [30, 31]


def test_an_added_column_damages_nothing(store: Store) -> None:
    filled(store)
    for table in ("run", "test_string", "checkpoint"):
        change(store, f"ALTER TABLE {table} ADD COLUMN later INTEGER DEFAULT 7")
    assert verify(store).damages == []
    assert len(queries.runs(store)) == 3
