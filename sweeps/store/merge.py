"""Taking over what another database holds: runs with results, sweeps, and what people wrote."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, bindparam, delete, inspect, select, tuple_, update

from seqcls.text import canonical_json
from sweeps.processes import OnProgress
from sweeps.results import RANGE_COLUMNS
from sweeps.store.checks import read_config_of_key, read_spec
from sweeps.store.database import Store, take_turns
from sweeps.store.findings import copy_findings
from sweeps.store.reads.stored import StoredRun, read_runs
from sweeps.store.reads.test_sets import stored_test_set
from sweeps.store.statements import (
    ConfigText,
    chunks,
    insert_new,
    insert_rows,
    insert_sweep,
    one_of,
    put_configs,
    queue_runs,
)
from sweeps.store.tables import (
    COUNTS,
    Checkpoint,
    Config,
    Run,
    RunState,
    Sweep,
    SweepRun,
    TestSetRow,
)
from sweeps.store.writes.shortcuts import copy_shortcuts
from sweeps.store.writes.test_sets import copy_datasets, insert_test_strings

WRITTEN = ("title", "note", "tags", "archived_at")
"""What people write about a sweep."""

_NOT_COPIED = {"id", "config_id", "model_seed", "attempt", "failures", "worker_id"}
_KEPT = [column.name for column in Run.__table__.columns if column.name not in _NOT_COPIED]

_COMPARED = {
    COUNTS: "confusion matrix",
    RANGE_COLUMNS: "counts on trained and longer lengths",
    ("losses",): "losses",
    ("lengths",): "results by length",
    ("errors",): "misclassified strings",
}
"""Columns of runs, and what they are."""

Seeded = tuple[int, int]
"""What tells a run from all others: its configuration's id here and its model seed."""


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
    """Runs that are not as they were written, which are queued here instead of taken over or, where
    their configuration is none, left out; and sweeps whose specification is none, left out too."""
    renamed: dict[str, str] = field(default_factory=dict)
    """Sweeps whose name means other runs here, and the name that they got."""


def merge(store: Store, other: Store, on_progress: OnProgress | None = None) -> Merged:
    """Adds the sweeps, runs and results of another database, in one transaction.

    A run is known by its configuration and model seed. Where both have its results, those that
    were here stay; so does what is written about a sweep.
    """
    merged = Merged()
    label = Path(other.name).stem if other.path is None else other.path.stem
    with other.read() as source, store.write("configs", "members") as target:
        take_turns(target)
        copy_datasets(source, target)
        config_ids = _merge_configs(source, target)
        run_ids: dict[int, int] = {}
        theirs = source.execute(select(Run.id, Run.config_id, Run.model_seed).order_by(Run.id))
        seeded = {}
        for run_id, config_id, seed in theirs:
            if config_id in config_ids:
                seeded[run_id] = config_ids[config_id], seed
            else:
                merged.damaged.append(f"run {run_id} (model seed {seed})")
        for some in chunks(seeded):
            run_ids |= _merge_runs(source, target, {x: seeded[x] for x in some}, merged)
            if on_progress is not None:
                on_progress(len(run_ids), len(seeded))
        _merge_sweeps(source, target, run_ids, label, merged)
    return merged


def _merge_configs(source: Connection, target: Connection) -> dict[int, int]:
    """The ids here of the configurations there, without those that are damaged."""
    test_sets = source.execute(select(inspect(TestSetRow).local_table)).all()
    columns = (Config.id, Config.key, Config.json, TestSetRow.key.label("test_set"))
    query = select(*columns).outerjoin(TestSetRow, TestSetRow.id == Config.test_set_id)
    theirs = source.execute(query.order_by(Config.id)).all()
    theirs = [row for row in theirs if _is_config(row.json, row.key)]
    texts = [ConfigText(row.key, row.json, row.test_set) for row in theirs]
    ours = put_configs(target, {row.key: row.json for row in test_sets}, texts)
    empty = select(TestSetRow.key, TestSetRow.id).where(TestSetRow.digest.is_(None))
    without = dict(target.execute(empty.with_for_update()).all())
    for row in test_sets:
        if row.digest is None or row.key not in without:
            continue
        strings = stored_test_set(source, row.id)
        # Of damaged strings nothing is taken over; nor of the runs that were tested on them.
        if strings.digest == row.digest:
            of_set = TestSetRow.id == without[row.key]
            target.execute(update(TestSetRow).where(of_set).values(digest=row.digest))
            insert_test_strings(target, without[row.key], strings)
    copy_shortcuts(source, target)
    return {row.id: ours[row.key] for row in theirs}


def _is_config(text: str, key: str) -> bool:
    try:
        read_config_of_key(text, key)
    except ValueError:
        return False
    return True


# Runs with their results, so few at a time that they may be in memory at once.


