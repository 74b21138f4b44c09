"""Runs as one frame, on which every table, share and comparison of runs rests.

The database selects sweeps, seeds and configurations; the outcome of each run, by two thresholds,
is computed here. The frame is cached until the database changes, so that a page with dozens of
queries reads its runs once. While a sweep is in training, the database changes with every group
that ends, and only the runs that ended are read: see `_read_changed`.
"""

import json
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from weakref import WeakKeyDictionary

import numpy as np
import pandas as pd
from sqlalchemy import Connection, Engine, func, select

from sweeps.results import GENERALIZING, RANGE_COLUMNS, Outcome, ProofResult
from sweeps.store.database import Store
from sweeps.store.reads.selection import Selection, in_scope
from sweeps.store.reads.stored import tested_lengths
from sweeps.store.statements import one_of, read
from sweeps.store.tables import (
    COUNTS,
    Finding,
    FindingKind,
    Revision,
    Run,
    RunState,
    Sweep,
    SweepRun,
)

NUMBERS = (
    *("epochs", "best_epoch", *COUNTS, "solved_length"),
    *(name for name in RANGE_COLUMNS if name != "within_from"),
)
"""Columns of whole numbers in a run's results, missing where it is not done."""

_COLUMNS = ("config_id", "model_seed", "state", *NUMBERS, "within_from")

_SHARES = {"accuracy": "", "accuracy_within": "_within", "accuracy_beyond": "_beyond"}

MOST_BY_ID = 1000
"""The number of runs up to which rows of other tables are selected by run id; beyond, all are read.
"""

MOST_CACHED = 8
"""The number of cached frames of a database: a page uses a few scopes."""

MOST_JUDGED = 4
"""The number of selections of one scope whose frames are cached."""

EVERY = Selection()


def runs(store: Store, selection: Selection = EVERY, also: Sequence[str] = ()) -> pd.DataFrame:
    """One row a run in scope, in the order of ids.

    Args:
        store: the database; within a block of `Store.read`, its snapshot is used.
        selection: the runs; rows that it does not pick are included, too.
        also: further columns of the table.

    Returns:
        run_id, config_id, model_seed, state, `NUMBERS` and within_from, as in the table; the
        columns of `also`; accuracy, accuracy_within and accuracy_beyond in [0, 1], on the whole
        test, on trained and on longer lengths (missing without such strings); every_length, the
        result of the proof that it is right on every string (one of `ProofResult`), and refuted_by,
        a string (missing where no proof is stored, or the test contradicts it); outcome, one of
        `Outcome` (missing where it is not done); the booleans learned (missing where unknown),
        failing and picked.
    """
    scope = replace(selection, below=1.0, learned_at=0.0, failing=False, outcomes=())
    with store.read() as db:
        cached = _bring_up_to_date(db, scope, tuple(also))
    if (judged := cached.judged.get(selection)) is None:
        judged = cached.judged[selection] = _judge(cached.table, selection)
        for old in list(cached.judged)[:-MOST_JUDGED]:
            cached.judged.pop(old, None)
    # Callers add columns, which must not reach the cached frame.
    return judged.copy(deep=False)


@dataclass(frozen=True, eq=False)
class CachedRuns:
    """Runs in scope, read at one state of the database."""

    state: tuple[object, ...]
    whole_at: float
    """The time of the last full read, by the clock of `time.monotonic`."""
    table: pd.DataFrame
    judged: dict[Selection, pd.DataFrame] = field(default_factory=dict)
    """The table with outcomes, by selection."""


Frames = dict[tuple[Selection, tuple[str, ...]], CachedRuns]
"""Cached frames by scope and further columns. Replaced and never mutated, since the pages of
several visitors read it at the same time."""

# Weak keys: frames are freed with the engine of a database that is no longer used.
_cache: WeakKeyDictionary[Engine, Frames] = WeakKeyDictionary()

CHECKED_SECONDS = 60.0
"""The age at which all rows are read again: results that are edited by hand appear within a minute,
even while a sweep is in training.
"""


def _bring_up_to_date(db: Connection, scope: Selection, also: tuple[str, ...]) -> CachedRuns:
    """The runs in scope at the present state of the database."""
    state, cached = _state_of(db), _cache.get(db.engine, {})
    before = cached.get((scope, also))
    if before is not None and before.state == state:
        return before
    # A page queries all runs of a task, and those of some of its configurations.
    every = cached.get((replace(scope, config_ids=None), also))
    if every is not None and every.state == state:
        ours = every.table["config_id"].isin(scope.config_ids or ())
        now = CachedRuns(state, every.whole_at, every.table[ours].reset_index(drop=True))
    # Tables with more columns are read as a whole.
    elif before and not also and (changed := _find_changed(db, scope, before, state)):
        table = _read_changed(db, scope, before.table, changed)
        now = CachedRuns(state, before.whole_at, table)
    else:
        now = CachedRuns(state, time.monotonic(), _with_proofs(db, _read(db, scope, also)))
    others = {key: own for key, own in cached.items() if key != (scope, also)}
    # With the new one these are MOST_CACHED again.
    latest = list(others.items())[1 - MOST_CACHED :]
    _cache[db.engine] = {**dict(latest), (scope, also): now}
    return now


