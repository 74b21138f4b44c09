"""Taking over what another database holds."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, delete, insert, select, update

from seqcls.config import canonical_json
from sweeps.digest import RESULT_COLUMNS
from sweeps.store.bulk import insert_rows
from sweeps.store.engine import Store
from sweeps.store.explained import copy_explained
from sweeps.store.postgres import take_turns
from sweeps.store.statements import chunks, insert_new, inserted_id, update_states
from sweeps.store.stored import RESULT_TABLES, StoredRun, read_run
from sweeps.store.tables import (
    Checkpoint,
    Config,
    ErrorPack,
    Failure,
    Run,
    RunState,
    Sweep,
    SweepRun,
    SweepState,
    TestSet,
    Verdict,
    now,
)
from sweeps.store.test_sets import insert_test_strings, stored_test_set

_KEPT_COLUMNS = (
    *RESULT_COLUMNS,
    "state",
    "started_at",
    "finished_at",
    "error",
    "engine",
    "engine_reason",
    "train_seconds",
    "digest",
)


@dataclass
class Merged:
    """What became of another database's runs."""

    results: int = 0
    """Finished runs whose results were taken over."""
    same: int = 0
    """Finished runs that were here already, with the same results."""
    waiting: int = 0
    """Unfinished or failed runs that were new here."""
    conflicts: list[str] = field(default_factory=list)
    """Runs whose results differ; those that were here are kept."""
    damaged: list[str] = field(default_factory=list)
    """Runs that do not fit their digest; they are queued here instead of taken over."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Sweeps whose name means other runs here, and the name that they got."""


def merge(store: Store, other: Store) -> Merged:
    """Adds the sweeps, runs and results of another database, in one transaction.

    A run is known by its configuration and model seed. Where both have its results, those that
    were here stay.
    """
    merged = Merged()
    with other.begin() as source, store.change("configs", "members") as target:
        take_turns(target)
        config_ids = _merge_configs(source, target)
        run_ids = {
            run.id: _merge_run(source, target, run, config_ids[run.config_id], merged)
            for run in source.execute(_runs())
        }
        sweep_ids = list(_merge_sweeps(source, target, run_ids, _label(other), merged))
        update_states(target, {*sweep_ids, *_sweeps_with(target, run_ids.values())})
    return merged


def _runs() -> Any:
    columns = (Run.id, Run.config_id, Run.model_seed, Run.state, Config.key)
    return select(*columns).join(Config, Config.id == Run.config_id).order_by(Run.id)


def _merge_configs(source: Connection, target: Connection) -> dict[int, int]:
    """The ids here of the configurations there."""
    _merge_test_sets(source, target)
    columns = (Config.id, Config.key, Config.json, TestSet.key.label("test_set"))
    query = select(*columns).outerjoin(TestSet, TestSet.id == Config.test_set_id)
    theirs = source.execute(query.order_by(Config.id)).all()
    test_sets = dict(target.execute(select(TestSet.key, TestSet.id)).all())
    rows = [
        {"key": row.key, "json": row.json, "test_set_id": test_sets.get(row.test_set)}
        for row in theirs
    ]
    insert_new(target, Config, rows)
    ours = dict(target.execute(select(Config.key, Config.id)).all())
    return {row.id: ours[row.key] for row in theirs}


def _merge_test_sets(source: Connection, target: Connection) -> None:
    """Adds their test sets to ours, and strings where we have none."""
    theirs = source.execute(select(TestSet.__table__).order_by(TestSet.id)).all()
    insert_new(target, TestSet, [{"key": row.key, "json": row.json} for row in theirs])
    empty = select(TestSet.key, TestSet.id).where(TestSet.digest.is_(None))
    without = dict(target.execute(empty.with_for_update()).all())
    for row in theirs:
        if row.digest is None or row.key not in without:
            continue
        strings = stored_test_set(source, row.id)
        # Of damaged strings nothing is taken over; nor of the runs that were tested on them.
        if strings.digest == row.digest:
            own = TestSet.id == without[row.key]
            target.execute(update(TestSet).where(own).values(digest=row.digest))
            insert_test_strings(target, without[row.key], strings)


def _merge_run(
    source: Connection, target: Connection, run: Any, config_id: int, merged: Merged
) -> int:
    """Takes one run over; its id here."""
    query = select(Run.id, Run.state).where(
        Run.config_id == config_id, Run.model_seed == run.model_seed
    )
    ours = target.execute(query.with_for_update(key_share=True)).one_or_none()
    own_id = ours.id if ours else _queue(target, config_id, run.model_seed)
    if run.state != RunState.DONE:
        if ours is None:
            merged.waiting += 1
            _copy_failures(source, target, run, own_id)
        return own_id
    theirs = read_run(source, run.id)
    if theirs.digest() != theirs.run["digest"] or theirs.test_set != _test_set(target, config_id):
        merged.damaged.append(f"run {run.id} (model seed {run.model_seed})")
    elif ours is None or ours.state != RunState.DONE:
        merged.results += 1
        _copy_results(target, theirs, own_id)
        copy_explained(source, target, run.id, own_id)
    elif _compare(target, theirs, own_id, merged):
        copy_explained(source, target, run.id, own_id)
    return own_id


