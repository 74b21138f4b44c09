"""Values of commands, files and Python equal those of SQL and SciPy.

A part of it where all tests run; in `make chaos` every surface of large databases of every kind.
"""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from sweeps import api
from sweeps.store.opening import open_writer
from tests.chaos.compare_values import Comparison
from tests.chaos.filled import fill_imported, put_unfinished
from tests.conftest import ROOT
from tests.databases import new_database, reseal
from tests.stock import copy_of
from tests.world import parts_from_outside

MIN_COMPARED_VALUES = 100_000
"""Values that `make chaos` compares in each database of every kind."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory, long: bool) -> Iterator[dict[str, Path]]:
    """The databases that are compared, as files."""
    folder = tmp_path_factory.mktemp("compared")
    found = {name: copy_of("compared", f"{name}.db", folder) for name in ("imported", "proved")}
    found["trained"] = copy_of("rows", "rows.db", folder)
    with parts_from_outside():
        if long:
            found["imported"] = folder / "many.db"
            fill_imported(api.open_store(found["imported"]), folder, (1_050, 150))
            found["matrix"] = copy_of("kinds", "kinds.db", folder)
            put_unfinished(api.open_store(found["matrix"]))
            found["runs"] = Path(shutil.copy(ROOT / "runs.db", folder))
        yield found


@pytest.mark.timeout(7200)
def test_commands_files_and_python_return_the_values_of_sql(
    files: dict[str, Path],
    postgres_server: str,
    tmp_path: Path,
    long: bool,
) -> None:
    ledgers = []
    for name, file in files.items():
        databases = {"SQLite": str(file)}
        if long or name != "proved":
            databases["PostgreSQL"] = new_database(postgres_server, "template1")
            api.merge(api.open_store(databases["PostgreSQL"]), file)
        for where, db in databases.items():
            folder = tmp_path / f"{name} {where}"
            folder.mkdir()
            ledgers.append(Comparison(f"{name}, {where}", db, folder, short=not long).all())
    assert not [x for ledger in ledgers for x in ledger.differences]
    assert sum(ledger.compared.total() for ledger in ledgers) > (
        MIN_COMPARED_VALUES if long else 5_000
    )


def altered(file: Path, folder: Path, sql: str) -> Path:
    """A copy of a database with one stored number that is another."""
    copy = Path(shutil.copy(file, folder / "altered.db"))
    with closing(sqlite3.connect(copy)) as connection, connection:
        assert connection.execute(sql).rowcount == 1
    reseal(open_writer(str(copy)))
    return copy


STORED = {
    "UPDATE run SET wrong = wrong + 1 WHERE id = 1": "sql",
    "UPDATE run SET solved_length = solved_length + 1 WHERE id = 1": "commands",
    "UPDATE run SET lengths = replace(lengths, '[[1,', '[[1,1') WHERE id = 2": "sql",
}
"""Changes of one number each, and the surface that shows the contradiction."""


@pytest.mark.parametrize("sql", STORED)
def test_an_altered_stored_number_is_a_difference(
    files: dict[str, Path], tmp_path: Path, sql: str
) -> None:
    db = altered(files["imported"], tmp_path, sql)
    one = Comparison("altered", db, tmp_path, short=True)
    getattr(one, STORED[sql])()
    assert one.ledger.differences
    assert one.ledger.different.total() < one.ledger.compared.total() / 4


def test_a_wrong_value_from_python_is_a_difference(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = api.lengths

    def wrong(*arguments: Any) -> Any:
        rows: Any = given(*arguments)
        rows.loc[3, "tested"] += 1
        return rows

    monkeypatch.setattr(api, "lengths", wrong)
    one = Comparison("given wrong", files["imported"], tmp_path, short=True)
    one.python()
    (difference,) = one.ledger.differences
    assert difference.startswith("api.lengths")
