"""Reads of sweeps: their specifications, members, states and progress."""

import json
import numbers
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
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
        (sweep,) = counts(store, [sweep_id])
        left += sweep.total - sweep.done
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
    every = counts(store, list(specs))
    return {sweep.id: specs[sweep.id] for sweep in every if sweep.state == SweepState.DONE}


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
        (sweep,) = counts(store, [sweep_id])
        return SweepRecord(state=sweep.state, **store.one(query)._mapping)


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


@dataclass(frozen=True)
class SweepProgress:
    """A sweep's state and the number of its runs in each state."""

    id: int
    name: str
    state: str
    queued: int
    running: int
    done: int
    failed: int
    runs_per_second: float | None = None
    """The present rate, with fractions of runs; None if none is in training or no epoch has ended
    yet."""
    orphaned: int = 0
    """Number of runs in training whose worker seems dead from here; the next worker trains them."""
    epochs: tuple[tuple[int, int], ...] = ()
    """The epochs so far and the maximum of each run in training."""

    @property
    def share(self) -> float:
        """The share that is done, in [0, 1], including epochs of runs in training."""
        return min(1.0, (self.done + self.failed + self.begun) / max(1, self.total))

    @property
    def begun(self) -> float:
        """The summed shares of epochs done by runs in training."""
        return sum(epoch / most for epoch, most in self.epochs)

    @property
    def total(self) -> int:
        """Number of runs of the sweep."""
        return self.queued + self.running + self.done + self.failed

    @property
    def seconds_left(self) -> float | None:
        """The remaining time at this rate; None without a rate."""
        if not self.runs_per_second:
            return None
        return (self.queued + self.running - self.begun) / self.runs_per_second


def counts(store: Store, sweep_ids: Sequence[int] | None = None) -> list[SweepProgress]:
    """The runs in each state of these sweeps, or of all, which change with the revision alone;
    oldest first.
    """
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
        counted = {sweep_id: runs for sweep_id, *runs in store.rows(query)}
    found = []
    for sweep_id, name, stopped_at, grows in named:
        # In the order of `RunState`.
        runs = counted.get(sweep_id, [0] * len(RunState))
        state = _state_of(any(runs[:2]), runs[1] > 0, stopped_at is not None, grows)
        found.append(SweepProgress(sweep_id, name, state.value, *runs))
    return found


def _state_of(has_left: bool, is_running: bool, is_stopped: bool, grows: bool) -> SweepState:
    """The state of a sweep; `has_left` if runs are left to train, `grows` if it has `until`."""
    # A stopped sweep that would get more seeds is not done, even if all its runs are.
    if not has_left and not (is_stopped and grows):
        return SweepState.DONE
    if is_stopped:
        return SweepState.STOPPED
    return SweepState.RUNNING if is_running else SweepState.QUEUED


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