def _test_set(target: Connection, config_id: int) -> str | None:
    """The digest of the strings that a configuration of ours is tested on."""
    query = select(TestSet.digest).join(Config, Config.test_set_id == TestSet.id)
    return target.scalars(query.where(Config.id == config_id)).one_or_none()


def _queue(target: Connection, config_id: int, model_seed: int) -> int:
    values = {"config_id": config_id, "model_seed": model_seed, "state": RunState.QUEUED}
    return inserted_id(target, insert(Run).values(**values, attempt=0, failures=0))


def _copy_failures(source: Connection, target: Connection, run: Any, own_id: int) -> None:
    row = source.execute(select(Run.__table__).where(Run.id == run.id)).mappings().one()
    if row["state"] == RunState.FAILED:
        names = ("state", "attempt", "failures", "started_at", "finished_at", "error")
        values = {name: row[name] for name in names}
        target.execute(update(Run).where(Run.id == own_id).values(values))
        failures = source.execute(select(Failure.__table__).where(Failure.run_id == run.id))
        rows = [{**failure, "run_id": own_id} for failure in failures.mappings()]
        insert_new(target, Failure, rows)


def _copy_results(target: Connection, theirs: StoredRun, own_id: int) -> None:
    for table in RESULT_TABLES:
        target.execute(delete(table).where(table.run_id == own_id))
        insert_rows(target, table, theirs.rows(table, own_id))
    _copy_verdict(target, theirs, own_id)
    values = {name: theirs.run[name] for name in _KEPT_COLUMNS}
    target.execute(update(Run).where(Run.id == own_id).values({**values, "worker_id": None}))


def _copy_verdict(target: Connection, theirs: StoredRun, own_id: int) -> None:
    if theirs.verdict is not None and theirs.verdict_digest() == theirs.verdict["digest"]:
        insert_new(target, Verdict, [{**theirs.verdict, "run_id": own_id}])
        stored = select(Verdict.digest).where(Verdict.run_id == own_id).scalar_subquery()
        target.execute(update(Run).where(Run.id == own_id).values(verdict_digest=stored))


def _compare(target: Connection, theirs: StoredRun, own_id: int, merged: Merged) -> bool:
    """Compares two finished runs; whether they have the same results."""
    ours = read_run(target, own_id)
    differing = list(_differences(ours, theirs))
    if not differing:
        merged.same += 1
        _copy_verdict(target, theirs, own_id)
        return True
    matrix = "differs" if "confusion matrix" in differing else "is the same"
    merged.conflicts.append(
        f"run {own_id} (model seed {theirs.run['model_seed']}): {', '.join(differing)} differ, the "
        f"confusion matrix {matrix}"
    )
    return False


def _differences(ours: StoredRun, theirs: StoredRun) -> Iterator[str]:
    """What two runs' results differ in; weights only of epochs that both have kept."""
    if any(ours.run[name] != theirs.run[name] for name in ("tn", "fp", "fn", "tp")):
        yield "confusion matrix"
    for table in RESULT_TABLES:
        one, two = (stored.rows(table, 0) for stored in (ours, theirs))
        if table is Checkpoint:
            common = {row[1] for row in one} & {row[1] for row in two}
            one, two = ([row for row in rows if row[1] in common] for rows in (one, two))
        if one != two:
            yield "string_error" if table is ErrorPack else table.__tablename__


def _merge_sweeps(
    source: Connection, target: Connection, run_ids: dict[int, int], label: str, merged: Merged
) -> Iterator[int]:
    """Adds their sweeps to ours; the ids of those that changed."""
    for sweep in source.execute(select(Sweep.__table__).order_by(Sweep.id)).mappings().all():
        sweep_id = _sweep_here(target, dict(sweep), label, merged)
        theirs = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep["id"])
        members = [run_ids[run_id] for run_id in source.scalars(theirs)]
        insert_new(target, SweepRun, [{"sweep_id": sweep_id, "run_id": own} for own in members])
        yield sweep_id


def _sweep_here(target: Connection, sweep: dict[str, Any], label: str, merged: Merged) -> int:
    known = dict(target.execute(select(Sweep.name, Sweep.spec)).all())
    name, spec = sweep["name"], sweep["spec"]
    number = 1
    while name in known and known[name] != spec:
        number += 1
        name = f"{sweep['name']} ({label if number == 2 else f'{label} {number - 1}'})"
        spec = canonical_json({**json.loads(sweep["spec"]), "name": name})
    if name != sweep["name"]:
        merged.renamed[sweep["name"]] = name
    if name in known:
        return target.scalars(select(Sweep.id).where(Sweep.name == name)).one()
    values = {"name": name, "spec": spec, "description": sweep["description"]}
    row = insert(Sweep).values(
        **values,
        created_at=now(),
        state=SweepState.STOPPED if sweep["state"] == "stopped" else SweepState.QUEUED,
        launch_token=uuid.uuid4().hex,
    )
    return inserted_id(target, row)


def _sweeps_with(target: Connection, run_ids: Any) -> set[int]:
    found: set[int] = set()
    for ids in chunks(run_ids):
        query = select(SweepRun.sweep_id).where(SweepRun.run_id.in_(ids))
        found |= set(target.scalars(query.distinct()))
    return found


def _label(other: Store) -> str:
    return Path(other.name).stem if other.path is None else other.path.stem
