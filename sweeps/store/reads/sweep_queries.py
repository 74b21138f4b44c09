"""Reads of sweeps: their specifications, members, states and progress."""

import json
import numbers
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlalchemy import and_, case, func, select

from seqcls.errors import UnknownRunError
from seqcls.text import nearest
from sweeps.grid.spec import SweepSpec
from sweeps.records import read_rows
from sweeps.results import FINDINGS, OutcomeCounts
from sweeps.store.database import Store
from sweeps.store.reads import frames
from sweeps.store.reads.selection import Selection, as_list
from sweeps.store.reads.stored import config_of
from sweeps.store.reads.workers import dead_workers
from sweeps.store.statements import frame, in_another_sweep, one_of
from sweeps.store.tables import (
    Config,
    Finding,
    FindingKind,
    Run,
    RunState,
    Sweep,
    SweepRun,
    SweepState,
    now,
)

if TYPE_CHECKING:
    import pandas as pd


def find_sweep(store: Store, name: str) -> int:
    """The id of the sweep of that name.

    Raises:
        UnknownRunError: there is none.
    """
    if not isinstance(name, str):
        raise UnknownRunError(f"no sweep {name!r:.60}: expected the name of a sweep")
    sweep_id = store.value(select(Sweep.id).where(Sweep.name == name))
    if sweep_id is None:
        known = store.column(select(Sweep.name).order_by(Sweep.id))
        raise UnknownRunError(f"no sweep {name!r} in {store.name!r}: {nearest(name, known)}")
    return int(sweep_id)


def sweeps_that_begin(store: Store, text: str) -> list[str]:
    """The names of the sweeps that a text names as a whole, or before a colon."""
    # Texts have few colons: each candidate is looked up, and not all names are read.
    heads = [text, *(text[:place] for place, sign in enumerate(text) if sign == ":")]
    return store.column(select(Sweep.name).where(Sweep.name.in_(heads)))


Sweeps = str | int | Iterable[str | int]
"""The name or id of one sweep, or those of several."""


def sweep_ids(store: Store, sweeps: Sweeps) -> list[int]:
    """The ids of these sweeps.

    Raises:
        UnknownRunError: there is no sweep of such a name or id.
    """
    names, found = sweep_names(store), []
    for sweep in as_list(sweeps):
        # In Python True is an integer, too, and would denote the sweep with the id 1.
        if not isinstance(sweep, numbers.Integral) or isinstance(sweep, bool):
            found.append(find_sweep(store, sweep))
        elif sweep in names:
            found.append(int(sweep))
        else:
            raise UnknownRunError(f"no sweep with the id {sweep} in {store.name!r}")
    return found


def ids_or_all(store: Store, sweeps: Sweeps | None) -> list[int] | None:
    """The ids of these sweeps; None for None, which denotes all."""
    return None if sweeps is None else sweep_ids(store, sweeps)


def leaving_runs(store: Store, spec: SweepSpec) -> dict[int, bool]:
    """The runs that leave a sweep once this specification is submitted under its name.

    Returns:
        By run id, True if the run is deleted: it has not begun, and no other sweep has it.
    """
    is_new = and_(Run.state == RunState.QUEUED, Run.attempt == 0, ~in_another_sweep())
    members = (
        select(Run.id, Config.key, Run.model_seed, case((is_new, 1), else_=0))
        .join(SweepRun, SweepRun.run_id == Run.id)
        .join(Sweep, Sweep.id == SweepRun.sweep_id)
        .join(Config, Config.id == Run.config_id)
        .where(Sweep.name == spec.name, Sweep.spec != spec.submitted)
        .order_by(Run.id)
    )
    rows = store.rows(members)
    if not rows:
        return {}
    requested = [(config.key, seeds) for config, seeds in spec.members()]
    # One set for all configurations with the same seeds, however many these are.
    sets = {seeds: frozenset(seeds) for _, seeds in requested}
    seeds_of = {key: sets[seeds] for key, seeds in requested}
    return {x: bool(new) for x, key, seed, new in rows if seed not in seeds_of.get(key, ())}


def missing_runs(store: Store, specs: Iterable[SweepSpec]) -> int | None:
    """Number of runs of these sweeps that are not done; None if a sweep is not stored like this."""
    left = 0
    for spec in specs:
        same = (Sweep.name == spec.name) & (Sweep.spec == spec.submitted)
        if (sweep_id := store.value(select(Sweep.id).where(same))) is None:
            return None
        ((*_, runs),) = states(store, [sweep_id])
        left += sum(runs.values()) - runs[RunState.DONE]
    return left


