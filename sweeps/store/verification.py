"""Finding out whether a database still says what was once written into it.

SQLite checks its pages and references; everything that was computed stands beside a digest.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from sqlalchemy import Connection, func, select

from seqcls.errors import StoreBusyError, StoreError
from sweeps.processes import OnProgress
from sweeps.store import opening
from sweeps.store.checks import (
    IMPORTED_JSON,
    drawn_misfit,
    read_config_of_key,
    read_spec,
    shortcut_misfit,
)
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import chunks
from sweeps.store.reads.explained import inconsistencies
from sweeps.store.reads.stored import StoredRun, read_runs
from sweeps.store.reads.test_sets import damaged_datasets, stored_test_set
from sweeps.store.tables import Config, Run, RunState, ShortcutRow, Sweep, TestSetRow

PARTS_IN_PARALLEL = 8
"""Fewer are checked sooner than other processes have begun."""


class Damage(NamedTuple):
    """Something that is not as it was written: what, and how that shows."""

    what: str
    how: str

    def __str__(self) -> str:
        return f"{self.what}: {self.how}"


@dataclass(frozen=True)
class Verification:
    """What was checked, and what is damaged."""

    runs: int
    damages: list[Damage]
    imported: int = 0
    """Runs of models trained elsewhere: what is stored of them is checked as of others, and none
    can be trained again."""


def verify(store: Store, on_progress: OnProgress | None = None, processes: int = 1) -> Verification:
    """Checks the file, and every run, configuration and set of strings against its digest.

    A damaged database may answer any query with an error or with nonsense: a check that cannot be
    made is a damage like one that fails.

    Args:
        on_progress: called with the number of runs checked, and of all runs.
        processes: how many check the runs of a large file at once; a script that asks for more
            than one is one that can be imported, as `multiprocessing` has it.

    Raises:
        StoreBusyError: the database cannot be read now, which says nothing of what is in it.
    """
    damages = [damage for what, check in _CHECKS.items() for damage in _make(store, what, check)]
    runs: list[int] = []
    imported = 0
    with store.begin() as connection:
        try:
            runs = list(connection.scalars(select(Run.id).order_by(Run.id)))
            of_imported = select(func.count()).select_from(Run).join(Config)
            condition = Config.json.contains(IMPORTED_JSON)
            imported = connection.scalar(of_imported.where(condition)) or 0
        except Exception as error:
            damages.append(_unreadable("the table of runs", error))
    checked = 0
    parts = list(chunks(runs))
    for part, found in zip(parts, _check_parts(store, parts, processes), strict=True):
        damages += found
        checked += len(part)
        if on_progress is not None:
            on_progress(checked, len(runs))
    return Verification(len(runs), damages, imported)


def _make(store: Store, what: str, check: Callable[[Connection], Iterator[Damage]]) -> list[Damage]:
    """All that a check finds, in a transaction of its own."""
    try:
        with store.begin() as connection:
            return list(check(connection))
    except StoreBusyError:
        raise
    except Exception as error:
        # Damaged bytes make the libraries between here and the disk raise anything.
        return [_unreadable(what, error)]


def _unreadable(what: str, error: Exception) -> Damage:
    return Damage(what, f"cannot be read ({type(error).__name__}: {error})")


def _check_file(connection: Connection) -> Iterator[Damage]:
    if connection.dialect.name != "sqlite":
        return
    for (line,) in connection.exec_driver_sql("PRAGMA integrity_check"):
        if line != "ok":
            yield Damage("the file", " ".join(str(line).split()))
    for table, _, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
        yield Damage("the file", f"a row of {table} refers to none of {parent}")


def _check_configs(connection: Connection) -> Iterator[Damage]:
    for config_id, key, text in connection.execute(select(Config.id, Config.key, Config.json)):
        try:
            read_config_of_key(text, key)
        except ValueError as error:
            yield Damage(f"configuration {config_id}", str(error))


def _check_sweeps(connection: Connection) -> Iterator[Damage]:
    for name, spec in connection.execute(select(Sweep.name, Sweep.spec)):
        try:
            read_spec(spec)
        except ValueError as error:
            yield Damage(f"sweep {name!r}", str(error))


def _check_test_sets(connection: Connection) -> Iterator[Damage]:
    for set_id, digest in connection.execute(select(TestSetRow.id, TestSetRow.digest)).all():
        what = f"test set {set_id}"
        strings = stored_test_set(connection, set_id)
        if (strings.digest if len(strings.texts) else None) != digest:
            yield Damage(what, "its strings do not fit its digest")
        elif (misfit := drawn_misfit(strings)) is not None:
            yield Damage(what, misfit)


def _check_shortcuts(connection: Connection) -> Iterator[Damage]:
    table = ShortcutRow
    for test_set_id in connection.scalars(select(table.test_set_id).distinct()).all():
        test = stored_test_set(connection, test_set_id)
        query = select(table.reader, table.lengths, table.correct)
        for row in connection.execute(query.where(table.test_set_id == test_set_id)):
            if (misfit := shortcut_misfit(row.lengths, row.correct, test)) is not None:
                yield Damage(f"test set {test_set_id}, reader {row.reader!r}", misfit)


_CHECKS: dict[str, Callable[[Connection], Iterator[Damage]]] = {
    "the file": _check_file,
    "the configurations": _check_configs,
    "the datasets": lambda connection: (
        Damage(f"dataset {digest[:12]}", how) for digest, how in damaged_datasets(connection)
    ),
    "the test sets": _check_test_sets,
    "shortcut readers": _check_shortcuts,
    "the sweeps": _check_sweeps,
    "causes, perturbations and proofs": lambda connection: (
        Damage(what, how) for what, how in inconsistencies(connection)
    ),
}


def _check_parts(
    store: Store, parts: Sequence[list[int]], processes: int
) -> Iterator[list[Damage]]:
    """What is damaged of each part of the runs, in processes where that pays for their start."""
    if store.path is None or len(parts) < PARTS_IN_PARALLEL or processes < 2:
        yield from (_check_runs(store, part) for part in parts)
        return
    check = partial(_check_runs_of_file, store.name, store.path)
    # Not forked: this process may have threads, and databases open.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(check, parts)


def _check_runs_of_file(name: str, path: Path, run_ids: list[int]) -> list[Damage]:
    return _check_runs(Store(name, path), run_ids)


def _check_runs(store: Store, run_ids: list[int]) -> list[Damage]:
    """What is damaged of these runs: read at once where they can be, else one by one."""

    def check(connection: Connection) -> Iterator[Damage]:
        # Workers go on meanwhile: what these runs are now, all of it of one moment.
        for stored in read_runs(connection, some):
            if (misfit := run_misfit(stored)) is not None:
                yield Damage(_name(stored), misfit)

    some = run_ids
    try:
        with store.begin() as connection:
            return list(check(connection))
    except StoreBusyError:
        raise
    except Exception:
        damages = []
        for run_id in run_ids:
            some = [run_id]
            damages += _make(store, f"run {run_id}", check)
        return damages


def _name(stored: StoredRun) -> str:
    return f"run {stored.run['id']} (model seed {stored.run['model_seed']})"


def run_misfit(stored: StoredRun) -> str | None:
    """How a run is not as it was written; None where it is."""
    state = stored.run["state"]
    if state != RunState.DONE:
        if stored.is_tested or (stored.has_losses and state != RunState.RUNNING):
            return f"it is {state} and has results"
        return None
    if (misfit := stored.misfit()) is not None:
        return misfit
    if stored.verdict_digest() != stored.run["verdict_digest"]:
        return "its exhaustive check does not fit its digest"
    return None


def damage_of_last_opened() -> str | None:
    """What is damaged of the database that was opened last, in a line; None where nothing is.

    Callers ask when something fails that never should.
    """
    if (store := opening.last_opened) is None:
        return None
    try:
        found = verify(store.reader()).damages
    except StoreError as error:
        return str(error)
    if not found:
        return None
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return f"{store.name!r} is damaged: {found[0]}{more}; restore a copy"
