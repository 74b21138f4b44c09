"""Whether a file is trusted as it is or surveyed first, and what is hidden of a damaged one."""

import hashlib
import logging
import os
import shlex
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Table

from seqcls.errors import StoreDamagedError, StoreError
from sweeps.store import survey
from sweeps.store.checks import CONTRADICTIONS
from sweeps.store.survey import APART, SAID, SUMS, TABLES, Survey, fitting, keys_of
from sweeps.store.tables import LENGTH_COUNTS, Revision


@dataclass(frozen=True)
class Layout:
    """What SQLite says of a file's tables."""

    obstacle: str | None
    """Why they cannot hold what this program writes; None where every column is there."""

    checks_itself: bool
    """Whether all of them are strict, and so hold no value of another type."""


_layouts: dict[bytes, Layout] = {}
"""By the hash of the schema's text, from which alone SQLite makes its tables."""


def layout_of(connection: sqlite3.Connection) -> Layout:
    """What a file's tables are; SQLite is asked once per schema, and not per opening of a file.

    To answer it works out the columns of all views too, which takes milliseconds.

    Args:
        connection: one that was just opened and serves nothing else; it is left in a transaction.

    Raises:
        sqlite3.Error: the schema cannot be read.
    """
    # Until the connection is closed all answers are of one state of the file.
    connection.execute("BEGIN")
    # As bytes: two texts that cannot be decoded might look the same once they are.
    text = ", ".join(f"CAST({name} AS BLOB)" for name in ("type", "name", "tbl_name", "sql"))
    schema = connection.execute(f"SELECT {text} FROM main.sqlite_schema").fetchall()
    key = hashlib.sha256(repr(schema).encode()).digest()
    if key not in _layouts:
        _layouts[key] = _layout(connection)
    return _layouts[key]


def _layout(connection: sqlite3.Connection) -> Layout:
    query = (
        "SELECT list.strict, list.name, info.name FROM pragma_table_list AS list, "
        "pragma_table_xinfo(list.name) AS info WHERE list.schema = 'main' AND list.type = 'table'"
    )
    rows = connection.execute(query).fetchall()
    there = {(table, column) for _, table, column in rows}
    strict = {table for is_strict, table, _ in rows if is_strict}
    obstacle = next(
        (
            f"its table {table.name!r} has no column {column.name!r}"
            for table in TABLES.values()
            for column in table.columns
            if (table.name, column.name) not in there
        ),
        None,
    )
    return Layout(obstacle, checks_itself=set(TABLES) <= strict)


# Views that hide the tables of a damaged file: only what can be trusted is seen.

_SUMMED = f"""
SELECT run.config_id AS config_id, score.length AS length, count(*) AS runs,
    sum(score.wrong > 0) AS failing, {", ".join(f"sum(score.{x}) AS {x}" for x in LENGTH_COUNTS)}
FROM length_score AS score JOIN run ON run.id = score.run_id
WHERE run.state = 'done' GROUP BY run.config_id, score.length
"""


def views(survey: Survey) -> Iterator[str]:
    """The statements that hide tables behind views, which show only what can be trusted."""
    yield f"CREATE TEMP VIEW {SUMS} AS {_SUMMED}"
    for name, table in TABLES.items():
        if name == SUMS:
            continue
        if name == Revision.__tablename__:
            yield _revision(table)
            continue
        checked = table.columns if name in APART else table.primary_key
        conditions = [fitting(table, column.name) for column in checked]
        if name in APART:
            conditions += [f"NOT ({x.sql})" for x in CONTRADICTIONS if name in x.tables]
            keys = keys_of(table)
            conditions.append(
                f"({keys}) IN (SELECT {keys} FROM main.{name} GROUP BY {keys} HAVING count(*) = 1)"
            )
        for column in table.columns:
            owner = _owner(table, column.name)
            if owner is not None and (left_out := survey.ids.get(owner)):
                listed = ", ".join(map(str, sorted(left_out)))
                conditions.append(f"({column.name} IS NULL OR {column.name} NOT IN ({listed}))")
        columns = ", ".join(_show_column(table, column.name) for column in table.columns)
        condition = " AND ".join(conditions)
        yield f"CREATE TEMP VIEW {name} AS SELECT {columns} FROM main.{name} WHERE {condition}"


def _show_column(table: Table, column: str) -> str:
    if (table.name, column) in SAID:
        return f"CASE WHEN {fitting(table, column)} THEN {column} END AS {column}"
    return column


def _revision(table: Table) -> str:
    """Always one row; of zeros where the file's own is damaged."""
    numbers = ", ".join(
        f"coalesce(max({column.name}), 0) AS {column.name}" for column in table.columns
    )
    fits = " AND ".join(fitting(table, column.name) for column in table.columns)
    return f"CREATE TEMP VIEW {table.name} AS SELECT {numbers} FROM main.{table.name} WHERE {fits}"


