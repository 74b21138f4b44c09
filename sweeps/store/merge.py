"""Taking over what another database holds: runs with results, sweeps, and what people wrote."""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, select, tuple_, update

from seqcls.text import canonical_json
from sweeps.processes import OnProgress
from sweeps.results import RANGE_COLUMNS
from sweeps.store.checks import read_config_of_key, read_spec
from sweeps.store.databases.engine import Store
from sweeps.store.databases.postgres import take_turns
from sweeps.store.databases.statements import (
    ConfigText,
    chunks,
    insert_new,
    insert_rows,
    insert_sweep,
    one_of,
    put_configs,
    queue_runs,
)
from sweeps.store.reads.stored import StoredRun, read_runs
from sweeps.store.reads.test_sets import stored_test_set
from sweeps.store.tables import (
    COUNTS,
    Checkpoint,
    Config,
    Failure,
    Run,
    RunState,
    Sweep,
    SweepRun,
    TestSetRow,
    VerdictRow,
)
from sweeps.store.writes.explained import copy_causes
from sweeps.store.writes.shortcuts import copy_shortcuts
from sweeps.store.writes.test_sets import copy_datasets, insert_test_strings

WRITTEN = ("title", "note", "tags", "archived_at")
"""What people write about a sweep."""


def candidate_names(name: str, label: str) -> Iterator[str]:
    """What something may be called here: as there, else with the name of its database."""
    yield name
    yield f"{name} ({label})"
    yield from (f"{name} ({label} {number})" for number in count(2))


# Taking over another database's runs with their results, many at a time.

Seeded = tuple[int, int]
"""What tells a run from all others: its configuration's id here and its model seed."""

_NOT_COPIED = {
    *("id", "config_id", "model_seed", "attempt", "failures", "worker_id", "verdict_digest"),
}
_KEPT_COLUMNS = [column.name for column in Run.__table__.columns if column.name not in _NOT_COPIED]


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


def merge_runs(
    source: Connection,
    target: Connection,
    config_ids: Mapping[int, int],
    merged: Merged,
    on_progress: OnProgress | None = None,
) -> dict[int, int]:
    """Adds all runs of the source; notes what became of each.

    Args:
        config_ids: the ids here of the configurations there; without those that are damaged, whose
            runs are so, too.

    Returns:
        The ids here of the runs there.
    """
    columns = select(Run.id, Run.config_id, Run.model_seed, Run.state).order_by(Run.id)
    runs = []
    for run in source.execute(columns):
        if run.config_id in config_ids:
            runs.append(run)
        else:
            merged.damaged.append(f"run {run.id} (model seed {run.model_seed})")
    digests = select(Config.id, TestSetRow.digest).join(
        TestSetRow, TestSetRow.id == Config.test_set_id
    )
    test_sets = dict(target.execute(digests).all())
    numbers: dict[int, int] = {}
    for some in chunks(runs):
        part = _RunsPart(source, target, merged)
        numbers |= part.merge({run.id: (config_ids[run.config_id], run) for run in some}, test_sets)
        if on_progress is not None:
            on_progress(len(numbers), len(runs))
    return numbers


