"""A small database with every kind of row, and copies of it that hold what no table allows."""

import re
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from seqcls.proofs.checker import digest
from seqcls.strings.datasets import Dataset
from seqcls.strings.token_strings import TokenStrings
from seqcls.weights import from_bytes
from sweeps.grid.spec import parse_spec
from sweeps.results import ProofRecord
from sweeps.store import writer
from sweeps.store.opening import open_writer, pack
from sweeps.store.reads import queries
from sweeps.store.reads.explained import SHORT_TRIED
from sweeps.store.tables import Base
from sweeps.store.writes.test_sets import store_dataset
from sweeps.work.machine import WorkOptions
from sweeps.work.readers import fit_readers
from sweeps.work.worker import work
from tests.conftest import SHORT

SPEC: dict[str, Any] = {
    "name": "small",
    "description": "Two sizes.",
    "model_seeds": [0, 1],
    "verdict": True,
    "checkpoints": "every_epoch",
    "fixed": {**SHORT, "test_max_length": 20, "test_size": 256, "max_num_epochs": 2},
    "axes": {"hidden_size": [2, 3]},
}

VALUES: dict[str, Any] = {
    "empty": "",
    "text": "text",
    "negative": -1,
    "huge": 2**63 - 1,
    "half": 0.5,
    "infinite": float("inf"),
    "null": None,
    "blob": b"\x00\xff\x01",
    "no UTF-8": "no UTF-8",
    "deep": "[" * 10_000 + "]" * 10_000,
    "list": "[]",
    "markup": "**b** [l](javascript:alert(1)) <script>alert(1)</script> :red[x] $x^2$ \0",
    "cut": "cut",
}
"""What every value of every column is replaced by."""

_AS_SQL = {
    "no UTF-8": "CAST(x'6162ff6364' AS TEXT)",
    "cut": "substr({0}, 1, length({0}) / 2)",
}
"""What only SQLite can say."""

COLUMNS = [
    (table.name, column.name)
    for table in Base.metadata.sorted_tables
    for column in table.columns
    if table.name != "revision" or column.name != "id"
]


OTHER = {**SPEC, "name": "other", "axes": {}, "fixed": {**SPEC["fixed"], "test_seed": 5}}
"""A sweep whose runs share no row with those of the first."""

COPIES: dict[str, Any] = {
    "name": "copies",
    "model_seeds": [0, 1],
    "checkpoints": "every_epoch",
    "fixed": {
        **SHORT, "task": "copy", "num_tokens": 2, "architecture": "recurrent_attention",
        "hidden_size": 4, "train_max_length": 3, "validation_max_length": 3, "test_max_length": 5,
        "test_size": 64, "max_num_epochs": 2,
    },
}  # fmt: skip
"""A sweep of a transduction whose models have not learned it."""

WRITES = 6
"""The number of one of these runs."""

OTHERS = {
    "cause": f"(SELECT min(id) FROM run), 0, 'constant answer{SHORT_TRIED}', NULL, '', 1.0, 5, 0.5",
    "perturbation": "(SELECT min(id) FROM run), 0, 111, 0, 145, 0",
    "sweep_note": "1, 'A title', 'A note', NULL",
    "sweep_tag": "1, 'tag'",
    "saved_view": "1, 'mine', 'compare', '', '2026-01-01T00:00:00+00:00'",
}
"""What is found out, or written, of runs and sweeps later."""


def dataset() -> Dataset:
    """Two strings with labels."""
    strings = TokenStrings.of_lists(2, [[0, 1], [1]])
    return Dataset.of("mine.csv", "ab", strings, labels=np.array([True, False]))