def _owner(table: Table, column: str) -> str | None:
    """Whose id a column holds, where a row is left out with that; a worker's is only named."""
    if column == "id":
        return table.name
    owner = column.removesuffix("_id")
    return owner if owner != column and owner != "worker" else None


_log = logging.getLogger(__name__)

_State = tuple[tuple[int, int, int], ...]
"""The state of a file and of its write-ahead log: which it is, how long, and when it was
written."""

_opened: dict[Path, None] = {}
"""Files that this process has read, in that order."""

_suspected: set[Path] = set()
"""Files in which this process met what none of their tables allows."""

_surveys: dict[Path, tuple[_State, Survey]] = {}

_sound: dict[Path, _State] = {}
"""Files whose version and tables are this program's, as they were when that was seen."""

_unreadable: dict[Path, str] = {}
"""Why files cannot be looked through, of which something failed that never fails."""

ADVICE = (
    "`seqcls verify` lists all damage; `seqcls merge DAMAGED.db --db NEW.db` copies intact rows "
    "into a new database"
)


def survey_of(path: Path) -> Survey | None:
    """What is damaged of a file that this program does not trust as it is; None where it does.

    Raises:
        StoreError: it has not the tables of this program, or cannot be looked through.
    """
    location = path.absolute()
    _opened[location] = None
    if location not in _suspected and _checks_itself(path):
        return None
    state = state_of(location)
    known = _surveys.get(location)
    if known is not None and known[0] == state:
        return known[1]
    try:
        seen = survey.look_through(path)
    except StoreError as error:
        raise StoreDamagedError(f"{str(path)!r}: {error}; {ADVICE}") from error
    _surveys[location] = (state, seen)
    if seen.lines:
        _log.warning("%s", said_of(str(path), seen))
    return seen


def is_still_sound(path: Path) -> bool:
    """Whether the file is known to be this program's and unchanged since it was checked."""
    location = path.absolute()
    if location in _suspected or _sound.get(location) != state_of(location):
        return False
    _opened[location] = None
    return True


def mark_sound(path: Path, before: _State) -> None:
    """Remembers that a file's version and tables are this program's; `before`: before the look."""
    _sound[path.absolute()] = before


def said_of(name: str, survey: Survey) -> str:
    """What is damaged, in one line."""
    more = f" and {len(survey.lines) - 1:,} more" if len(survey.lines) > 1 else ""
    return f"{name!r} is damaged and shown without: {survey.lines[0]}{more}; {ADVICE}"


def why_not_written(path: Path, name: str) -> str | None:
    """Why nothing is written into a file whose tables take anything; None where they do not."""
    if _checks_itself(path):
        return None
    return (
        f"{name!r} has tables that check nothing, so seqcls did not make it and writes nothing "
        f"into it; `seqcls merge {shlex.quote(name)} --db NEW.db` takes what is sound into a new "
        "database"
    )


def learns_of_damage() -> bool:
    """Whether a file that was read is damaged without this having been known.

    Callers ask when something fails that never should. From then on the file's readers see only
    what can be trusted, and the caller may try again.
    """
    learnt = False
    for path in list(_opened):
        state = state_of(path)
        if path in _surveys and _surveys[path][0] == state:
            continue
        try:
            seen = survey.look_through(path)
        except (StoreError, OSError) as error:
            _unreadable[path] = str(error)
            continue
        if seen.lines:
            _surveys[path] = (state, seen)
            _suspected.add(path)
            _log.warning("%s", said_of(str(path), seen))
            learnt = True
    return learnt


def known_damage() -> str | None:
    """What is known to be damaged of the files that were read, in one line; None where nothing."""
    for path in list(_opened):
        if path in _unreadable:
            return f"{str(path)!r}: {_unreadable[path]}; {ADVICE}"
        if path in _surveys and _surveys[path][1].lines:
            return said_of(str(path), _surveys[path][1])
    return None


def forget_open_stores() -> None:
    """Begins anew with what was read: another command, say."""
    _opened.clear()
    _unreadable.clear()


def _checks_itself(path: Path) -> bool:
    try:
        with closing(survey.connect(path)) as connection:
            layout = layout_of(connection)
    except sqlite3.Error as error:
        raise StoreError(
            f"{str(path)!r}: {error}; `seqcls verify` tells what can be read"
        ) from error
    if layout.obstacle is not None:
        raise StoreError(
            f"{str(path)!r} was not made by this program: {layout.obstacle}; name another file"
        )
    return layout.checks_itself


def state_of(path: Path) -> _State:
    """The state of a file, which changes when something is written into it."""
    said = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        try:
            status = os.stat(file)
        except OSError:
            continue
        said.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(said)
