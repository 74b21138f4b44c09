"""Every read of the database, as data frames or plain values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from sqlalchemy import Connection, Select, func, select
from sqlalchemy.orm import InstrumentedAttribute

from seqcls import results
from seqcls.config import MAX_MODEL_SEED, RunConfig, default_fields, nearest
from seqcls.errors import UnknownRunError
from sweeps.grouping import PlannedRun
from sweeps.spec import SweepSpec
from sweeps.store.engine import Store
from sweeps.store.errors import errors_of_runs
from sweeps.store.statements import chunks, wanted_of
from sweeps.store.stored import config_of, config_with_key
from sweeps.store.tables import (
    Base,
    Checkpoint,
    Config,
    Epoch,
    LengthScore,
    Revision,
    Run,
    RunState,
    Sweep,
    SweepRun,
    SweepState,
    Verdict,
)
from sweeps.summaries import accuracy


@dataclass(frozen=True)
class RunFilter:
    """Which runs are meant; what is empty restricts nothing."""

    sweeps: tuple[str, ...] = ()
    model_seeds: tuple[int, ...] = ()
    failing: bool = False
    """Only finished runs with at least one misclassified test string."""
    fields: Mapping[str, Any] = field(default_factory=dict)
    """Values that fields of the configuration must have."""


def revision(store: Store) -> int:
    """A number that every write raises, heartbeats apart."""
    with store.begin() as connection:
        return connection.scalars(select(Revision.runs)).one()


def sweeps(store: Store) -> pd.DataFrame:
    """The sweeps in the order of their making: id, name, description, state, runs, done, failed."""
    count = func.count(Run.id)
    query = (
        select(
            Sweep.id,
            Sweep.name,
            Sweep.description,
            Sweep.state,
            count.label("runs"),
            count.filter(Run.state == RunState.DONE).label("done"),
            count.filter(Run.state == RunState.FAILED).label("failed"),
        )
        .outerjoin(SweepRun, SweepRun.sweep_id == Sweep.id)
        .outerjoin(Run, Run.id == SweepRun.run_id)
        .group_by(Sweep.id)
        .order_by(Sweep.id)
    )
    return _frame(store, query)


def runs(store: Store, wanted: RunFilter | None = None) -> pd.DataFrame:
    """One row a run: its columns, `accuracy` in [0, 1], `sweeps`, and its configuration's fields.

    Columns of results are missing where a run is not done. `sweeps` is a tuple of names.
    """
    wanted = wanted or RunFilter()
    known = {config_id: config.model_dump() for config_id, config in configs(store).items()}
    with store.begin() as connection:
        frame = _read(connection, _runs_query(wanted, known))
        memberships = connection.execute(
            select(SweepRun.run_id, Sweep.name)
            .join(Sweep, Sweep.id == SweepRun.sweep_id)
            .order_by(Sweep.id)
        )
        names: dict[int, list[str]] = {}
        for run_id, name in memberships:
            names.setdefault(run_id, []).append(name)
    integers = ["epochs", "best_epoch", "tn", "fp", "fn", "tp", "solved_length"]
    frame[integers] = frame[integers].astype("Int64")
    frame["errors"] = frame["fp"] + frame["fn"]
    frame["accuracy"] = accuracy(frame)
    frame["sweeps"] = [tuple(names.get(run_id, ())) for run_id in frame["id"]]
    fields = pd.DataFrame(
        [known[config_id] for config_id in frame["config_id"]],
        columns=list(default_fields()),
        index=frame.index,
    )
    return frame.join(fields)


def length_scores(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """The confusion of these runs at every length: run_id, length, tn, fp, fn, tp."""
    query = select(*_columns(LengthScore)).where(LengthScore.run_id.in_(run_ids))
    return _frame(store, query.order_by(LengthScore.run_id, LengthScore.length))


def string_errors(store: Store, run_id: int) -> pd.DataFrame:
    """A run's misclassified strings, sorted as text: string, length, label, logit, occurrences."""
    return errors_of(store, [run_id]).drop(columns="run_id")


