"""Taking over what another database holds."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, select, update

from seqcls.canonical import canonical_json
from sweeps.on_progress import OnProgress
from sweeps.store.databases.engine import Store
from sweeps.store.databases.postgres import take_turns
from sweeps.store.databases.statements import (
    chunks,
    insert_new,
    insert_sweep,
    sweeps_of,
    update_states,
)
from sweeps.store.merging.notes import candidate_names, merge_notes, merge_views
from sweeps.store.merging.runs import Merged, merge_runs
from sweeps.store.results.datasets import copy_datasets
from sweeps.store.results.stored import config_with_key
from sweeps.store.results.test_sets import insert_test_strings, stored_test_set
from sweeps.store.schema.tables import Config, Sweep, SweepRun, SweepState, TestSet


def merge(store: Store, other: Store, on_progress: OnProgress | None = None) -> Merged:
    """Adds the sweeps, runs and results of another database, in one transaction.

    A run is known by its configuration and model seed. Where both have its results, those that
    were here stay; so does what is written about a sweep.

    Args:
        store: where they are added.
        other: what is taken over.
        on_progress: called with the number of runs looked at, and of all runs.
    """
    merged = Merged()
    with other.begin() as source, store.change("configs", "members") as target:
        take_turns(target)
        copy_datasets(source, target)
        config_ids = _merge_configs(source, target)
        run_ids = merge_runs(source, target, config_ids, merged, on_progress)
        sweep_ids = dict(_merge_sweeps(source, target, run_ids, _label(other), merged))
        changed = {x for ids in chunks(run_ids.values()) for x in sweeps_of(target, ids)}
        update_states(target, {*sweep_ids.values(), *changed})
        merge_notes(source, target, sweep_ids)
        numbers = {"run": run_ids, "beside": run_ids, "config": config_ids, "sweep_id": sweep_ids}
        merge_views(source, target, numbers, merged.renamed, _label(other))
    return merged


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
        if config_with_key(row.id, row.key, row.json)
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
            of_set = TestSet.id == without[row.key]
            target.execute(update(TestSet).where(of_set).values(digest=row.digest))
            insert_test_strings(target, without[row.key], strings)


def _merge_sweeps(
    source: Connection, target: Connection, run_ids: dict[int, int], label: str, merged: Merged
) -> Iterator[tuple[int, int]]:
    """Adds their sweeps to ours; the id of each there and here."""
    for sweep in source.execute(select(Sweep.__table__).order_by(Sweep.id)).mappings().all():
        sweep_id = _sweep_here(target, dict(sweep), label, merged)
        theirs = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep["id"])
        # Of a damaged file some may be left out.
        members = [run_ids[run_id] for run_id in source.scalars(theirs) if run_id in run_ids]
        insert_new(
            target, SweepRun, [{"sweep_id": sweep_id, "run_id": run_id} for run_id in members]
        )
        yield sweep["id"], sweep_id


def _sweep_here(target: Connection, sweep: dict[str, Any], label: str, merged: Merged) -> int:
    known = dict(target.execute(select(Sweep.name, Sweep.spec)).all())
    for name in candidate_names(sweep["name"], label):
        spec = sweep["spec"]
        if name != sweep["name"]:
            spec = canonical_json({**json.loads(spec), "name": name})
        if known.get(name, spec) == spec:
            break
    if name != sweep["name"]:
        merged.renamed[sweep["name"]] = name
    if name in known:
        return target.scalars(select(Sweep.id).where(Sweep.name == name)).one()
    stopped = sweep["state"] == SweepState.STOPPED
    state = SweepState.STOPPED if stopped else SweepState.QUEUED
    return insert_sweep(target, name, sweep["description"], spec, state=state)


def _label(other: Store) -> str:
    return Path(other.name).stem if other.path is None else other.path.stem
