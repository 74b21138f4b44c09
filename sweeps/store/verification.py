"""Finding out whether a database still says what was once written into it."""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import Connection, exists, func, select

from seqcls.config import RunConfig, are_imported, default_fields
from seqcls.errors import StoreBusyError, StoreError
from seqcls.fields import test_set_json, test_set_key
from seqcls.problem import missing_plugin
from seqcls.text import canonical_json
from sweeps.processes import OnProgress
from sweeps.store.checks import (
    IMPORTED_JSON,
    drawn_misfit,
    read_config_of_key,
    read_spec,
    shortcut_misfit,
)
from sweeps.store.databases import sqlite
from sweeps.store.databases.engine import Store, schema_version
from sweeps.store.databases.statements import chunks, one_of
from sweeps.store.reads.explained import inconsistencies
from sweeps.store.reads.stored import RESULT_TABLES, StoredRun, read_runs
from sweeps.store.reads.test_sets import damaged_datasets, stored_test_set
from sweeps.store.tables import (
    Config,
    Failure,
    Run,
    RunState,
    ShortcutRow,
    Sweep,
    SweepRun,
    TestSetRow,
)
from sweeps.store.writes.recording import wrong_sums

PARTS_IN_PARALLEL = 8
"""Fewer are checked sooner than other processes have begun."""


@dataclass(frozen=True)
class Damage:
    """Something that is not as it was written: what, and how that shows."""

    what: str
    how: str

    def __str__(self) -> str:
        return f"{self.what}: {self.how}"


class Unchecked(Damage):
    """What cannot be checked here, for lack of a plug-in: it need not be damaged."""


class RunToCheck(NamedTuple):
    """A run that is checked."""

    id: int
    model_seed: int
    key: str | None


@dataclass(frozen=True)
class Verification:
    """What was checked, and what is damaged."""

    runs: int
    damages: list[Damage]
    unchecked: Sequence[Damage] = ()
    """What would need a plug-in that is not installed here."""
    imported: int = 0
    """Runs of models trained elsewhere: what is stored of them is checked as of others, and none
    can be trained again."""


def verify(store: Store, on_progress: OnProgress | None = None, processes: int = 1) -> Verification:
    """Checks the file, every configuration, every run against its digest, and every sweep.

    What a column may not hold, its type refuses as it is read. A damaged database may answer any
    query with an error or with nonsense; each check that cannot be made is reported like one that
    fails.

    Args:
        on_progress: called with the number of runs checked, and of all runs.
        processes: how many check the runs of a large file at once; a script that asks for more
            than one is one that can be imported, as `multiprocessing` has it.
    """
    store = store.as_it_is()
    damages: list[Damage] = []
    runs = _run_check(damages, "the table of runs", partial(_run_rows, store))
    damages += _run_check(damages, "the file", partial(_file, store))
    damages += _run_check(damages, "the schema", partial(_schema, store))
    checks: dict[str, Callable[[Connection], Iterator[Damage]]] = {
        "the configurations": _configs,
        "the datasets": lambda connection: (
            Damage(f"dataset {digest[:12]}", how) for digest, how in damaged_datasets(connection)
        ),
        "the test sets": _test_sets,
        "shortcut readers": _shortcuts,
        "the sweeps": _sweeps,
        "rows of results": _rows_without_run,
        "the sums by length": lambda connection: (
            Damage(f"configuration {config_id}", "its sums by length are wrong")
            for config_id in wrong_sums(connection)
        ),
        "causes, perturbations and proofs": lambda connection: (
            Damage(what, how) for what, how in inconsistencies(connection)
        ),
    }
    for what, check in checks.items():
        damages += _run_check(damages, what, partial(_in_a_transaction, store, check))
    parts = list(chunks(runs))
    checked = 0
    for some, damage in zip(parts, _of_parts(store, parts, processes), strict=True):
        damages += damage
        checked += len(some)
        if on_progress is not None:
            on_progress(checked, len(runs))
    imported = _run_check(damages, "the imported runs", partial(_count_imported, store))
    unchecked = [damage for damage in damages if isinstance(damage, Unchecked)]
    damages = [damage for damage in damages if not isinstance(damage, Unchecked)]
    return Verification(len(runs), damages, unchecked, sum(imported))


def _in_a_transaction(
    store: Store, check: Callable[[Connection], Iterator[Damage]]
) -> Iterator[Damage]:
    with store.begin() as connection:
        yield from check(connection)


def _count_imported(store: Store) -> Iterator[int]:
    query = select(func.count()).select_from(Run).join(Config, Config.id == Run.config_id)
    with store.begin() as connection:
        number = connection.scalar(query.where(Config.json.contains(IMPORTED_JSON)))
    yield number or 0