def errors_of(store: Store, run_ids: Sequence[int]) -> pd.DataFrame:
    """Misclassified strings of these runs: run_id, string, length, label, logit, occurrences."""
    with store.begin() as connection:
        return errors_of_runs(connection, run_ids).drop(columns="number")


def epochs(store: Store, run_id: int) -> pd.DataFrame:
    """A run's losses: epoch, train_loss, validation_loss (sums over the strings, in nats)."""
    query = select(Epoch.epoch, Epoch.train_loss, Epoch.validation_loss)
    return _frame(store, query.where(Epoch.run_id == run_id).order_by(Epoch.epoch))


def find_run(store: Store, reference: str) -> int:
    """The id of the run meant by `12`, or by `all_initializations/2`: a sweep and a model seed.

    Raises:
        UnknownRunError: there is no such run, or several.
    """
    sweep, slash, seed = reference.rpartition("/")
    number = seed if seed.isascii() and seed.isdigit() and len(seed) < 20 else None
    if number is None or int(number) > MAX_MODEL_SEED or (slash and not sweep):
        raise UnknownRunError(
            f"no run {reference!r}: expected a run's id, such as 12, or a sweep and a model seed, "
            "such as all_initializations/2; `seqcls runs` lists them"
        )
    query = select(Run.id).where(Run.id == int(number))
    if slash:
        query = (
            select(Run.id)
            .join(SweepRun, SweepRun.run_id == Run.id)
            .join(Sweep, Sweep.id == SweepRun.sweep_id)
            .where(Sweep.name == sweep, Run.model_seed == int(number))
        )
    with store.begin() as connection:
        found = connection.scalars(query).all()
    if len(found) > 1:
        raise UnknownRunError(
            f"{reference!r} means {len(found)} runs of different configurations; name one by its "
            f"id: {', '.join(map(str, sorted(found)[:10]))}"
        )
    if not found:
        if slash:
            _find_sweep_of(store, reference, sweep)
        damage = None if slash else store.left_out("run", int(number))
        if damage is not None:
            raise UnknownRunError(f"{store.name!r}: {damage}; train it again in another database")
        raise UnknownRunError(f"no run {reference!r} in {store.name!r}; `seqcls runs` lists them")
    return found[0]


def _find_sweep_of(store: Store, reference: str, sweep: str) -> None:
    """Names the sweep that may be meant, where there is none of the name in a run's reference."""
    try:
        find_sweep(store, sweep)
    except UnknownRunError as error:
        raise UnknownRunError(f"no run {reference!r}: {error}") from None


def find_sweep(store: Store, name: str) -> int:
    """The id of the sweep of that name.

    Raises:
        UnknownRunError: there is none.
    """
    with store.begin() as connection:
        known = dict(connection.execute(select(Sweep.name, Sweep.id)).all())
    if name not in known:
        raise UnknownRunError(f"no sweep {name!r} in {store.name!r}: {nearest(name, list(known))}")
    return known[name]


@dataclass(frozen=True)
class RunStatus:
    """What became of a run, and why it failed where it did."""

    state: str
    best_epoch: int | None
    error: str | None


def run_status(store: Store, run_id: int) -> RunStatus:
    """The status of a run that exists."""
    query = select(Run.state, Run.best_epoch, Run.error).where(Run.id == run_id)
    with store.begin() as connection:
        return RunStatus(*connection.execute(query).one())


def configs(store: Store) -> dict[int, RunConfig]:
    """Every configuration by its id; a field that it predates has its default."""
    with store.begin() as connection:
        rows = connection.execute(select(Config.id, Config.json)).all()
        return {config_id: config_of(config_id, text) for config_id, text in rows}


def run_config(store: Store, run_id: int) -> RunConfig:
    """The configuration of a run that exists."""
    query = select(Config.id, Config.json).join(Run, Run.config_id == Config.id)
    with store.begin() as connection:
        return config_of(*connection.execute(query.where(Run.id == run_id)).one())


