"""Finding out whether a database still says what was once written into it.

SQLite checks its pages and references; everything that was computed stands beside a digest.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection, func, inspect, select

from seqcls.errors import StoreBusyError, StoreDamagedError, StoreError
from sweeps.processes import OnProgress
from sweeps.results import shortcut_digest
from sweeps.store import opening
from sweeps.store.checks import (
    IMPORTED_JSON,
    read_config_of_key,
)
from sweeps.store.database import Store
from sweeps.store.findings import read_findings
from sweeps.store.reads.stored import read_runs
from sweeps.store.reads.test_sets import load_dataset, stored_test_set
from sweeps.store.statements import chunks
from sweeps.store.tables import Config, DatasetRow, Run, RunState, ShortcutRow, TestSetRow


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


def verify(store: Store, on_progress: OnProgress | None = None) -> Verification:
    """Checks the file, its references, and everything that has a digest against it.

    A damaged database may answer any query with an error or with nonsense: a check that cannot be
    made is a damage like one that fails.

    Args:
        on_progress: called with the number of runs checked, and of all runs.

    Raises:
        StoreBusyError: the database cannot be read now, which says nothing of what is in it.
    """
    damages: list[Damage] = []
    for what, check in _CHECKS.items():
        damages += _make(store, what, check)
    runs: list[int] = []
    imported = 0
    with store.read() as connection:
        try:
            runs = list(connection.scalars(select(Run.id).order_by(Run.id)))
            of_imported = select(func.count()).select_from(Run).join(Config)
            is_imported = Config.json.contains(IMPORTED_JSON)
            imported = connection.scalar(of_imported.where(is_imported)) or 0
        except Exception as error:
            damages.append(_unreadable("the table of runs", error))
    checked = 0
    for some in chunks(runs):
        damages += _make(store, f"runs {some[0]} to {some[-1]}", partial(_check_runs, some))
        checked += len(some)
        if on_progress is not None:
            on_progress(checked, len(runs))
    return Verification(len(runs), damages, imported)


def _make(store: Store, what: str, check: Callable[[Connection], Iterator[Damage]]) -> list[Damage]:
    """All that a check finds, in a transaction of its own."""
    try:
        with store.read() as connection:
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


def _check_datasets(connection: Connection) -> Iterator[Damage]:
    for digest in connection.scalars(select(DatasetRow.digest).order_by(DatasetRow.id)).all():
        try:
            load_dataset(connection, digest)
        except StoreDamagedError as error:
            yield Damage(f"dataset {digest[:12]}", str(error))


def _check_test_sets(connection: Connection) -> Iterator[Damage]:
    for set_id, digest in connection.execute(select(TestSetRow.id, TestSetRow.digest)).all():
        strings = stored_test_set(connection, set_id)
        if (strings.digest if len(strings.texts) else None) != digest:
            yield Damage(f"test set {set_id}", "its strings do not fit its digest")


def _check_shortcuts(connection: Connection) -> Iterator[Damage]:
    query = select(inspect(ShortcutRow).local_table, TestSetRow.digest.label("strings"))
    for row in connection.execute(query.join(TestSetRow)).mappings():
        if shortcut_digest(row["strings"], dict(row)) != row["digest"]:
            what = f"test set {row['test_set_id']}, reader {row['reader']!r}"
            yield Damage(what, "what it reads rightly does not fit its digest")


def _check_findings(connection: Connection) -> Iterator[Damage]:
    for found in read_findings(connection):
        if not found.fits:
            what = f"run {found.run_id} (model seed {found.model_seed})"
            yield Damage(what, f"its {found.kind} does not fit its digest")


_CHECKS: dict[str, Callable[[Connection], Iterator[Damage]]] = {
    "the file": _check_file,
    "the configurations": _check_configs,
    "the datasets": _check_datasets,
    "the test sets": _check_test_sets,
    "shortcut readers": _check_shortcuts,
    "what was found out about runs": _check_findings,
}


def _check_runs(run_ids: Sequence[int], connection: Connection) -> Iterator[Damage]:
    for stored in read_runs(connection, run_ids):
        if stored.run["state"] == RunState.DONE and (misfit := stored.misfit()) is not None:
            yield Damage(f"run {stored.run['id']} (model seed {stored.run['model_seed']})", misfit)


def damage_of_last_opened() -> str | None:
    """What is damaged of the database that was opened last, in a line; None where nothing is.

    Callers ask when something fails that never should.
    """
    if (store := opening.last_opened) is None:
        return None
    try:
        found = verify(store).damages
    except StoreError as error:
        return str(error)
    if not found:
        return None
    more = f" and {len(found) - 1:,} more" if len(found) > 1 else ""
    return f"{store.name!r} is damaged: {found[0]}{more}; restore a copy"