def _find_changed(
    db: Connection, scope: Selection, before: CachedRuns, state: tuple[object, ...]
) -> set[int]:
    """The ids of the runs that training has changed; empty if other runs may have changed, too.

    Training changes only runs that are not done. If the number of finished runs is accounted for by
    these, and neither sweeps nor configurations changed, then earlier finished rows are unchanged.
    """
    # Items of the state: revisions of configurations, members and runs; then inode, size and time.
    same_file = before.state[:2] == state[:2] and before.state[3:4] == state[3:4]
    if not same_file or time.monotonic() - before.whole_at >= CHECKED_SECONDS:
        return set()
    left = before.table[before.table["state"] != RunState.DONE]
    known = dict(zip(left["run_id"], left["state"], strict=True))
    query = select(Run.id, Run.state).where(in_scope(scope), Run.state != RunState.DONE)
    unfinished = dict(db.execute(query).all())
    counted = select(func.count(Run.id)).where(in_scope(scope), Run.state == RunState.DONE)
    others = {x for x, now in unfinished.items() if known.get(x) != now}
    ended = known.keys() - unfinished.keys()
    ended_here = len(before.table) - len(known) + len(ended)
    explained = db.scalar(counted) == ended_here and others <= known.keys()
    return others | ended if explained else set()


def _read_changed(
    db: Connection, scope: Selection, table: pd.DataFrame, changed: Collection[int]
) -> pd.DataFrame:
    """The table with these runs read again, and the proofs of all."""
    rows, columns = table["run_id"].isin(list(changed)).to_numpy(), {}
    if rows.any():
        new = _read(db, replace(scope, run_ids=tuple(table["run_id"][rows].tolist())), ())
        for name in new:
            # A column that had no values so far had no type either.
            known = table[name].dtype != object
            column = table[name].astype(table[name].dtype if known else new[name].dtype)
            columns[name] = column.copy()
            columns[name].array[rows] = new[name].astype(column.dtype).array
    return _with_proofs(db, table.assign(**{str(x): y for x, y in columns.items()}))


def finished_runs(store: Store, selection: Selection = EVERY) -> pd.DataFrame:
    """The runs in scope that are done."""
    found = runs(store, selection)
    return found[found["state"] == RunState.DONE]


def _state_of(db: Connection) -> tuple[object, ...]:
    """The state of the database: its revision, and the inode, size and time of its file."""
    revision = tuple(db.execute(select(Revision.configs, Revision.members, Revision.runs)).one())
    if db.dialect.name != "sqlite":
        return revision
    _, _, path = db.exec_driver_sql("PRAGMA database_list").fetchall()[0]
    try:
        status = Path(path).stat()
    except OSError:
        # The file is gone by now; nothing read from it is reused.
        return (*revision, object())
    return (*revision, status.st_ino, status.st_size, status.st_mtime_ns)


def _read(db: Connection, scope: Selection, also: Sequence[str]) -> pd.DataFrame:
    columns = [getattr(Run, name) for name in dict.fromkeys((*_COLUMNS, *also))]
    query = select(Run.id.label("run_id"), *columns).where(in_scope(scope)).order_by(Run.id)
    table = read(db, query).astype(dict.fromkeys(NUMBERS, "Int64"))
    for name, suffix in _SHARES.items():
        tested, wrong = (table[f"{x}{suffix}"].astype("Float64") for x in ("tested", "wrong"))
        # A quotient, which compares exactly with thresholds: 99 of 100 is 0.99, while in floats
        # 0.07 times 100 is more than 7.
        table[name] = ((tested - wrong) / tested.where(tested > 0)).astype("float64")
    return table


def _with_proofs(db: Connection, table: pd.DataFrame) -> pd.DataFrame:
    query = select(Finding.run_id, Finding.json)
    query = query.where(Finding.kind == FindingKind.PROOF, Finding.number == 1)
    if len(table) <= MOST_BY_ID:
        query = query.where(one_of(Finding.run_id, table["run_id"].tolist()))
    proofs = {run_id: json.loads(text) for run_id, text in db.execute(query)}
    result, string = (
        table["run_id"].map({x: y[name] for x, y in proofs.items()}).astype("string")
        for name in ("result", "string")
    )
    # A stored proof is ignored if the test found an error.
    holds = ~(result.eq(ProofResult.PROVED) & (table["wrong"].fillna(0) > 0)).fillna(False)
    return table.assign(every_length=result.where(holds), refuted_by=string.where(holds))


