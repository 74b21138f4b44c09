"""Files that are truncated, flipped, altered, foreign or no files at all.

Commands answer or refuse in one line, without a hang; `verify` finds whatever changes a result.
"""

import os
import random
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from seqcls.errors import SeqclsError
from sweeps.store.opening import open_reader
from sweeps.store.verification import verify
from tests.commands import run_main
from tests.databases import rows
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


def altered(whole: Path, to: Path, *statements: str) -> Path:
    """A copy of a database after some statements, without checks of its constraints."""
    shutil.copy(whole, to)
    with closing(sqlite3.connect(to, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints=ON")
        for statement in statements:
            assert connection.execute(statement).rowcount
    return to


def flipped(content: bytes, bit: int) -> bytes:
    """The content with one bit changed."""
    changed = bytearray(content)
    changed[bit // 8] ^= 1 << bit % 8
    return bytes(changed)


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
    content, generator, path = whole.read_bytes(), random.Random(seed), tmp_path / "cut.db"
    wrong = []
    for size in [
        *(() if seed else (0, 1, 16, 99, 100)),
        *(generator.randrange(len(content)) for _ in range(3)),
    ]:
        path.write_bytes(content[:size])
        wrong += [f"{size}: {x}" for x in find_faults(path)]
    assert wrong == []


@pytest.mark.cases(100)
def test_commands_survive_flipped_bits_in_headers_and_pages(
    whole: Path, tmp_path: Path, seed: int
) -> None:
    content, generator, path = whole.read_bytes(), random.Random(seed), tmp_path / "flipped.db"
    page = int.from_bytes(content[16:18], "big")
    wrong = []
    for number in range(6):
        # Half of them where the structure is: of the file, or of a page.
        start = generator.randrange(len(content) // page) * page if number % 4 else 0
        byte = start + generator.randrange(100 if number % 2 else page)
        path.write_bytes(flipped(content, 8 * byte + generator.randrange(8)))
        wrong += [f"{byte}: {x}" for x in find_faults(path)]
    assert wrong == []


ALTERATIONS = {
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
MAKERS: dict[str, Callable[[Path], object]] = {
    "a folder": Path.mkdir,
    "a pipe": os.mkfifo,
    "noise": lambda path: path.write_bytes(random.Random(0).randbytes(1_000_000)),
    "text": lambda path: path.write_text("SQLite format 3\0" + "x" * 5000),
    "a loop of links": lambda path: path.symlink_to(path.name),
}


def foreign(whole: Path, folder: Path) -> Iterator[Path]:
    """Databases of other schemas, and other files and devices."""
    for name, statements in ALTERATIONS.items():
        yield altered(whole, folder / f"{name}.db", *statements)
    other = folder / "other.db"
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE run (x)")
    yield other
    for name, maker in MAKERS.items():
        maker(folder / name)
        yield folder / name
    yield from map(Path, ("/dev/zero", "/dev/null", "/dev/stdin"))


def test_commands_refuse_foreign_databases_devices_and_other_files(
    whole: Path, tmp_path: Path
) -> None:
    found = {str(path): find_faults(path) for path in foreign(whole, tmp_path)}
    assert not any(found.values()), found


RESULTS = {
    "config": "key, json",
    "run": (
        "id, config_id, model_seed, state, error, epochs, best_epoch, best_validation_loss, tn, "
        "fp, fn, tp, tested, wrong, solved_length, digest, lengths, losses, errors"
    ),
    "test_set": "id, digest",
    "test_string": "*",
    "shortcut": "test_set_id, lengths, correct",
    "checkpoint": "*",
    "verdict": "*",
    "proof": "*",
}


def results(path: Path) -> Any:
    """All results as plain SQL reads them, by scanning the tables; the error where it cannot."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
            return {
                table: sorted(map(repr, connection.execute(f"SELECT {columns} FROM {table}")))
                for table, columns in RESULTS.items()
            }
    except (sqlite3.Error, UnicodeError) as error:
        return repr(error)


def finds_damage(path: Path) -> bool:
    try:
        return verify(open_reader(str(path))).damages != []
    except SeqclsError:
        # Refused as a whole, by name.
        return True


@pytest.mark.cases(40)
def test_verify_finds_every_flipped_bit_that_changes_a_result(
    whole: Path, tmp_path: Path, seed: int
) -> None:
    assert not finds_damage(whole)
    content, before, generator = whole.read_bytes(), results(whole), random.Random(seed)
    path, changed, missed = tmp_path / "rows.db", 0, []
    for bit in (generator.randrange(8 * len(content)) for _ in range(30)):
        path.write_bytes(flipped(content, bit))
        if results(path) != before:
            changed += 1
            if not finds_damage(path):
                missed.append(bit)
    assert changed > 3
    assert missed == []


CHANGED = {
    "finding": ("json = replace(json, 'inputs\":', 'inputs\":1') WHERE run_id = 2", "run 2", 0),
    "finding (proof)": ("json = replace(json, 's\":2', 's\":3') WHERE kind = 'proof'", "run 1", 0),
    "config": ("json = replace(json, 'e\":2', 'e\":5') WHERE id = 1", "configuration 1", 2),
    "test_set": ("digest = 'x' WHERE id = 1", "test set 1", 4),
    "test_string": ("label = 1 - label WHERE test_set_id = 1 AND number = 3", "test set 1", 4),
    "shortcut": ("correct = zeroblob(length(correct)) WHERE rowid = 1", "test set", 0),
    "dataset": ("rows = zeroblob(length(rows))", "dataset", 0),
}
"""Valid changes beside runs, whose own are tested in `store/test_merge`: the change, the named
row, and the number of runs that depend on it. Findings of runs are left behind alone.
"""


def done(path: Path) -> int:
    return int(rows(path, "SELECT count(*) FROM run WHERE state = 'done'")[0][0])


@pytest.mark.parametrize("table", CHANGED)
def test_a_changed_row_is_found_and_named_and_is_in_no_merge(
    whole: Path, tmp_path: Path, table: str
) -> None:
    change, named, lost = CHANGED[table]
    statement = f"UPDATE {table.partition(' ')[0]} SET {change}"
    path, merged = altered(whole, tmp_path / "x.db", statement), tmp_path / "merged.db"
    assert any(str(own).startswith(named) for own in verify(open_reader(str(path))).damages)
    run_main("merge", str(path), "--db", str(merged))
    assert done(merged) == done(whole) - lost
    assert verify(open_reader(str(merged))).damages == []