def weights(store: Store, run_id: int, epoch: int | None = None) -> bytes:
    """A run's weights after an epoch, as safetensors bytes; the best epoch's if none is named.

    Raises:
        UnknownRunError: the run has no such weights.
    """
    status = run_status(store, run_id)
    kept = select(Checkpoint.epoch, Checkpoint.weights).where(Checkpoint.run_id == run_id)
    with store.begin() as connection:
        checkpoints = dict(connection.execute(kept.order_by(Checkpoint.epoch)).all())
    if status.state != RunState.DONE:
        reason = f": {status.error}" if status.error else ""
        raise UnknownRunError(f"run {run_id} is {status.state} and has no weights{reason}")
    wanted = status.best_epoch if epoch is None else epoch
    if wanted is None or wanted not in checkpoints:
        raise UnknownRunError(
            f"run {run_id} has no weights of epoch {wanted}; stored are those of epoch "
            f"{', '.join(map(str, checkpoints))}"
        )
    return checkpoints[wanted]


def verdict(store: Store, run_id: int) -> results.Verdict | None:
    """What the exhaustive check of a run has found; None where none is stored."""
    query = select(*_columns(Verdict)).where(Verdict.run_id == run_id)
    with store.begin() as connection:
        row = connection.execute(query).one_or_none()
    return None if row is None else results.Verdict(*row[1:-1])


def sensitive(store: Store) -> pd.DataFrame:
    """Runs that are stored in single and in double precision, and whether rounding decides them.

    Returns:
        One row a pair of finished runs that differ in nothing but `precision`: run_id_float32,
        run_id_float64, model_seed, sweeps, the cells of both (as tn_float32 and so on), and
        sensitive, true where the confusion matrices differ.
    """
    done = runs(store)
    done = done[done["state"] == RunState.DONE]
    single, double = (done[done["precision"] == x] for x in ("float32", "float64"))
    alike = [*(name for name in default_fields() if name != "precision"), "model_seed"]
    kept = ["id", "tn", "fp", "fn", "tp"]
    pairs = single[[*alike, *kept, "sweeps"]].merge(
        double[[*alike, *kept]], on=alike, suffixes=("_float32", "_float64")
    )
    pairs["sensitive"] = [
        any(pair[f"{cell}_float32"] != pair[f"{cell}_float64"] for cell in kept[1:])
        for pair in pairs.to_dict("records")
    ]
    pairs = pairs.rename(columns={f"id_{x}": f"run_id_{x}" for x in ("float32", "float64")})
    ids = ["run_id_float32", "run_id_float64", "model_seed", "sweeps"]
    cells = [f"{cell}_{x}" for x in ("float32", "float64") for cell in kept[1:]]
    return pairs[[*ids, *cells, "sensitive"]]


def missing_runs(store: Store, specs: Iterable[SweepSpec]) -> int | None:
    """How many runs of these sweeps are not done; None where a sweep is not stored like this."""
    left = 0
    for spec in specs:
        with store.begin() as connection:
            stored = connection.execute(
                select(Sweep.id, Sweep.spec, Sweep.description).where(Sweep.name == spec.name)
            ).one_or_none()
            if stored is None or stored.spec != spec.submitted:
                return None
            counted = connection.execute(
                select(func.count(), func.count().filter(Run.state == RunState.DONE))
                .join(SweepRun, SweepRun.run_id == Run.id)
                .where(SweepRun.sweep_id == stored.id)
            ).one()
        left += counted[0] - counted[1]
    return left