HAS_UNTIL = Sweep.spec.contains('"until":"').label("grows")
"""The condition that a sweep has `until`. Quotes within JSON strings are escaped, so that this
matches the key alone."""


def sweeps_to_grow(store: Store, sweep_ids: Sequence[int] | None = None) -> dict[int, str]:
    """The specifications, as JSON by id, of finished sweeps with `until`."""
    query = select(Sweep.id, Sweep.spec).where(HAS_UNTIL)
    if sweep_ids is not None:
        query = query.where(Sweep.id.in_(sweep_ids))
    specs = dict(store.rows(query))
    ended = [x for x, _, state, _ in states(store, list(specs)) if state == SweepState.DONE]
    return {sweep_id: specs[sweep_id] for sweep_id in ended}


def seed_counts(store: Store, sweep_id: int) -> dict[str, dict[int, OutcomeCounts]]:
    """The outcome counts of each seed of a sweep's configurations, by key and model seed."""
    with store.read():
        runs = frames.runs(store, Selection((sweep_names(store)[sweep_id],)))
        keys = dict(store.rows(select(Config.id, Config.key)))
    counted = frames.configurations(runs, "config_id", "model_seed")
    found: dict[str, dict[int, OutcomeCounts]] = {}
    rows = counted[["config_id", "model_seed", *JUDGED]].itertuples(index=False)
    for config_id, seed, *counts in rows:
        found.setdefault(keys[config_id], {})[seed] = OutcomeCounts(1, *counts)
    return found


