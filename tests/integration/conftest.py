"""What the tests of the database share."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sweeps.spec import SweepSpec, parse_spec
from sweeps.store.engine import Store, open_writer


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_writer(str(tmp_path / "test.db"))


def spec(**changes: Any) -> SweepSpec:
    return parse_spec({"name": "s", "model_seeds": "0..2", **changes})


def rows(path: Path, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(sql).fetchall()
