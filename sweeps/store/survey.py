"""What of a damaged or foreign SQLite file can be trusted: rows that fit, and what rests on those.

A file whose tables check nothing, or that holds a value no table allows, is looked through once.
Its readers then see views instead of its tables. The views leave out damaged rows, runs with a
damaged row, and runs whose configuration is damaged.
"""

import sqlite3
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Table

from seqcls.errors import StoreDamagedError, StoreError
from sweeps.access import open_to_read
from sweeps.store.checks import (
    CONTRADICTIONS,
    IMPORTED_JSON,
    NO_RESULTS,
    OF_DONE,
    OF_TRAINED,
    Contradiction,
    outputs_misfit,
    read_config_of_key,
    read_spec,
)
from sweeps.store.columns import (
    Checked,
    ValueKind,
    describe_damage,
    unpack_errors,
    unpacked_outputs,
)
from sweeps.store.tables import Base, RunState

TABLES: dict[str, Table] = dict(Base.metadata.tables)

_KINDS: list[ValueKind] = []
"""By the number that SQLite knows them by."""


def fitting(table: Table, name: str) -> str:
    """The condition, in SQL, that a column's value is one that it may hold."""
    kind = kind_of(table, name)
    if kind not in _KINDS:
        _KINDS.append(kind)
    condition = kind.sql.format(column=name, kind=_KINDS.index(kind))
    nothing = f"{name} IS NULL OR " if table.columns[name].nullable else ""
    return f"({nothing}({condition}))"


def kind_of(table: Table, name: str) -> ValueKind:
    """What a column may hold."""
    column_type = table.columns[name].type
    assert isinstance(column_type, Checked)
    return column_type.kind


def fits(kind: int, data: bytes) -> bool:
    """Whether text may stand in a column; the conditions call it, and know kinds by number."""
    try:
        return _KINDS[kind].fits(data.decode())
    except UnicodeDecodeError:
        return False


def keys_of(table: Table) -> str:
    """The columns of the primary key, as a list in SQL."""
    return ", ".join(column.name for column in table.primary_key)


def name_row(table: Table, values: dict[str, Any]) -> str:
    """What the row with these values is called."""
    return row_name(table, [values[column.name] for column in table.primary_key])


def row_name(table: Table, keys: Sequence[Any]) -> str:
    """A row as `run 12`, or as `run 12 (epoch 3)` where it is a part of a run."""
    names = [column.name for column in table.primary_key]
    if names == ["id"]:
        return f"{table.name} {short(keys[0])}"
    owner = names[0].removesuffix("_id")
    rest = " ".join(f"{name} {short(key)}" for name, key in zip(names[1:], keys[1:], strict=True))
    return f"{owner} {short(keys[0])} ({' '.join(filter(None, [table.name, rest]))})"


def short(value: object) -> str:
    """A value in one line of at most 40 characters."""
    return " ".join(repr(value).split())[:40]


MOST_DAMAGED = 10_000
"""Rows; of a file in which more are damaged nothing is shown."""

MOST_SECONDS = 30.0
"""For looking through a file."""

STEPS = 100_000
"""Steps of SQLite's machine between two looks at the clock."""

OF_RUN = [name for name, table in TABLES.items() if table.primary_key.columns[0].name == "run_id"]
"""Tables whose rows are a run's: it is no run of which any of them means nothing."""

APART = ("sweep_note", "sweep_tag", "shortcut")
"""What is said of sweeps and test sets, which are what they are without it: a damaged row of these
is left out alone."""

SAID = (("test_string", "drawn"),)
"""Columns of which the same holds: a damaged value is none."""

SUMS = "length_sum"
"""Holds nothing of its own: it is summed anew over the runs that can be trusted."""