class _RunsPart:
    """Takes over some runs, so few that their results may be in memory at once."""

    def __init__(self, source: Connection, target: Connection, merged: Merged) -> None:
        self._source = source
        self._target = target
        self._merged = merged

    def merge(
        self, theirs: Mapping[int, tuple[int, Any]], test_sets: Mapping[int, str | None]
    ) -> dict[int, int]:
        """Takes these runs over; their ids here.

        Args:
            theirs: by id there, the configuration's id here and the run's row there.
            test_sets: the digests of our configurations' test strings.
        """
        seeded = {
            their_id: (config_id, run.model_seed) for their_id, (config_id, run) in theirs.items()
        }
        before = self._here(seeded.values())
        new = [key for key in seeded.values() if key not in before]
        queue_runs(self._target, new)
        here = before | self._here(new)
        our_ids = {their_id: here[key][0] for their_id, key in seeded.items()}
        states = {their_id: before[key][1] for their_id, key in seeded.items() if key in before}
        done = [their_id for their_id, (_, run) in theirs.items() if run.state == RunState.DONE]
        waiting = [run_id for run_id in theirs if run_id not in set(done) and run_id not in states]
        self._merged.waiting += len(waiting)
        self._copy_failures({run_id: our_ids[run_id] for run_id in waiting})
        whole = {
            stored.run["id"]: stored
            for stored in read_runs(self._source, done)
            if self._is_whole(stored, test_sets.get(seeded[stored.run["id"]][0]))
        }
        known = [run_id for run_id in whole if states.get(run_id) == RunState.DONE]
        self._copy_results(
            {our_ids[run_id]: whole[run_id] for run_id in whole if run_id not in set(known)}
        )
        self._compare({our_ids[run_id]: whole[run_id] for run_id in known})
        return our_ids

    def _here(self, seeded: Collection[Seeded]) -> dict[Seeded, tuple[int, str]]:
        """Those of these runs that are here, with id and state."""
        if not seeded:
            return {}
        wanted = tuple_(Run.config_id, Run.model_seed).in_(list(seeded))
        query = select(Run.config_id, Run.model_seed, Run.id, Run.state).where(wanted)
        rows = self._target.execute(query.order_by(Run.id).with_for_update(key_share=True))
        return {(row.config_id, row.model_seed): (row.id, row.state) for row in rows}

    def _is_whole(self, theirs: StoredRun, test_set: str | None) -> bool:
        """Whether results are as they were written, on the strings that are tested here."""
        if theirs.misfit() is None and theirs.test_set == test_set:
            return True
        run = theirs.run
        self._merged.damaged.append(f"run {run['id']} (model seed {run['model_seed']})")
        return False

    def _copy_failures(self, our_ids: Mapping[int, int]) -> None:
        """Failed runs fail here too; by their ids there, those here."""
        failed = select(Run.__table__).where(one_of(Run.id, our_ids), Run.state == RunState.FAILED)
        names = ("state", "attempt", "failures", "started_at", "finished_at", "error")
        rows = self._source.execute(failed).mappings().all()
        self._update([(our_ids[row["id"]], {name: row[name] for name in names}) for row in rows])
        query = select(Failure.__table__).where(one_of(Failure.run_id, [row["id"] for row in rows]))
        failures = self._source.execute(query).mappings()
        insert_new(
            self._target, Failure, [{**row, "run_id": our_ids[row["run_id"]]} for row in failures]
        )

    def _copy_results(self, runs: Mapping[int, StoredRun]) -> None:
        """Stores results of runs; by their ids here."""
        self._target.execute(delete(Checkpoint).where(one_of(Checkpoint.run_id, runs)))
        weights = [(x, *one) for x, run in runs.items() for one in run.checkpoints.items()]
        insert_rows(self._target, Checkpoint, weights)
        self._update(
            [
                (our_id, {"worker_id": None, **{name: stored.run[name] for name in _KEPT_COLUMNS}})
                for our_id, stored in runs.items()
            ]
        )
        self._copy_verdicts(runs)
        self._copy_causes(runs)
        self._merged.results += len(runs)

    def _copy_verdicts(self, runs: Mapping[int, StoredRun]) -> None:
        """Adds exhaustive checks that fit their digest, where there is none here."""
        checks = [
            {**stored.verdict, "run_id": our_id}
            for our_id, stored in runs.items()
            if stored.verdict is not None and stored.verdict_digest() == stored.verdict["digest"]
        ]
        insert_new(self._target, VerdictRow, checks)
        kept = select(VerdictRow.run_id, VerdictRow.digest).where(
            one_of(VerdictRow.run_id, [check["run_id"] for check in checks])
        )
        rows = self._target.execute(kept).all()
        self._update([(run_id, {"verdict_digest": digest}) for run_id, digest in rows])

    def _copy_causes(self, runs: Mapping[int, StoredRun]) -> None:
        our_ids = {stored.run["id"]: our_id for our_id, stored in runs.items()}
        copy_causes(self._source, self._target, our_ids)

    def _update(self, changes: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        """Changes the same columns of several runs."""
        if changes:
            names: dict[str, Any] = {name: bindparam(f"new_{name}") for name in changes[0][1]}
            statement = update(Run).where(Run.id == bindparam("our_id")).values(names)
            rows = [
                {"our_id": run_id, **{f"new_{name}": value for name, value in values.items()}}
                for run_id, values in changes
            ]
            self._target.execute(statement, rows)

    def _compare(self, runs: Mapping[int, StoredRun]) -> None:
        """Notes what results of runs that are finished here too differ in; by ids here."""
        same: dict[int, StoredRun] = {}
        for ours in read_runs(self._target, list(runs)):
            our_id = ours.run["id"]
            differing = list(_differences(ours, runs[our_id]))
            if not differing:
                same[our_id] = runs[our_id]
                continue
            matrix = "differs" if "confusion matrix" in differing else "is the same"
            self._merged.conflicts.append(
                f"run {our_id} (model seed {ours.run['model_seed']}): {', '.join(differing)} "
                f"differ, the confusion matrix {matrix}"
            )
        self._merged.same += len(same)
        self._copy_verdicts(same)
        self._copy_causes(same)


def _differences(ours: StoredRun, theirs: StoredRun) -> Iterator[str]:
    """What two runs' results differ in; weights only of epochs that both have kept."""
    for columns, what in (
        (COUNTS, "confusion matrix"),
        (RANGE_COLUMNS, "counts on trained and longer lengths"),
        (("losses",), "losses"),
        (("lengths",), "results by length"),
        (("errors",), "misclassified strings"),
    ):
        if any(ours.run[name] != theirs.run[name] for name in columns):
            yield what
    common = ours.checkpoints.keys() & theirs.checkpoints.keys()
    if any(ours.checkpoints[epoch] != theirs.checkpoints[epoch] for epoch in common):
        yield "weights"


def merge(store: Store, other: Store, on_progress: OnProgress | None = None) -> Merged:
    """Adds the sweeps, runs and results of another database, in one transaction.

    A run is known by its configuration and model seed. Where both have its results, those that
    were here stay; so does what is written about a sweep.
    """
    merged = Merged()
    with other.begin() as source, store.change("configs", "members") as target:
        take_turns(target)
        copy_datasets(source, target)
        config_ids = _merge_configs(source, target)
        run_ids = merge_runs(source, target, config_ids, merged, on_progress)
        _merge_sweeps(source, target, run_ids, _label(other), merged)
    return merged


def _merge_configs(source: Connection, target: Connection) -> dict[int, int]:
    """The ids here of the configurations there, without those that are damaged."""
    test_sets = source.execute(select(TestSetRow.__table__).order_by(TestSetRow.id)).all()
    columns = (Config.id, Config.key, Config.json, TestSetRow.key.label("test_set"))
    query = select(*columns).outerjoin(TestSetRow, TestSetRow.id == Config.test_set_id)
    theirs = source.execute(query.order_by(Config.id)).all()
    theirs = [row for row in theirs if _is_config(row.json, row.key)]
    texts = [ConfigText(row.key, row.json, row.test_set) for row in theirs]
    ours = put_configs(target, {row.key: row.json for row in test_sets}, texts)
    _merge_strings(source, target, test_sets)
    copy_shortcuts(source, target)
    return {row.id: ours[row.key] for row in theirs}


def _is_config(text: str, key: str) -> bool:
    try:
        read_config_of_key(text, key)
    except ValueError:
        return False
    return True


def _merge_strings(
    source: Connection, target: Connection, theirs: Sequence[Row[*tuple[Any, ...]]]
) -> None:
    """Adds the strings of their test sets to those of ours that have none."""
    empty = select(TestSetRow.key, TestSetRow.id).where(TestSetRow.digest.is_(None))
    without = dict(target.execute(empty.with_for_update()).all())
    for row in theirs:
        if row.digest is None or row.key not in without:
            continue
        strings = stored_test_set(source, row.id)
        # Of damaged strings nothing is taken over; nor of the runs that were tested on them.
        if strings.digest == row.digest:
            of_set = TestSetRow.id == without[row.key]
            target.execute(update(TestSetRow).where(of_set).values(digest=row.digest))
            insert_test_strings(target, without[row.key], strings)


def _merge_sweeps(
    source: Connection, target: Connection, run_ids: dict[int, int], label: str, merged: Merged
) -> None:
    """Adds their sweeps to ours, and what is written about them."""
    for sweep in source.execute(select(Sweep.__table__).order_by(Sweep.id)).mappings().all():
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
        here = target.execute(select(Sweep.__table__).where(Sweep.name == name)).mappings().one()
        # What is written here stays.
        kept = here if any(here[x] for x in ("title", "note", "archived_at")) else sweep
        tags = sorted({*json.loads(here["tags"]), *json.loads(sweep["tags"])})
        written = {x: kept[x] for x in WRITTEN} | {"tags": canonical_json(tags)}
        target.execute(update(Sweep).where(Sweep.id == here["id"]).values(written))
        return int(here["id"])
    written = {name: sweep[name] for name in ("stopped_at", *WRITTEN)}
    return insert_sweep(target, name, sweep["description"], spec, **written)


def _label(other: Store) -> str:
    return Path(other.name).stem if other.path is None else other.path.stem