def runs_of_one_sweep_only(store: Store, sweep: str | int) -> int:
    """Number of runs that only this sweep has, and that are deleted with it.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    members = select(func.count()).select_from(SweepRun).where(~in_another_sweep())
    own = members.where(SweepRun.sweep_id.in_(sweep_ids(store, sweep)))
    return int(store.value(own))


def runs_by_state(store: Store, sweeps: Sweeps | None = None) -> dict[str, int]:
    """Number of distinct runs of these sweeps, or of all, by state.

    Raises:
        UnknownRunError: there is no such sweep.
    """
    members = select(SweepRun.run_id)
    if (ids := ids_or_all(store, sweeps)) is not None:
        members = members.where(SweepRun.sweep_id.in_(ids))
    query = select(Run.state, func.count()).where(Run.id.in_(members)).group_by(Run.state)
    return dict(store.rows(query))


def specifications(store: Store) -> dict[str, str]:
    """Every sweep's specification as it was submitted, as JSON, by the sweep's name."""
    return dict(store.rows(select(Sweep.name, Sweep.spec)))


def sweep_names(store: Store) -> dict[int, str]:
    """The name of each sweep, by id."""
    return dict(store.rows(select(Sweep.id, Sweep.name)))


@dataclass(frozen=True)
class SweepRecord:
    """A sweep as a whole. Times are UTC in ISO 8601."""

    id: int
    name: str
    description: str
    spec: str
    """The specification as it was submitted, as JSON."""
    state: str
    created_at: str
    train_seconds: float | None
    """Training time of its finished runs in seconds, summed over workers."""


def sweep_record(store: Store, sweep_id: int) -> SweepRecord:
    """The record of a sweep that exists."""
    query = (
        select(
            Sweep.id,
            Sweep.name,
            Sweep.description,
            Sweep.spec,
            Sweep.created_at,
            func.sum(Run.train_seconds).label("train_seconds"),
        )
        .outerjoin(SweepRun, SweepRun.sweep_id == Sweep.id)
        .outerjoin(Run, Run.id == SweepRun.run_id)
        .where(Sweep.id == sweep_id)
        .group_by(Sweep.id)
    )
    with store.read():
        ((_, _, state, _),) = states(store, [sweep_id])
        return SweepRecord(state=state, **store.one(query)._mapping)


JUDGED = ("judged", "learned", "judged_beyond", "generalize")


def sweep_outcomes(store: Store) -> dict[int, OutcomeCounts]:
    """The outcome counts of each sweep with finished runs, by id."""
    members = frame(store, select(SweepRun.sweep_id, SweepRun.run_id))
    done = members.merge(frames.finished_runs(store), on="run_id")
    counted = frames.configurations(done, "sweep_id")[["sweep_id", "seeds", *JUDGED]]
    return {x: OutcomeCounts(*counts) for x, *counts in counted.itertuples(index=False)}


def failures(store: Store, sweep_id: int, limit: int) -> "pd.DataFrame":
    """The failed attempts of a sweep's runs, the latest first.

    Returns:
        run_id, model_seed, attempt, at (UTC), reason, state (the run's present one).
    """
    query = (
        select(Finding.run_id, Run.model_seed, Finding.number.label("attempt"), Finding.json)
        .add_columns(Run.state)
        .join(Run, Run.id == Finding.run_id)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .where(SweepRun.sweep_id == sweep_id, Finding.kind == FindingKind.FAILURE)
        # The JSON begins with the time.
        .order_by(Finding.json.desc(), Finding.run_id)
    )
    found = frame(store, query.limit(limit))
    for name in FINDINGS[FindingKind.FAILURE]:
        found[name] = [json.loads(text)[name] for text in found["json"]]
    return found[["run_id", "model_seed", "attempt", "at", "reason", "state"]]


# Progress: runs in each state, runs that ended recently, runs whose worker is dead.


Spans = list[tuple[str, str | None]]
"""The times when runs began and ended (None: still in training), in ISO 8601."""


def states(
    store: Store, sweep_ids: Sequence[int] | None = None
) -> list[tuple[int, str, str, dict[str, int]]]:
    """Id, name, state and number of runs by state of these sweeps, or of all; oldest first."""
    query = (
        select(
            SweepRun.sweep_id,
            *(func.count().filter(Run.state == state).label(state) for state in RunState),
        )
        .join(Run, Run.id == SweepRun.run_id)
        .group_by(SweepRun.sweep_id)
    )
    sweeps = select(Sweep.id, Sweep.name, Sweep.stopped_at, HAS_UNTIL).order_by(Sweep.id)
    if sweep_ids is not None:
        query = query.where(one_of(SweepRun.sweep_id, sweep_ids))
        sweeps = sweeps.where(one_of(Sweep.id, sweep_ids))
    # One snapshot, or a sweep that is submitted between the two reads would seem to have no runs.
    with store.read():
        named = store.rows(sweeps)
        counted = {row.sweep_id: row._asdict() for row in store.rows(query)}
    found: list[tuple[int, str, str, dict[str, int]]] = []
    for sweep_id, name, stopped_at, grows in named:
        runs: dict[str, int] = {
            state: int(counted.get(sweep_id, {}).get(state, 0)) for state in RunState
        }
        state = _state_of(runs, stopped_at is not None, grows)
        found.append((sweep_id, name, state.value, runs))
    return found


def _state_of(runs: Mapping[str, int], is_stopped: bool, grows: bool) -> SweepState:
    """The state of a sweep with so many runs in each state; `grows` if it has `until`."""
    has_ended = not (runs[RunState.RUNNING] or runs[RunState.QUEUED])
    # A stopped sweep that would get more seeds is not done, even if all its runs are.
    if has_ended and not (is_stopped and grows):
        return SweepState.DONE
    if is_stopped:
        return SweepState.STOPPED
    return SweepState.RUNNING if runs[RunState.RUNNING] else SweepState.QUEUED


def recent(store: Store, seconds: float) -> dict[int, tuple[int, Spans]]:
    """The number of runs that finished in the last seconds, and the times of these and of runs in
    training; by sweep id, for sweeps with such runs.
    """
    since = now(seconds)
    lately = Run.finished_at >= since
    # One statement, since it scans all runs.
    times = (
        select(SweepRun.sweep_id, Run.started_at, Run.finished_at, func.count())
        .join(Run, Run.id == SweepRun.run_id)
        .where(lately | (Run.state == RunState.RUNNING))
        .group_by(SweepRun.sweep_id, Run.started_at, Run.finished_at)
    )
    found: dict[int, tuple[int, Spans]] = {}
    for sweep_id, started, finished, number in store.rows(times):
        ended, spans = found.get(sweep_id, (0, []))
        if started is not None:
            spans.append((started, finished))
        found[sweep_id] = (ended + number * (finished is not None and finished >= since), spans)
    return found


def in_training(store: Store) -> tuple[Counter[int], dict[int, list[tuple[int, int]]]]:
    """Runs in training, by sweep id: the number with a dead worker; and, for each run whose first
    epoch has ended, its epochs so far and its maximum.

    Workers store epochs without raising the revision, so the result must not be cached by it.
    """
    query = (
        select(SweepRun.sweep_id, Run.worker_id, Run.losses, Config.id, Config.json)
        .join(Run, Run.id == SweepRun.run_id)
        .join(Config, Config.id == Run.config_id)
        .where(Run.state == RunState.RUNNING)
    )
    dead, orphaned = dead_workers(store), Counter[int]()
    epochs = defaultdict[int, list[tuple[int, int]]](list)
    for row in store.rows(query):
        orphaned[row.sweep_id] += row.worker_id in dead
        if rows := read_rows(row.losses):
            most = config_of(row.id, row.json).max_num_epochs
            epochs[row.sweep_id].append((rows[-1][0], most))
    return orphaned, epochs