@dataclass
class Survey:
    """What is damaged: said in lines, and as the ids of rows that are left out."""

    lines: list[str] = field(default_factory=list)
    ids: dict[str, set[int]] = field(default_factory=dict)
    """By table, of which `run`, `config`, `sweep`, `test_set` and `worker` are known by one id."""

    def add(self, table: str, row_id: Any, line: str) -> None:
        """Leaves out a row, or what rests on it."""
        if len(self.lines) >= MOST_DAMAGED:
            raise StoreDamagedError(f"more than {MOST_DAMAGED:,} of its rows are damaged")
        self.lines.append(line)
        if type(row_id) is int:
            self.ids.setdefault(table, set()).add(row_id)

    def of(self, table: str, row_id: int) -> str | None:
        """What is wrong with a row that is left out; None where it is not."""
        if row_id not in self.ids.get(table, ()):
            return None
        name = f"{table} {row_id}: "
        return next((line for line in self.lines if line.startswith(name)), f"{name}damaged")


def connect(path: Path) -> sqlite3.Connection:
    """A connection that reads, and no longer than `MOST_SECONDS`."""
    connection = open_to_read(path, MOST_SECONDS)
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("PRAGMA cell_size_check=ON")
    connection.create_function("fits", 2, fits, deterministic=True)
    # Undecodable text must not end the search for it.
    connection.text_factory = lambda data: data.decode(errors="replace")
    end = time.monotonic() + MOST_SECONDS
    connection.set_progress_handler(lambda: time.monotonic() > end, STEPS)
    return connection


def look_through(path: Path) -> Survey:
    """Finds every damaged row, and the rows that depend on it.

    Raises:
        StoreError: it takes too long, too much is damaged, or the file cannot be read.
    """
    survey = Survey()
    try:
        with closing(connect(path)) as connection:
            for name, table in TABLES.items():
                if name != SUMS:
                    _values(connection, table, survey)
                    _twice(connection, table, survey)
            _texts(connection, survey)
            _what_rests_on_others(connection, survey)
            _errors_of_no_string(connection, survey)
            _outputs_of_no_error(connection, survey)
    except sqlite3.Error as error:
        raise StoreError(_why_not(error)) from error
    return survey


def first_damaged(path: Path, table: str, column: str) -> str | None:
    """A row whose value in a column is damaged, as `run 12`; None if there is none."""
    definition = TABLES[table]
    fits_not = f"NOT {fitting(definition, column)}"
    chosen = f"SELECT {keys_of(definition)} FROM main.{table} WHERE {fits_not} LIMIT 1"
    try:
        with closing(connect(path)) as connection:
            row = connection.execute(chosen).fetchone()
    except sqlite3.Error:
        return None
    return None if row is None else row_name(definition, row)


def _values(connection: sqlite3.Connection, table: Table, survey: Survey) -> None:
    """Values that their columns may not hold."""
    checked = [column.name for column in table.columns]
    failing = " ".join(
        f"WHEN NOT {fitting(table, name)} THEN {number}" for number, name in enumerate(checked)
    )
    all_fit = " AND ".join(fitting(table, name) for name in checked)
    # No more than is said of it is read of any value.
    shown = ", ".join(
        f"CASE WHEN typeof({name}) IN ('text', 'blob') THEN substr({name}, 1, 100) ELSE {name} END"
        for name in checked
    )
    query = (
        f"SELECT CASE {failing} END, {shown} FROM main.{table.name} WHERE NOT ({all_fit}) "
        f"LIMIT {MOST_DAMAGED + 1}"
    )
    for number, *row in connection.execute(query):
        values = dict(zip(checked, row, strict=True))
        name = checked[number]
        line = describe_damage(name_row(table, values), name, values[name], kind_of(table, name))
        if (table.name, name) in SAID:
            survey.add(table.name, None, line)
        else:
            _leave_out(survey, table, values, line)
    if table.name == "run":
        _unfinished_results(connection, survey)
    if checks := [each for each in CONTRADICTIONS if table.name in each.tables]:
        _find_contradictions(connection, table, checks, survey)