def _of_parts(
    store: Store, parts: Sequence[list[RunToCheck]], processes: int
) -> Iterator[list[Damage]]:
    """What is damaged of each part of the runs, in processes where that pays for their start."""
    if store.path is None or len(parts) < PARTS_IN_PARALLEL or processes < 2:
        yield from (_runs(store, some) for some in parts)
        return
    check = partial(_of_file, store.name, store.path)
    # Not forked: this process may have threads, and databases open.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(check, parts)


def _of_file(name: str, path: Path, rows: list[RunToCheck]) -> list[Damage]:
    return _runs(Store(name, sqlite.connect(path, mode="ro"), path), rows)


def _runs(store: Store, rows: list[RunToCheck]) -> list[Damage]:
    """What is damaged of these runs: read at once where they can be, else one by one."""
    try:
        return list(_some_runs(store, rows))
    except StoreBusyError:
        raise
    except Exception:
        damages: list[Damage] = []
        for row in rows:
            damages += _run_check(damages, f"run {row.id}", partial(_some_runs, store, [row]))
        return damages


def _run_check(damages: list[Damage], what: str, check: Callable[[], Iterator[Any]]) -> list[Any]:
    """All that a check finds; nothing, and a damage more, where it cannot be made."""
    try:
        return list(check())
    except StoreBusyError:
        # What cannot be read now says nothing of what is in it.
        raise
    except StoreError as error:
        damages.append(Damage(what, str(error)))
    except Exception as error:
        # Damaged bytes make the libraries between here and the disk raise anything.
        damages.append(Damage(what, f"cannot be read ({type(error).__name__}: {error})"))
    return []


def _run_rows(store: Store) -> Iterator[RunToCheck]:
    query = select(Run.id, Run.model_seed, Config.key).outerjoin(Config, Config.id == Run.config_id)
    with store.begin() as connection:
        return iter([RunToCheck(*row) for row in connection.execute(query.order_by(Run.id))])


def _file(store: Store) -> Iterator[Damage]:
    if store.path is None:
        return
    with store.begin() as connection:
        for (said,) in connection.exec_driver_sql("PRAGMA integrity_check"):
            if said != "ok":
                yield Damage("the file", " ".join(str(said).split()))
        for table, _, parent, _ in connection.exec_driver_sql("PRAGMA foreign_key_check"):
            yield Damage("the file", f"a row of {table} refers to none of {parent}")


def _schema(store: Store) -> Iterator[Damage]:
    # Raises if the version is invalid or unknown.
    if schema_version(store) is None:
        yield Damage("the schema", "no table is there")


def _configs(connection: Connection) -> Iterator[Damage]:
    columns = (Config.id, Config.key, Config.json, Config.test_set_id)
    query = select(*columns, TestSetRow.key, TestSetRow.json).outerjoin(TestSetRow)
    unfit = set()
    lacking: dict[str, list[int]] = {}
    for config_id, key, text, test_set_id, *test_set in connection.execute(query).all():
        try:
            config = read_config_of_key(text, key)
        except Exception as error:
            yield Damage(f"configuration {config_id}", str(error))
            continue
        if (reason := missing_plugin(config)) is not None:
            lacking.setdefault(reason, []).append(config_id)
        elif test_set_id is not None and not _is_tested_on(config, *test_set):
            unfit.add(test_set_id)
    for reason, (first, *others) in lacking.items():
        more = f" and of {len(others):,} more" if others else ""
        yield Unchecked(f"the test set of configuration {first}{more}", reason)
    for test_set_id in sorted(unfit):
        yield Damage(f"test set {test_set_id}", "is not that of its configurations")


def _is_tested_on(config: RunConfig, key: str, text: str) -> bool:
    """Whether a test set's key and fields are those of a configuration."""
    wanted = test_set_json(config)
    try:
        stored = json.loads(text)
    except ValueError:
        return False
    # A field that was added since is not stored.
    missing = {name: default_fields()[name] for name in wanted if name not in stored}
    same = canonical_json(missing | stored) == canonical_json(wanted)
    return same and key == test_set_key(config)


def _test_sets(connection: Connection) -> Iterator[Damage]:
    for row in connection.execute(select(TestSetRow.__table__)).all():
        what = f"test set {row.id}"
        strings = stored_test_set(connection, row.id)
        if row.digest is None and len(strings.texts):
            yield Damage(what, "it has strings and no digest")
        elif row.digest is not None and strings.digest != row.digest:
            yield Damage(what, "its strings do not fit its digest")
        elif (misfit := drawn_misfit(strings)) is not None:
            yield Damage(what, misfit)


