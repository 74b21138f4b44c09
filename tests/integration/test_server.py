"""What only a server could do differently: upgrades of filled databases, and very long strings."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alembic.command import upgrade as alembic_upgrade

from seqcls.errors import StoreVersionError
from seqcls.results import StringErrors
from sweeps.analysis.export import export
from sweeps.store.databases.engine import Store, schema_version
from sweeps.store.migrate import alembic_config, upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reading.selection import View
from sweeps.store.schema.packing import packed
from sweeps.store.strings import string_queries
from sweeps.store.strings.string_queries import ErrorSearch
from sweeps.store.verification import verify
from tests.chaos.contents import contents
from tests.conftest import ASSETS
from tests.databases import rows
from tests.integration.test_sums import filled

OLD = ASSETS / "databases"
TABLES = (
    *("config", "sweep", "worker", "run", "sweep_run", "epoch", "length_score", "string_error"),
    *("checkpoint", "verdict", "failure"),
)
"""Those that others refer to first."""


def server_of(url: str, version: str) -> Store:
    """A server's database of an old version, with the rows of the file of that version."""
    store = open_writer_of_nothing(url)
    config = alembic_config()
    with store.begin() as connection:
        config.attributes["connection"] = connection
        alembic_upgrade(config, version)
        with closing(sqlite3.connect(OLD / f"{version}.db")) as file:
            for table in TABLES:
                copy(file, connection, table)
        for table in ("config", "sweep", "worker", "run"):
            last = f"(SELECT max(id) FROM {table})"
            connection.exec_driver_sql(
                f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), {last})"
            )
    return store


def open_writer_of_nothing(url: str) -> Store:
    """An empty database as it is, without the tables that opening it makes."""
    from sweeps.store import opening

    return opening._opened(opening.locate(url), read_only=False)


def copy(file: sqlite3.Connection, connection: Any, table: str) -> None:
    found = file.execute(f"SELECT * FROM {table}")
    names = [column[0] for column in found.description]
    marks = ", ".join(["%s"] * len(names))
    values = found.fetchall()
    connection.exec_driver_sql(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", values)


@pytest.mark.parametrize("version", ["0001", "0002"])
def test_a_filled_database_of_an_older_version_is_upgraded(
    postgres_url: str, tmp_path: Path, version: str
) -> None:
    server_of(postgres_url, version)
    with pytest.raises(StoreVersionError, match="back it up"):
        open_reader(postgres_url)
    upgraded = upgrade_with_backup(open_writer(postgres_url, any_version=True))
    assert upgraded is not None
    assert (upgraded.before, upgraded.backup, upgraded.damaged) == (version, None, [])
    shutil.copy(OLD / f"{version}.db", tmp_path / "file.db")
    upgrade_with_backup(open_writer(str(tmp_path / "file.db"), any_version=True))
    file, server = open_writer(str(tmp_path / "file.db")), open_writer(postgres_url)
    assert schema_version(server) == schema_version(file)
    assert contents(server) == contents(file)
    wrong = "SELECT * FROM misclassified"
    assert sorted(rows(server, wrong)) == sorted(rows(file, wrong)) != []
    sums = "SELECT * FROM length_sum ORDER BY config_id, length"
    assert rows(server, sums) == rows(file, sums) != []
    assert verify(server).damages == []
    # What is submitted afterwards gets ids that are free.
    filled(server, name="new", model_seeds=[70, 71, 72])
    assert verify(server).damages == []


def test_an_upgrade_blesses_no_damage(postgres_url: str) -> None:
    store = server_of(postgres_url, "0002")
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE epoch SET train_loss = train_loss + 1 WHERE run_id = 2")
    upgraded = upgrade_with_backup(open_writer(postgres_url, any_version=True))
    assert upgraded is not None
    assert upgraded.damaged == ["run 2 (model seed 1)"]
    said = [str(damage) for damage in verify(open_reader(postgres_url)).damages]
    assert said == ["run 2 (model seed 1): its results do not fit its digest"]


def test_a_misclassified_string_of_ten_thousand_letters_is_stored_and_read(
    any_db: str, tmp_path: Path
) -> None:
    store = filled(open_writer(any_db))
    long = "".join("ab"[n % 2] for n in range(10_000))
    numbers, logits = packed(StringErrors(np.array([16_000_000]), np.array([-1.5])))
    literal = "X'{}'" if store.path else "'\\x{}'"
    with store.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO test_string VALUES (1, 16000000, '{long}', 10000, 1, 1, NULL)"
        )
        connection.exec_driver_sql(
            "INSERT INTO error_pack VALUES "
            f"(1, {literal.format(numbers.hex())}, {literal.format(logits.hex())})"
        )
    query = "SELECT string, length, logit FROM misclassified WHERE run_id = 1"
    assert rows(store, query) == [(long, 10_000, -1.5)]
    found = string_queries.string_errors(store, 1, ErrorSearch("ababab"))
    assert found["string"].tolist() == [long]
    export(store, tmp_path / "out", "csv", View())
    assert f'"{long}"' in (tmp_path / "out" / "errors.csv").read_text()