def queued_runs(store: Store, sweep_ids: Sequence[int] | None = None) -> list[PlannedRun]:
    """The runs of these sweeps, or of all, that nobody trains yet and no stop holds back."""
    wanted = _members_that_go_on()
    if sweep_ids is not None:
        wanted = wanted.where(SweepRun.sweep_id.in_(sweep_ids))
    query = (
        select(Run.id, Run.model_seed, Run.failures, Run.config_id, Config.key, Config.json)
        .join(Config, Config.id == Run.config_id)
        .where(Run.state == RunState.QUEUED, Run.id.in_(wanted))
        .order_by(Run.id)
    )
    wants: dict[int, tuple[bool, bool]] = {}
    with store.begin() as connection:
        rows = connection.execute(query).all()
        for ids in chunks(row.id for row in rows):
            wants |= wanted_of(connection, ids)
        configs = {
            config_id: config_with_key(config_id, key, text)
            for config_id, key, text in {(row.config_id, row.key, row.json) for row in rows}
        }
    return [
        PlannedRun(row.id, configs[row.config_id], row.model_seed, *wants[row.id], row.failures)
        for row in rows
    ]


def runs_that_go_on(store: Store, run_ids: Sequence[int]) -> set[int]:
    """Those of these runs that belong to a sweep that is not stopped."""
    with store.begin() as connection:
        members = _members_that_go_on().where(SweepRun.run_id.in_(run_ids))
        return set(connection.scalars(members))


def _members_that_go_on() -> Select[int]:
    return (
        select(SweepRun.run_id)
        .join(Sweep, Sweep.id == SweepRun.sweep_id)
        .where(Sweep.state != SweepState.STOPPED)
    )


def runs_of_one_sweep_only(store: Store, sweep_id: int) -> int:
    """How many runs this sweep has and no other."""
    shared = select(SweepRun.run_id).where(SweepRun.sweep_id != sweep_id)
    query = (
        select(func.count())
        .select_from(SweepRun)
        .where(SweepRun.sweep_id == sweep_id, SweepRun.run_id.not_in(shared))
    )
    with store.begin() as connection:
        return connection.scalars(query).one()


def counts_by_state(store: Store, sweep_ids: Sequence[int] | None = None) -> dict[str, int]:
    """How many distinct runs of these sweeps, or of all, there are in each state."""
    members = select(SweepRun.run_id)
    if sweep_ids is not None:
        members = members.where(SweepRun.sweep_id.in_(sweep_ids))
    query = select(Run.state, func.count()).where(Run.id.in_(members)).group_by(Run.state)
    with store.begin() as connection:
        return dict(connection.execute(query).all())


def _runs_query(
    wanted: RunFilter, configs: Mapping[int, Mapping[str, Any]]
) -> Select[*tuple[Any, ...]]:
    columns = [c for c in _columns(Run) if c.key not in ("worker_id", "started_at")]
    query = select(*columns).order_by(Run.id)
    if wanted.sweeps:
        named = (
            select(SweepRun.run_id)
            .join(Sweep, Sweep.id == SweepRun.sweep_id)
            .where(Sweep.name.in_(wanted.sweeps))
        )
        query = query.where(Run.id.in_(named))
    if wanted.model_seeds:
        query = query.where(Run.model_seed.in_(wanted.model_seeds))
    if wanted.failing:
        query = query.where(Run.state == RunState.DONE, Run.fp + Run.fn > 0)
    if wanted.fields:
        alike = [
            config_id
            for config_id, fields in configs.items()
            if all(fields[name] == value for name, value in wanted.fields.items())
        ]
        query = query.where(Run.config_id.in_(alike))
    return query


def _columns(table: type[Base]) -> list[InstrumentedAttribute[Any]]:
    return [getattr(table, column.key) for column in table.__table__.columns]


def _frame(store: Store, query: Select[*tuple[Any, ...]]) -> pd.DataFrame:
    with store.begin() as connection:
        return _read(connection, query)


def _read(connection: Connection, query: Select[*tuple[Any, ...]]) -> pd.DataFrame:
    # Not pandas.read_sql_query, whose own error would hide that of the database.
    rows = connection.execute(query)
    return pd.DataFrame(rows.fetchall(), columns=list(rows.keys()))