def _shortcuts(connection: Connection) -> Iterator[Damage]:
    table = ShortcutRow
    for test_set_id in connection.scalars(select(table.test_set_id).distinct()).all():
        test = stored_test_set(connection, test_set_id)
        query = select(table.reader, table.lengths, table.correct)
        for row in connection.execute(query.where(table.test_set_id == test_set_id)):
            if (misfit := shortcut_misfit(row.lengths, row.correct, test)) is not None:
                yield Damage(f"test set {test_set_id}, reader {row.reader!r}", misfit)


def _some_runs(store: Store, rows: list[RunToCheck]) -> Iterator[Damage]:
    for row in rows:
        if row.key is None:
            yield Damage(_name(row), "its configuration is missing")
    ids = [row.id for row in rows if row.key is not None]
    with store.begin() as connection:
        # Workers go on meanwhile: what these runs are now, all of it of one moment.
        last = (
            select(Failure.run_id, Failure.reason)
            .where(one_of(Failure.run_id, ids))
            .order_by(Failure.run_id, Failure.attempt)
        )
        reasons = dict(connection.execute(last).all())
        runs = list(read_runs(connection, ids))
    by_id = {row.id: row for row in rows}
    for stored in runs:
        run_id = stored.run["id"]
        yield from _check_run(_name(by_id[run_id]), stored, reasons.get(run_id))


def _name(row: RunToCheck) -> str:
    return f"run {row.id} (model seed {row.model_seed})"


def _check_run(what: str, stored: StoredRun, reason: str | None) -> Iterator[Damage]:
    state = stored.run["state"]
    if state == RunState.DONE:
        if (misfit := stored.inconsistency()) is not None:
            yield Damage(what, misfit)
        if stored.verdict is not None and stored.verdict_digest() != stored.verdict["digest"]:
            yield Damage(what, "its exhaustive check does not fit its digest")
        elif (stored.verdict or {}).get("digest") != stored.run["verdict_digest"]:
            yield Damage(what, "its exhaustive check is not the one that was stored")
    elif stored.is_tested or (stored.has_losses and state != RunState.RUNNING):
        yield Damage(what, f"it is {state} and has results")
    if state == RunState.FAILED and stored.run["error"] != reason:
        yield Damage(what, "its error is not that of its last attempt")


def _rows_without_run(connection: Connection) -> Iterator[Damage]:
    for table in RESULT_TABLES:
        has_run = exists().where(Run.id == table.run_id)
        lost = select(func.count()).select_from(table).where(~has_run)
        if number := connection.scalar(lost):
            yield Damage(table.__tablename__, f"{number} rows belong to no run")


def _sweeps(connection: Connection) -> Iterator[Damage]:
    for sweep in connection.execute(select(Sweep.__table__)).mappings().all():
        yield from _sweep(connection, sweep)


def _sweep(connection: Connection, sweep: Any) -> Iterator[Damage]:
    what = f"sweep {sweep['name']!r}"
    try:
        spec = read_spec(sweep["spec"])
    except Exception as error:
        yield Damage(what, str(error))
        return
    try:
        is_imported = are_imported(spec.fixed)
        lacks = None if is_imported else _plugin_lacking(connection, sweep["id"])
        members = [] if is_imported or lacks else list(spec.members())
    except Exception as error:
        yield Damage(what, f"its specification cannot be read ({error})")
        return
    if (spec.name, spec.description) != (sweep["name"], sweep["description"]):
        yield Damage(what, "its name or description is not that of its specification")
    runs = (
        select(Config.key, Run.model_seed)
        .join(Run, Run.config_id == Config.id)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .where(SweepRun.sweep_id == sweep["id"])
    )
    if is_imported:
        trained = runs.where(~Config.json.contains(IMPORTED_JSON))
        if connection.execute(trained.limit(1)).first() is not None:
            yield Damage(what, "it is of models trained elsewhere, and has others")
        return
    if lacks:
        yield Unchecked(what, f"whether its runs are those of its specification; {lacks}")
        return
    stored = {(key, seed) for key, seed in connection.execute(runs)}
    if stored != {(config.key, seed) for config, seeds in members for seed in seeds}:
        yield Damage(what, "its runs are not those that its specification asks for")


def _plugin_lacking(connection: Connection, sweep_id: int) -> str | None:
    """Which plug-in a sweep's configurations need that is not here; None where none."""
    members = (
        select(Config.json)
        .join(Run, Run.config_id == Config.id)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .where(SweepRun.sweep_id == sweep_id, Config.json.not_like('%"plugins":""%'))
        .distinct()
    )
    configs = (RunConfig.from_mapping(json.loads(text)) for text in connection.scalars(members))
    return next(filter(None, map(missing_plugin, configs)), None)
