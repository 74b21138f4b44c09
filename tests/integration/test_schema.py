"""What the tables themselves promise: strict values, ids that are never reused, revisions."""

import pytest

from dashboard import data
from seqcls.errors import StoreError
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reads import queries, sweep_queries
from sweeps.store.verification import verify
from tests.databases import rows, spec
from tests.integration.test_databases import filled


@pytest.fixture
def store(any_db: str) -> Store:
    return open_writer(any_db)


@pytest.fixture(scope="module")
def kept(shared_db: str) -> Store:
    """Three finished runs, for all tests that change nothing."""
    return filled(open_writer(shared_db))


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE run SET state = 'dune'",
        "UPDATE run SET tp = -1",
        "UPDATE length_score SET fp = -1",
        "UPDATE run SET wrong = -1",
        "UPDATE length_score SET tested = NULL",
        "UPDATE length_sum SET wrong = 'many'",
        "UPDATE test_string SET label = 2",
        "UPDATE test_string SET drawn = 'far'",
        f"INSERT INTO shortcut VALUES (1, '{'0' * 64}', 'length', '[]', NULL, NULL)",
        f"INSERT INTO shortcut VALUES (1, '{'0' * 64}', 'length', NULL, NULL, NULL)",
        f"INSERT INTO shortcut VALUES (99, '{'0' * 64}', 'length', NULL, NULL, 'no labels')",
        "INSERT INTO shortcut VALUES (1, 'none', 'length', NULL, NULL, 'no labels')",
        *(
            f"INSERT INTO proof VALUES (1, 1, {said}, '{{}}', '{'0' * 64}', '0.3', 'v2', NULL)"
            for said in (
                "'proved', 2, 0, 1.0, NULL, NULL",
                "'refuted', 2, 0, 1.0, NULL, NULL",
                "'not decided', 2, 0, 1.0, 'ab', 1",
                "'unsure', 2, 0, 1.0, NULL, NULL",
            )
        ),
        "UPDATE sweep SET spec = 'no object'",
        "UPDATE sweep SET spec = '[1]'",
        "UPDATE config SET json = '[1]'",
        "UPDATE worker SET pid = -5",
        "UPDATE epoch SET train_loss = 'much'",
        "UPDATE run SET epochs = 'many'",
        "UPDATE length_score SET edits = 1",
        "UPDATE length_score SET right_length_given = -1, edits = 0, target_tokens = 0",
        "UPDATE length_sum SET target_tokens = 5",
        "UPDATE length_sum SET right_length_given = 0, edits = 'many', target_tokens = 0",
        "INSERT INTO output_pack VALUES (1, 'no array')",
        "INSERT INTO output_pack VALUES (1, '[]')",
        "INSERT INTO output_pack VALUES (1, '{}')",
        "INSERT INTO output_pack VALUES (1, NULL)",
        "INSERT INTO output_pack VALUES (99, '[1]')",
    ],
)
def test_a_value_that_means_nothing_is_refused_by_the_database(kept: Store, change: str) -> None:
    with pytest.raises(StoreError), kept.begin() as connection:
        connection.exec_driver_sql(change)
    assert verify(kept).damages == []


def test_ids_are_never_given_twice(store: Store) -> None:
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
    assert set(data.memberships()["config_id"]) == set(data.settings().index)


def test_every_write_raises_the_revision_and_a_heartbeat_does_not(store: Store) -> None:
    seen = [queries.revision(store)]

    def raised() -> bool:
        seen.append(queries.revision(store))
        return seen[-1] > seen[-2]

    sweep_id = writer.submit(store, spec())
    assert raised()
    writer.stop(store, [sweep_id])
    assert raised()
    writer.resume(store, [sweep_id])
    assert raised()
    writer.beat(store, writer.register_worker(store))
    assert not raised()
    members = sweep_queries.members_revision(store)
    writer.retry(store, [sweep_id])
    assert raised()
    assert sweep_queries.members_revision(store) == members
    writer.delete(store, sweep_id)
    assert raised()
    assert sweep_queries.members_revision(store) > members


def test_a_column_that_is_added_later_damages_nothing(store: Store) -> None:
    filled(store)
    with store.begin() as connection:
        results = ("epoch", "length_score", "error_pack", "output_pack", "checkpoint")
        for table in ("run", "test_string", *results):
            statement = f"ALTER TABLE {table} ADD COLUMN later INTEGER DEFAULT 7"
            connection.exec_driver_sql(statement)
    assert verify(store).damages == []
    assert len(queries.runs(store)) == 3


def test_a_string_of_ten_thousand_letters_is_stored(store: Store) -> None:
    filled(store)
    long = "".join("ab"[n % 2] for n in range(10_000))
    with store.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO test_string VALUES (1, 9999999, '{long}', 10000, 1, 1, NULL, NULL)"
        )
    assert rows(store, "SELECT string FROM test_string WHERE number = 9999999") == [(long,)]