def make(path: Path) -> Path:
    """Three sweeps whose runs are done, and one of which one failed and one waits."""
    store = open_writer(str(path))
    work(store, [writer.submit(store, parse_spec(SPEC))], WorkOptions(0))
    work(store, [writer.submit(store, parse_spec(COPIES))], WorkOptions(0))
    work(store, [writer.submit(store, parse_spec(OTHER))], WorkOptions(0))
    writer.submit(store, parse_spec({**SPEC, "name": "waiting", "model_seeds": [7]}))
    fit_readers(store)
    weights = digest(from_bytes(queries.weights(store, 1)))
    found = ("refuted", 2, 0, 1.5, "ab", 1, '{"budget": {}, "attempts": []}', weights, "0.3", None)
    writer.record_proof(store, 1, ProofRecord(1, *found))
    with store.begin() as connection:
        connection.exec_driver_sql("UPDATE test_string SET drawn = 'positive' WHERE label = 1")
        store_dataset(connection, dataset())
        for table, values in OTHERS.items():
            connection.exec_driver_sql(f"INSERT INTO {table} VALUES ({values})")
        first = "(SELECT min(id) FROM run WHERE model_seed = 7)"
        connection.exec_driver_sql(
            f"INSERT INTO failure VALUES ({first}, 1, '2026-01-01T00:00:00+00:00', 'it diverged')"
        )
        connection.exec_driver_sql(
            "UPDATE run SET state = 'failed', attempt = 1, failures = 1, error = 'it diverged', "
            f"finished_at = '2026-01-01T00:00:00+00:00' WHERE id = {first}"
        )
    pack(str(path))
    return path


def unchecked(whole: Path, to: Path) -> Path:
    """A copy whose tables check nothing, as another program may make them."""
    with closing(sqlite3.connect(whole)) as source, closing(sqlite3.connect(to)) as target:
        for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
            if name.startswith("sqlite_"):
                continue
            rows = source.execute(f"SELECT * FROM {name}")
            columns = [column[0] for column in rows.description]
            target.execute(f"CREATE TABLE {name} ({', '.join(columns)})")
            marks = ", ".join("?" * len(columns))
            target.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
        for (view,) in source.execute("SELECT sql FROM sqlite_master WHERE type = 'view'"):
            target.execute(view)
        target.commit()
    return to


def seeming(
    whole: Path, to: Path, table: str, column: str, value: str, *, first: bool = False
) -> Path:
    """A copy whose tables say that they check everything, and in which a column is replaced."""
    shutil.copy(whole, to)
    with closing(sqlite3.connect(to, isolation_level=None)) as connection:
        # Of what is written SQLite checks nothing then, and everything is said to be checked.
        connection.execute("PRAGMA ignore_check_constraints=ON")
        connection.execute("PRAGMA writable_schema=ON")
        query = "SELECT sql FROM sqlite_master WHERE name = ? AND type = 'table'"
        ((said,),) = connection.execute(query, (table,))
        loose = re.sub(r"(?<!IS )NOT NULL", "", re.sub(r",? STRICT", "", said))
        _say(connection, table, loose)
    replace(to, table, column, value, first=first)
    with closing(sqlite3.connect(to, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema=ON")
        _say(connection, table, said)
    return to


def _say(connection: sqlite3.Connection, table: str, sql: str) -> None:
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = ?", (sql, table))
    ((version,),) = connection.execute("PRAGMA schema_version")
    connection.execute(f"PRAGMA schema_version={version + 1}")


def replace(path: Path, table: str, column: str, value: str, *, first: bool = False) -> None:
    """Replaces every value of a column of a database that checks nothing, or the first row's."""
    put = _AS_SQL.get(value, "?").format(column)
    given = () if value in _AS_SQL else (VALUES[value],)
    keys = ", ".join(key.name for key in Base.metadata.tables[table].primary_key)
    which = f"WHERE ({keys}) = (SELECT {keys} FROM {table} ORDER BY {keys} LIMIT 1)"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        statement = f"UPDATE OR IGNORE {table} SET {column} = {put} {which if first else ''}"
        connection.execute(statement, given)
        connection.commit()


def cases() -> Iterator[tuple[str, str, str]]:
    """Every column with every value."""
    for table, column in COLUMNS:
        for value in VALUES:
            yield table, column, value