def _unfinished_results(connection: sqlite3.Connection, survey: Survey) -> None:
    missing = " OR ".join(f"{name} IS NULL" for name in OF_DONE)
    lost = " OR ".join(f"{name} IS NULL" for name in OF_TRAINED)
    imported = f"SELECT id FROM main.config WHERE json LIKE '%{IMPORTED_JSON}%'"
    query = (
        f"SELECT id FROM main.run WHERE state = '{RunState.DONE}' "
        f"AND ({missing} OR ({lost}) AND config_id NOT IN ({imported}))"
    )
    for (run_id,) in connection.execute(f"{query} LIMIT {MOST_DAMAGED + 1}"):
        survey.add("run", run_id, f"run {run_id}: {NO_RESULTS}")


def _find_contradictions(
    connection: sqlite3.Connection, table: Table, checks: list[Contradiction], survey: Survey
) -> None:
    """Rows whose values contradict each other."""
    failing = " ".join(f"WHEN {check.sql} THEN {number}" for number, check in enumerate(checks))
    some_fail = " OR ".join(f"({check.sql})" for check in checks)
    query = (
        f"SELECT CASE {failing} END, {keys_of(table)} FROM main.{table.name} WHERE {some_fail} "
        f"LIMIT {MOST_DAMAGED + 1}"
    )
    of_test_set = table.name in ("test_string", "shortcut")
    known = survey.ids.get("test_set" if of_test_set else "run", set())
    keys = [column.name for column in table.primary_key]
    for number, *row in connection.execute(query):
        if row[0] not in known:
            values = dict(zip(keys, row, strict=True))
            line = f"{name_row(table, values)}: {checks[number].said}"
            _leave_out(survey, table, values, line)


def _twice(connection: sqlite3.Connection, table: Table, survey: Survey) -> None:
    """Rows that are not the only ones of their keys, as a table that checks nothing may have."""
    unique = [[column.name for column in table.primary_key]]
    unique += [[column.name] for column in table.columns if column.unique]
    names = [column.name for column in table.columns if column.primary_key or column.unique]
    for key_columns in unique:
        keys = ", ".join(key_columns)
        query = (
            f"SELECT {', '.join(names)} FROM main.{table.name} WHERE ({keys}) IN (SELECT {keys} "
            f"FROM main.{table.name} GROUP BY {keys} HAVING count(*) > 1) LIMIT {MOST_DAMAGED + 1}"
        )
        for row in connection.execute(query):
            values = dict(zip(names, row, strict=True))
            line = f"{name_row(table, values)}: not the only row with this {keys}"
            _leave_out(survey, table, values, line)


def _leave_out(survey: Survey, table: Table, values: dict[str, Any], line: str) -> None:
    """Leaves out the row, and what it is a part of."""
    if table.name in OF_RUN:
        survey.add("run", values["run_id"], line)
    elif table.name == "test_string":
        survey.add("test_set", values["test_set_id"], line)
    elif table.name == "sweep_run":
        survey.add("sweep", values["sweep_id"], line)
    else:
        survey.add(table.name, values.get("id"), line)


def _texts(connection: sqlite3.Connection, survey: Survey) -> None:
    """Configurations and specifications that are none."""
    kept: dict[str, tuple[str, Callable[..., object]]] = {
        "config": ("json, key", read_config_of_key),
        "sweep": ("spec", read_spec),
    }
    for table, (columns, read) in kept.items():
        query = f"SELECT id, {columns} FROM main.{table}"
        for row_id, *values in _rows(connection, query, survey, table):
            try:
                read(*values)
            except ValueError as error:
                survey.add(table, row_id, f"{table} {row_id}: {error}")


def _rows(
    connection: sqlite3.Connection, query: str, survey: Survey, table: str
) -> list[tuple[Any, ...]]:
    """Rows that are not left out yet."""
    known = survey.ids.get(table, set())
    rows = connection.execute(query).fetchall()
    return [row for row in rows if type(row[0]) is int and row[0] not in known]


