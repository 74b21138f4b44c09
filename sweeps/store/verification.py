"""Verification that a database is undamaged.

SQLite checks its pages and references; all computed values are stored beside a digest.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from sqlalchemy import Connection, select

from seqcls.errors import StoreBusyError, StoreDamagedError, StoreError
from sweeps.processes import OnProgress
from sweeps.store import opening
from sweeps.store.database import Store
from sweeps.store.findings import read_findings
from sweeps.store.reads.stored import IMPORTED_JSON, read_config, read_runs
from sweeps.store.shortcuts import read_shortcuts
from sweeps.store.statements import chunks
from sweeps.store.tables import Config, DatasetRow, Run, RunState, TestSetRow
from sweeps.store.test_sets import load_dataset, stored_test_set


class Damage(NamedTuple):
    """A damaged part of a database, and the symptom."""

    what: str
    how: str

    def __str__(self) -> str:
        return f"{self.what}: {self.how}"


@dataclass(frozen=True)
class Verification:
    """The result of a verification."""

    runs: int
    damages: list[Damage]
    imported: int = 0
    """Runs of models trained elsewhere: they are checked like others, but cannot be retrained."""


def verify(store: Store, on_progress: OnProgress | None = None) -> Verification:
    """Checks the file, its references, and everything that has a digest.

    A damaged database may answer any query with an error or with nonsense: a check that cannot be
    made counts as damage, like one that fails.

    Args:
        on_progress: called with the number of runs checked, and of all runs.

    Raises:
        StoreBusyError: the database cannot be read now, which is no sign of damage.
    """
    damages: list[Damage] = []
    runs: dict[int, bool] = {}

    def check(what: str, find: Callable[[Connection], Iterable[tuple[str, str]]]) -> None:
        try:
            with store.read() as db:
                damages.extend(Damage(*found) for found in find(db))
        except StoreBusyError:
            raise
        except Exception as error:
            # With damaged bytes the libraries below may raise any exception.
            cause = error.__cause__ if isinstance(error, StoreError) else error
            damages.append(Damage(what, f"cannot be read ({getattr(cause, 'orig', cause)})"))

    def list_runs(db: Connection) -> Iterable[tuple[str, str]]:
        query = select(Run.id, Config.json.contains(IMPORTED_JSON)).outerjoin(Config)
        runs.update(db.execute(query.order_by(Run.id)).all())
        return ()

    for what, find in CHECKS.items():
        check(what, find)
    check("the table of runs", list_runs)
    checked = 0
    # In chunks, so that one damaged page does not hide the sound runs elsewhere.
    for some in chunks(runs):
        check(f"runs {some[0]} to {some[-1]}", partial(_check_runs, some))
        checked += len(some)
        if on_progress is not None:
            on_progress(checked, len(runs))
    return Verification(len(runs), damages, sum(map(bool, runs.values())))


def _check_file(db: Connection) -> Iterator[tuple[str, str]]:
    if db.dialect.name != "sqlite":
        return
    for (line,) in db.exec_driver_sql("PRAGMA integrity_check"):
        if line != "ok":
            yield "the file", " ".join(str(line).split())
    for table, _, parent, _ in db.exec_driver_sql("PRAGMA foreign_key_check"):
        yield "the file", f"a row of {table} refers to none of {parent}"


def _check_configs(db: Connection) -> Iterator[tuple[str, str]]:
    for config_id, key, text in db.execute(select(Config.id, Config.key, Config.json)):
        try:
            read_config(text, key)
        except ValueError as error:
            yield f"configuration {config_id}", str(error)


def _check_datasets(db: Connection) -> Iterator[tuple[str, str]]:
    for digest in db.scalars(select(DatasetRow.digest).order_by(DatasetRow.id)).all():
        try:
            load_dataset(db, digest)
        except StoreDamagedError as error:
            yield f"dataset {digest[:12]}", str(error)


def _check_test_sets(db: Connection) -> Iterator[tuple[str, str]]:
    for set_id, digest in db.execute(select(TestSetRow.id, TestSetRow.digest)).all():
        strings = stored_test_set(db, set_id)
        # Before the first results there are neither strings nor a digest.
        if (strings.digest if len(strings.texts) else None) != digest:
            yield f"test set {set_id}", "its strings do not fit its digest"


def _check_shortcuts(db: Connection) -> Iterator[tuple[str, str]]:
    for row, _, fits in read_shortcuts(db):
        if not fits:
            what = f"test set {row['test_set_id']}, reader {row['reader']!r}"
            yield what, "what it reads rightly does not fit its digest"


def _check_findings(db: Connection) -> Iterator[tuple[str, str]]:
    for found in read_findings(db):
        if not found.fits:
            what = f"run {found.run_id} (model seed {found.model_seed})"
            yield what, f"its {found.kind} does not fit its digest"


CHECKS = {
    "the file": _check_file,
    "the configurations": _check_configs,
    "the datasets": _check_datasets,
    "the test sets": _check_test_sets,
    "shortcut readers": _check_shortcuts,
    "what was found out about runs": _check_findings,
}


def _check_runs(run_ids: Sequence[int], db: Connection) -> Iterator[tuple[str, str]]:
    for stored in read_runs(db, run_ids):
        if stored.run["state"] == RunState.DONE and (misfit := stored.misfit()) is not None:
            yield f"run {stored.run['id']} (model seed {stored.run['model_seed']})", misfit


def damage_of_last_opened() -> str | None:
    """A description of damage to the database that was opened last, in a line; None without any.

    Called after an unexpected failure.
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