def _judge(table: pd.DataFrame, selection: Selection) -> pd.DataFrame:
    """Runs with their outcomes, decided on trained lengths first and only then on longer ones."""
    done = table["state"] == RunState.DONE
    proved = table["every_length"].eq(ProofResult.PROVED).fillna(False).astype(bool)
    within, beyond = table["accuracy_within"], table["accuracy_beyond"]
    # The first condition that holds decides: trained lengths come before longer ones.
    found = np.select(
        [
            proved,
            within.isna(),
            within < selection.learned_at,
            beyond.isna(),
            beyond < selection.below,
        ],
        [
            Outcome.AT_EVERY_LENGTH.value,
            Outcome.NOT_KNOWN.value,
            Outcome.NOT_LEARNED.value,
            Outcome.NOT_KNOWN.value,
            Outcome.FAILS_BEYOND.value,
        ],
        Outcome.GENERALIZES.value,
    )
    outcome = pd.Series(found, table.index, dtype="str").where(done)
    learned = pd.Series((within >= selection.learned_at) | proved, dtype="boolean")
    judged = table.assign(
        outcome=outcome,
        learned=learned.where(done & (within.notna() | proved)),
        failing=done & (table["accuracy"] < selection.below),
    )
    picked = pd.Series(True, judged.index)
    if selection.failing:
        picked &= judged["failing"]
    if selection.outcomes:
        # Runs that are right at every length generalize, too.
        every = (Outcome.AT_EVERY_LENGTH,) * (Outcome.GENERALIZES in selection.outcomes)
        picked &= judged["outcome"].isin([str(x) for x in (*selection.outcomes, *every)])
    return judged.assign(picked=picked)


def configurations(found: pd.DataFrame, *by: str) -> pd.DataFrame:
    """Counts and sums over runs: one row a configuration, or a group by other columns.

    Args:
        found: runs, as `runs` returns them.
        by: the grouping columns; `config_id` by default.

    Returns:
        These columns; seeds (done), unfinished, failed (in training); failing (of those done),
        picked (by the selection); judged (done, and known on trained lengths), learned (of those
        judged), judged_beyond (of those that learned, known on longer lengths), generalize (of
        those judged beyond); proved, refuted, undecided (of those done, by stored proofs);
        false_positives and false_negatives (strings, summed over the seeds; missing where no run is
        done).
    """
    done = found["state"] == RunState.DONE
    proof = found["every_length"].where(done)
    learned = found["learned"].fillna(False).astype(bool)
    beyond = (found["tested_beyond"].fillna(0) > 0) | (proof == ProofResult.PROVED).fillna(False)
    judged = {
        "judged": found["learned"].notna(),
        "learned": learned,
        "judged_beyond": learned & beyond.astype(bool),
        "generalize": found["outcome"].isin([str(x) for x in GENERALIZING]),
    }
    results = {"proved": "PROVED", "refuted": "REFUTED", "undecided": "NOT_DECIDED"}
    counts = {
        "seeds": done,
        "unfinished": found["state"].isin([RunState.QUEUED, RunState.RUNNING]),
        "failed": found["state"] == RunState.FAILED,
        "failing": found["failing"],
        "picked": found["picked"],
        **judged,
        **{name: (proof == ProofResult[result]).fillna(False) for name, result in results.items()},
    }
    sums = {"false_positives": found["fp"].where(done), "false_negatives": found["fn"].where(done)}
    columns = [found[name] for name in by or ("config_id",)]
    counted = pd.DataFrame(counts).astype("int64").groupby(columns).sum()
    # Cells of runs that are not done do not count.
    summed = pd.DataFrame(sums).groupby(columns).sum(min_count=1)
    return counted.join(summed).reset_index()


def shortest_tested(store: Store, config_ids: Collection[int]) -> dict[int, int]:
    """The length of the shortest tested string, by id of these configurations."""
    tested = tested_lengths(store, config_ids)
    return {config_id: int(rows[0, 0]) for config_id, rows in tested.items() if len(rows)}


def whole(found: pd.DataFrame) -> pd.DataFrame:
    """Runs with plain int64 in those columns of whole numbers where none is missing."""
    known = [x for x in found.columns if found[x].dtype == "Int64" and found[x].notna().all()]
    return found.astype(dict.fromkeys(known, "int64"))


def of_configurations(selection: Selection, config_ids: Collection[int]) -> Selection:
    """The selection restricted to these configurations."""
    both = set(config_ids)
    if selection.config_ids is not None:
        both &= set(selection.config_ids)
    return replace(selection, config_ids=tuple(sorted(both)))


def sweeps_of(store: Store, run_ids: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The names of the sweeps of each of these runs, oldest first, by run id."""
    query = select(SweepRun.run_id, Sweep.name).join(Sweep, Sweep.id == SweepRun.sweep_id)
    if len(run_ids) <= MOST_BY_ID:
        query = query.where(one_of(SweepRun.run_id, run_ids))
    names: dict[int, tuple[str, ...]] = {}
    for run_id, name in store.rows(query.order_by(Sweep.id)):
        names[run_id] = (*names.get(run_id, ()), name)
    return names