def _what_rests_on_others(connection: sqlite3.Connection, survey: Survey) -> None:
    """Configurations without their test set, and runs without their configuration."""
    for table, column, parent in (
        ("config", "test_set_id", "test_set"),
        ("run", "config_id", "config"),
        *((name, "run_id", "run") for name in OF_RUN),
    ):
        sound = {sound_id for (sound_id,) in connection.execute(f"SELECT id FROM main.{parent}")}
        sound -= survey.ids.get(parent, set())
        row_id = "run_id" if table in OF_RUN else "id"
        query = f"SELECT DISTINCT {row_id}, {column} FROM main.{table}"
        owner = "run" if table in OF_RUN else table
        known = survey.ids.get(owner, set())
        for owner_id, parent_id in connection.execute(
            f"{query} WHERE {column} IS NOT NULL"
        ).fetchall():
            if parent_id not in sound and owner_id not in known and type(owner_id) is int:
                what = f"{parent} {short(parent_id)}, which is damaged or missing"
                survey.add(owner, owner_id, f"{owner} {owner_id}: it rests on {what}")


def _errors_of_no_string(connection: sqlite3.Connection, survey: Survey) -> None:
    """Runs whose packed errors are torn, or are of strings that their test set does not have."""
    known = survey.ids.get("run", set())
    sizes: dict[int, set[int]] = {}
    packs = (
        "SELECT pack.run_id, config.test_set_id, pack.numbers, pack.logits "
        "FROM main.error_pack AS pack JOIN main.run ON run.id = pack.run_id "
        "JOIN main.config ON config.id = run.config_id"
    )
    for run_id, test_set_id, numbers, logits in connection.execute(packs):
        if run_id in known or type(run_id) is not int:
            continue
        if test_set_id not in sizes:
            query = "SELECT number FROM main.test_string WHERE test_set_id = ?"
            sizes[test_set_id] = {number for (number,) in connection.execute(query, (test_set_id,))}
        try:
            wrong_numbers = unpack_errors(numbers, logits).numbers.tolist()
        except ValueError as error:
            survey.add("run", run_id, f"run {run_id} (error_pack): {error}")
            continue
        if not sizes[test_set_id].issuperset(wrong_numbers):
            survey.add("run", run_id, f"run {run_id}: strings that it got wrong are missing")


def _outputs_of_no_error(connection: sqlite3.Connection, survey: Survey) -> None:
    """Runs that have not one output for each error, where they are of a transduction, else none."""
    known = survey.ids.get("run", set())
    # Beside a null `IN` is neither true nor false.
    counted = (
        "run.id IN (SELECT run_id FROM main.length_score WHERE edits IS NOT NULL "
        "AND run_id IS NOT NULL)"
    )
    packs = (
        f"SELECT run.id, {counted}, coalesce(length(pack.numbers) / 3, 0), said.outputs "
        "FROM main.run LEFT JOIN main.error_pack AS pack ON pack.run_id = run.id "
        "LEFT JOIN main.output_pack AS said ON said.run_id = run.id "
        f"WHERE said.run_id IS NOT NULL OR {counted}"
    )
    for run_id, is_transduction, errors, packed in connection.execute(packs):
        if run_id in known or type(run_id) is not int:
            continue
        outputs = len(unpacked_outputs(packed)) if packed is not None else 0
        if (misfit := outputs_misfit(outputs, errors * is_transduction)) is not None:
            survey.add("run", run_id, f"run {run_id} (output_pack): {misfit}")


def _why_not(error: sqlite3.Error) -> str:
    if "interrupted" in str(error):
        return (
            f"it is damaged, or not made by seqcls, and cannot be scanned in "
            f"{MOST_SECONDS:.0f} s; `seqcls verify` names what is damaged"
        )
    return f"it cannot be scanned: {error}"
