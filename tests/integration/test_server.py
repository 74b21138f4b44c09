"""What only a server could do differently: upgrades of filled databases, and very long strings."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from seqcls.errors import StoreVersionError
from seqcls.results import StringErrors
from sweeps.api.databases import upgrade
from sweeps.api.exports import export
from sweeps.store.columns import pack_errors
from sweeps.store.databases.engine import schema_version
from sweeps.store.migrate import upgrade_with_backup
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads import string_queries
from sweeps.store.reads.string_queries import ErrorSearch
from sweeps.store.verification import verify
from tests.conftest import ASSETS
from tests.databases import fill_server, rows
from tests.integration.test_sums import filled

OLD = ASSETS / "databases" / "0004.db"


def test_a_filled_database_of_the_version_before_is_upgraded(
    postgres_url: str, tmp_path: Path
) -> None:
    fill_server(postgres_url, OLD)
    with pytest.raises(StoreVersionError, match="back it up"):
        open_reader(postgres_url)
    with open_writer(postgres_url, any_version=True).begin() as connection:
        connection.exec_driver_sql("CREATE VIEW mine AS SELECT logit FROM misclassified")
        connection.exec_driver_sql("GRANT SELECT ON misclassified TO PUBLIC")
    upgraded = upgrade_with_backup(open_writer(postgres_url, any_version=True))
    assert upgraded is not None
    assert (upgraded.before, upgraded.backup) == (OLD.stem, None)
    shutil.copy(OLD, tmp_path / "file.db")
    upgrade_with_backup(open_writer(str(tmp_path / "file.db"), any_version=True))
    file, server = open_writer(str(tmp_path / "file.db")), open_writer(postgres_url)
    assert schema_version(server) == schema_version(file)
    sums = "SELECT * FROM length_sum ORDER BY config_id, length"
    assert rows(server, sums) == rows(file, sums) != []
    # A server's own views of these views stay, and so do permissions.
    without = "SELECT count(*) FROM mine WHERE logit IS NULL"
    assert rows(server, without) == [(4,)]
    granted = "SELECT has_table_privilege('public', 'misclassified', 'SELECT')"
    assert rows(server, granted) == [(True,)]
    # What is submitted afterwards gets ids that are free.
    filled(server, name="new", model_seeds=[70, 71, 72])
    assert verify(server).damages == []


def test_a_servers_database_of_a_schema_before_the_first_is_refused(postgres_url: str) -> None:
    fill_server(postgres_url, OLD)
    before = open_writer(postgres_url, any_version=True)
    with before.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0003'")
    for opened in (open_reader, open_writer, upgrade):
        with pytest.raises(StoreVersionError, match=r"is of schema '0003'; seqcls 0\.2"):
            opened(postgres_url)
    assert rows(before, "SELECT version_num FROM alembic_version") == [("0003",)]


def test_a_misclassified_string_of_ten_thousand_letters_is_stored_and_read(
    any_db: str, tmp_path: Path
) -> None:
    store = filled(open_writer(any_db))
    long = "".join("ab"[n % 2] for n in range(10_000))
    numbers, logits = pack_errors(StringErrors(np.array([16_000_000]), np.array([-1.5])))
    literal = "X'{}'" if store.path else "'\\x{}'"
    with store.begin() as connection:
        connection.exec_driver_sql(
            f"INSERT INTO test_string VALUES (1, 16000000, '{long}', 10000, 1, 1, NULL, NULL)"
        )
        connection.exec_driver_sql(
            "INSERT INTO error_pack VALUES "
            f"(1, {literal.format(numbers.hex())}, {literal.format(logits.hex())})"
        )
    query = "SELECT string, length, logit FROM misclassified WHERE run_id = 1"
    assert rows(store, query) == [(long, 10_000, -1.5)]
    found = string_queries.string_errors(store, 1, ErrorSearch("ababab"))
    assert found["string"].tolist() == [long]
    export(store, tmp_path / "out", "csv")
    assert f'"{long}"' in (tmp_path / "out" / "errors.csv").read_text()