def _merge_runs(
    source: Connection, target: Connection, seeded: Mapping[int, Seeded], merged: Merged
) -> dict[int, int]:
    """Takes runs over, by their ids there; their ids here."""
    before = _runs_here(target, seeded.values())
    new = [key for key in seeded.values() if key not in before]
    queue_runs(target, new)
    here = before | _runs_here(target, new)
    our_ids = {their_id: here[key][0] for their_id, key in seeded.items()}
    results: list[StoredRun] = []
    failed: list[StoredRun] = []
    known: dict[int, StoredRun] = {}
    for run in read_runs(source, list(seeded)):
        key = seeded[run.run["id"]]
        our_id, state, test_set = here[key]
        if run.run["state"] != RunState.DONE:
            if key not in before:
                merged.waiting += 1
                failed += [run] * (run.run["state"] == RunState.FAILED)
        elif run.misfit() is not None or run.test_set != test_set:
            merged.damaged.append(f"run {run.run['id']} (model seed {run.run['model_seed']})")
        elif state == RunState.DONE:
            known[our_id] = run
        else:
            results.append(run)
    ids = [our_ids[run.run["id"]] for run in results]
    target.execute(delete(Checkpoint).where(one_of(Checkpoint.run_id, ids)))
    weights = [
        (x, *one) for x, run in zip(ids, results, strict=True) for one in run.checkpoints.items()
    ]
    insert_rows(target, Checkpoint, weights)
    _update_runs(target, results, our_ids, _KEPT)
    _update_runs(target, failed, our_ids, [*_KEPT, "attempt", "failures"])
    same = _compare(target, known, merged)
    copied = [run.run["id"] for run in (*results, *failed, *same)]
    copy_findings(source, target, {run_id: our_ids[run_id] for run_id in copied})
    merged.results += len(results)
    merged.same += len(same)
    return our_ids


def _runs_here(
    target: Connection, seeded: Collection[Seeded]
) -> dict[Seeded, tuple[int, str, str | None]]:
    """Those of these runs that are here, with id, state and the digest of their test strings."""
    query = (
        select(Run.config_id, Run.model_seed, Run.id, Run.state, TestSetRow.digest)
        .join(Config, Config.id == Run.config_id)
        .outerjoin(TestSetRow, TestSetRow.id == Config.test_set_id)
        .where(tuple_(Run.config_id, Run.model_seed).in_(list(seeded)))
        .order_by(Run.id)
        .with_for_update(of=Run, key_share=True)
    )
    return {(row[0], row[1]): (row[2], row[3], row[4]) for row in target.execute(query)}


def _update_runs(
    target: Connection, runs: Sequence[StoredRun], our_ids: Mapping[int, int], names: Sequence[str]
) -> None:
    """Has runs here be as they are there in these columns, and nobody's."""
    if runs:
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in names}
        changed = (
            update(Run).where(Run.id == bindparam("our_id")).values({**values, "worker_id": None})
        )
        rows = [{f"new_{name}": run.run[name] for name in names} for run in runs]
        ids = [{"our_id": our_ids[run.run["id"]]} for run in runs]
        target.execute(changed, [{**row, **own} for row, own in zip(rows, ids, strict=True)])


def _compare(
    target: Connection, theirs: Mapping[int, StoredRun], merged: Merged
) -> list[StoredRun]:
    """Those of these runs, by ids here, that have the same results here; notes what differs."""
    same = []
    for ours in read_runs(target, list(theirs)):
        our_id = ours.run["id"]
        differing = list(_differences(ours, theirs[our_id]))
        if not differing:
            same.append(theirs[our_id])
            continue
        matrix = "differs" if "confusion matrix" in differing else "is the same"
        merged.conflicts.append(
            f"run {our_id} (model seed {ours.run['model_seed']}): {', '.join(differing)} "
            f"differ, the confusion matrix {matrix}"
        )
    return same


def _differences(ours: StoredRun, theirs: StoredRun) -> Iterator[str]:
    """What two runs' results differ in; weights only of epochs that both have kept."""
    for columns, what in _COMPARED.items():
        if any(ours.run[name] != theirs.run[name] for name in columns):
            yield what
    common = ours.checkpoints.keys() & theirs.checkpoints.keys()
    if any(ours.checkpoints[epoch] != theirs.checkpoints[epoch] for epoch in common):
        yield "weights"


# Sweeps, and what is written about them.


def _merge_sweeps(
    source: Connection, target: Connection, run_ids: dict[int, int], label: str, merged: Merged
) -> None:
    for sweep in source.execute(select(inspect(Sweep).local_table).order_by(Sweep.id)).mappings():
        try:
            read_spec(sweep["spec"])
        except ValueError:
            merged.damaged.append(f"sweep {sweep['name']!r}")
            continue
        sweep_id = _sweep_here(target, dict(sweep), label, merged)
        theirs = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep["id"])
        # Of a damaged file some may be left out.
        members = [run_ids[run_id] for run_id in source.scalars(theirs) if run_id in run_ids]
        insert_new(
            target, SweepRun, [{"sweep_id": sweep_id, "run_id": run_id} for run_id in members]
        )


def _sweep_here(target: Connection, sweep: dict[str, Any], label: str, merged: Merged) -> int:
    """The sweep's id here; its name is another where it means other runs here."""
    known = {
        row["name"]: row for row in target.execute(select(inspect(Sweep).local_table)).mappings()
    }
    name, spec = sweep["name"], sweep["spec"]
    numbers = count(1)
    while name in known and known[name]["spec"] != spec:
        number = next(numbers)
        name = f"{sweep['name']} ({label}{f' {number}' * (number > 1)})"
        spec = canonical_json({**json.loads(sweep["spec"]), "name": name})
        merged.renamed[sweep["name"]] = name
    written = {x: sweep[x] for x in WRITTEN}
    if (here := known.get(name)) is None:
        written["stopped_at"] = sweep["stopped_at"]
        return insert_sweep(target, name, sweep["description"], spec, **written)
    if any(here[x] for x in ("title", "note", "archived_at")):
        # What is written here stays.
        written = {x: here[x] for x in WRITTEN}
    tags = sorted({*json.loads(here["tags"]), *json.loads(sweep["tags"])})
    written["tags"] = canonical_json(tags)
    target.execute(update(Sweep).where(Sweep.id == here["id"]).values(written))
    return int(here["id"])
