"""Merging another database: runs with results, sweeps, and notes on them."""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, delete, inspect, select, tuple_, update

from seqcls.errors import SeqclsError
from seqcls.text import canonical_json
from sweeps.grid.spec import spec_as_written
from sweeps.processes import OnProgress
from sweeps.results import RECORDS, SUMMARY
from sweeps.store.database import Store, take_turns
from sweeps.store.findings import copy_findings
from sweeps.store.opening import open_reader, open_writer
from sweeps.store.reads.stored import StoredRun, read_config, read_runs
from sweeps.store.shortcuts import copy_shortcuts
from sweeps.store.statements import (
    chunks,
    insert_new,
    insert_rows,
    insert_sweep,
    one_of,
    put_configs,
    queue_runs,
)
from sweeps.store.tables import Checkpoint, Config, Run, RunState, Sweep, SweepRun, TestSetRow
from sweeps.store.test_sets import copy_datasets, put_test_strings, stored_test_set
from sweeps.store.writes.names import free_names

WRITTEN = ("title", "note", "tags", "archived_at")
"""Columns of a sweep that people write."""

OWN = ("id", "config_id", "model_seed", "worker_id")
COPIED = [column.name for column in Run.__table__.columns if column.name not in OWN]
"""Columns of a run that are copied."""

Seeded = tuple[int, int]
"""The identity of a run: its configuration's id in the target, and its model seed."""


@dataclass
class Merged:
    """The outcome of merging another database."""

    results: int = 0
    """Finished runs whose results were copied."""
    same: int = 0
    """Finished runs that were present already, with the same results."""
    waiting: int = 0
    """Unfinished or failed runs that were added."""
    conflicts: list[str] = field(default_factory=list)
    """Runs whose results differ; those of the target are unchanged."""
    damaged: list[str] = field(default_factory=list)
    """Runs that do not fit their digest, which are queued instead of copied; runs whose
    configuration and sweeps whose specification cannot be read, which are left out."""
    renamed: dict[str, str] = field(default_factory=dict)
    """New names of sweeps whose name means other runs in the target."""


def merge(store: Store, other: Store | str | Path, on_progress: OnProgress | None = None) -> Merged:
    """Adds the sweeps, runs and results of another database, in one transaction.

    A run is identified by its configuration and model seed. Where both have its results, those of
    the target are unchanged; so are its notes on sweeps.

    Raises:
        StoreError: one cannot be read, or the other not be written; nothing is copied.
    """
    store, other, merged = open_writer(store), open_reader(other), Merged()
    label = Path(other.name).stem if other.path is None else other.path.stem
    with other.read() as source, store.write("configs", "members") as target:
        take_turns(target)
        copy_datasets(source, target)
        config_ids = _merge_configs(source, target, label)
        copy_shortcuts(source, target)
        query = select(Run.id, Run.config_id, Run.model_seed).order_by(Run.id)
        theirs = source.execute(query).all()
        seeded = {x: (config_ids[y], seed) for x, y, seed in theirs if y in config_ids}
        merged.damaged += [_name(x, seed) for x, _, seed in theirs if x not in seeded]
        run_ids: dict[int, int] = {}
        # In chunks, whose results fit into memory.
        for some in chunks(seeded):
            run_ids |= _merge_runs(source, target, {x: seeded[x] for x in some}, merged)
            if on_progress is not None:
                on_progress(len(run_ids), len(seeded))
        _merge_sweeps(source, target, run_ids, label, merged)
    return merged


def _name(run_id: int, model_seed: int) -> str:
    return f"run {run_id} (model seed {model_seed})"


def _merge_configs(source: Connection, target: Connection, label: str) -> dict[int, int]:
    """Adds configurations and test sets; target ids by source id, without damaged ones.

    Args:
        label: the name of the other database.
    """
    test_sets = source.execute(select(inspect(TestSetRow).local_table)).all()
    keys = {row.id: row.key for row in test_sets}
    theirs = {}
    for row in source.execute(select(inspect(Config).local_table).order_by(Config.id)):
        try:
            read_config(row.json, row.key)
        except ValueError:
            continue
        theirs[row.id] = row
    sweeps = _first_sweeps(source)
    requested = {row.key: (row.name, sweeps.get(x, label)) for x, row in theirs.items()}
    names = free_names(target, requested)
    rows = {
        row.key: {
            "name": names[row.key],
            "json": row.json,
            "test_set_id": keys.get(row.test_set_id),
        }
        for row in theirs.values()
    }
    ours = put_configs(target, {row.key: row.json for row in test_sets}, rows)
    uncounted = (Config.key == bindparam("own")) & Config.num_parameters.is_(None)
    counted = update(Config).where(uncounted).values(num_parameters=bindparam("number"))
    numbers = [{"own": row.key, "number": row.num_parameters} for row in theirs.values()]
    if numbers:
        target.execute(counted, numbers)
    without = set(target.scalars(select(TestSetRow.key).where(TestSetRow.digest.is_(None))))
    for row in test_sets:
        if row.digest is not None and row.key in without:
            strings = stored_test_set(source, row.id)
            # Neither damaged strings nor the results of runs tested on them are copied.
            if strings.digest == row.digest:
                put_test_strings(target, row.key, strings)
    return {config_id: ours[row.key] for config_id, row in theirs.items()}


