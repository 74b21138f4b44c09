"""Files that are cut off, flipped, foreign or no files at all: a line each, and no hang."""

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.commands import run_main
from tests.stock import stock

COMMANDS = (
    ["db", "check"],
    ["runs", "--json"],
    ["errors", "1"],
    ["predict", "1", "ab"],
    ["status", "--json"],
    ["verify"],
    ["estimate", "report/walkthrough", "--workers", "1"],
    ["stop", "small"],
)


MAX_SECONDS = 60.0
"""Processor seconds, which do not depend on how busy the machine is."""


@pytest.fixture(scope="module")
def whole() -> Path:
    return stock("rows") / "rows.db"


def find_faults(path: Path) -> list[str]:
    """Crashes and timeouts of commands on a file, each on a fresh copy."""
    found = []
    for command in COMMANDS:
        copy = path
        if path.is_file():
            copy = path.with_name("copy.db")
            for beside in path.parent.glob("copy.db*"):
                beside.unlink()
            shutil.copy(path, copy)
        began = time.process_time()
        try:
            run_main(*command, "--db", str(copy))
        except Exception as error:
            found.append(f"{command[0]}: {error!r}")
        if (seconds := time.process_time() - began) > MAX_SECONDS:
            found.append(f"{command[0]} took {seconds:.0f} s")
    return found


@pytest.mark.cases(40)
def test_commands_refuse_a_truncated_file_without_a_crash(
    whole: Path, tmp_path: Path, seed: int
) -> None:
    content = whole.read_bytes()
    generator = random.Random(seed)
    sizes = [generator.randrange(len(content)) for _ in range(3)]
    wrong = []
    for size in [*(() if seed else (0, 1, 16, 99, 100)), *sizes]:
        path = tmp_path / "cut.db"
        path.write_bytes(content[:size])
        wrong += [f"{size}: {x}" for x in find_faults(path)]
    assert wrong == []


@pytest.mark.cases(100)
def test_commands_survive_flipped_bits_in_headers_and_pages(
    whole: Path, tmp_path: Path, seed: int
) -> None:
    content = whole.read_bytes()
    generator = random.Random(seed)
    page = int.from_bytes(content[16:18], "big")
    wrong = []
    for number in range(6):
        # Half of them where the structure is: of the file, or of a page.
        start = generator.randrange(len(content) // page) * page if number % 4 else 0
        byte = start + generator.randrange(100 if number % 2 else page)
        flipped = bytearray(content)
        flipped[byte] ^= 1 << generator.randrange(8)
        path = tmp_path / "flipped.db"
        path.write_bytes(flipped)
        wrong += [f"{byte}: {x}" for x in find_faults(path)]
    assert wrong == []


def changed(whole: Path, to: Path, *statements: str) -> Path:
    shutil.copy(whole, to)
    with closing(sqlite3.connect(to, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)
    return to


def foreign(whole: Path, folder: Path) -> Iterator[tuple[str, Path]]:
    """Databases of other schemas, and what is no database."""
    changes = {
        "newer": ["UPDATE alembic_version SET version_num = '9999'"],
        "no version": ["DELETE FROM alembic_version"],
        "an empty version": ["UPDATE alembic_version SET version_num = ''"],
        "a huge version": [f"UPDATE alembic_version SET version_num = '{'9' * 100_000}'"],
        "no column of versions": ["ALTER TABLE alembic_version RENAME COLUMN version_num TO x"],
        "no table of findings": ["PRAGMA foreign_keys=OFF", "DROP TABLE finding"],
        "no column": ["DROP VIEW proof", "ALTER TABLE finding DROP COLUMN certificate"],
        "a view for a table": [
            "PRAGMA foreign_keys=OFF",
            "PRAGMA legacy_alter_table=ON",
            "ALTER TABLE finding RENAME TO other",
            "CREATE VIEW finding AS WITH RECURSIVE n(x) AS "
            "(SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS run_id, 'failure' AS kind, "
            "x AS number, '{}' AS json, '' AS digest, NULL AS certificate FROM n",
        ],
        "more tables and columns": [
            "CREATE TABLE more (x)",
            "ALTER TABLE run ADD COLUMN more TEXT",
            "CREATE VIEW yet_more AS SELECT * FROM no_such_table",
        ],
    }
    for name, statements in changes.items():
        yield name, changed(whole, folder / f"{name}.db", *statements)
    other = folder / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE run (x)")
    yield "of another program", other
    makers: dict[str, Callable[[Path], object]] = {
        "a folder": Path.mkdir,
        "a pipe": os.mkfifo,
        "noise": lambda path: path.write_bytes(random.Random(0).randbytes(1_000_000)),
        "text": lambda path: path.write_text("SQLite format 3\0" + "x" * 5000),
        "a loop of links": lambda path: path.symlink_to(path.name),
    }
    for name, maker in makers.items():
        maker(folder / name)
        yield name, folder / name
    for device in ("/dev/zero", "/dev/null", "/dev/stdin"):
        yield device, Path(device)


def test_commands_refuse_foreign_databases_devices_and_other_files(
    whole: Path, tmp_path: Path
) -> None:
    found = {name: find_faults(path) for name, path in foreign(whole, tmp_path)}
    assert not any(found.values()), found