def _first_sweeps(source: Connection) -> dict[int, str]:
    """The name of the first sweep of each configuration, by id."""
    query = select(Run.config_id, Sweep.name).join(SweepRun, SweepRun.run_id == Run.id)
    # The latest first, so that the first sweep overwrites all others.
    query = query.join(Sweep, Sweep.id == SweepRun.sweep_id).order_by(Sweep.id.desc())
    return dict(source.execute(query).all())


def _merge_runs(
    source: Connection, target: Connection, seeded: Mapping[int, Seeded], merged: Merged
) -> dict[int, int]:
    """Copies runs, given by source id; returns their target ids by source id."""
    before = _runs_here(target, seeded.values())
    # Every run gets its row first; results that fit their digest are copied into it.
    queue_runs(target, [key for key in seeded.values() if key not in before])
    here = _runs_here(target, seeded.values())
    our_ids = {their_id: here[key][0] for their_id, key in seeded.items()}
    copied: list[StoredRun] = []
    known: dict[int, StoredRun] = {}
    for run in read_runs(source, list(seeded)):
        their_id, key = run.run["id"], seeded[run.run["id"]]
        our_id, state, test_set = here[key]
        if run.run["state"] != RunState.DONE:
            merged.waiting += key not in before
            if key not in before and run.run["state"] == RunState.FAILED:
                copied.append(run)
        elif run.misfit() is not None or run.test_set != test_set:
            merged.damaged.append(_name(their_id, run.run["model_seed"]))
        elif state != RunState.DONE:
            copied.append(run)
            merged.results += 1
        else:
            known[our_id] = run
    same = []
    for ours in read_runs(target, list(known)):
        theirs = known[ours.run["id"]]
        differing = [x for x in (*SUMMARY, *RECORDS) if ours.run[x] != theirs.run[x]]
        # Only epochs that both have stored.
        common = ours.checkpoints.keys() & theirs.checkpoints.keys()
        if any(ours.checkpoints[epoch] != theirs.checkpoints[epoch] for epoch in common):
            differing.append("weights")
        if not differing:
            same.append(theirs.run["id"])
        else:
            name = _name(ours.run["id"], ours.run["model_seed"])
            merged.conflicts.append(f"{name}: other {', '.join(differing)}")
    merged.same += len(same)
    new = {our_ids[run.run["id"]]: run for run in copied}
    target.execute(delete(Checkpoint).where(one_of(Checkpoint.run_id, new)))
    weights = [(x, *one) for x, run in new.items() for one in run.checkpoints.items()]
    insert_rows(target, Checkpoint, weights)
    if new:
        # Prefixed, since SQLAlchemy reserves the columns' own names in an UPDATE.
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in COPIED}
        changed = update(Run).where(Run.id == bindparam("our_id"))
        rows = [
            {"our_id": x, **{f"new_{name}": run.run[name] for name in COPIED}}
            for x, run in new.items()
        ]
        target.execute(changed.values({**values, "worker_id": None}), rows)
    matching = [*(run.run["id"] for run in copied), *same]
    copy_findings(source, target, {run_id: our_ids[run_id] for run_id in matching})
    return our_ids


def _runs_here(
    target: Connection, seeded: Collection[Seeded]
) -> dict[Seeded, tuple[int, str, str | None]]:
    """Id, state and digest of the test strings of those of these runs that the target has."""
    query = (
        select(Run.config_id, Run.model_seed, Run.id, Run.state, TestSetRow.digest)
        .join(Config, Config.id == Run.config_id)
        .outerjoin(TestSetRow, TestSetRow.id == Config.test_set_id)
        .where(tuple_(Run.config_id, Run.model_seed).in_(list(seeded)))
        .order_by(Run.id)
        .with_for_update(of=Run, key_share=True)
    )
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in target.execute(query)}


def _merge_sweeps(
    source: Connection, target: Connection, run_ids: dict[int, int], label: str, merged: Merged
) -> None:
    every = select(inspect(Sweep).local_table).order_by(Sweep.id)
    known = {row["name"]: row for row in target.execute(every).mappings()}
    for sweep in source.execute(every).mappings().all():
        try:
            spec_as_written(json.loads(sweep["spec"]))
        except (SeqclsError, ValueError, TypeError):
            merged.damaged.append(f"sweep {sweep['name']!r}")
            continue
        # Renamed where the name means other runs in the target.
        name, spec, numbers = sweep["name"], sweep["spec"], count(1)
        while name in known and known[name]["spec"] != spec:
            number = next(numbers)
            name = f"{sweep['name']} ({label}{f' {number}' * (number > 1)})"
            spec = canonical_json({**json.loads(sweep["spec"]), "name": name})
            merged.renamed[sweep["name"]] = name
        if name in known:
            here = known[name]
            sweep_id = here["id"]
            # Notes of the target take precedence.
            written: Any = here if any(here[x] for x in WRITTEN if x != "tags") else sweep
            tags = sorted({*json.loads(here["tags"]), *json.loads(sweep["tags"])})
            values = {**{x: written[x] for x in WRITTEN}, "tags": canonical_json(tags)}
            target.execute(update(Sweep).where(Sweep.id == sweep_id).values(values))
        else:
            others = {x: sweep[x] for x in (*WRITTEN, "stopped_at")}
            sweep_id = insert_sweep(target, name, sweep["description"], spec, **others)
        theirs = source.scalars(select(SweepRun.run_id).where(SweepRun.sweep_id == sweep["id"]))
        # Runs of a damaged file may have been left out.
        members = [{"sweep_id": sweep_id, "run_id": run_ids[x]} for x in theirs if x in run_ids]
        insert_new(target, SweepRun, members)
