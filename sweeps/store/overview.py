"""Reads for pages: what thousands of runs come to, summed up and paged in SQL."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from jaxtyping import Int64
from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Integer,
    Select,
    and_,
    case,
    cast,
    func,
    select,
    true,
)

from seqcls.config import RunConfig, default_fields
from sweeps.store.bulk import fetched
from sweeps.store.engine import Store
from sweeps.store.errors import errors_of_runs, strings_of, those_of
from sweeps.store.packing import unpacked_numbers
from sweeps.store.statements import one_of
from sweeps.store.stored import config_of
from sweeps.store.tables import (
    Config,
    ErrorPack,
    Failure,
    LengthScore,
    Revision,
    Run,
    RunState,
    Sweep,
    SweepRun,
)

Kind = Literal["false positives", "false negatives"]
PACKS_AT_ONCE = 1_000
MOST_ERRORS = 20_000_000
"""That are counted by string; 60 MB of packs, which take a second."""

KINDS: tuple[Kind, ...] = ("false positives", "false negatives")


@dataclass(frozen=True)
class View:
    """Which runs a page is about; what is empty restricts nothing.

    Sweeps, seeds and configurations say which runs there are at all. `failing` and `kind` pick
    among those by what came out of them, and so leave every share and median alone.
    """

    sweeps: tuple[str, ...] = ()
    model_seeds: tuple[int, ...] = ()
    config_ids: tuple[int, ...] | None = None
    below: float = 1.0
    """A run fails where its accuracy is below this; at 1, where it misclassified any string."""
    failing: bool = False
    """Only failing runs."""
    kind: Kind | None = None
    """Only runs that made at least one error of this kind."""


def configs_revision(store: Store) -> int:
    """A number that is raised whenever configurations are added or deleted."""
    with store.begin() as connection:
        return connection.scalars(select(Revision.configs)).one()


def members_revision(store: Store) -> int:
    """A number that is raised whenever a sweep, or what runs it has, changes."""
    with store.begin() as connection:
        return connection.scalars(select(Revision.members)).one()


def settings(store: Store) -> pd.DataFrame:
    """The fields in which configurations differ: one row a configuration, indexed by config_id."""
    with store.begin() as connection:
        rows = connection.execute(select(Config.id, Config.json).order_by(Config.id)).all()
    defaults = default_fields()
    fields = pd.DataFrame(
        [{**defaults, **json.loads(text)} for _, text in rows],
        columns=list(defaults),
        index=pd.Index([config_id for config_id, _ in rows], name="config_id"),
        dtype=object,
    )
    return fields.loc[:, [name for name in defaults if fields[name].nunique() > 1]].infer_objects()


def some_configs(store: Store, config_ids: Sequence[int]) -> dict[int, RunConfig]:
    """These configurations by their id."""
    query = select(Config.id, Config.json).where(one_of(Config.id, config_ids))
    with store.begin() as connection:
        rows = connection.execute(query).all()
        return {config_id: config_of(config_id, text) for config_id, text in rows}


def memberships(store: Store) -> pd.DataFrame:
    """Which configurations each sweep has runs of, sweeps in the order of their making.

    Returns:
        config_id, sweep (its name).
    """
    query = (
        select(Run.config_id, Sweep.name.label("sweep"))
        .join(SweepRun, SweepRun.run_id == Run.id)
        .join(Sweep, Sweep.id == SweepRun.sweep_id)
        .group_by(Run.config_id, Sweep.id, Sweep.name)
        .order_by(Run.config_id, Sweep.id)
    )
    return _frame(store, query)


def sweeps_of_run(store: Store, run_id: int) -> list[str]:
    """The names of the sweeps that a run belongs to, in the order of their making."""
    query = (
        select(Sweep.name)
        .join(SweepRun, SweepRun.sweep_id == Sweep.id)
        .where(SweepRun.run_id == run_id)
        .order_by(Sweep.id)
    )
    with store.begin() as connection:
        return list(connection.scalars(query))


def model_seeds(store: Store) -> list[int]:
    """The model seeds that there are, in order."""
    query = select(Run.model_seed).distinct().order_by(Run.model_seed)
    with store.begin() as connection:
        return list(connection.scalars(query))


def count_runs(store: Store, view: View) -> int:
    """How many runs a view leaves."""
    query = select(func.count()).select_from(Run).where(_in_scope(view), _picked(view))
    with store.begin() as connection:
        return connection.scalars(query).one()


def configurations(store: Store, view: View) -> pd.DataFrame:
    """One row a configuration, by counts and sums over its runs in scope.

    Returns:
        config_id; seeds (done), unfinished, failed (in training); failing (of those done),
        picked (runs that the view leaves); false_positives and false_negatives (strings, summed
        over the seeds; missing where no run is done).
    """
    count = func.count(Run.id)
    done = Run.state == RunState.DONE
    query = (
        select(
            Run.config_id,
            count.filter(done).label("seeds"),
            count.filter(Run.state.in_([RunState.QUEUED, RunState.RUNNING])).label("unfinished"),
            count.filter(Run.state == RunState.FAILED).label("failed"),
            count.filter(_fails(view)).label("failing"),
            count.filter(_picked(view)).label("picked"),
            func.sum(Run.fp).filter(done).label("false_positives"),
            func.sum(Run.fn).filter(done).label("false_negatives"),
        )
        .where(_in_scope(view))
        .group_by(Run.config_id)
        .order_by(Run.config_id)
    )
    frame = _frame(store, query)
    sums = ["false_positives", "false_negatives"]
    frame[sums] = frame[sums].astype("Int64")
    return frame


def models(store: Store, view: View) -> pd.DataFrame:
    """One row a finished run in scope, in the order of configurations and seeds.

    Returns:
        run_id, config_id, model_seed, accuracy in [0, 1], false_positives, false_negatives,
        solved_length, failing and picked (as 0 or 1).
    """
    query = (
        select(*_model_columns(view))
        .where(_in_scope(view), Run.state == RunState.DONE)
        .order_by(Run.config_id, Run.model_seed)
    )
    return _frame(store, query)


def failing_models(store: Store, view: View, limit: int, offset: int = 0) -> pd.DataFrame:
    """Runs with errors, the worst first, as `models`; errors of one kind first if that is meant."""
    query = _worst_first(view).where(_picked(view), _errors(view) > 0)
    return _frame(store, query.limit(limit).offset(offset))


def worst_models(store: Store, view: View, limit: int) -> pd.DataFrame:
    """Finished runs in scope, as `models`, those with the most errors first."""
    return _frame(store, _worst_first(view).limit(limit))


def count_failing_models(store: Store, view: View) -> int:
    """How many runs `failing_models` has on all its pages."""
    query = select(func.count()).where(
        _in_scope(view), _picked(view), Run.state == RunState.DONE, Run.fp + Run.fn > 0
    )
    with store.begin() as connection:
        return connection.scalars(query).one()


def model(store: Store, run_id: int) -> pd.DataFrame:
    """The row that `models` has of a run; no row where it is not done or does not exist."""
    query = select(*_model_columns(View())).where(Run.id == run_id, Run.state == RunState.DONE)
    return _frame(store, query)


def scores_by_length(store: Store, run_ids: Sequence[int], width: int) -> pd.DataFrame:
    """The confusion of runs on strings of similar length.

    Args:
        store: where to read.
        run_ids: which runs.
        width: lengths that make one row: with 10, the lengths 1 to 10, 11 to 20, and so on.

    Returns:
        run_id, first_length, last_length, tn, fp, fn, tp (strings).
    """
    bins = (LengthScore.length - 1) // width
    query = (
        select(
            LengthScore.run_id,
            (bins * width + 1).label("first_length"),
            ((bins + 1) * width).label("last_length"),
            *(
                cast(func.sum(cell), Integer).label(cell.key)
                for cell in (LengthScore.tn, LengthScore.fp, LengthScore.fn, LengthScore.tp)
            ),
        )
        .where(one_of(LengthScore.run_id, run_ids))
        .group_by(LengthScore.run_id, bins)
        .order_by(LengthScore.run_id, bins)
    )
    return _frame(store, query)


@dataclass(frozen=True)
class ErrorSearch:
    """Which misclassified strings are meant."""

    text: str = ""
    """Text that the string contains, in the notation `ab{100}`."""
    kind: Kind | None = None


def count_string_errors(store: Store, run_id: int, search: ErrorSearch) -> int:
    """How many different strings a run misclassified, of those meant."""
    return len(_found(store, run_id, search))


def string_errors(
    store: Store,
    run_id: int,
    search: ErrorSearch,
    limit: int | None = None,
    offset: int = 0,
) -> pd.DataFrame:
    """A run's misclassified strings, the shortest first.

    Returns:
        string, kind, length (letters), label (1: in the language), logit, occurrences (in the
        test set).
    """
    found = _found(store, run_id, search)
    # Numbers sort strings as text, in every database alike.
    found = found.sort_values(["length", "number"], ignore_index=True)
    found["kind"] = _kinds(found["label"])
    columns = ["string", "kind", "length", "label", "logit", "occurrences"]
    end = None if limit is None else offset + limit
    return found.iloc[offset:end][columns].reset_index(drop=True)


@dataclass(frozen=True)
class BreakingStrings:
    """The strings that most runs misclassified."""

    strings: pd.DataFrame
    """string, kind, length, models (how many runs misclassified it)."""
    models: int
    """Failing runs whose errors were counted."""
    every: int
    """1 where that is all of them, 2 where it is every second, and so on."""


def breaking_strings(
    store: Store, view: View, limit: int, most_errors: int = MOST_ERRORS
) -> BreakingStrings:
    """The strings that most runs of a view misclassified.

    Args:
        store: where to read.
        view: which runs.
        limit: how many strings.
        most_errors: where the runs made more errors than this, only every second, third, … of
            them is read, so that a page need not read gigabytes.
    """
    failing: tuple[ColumnElement[bool], ...]
    failing = (_in_scope(view), _picked(view), Run.state == RunState.DONE, Run.fp + Run.fn > 0)
    with store.begin() as connection:
        found = select(func.count(), func.sum(Run.fp + Run.fn)).where(*failing)
        models, errors = connection.execute(found).one()
        every = max(1, -(-int(errors or 0) // most_errors))
        if every > 1:
            own = connection.scalars(select(Run.id).where(*failing).order_by(Run.id)).all()
            failing, models = (one_of(Run.id, own[::every]),), len(own[::every])
        strings = _most_broken(connection, failing, view, limit)
    return BreakingStrings(strings, models, every)


def _most_broken(
    connection: Connection, counted: Sequence[ColumnElement[bool]], view: View, limit: int
) -> pd.DataFrame:
    packs = (
        select(Config.test_set_id, ErrorPack.numbers)
        .join(Run, Run.id == ErrorPack.run_id)
        .join(Config, Config.id == Run.config_id)
        .where(*counted)
    )
    models: dict[Any, Int64[np.ndarray, " string"]] = {}
    # A few at a time: all of them unpacked would be gigabytes.
    for some in connection.execute(packs).partitions(PACKS_AT_ONCE):
        by_set: dict[Any, list[bytes]] = {}
        for test_set_id, numbers in some:
            by_set.setdefault(test_set_id, []).append(bytes(numbers))
        for test_set_id, own in by_set.items():
            found = np.bincount(unpacked_numbers(b"".join(own)))
            models[test_set_id] = _added(models.get(test_set_id), found)
    parts = [_counted(connection, *own, view) for own in models.items()]
    columns = ["string", "kind", "length", "models"]
    if not parts:
        return pd.DataFrame(columns=columns)
    same = pd.concat(parts).groupby(["string", "label", "length"])
    summed: pd.DataFrame = same.agg(models=("models", "sum")).reset_index()
    ascending = [False, True, True]
    summed = summed.sort_values(["models", "length", "string"], ascending=ascending)
    summed["kind"] = _kinds(summed["label"])
    return summed[columns].head(limit).reset_index(drop=True)


def _added(
    one: Int64[np.ndarray, " string"] | None, two: Int64[np.ndarray, " strings"]
) -> Int64[np.ndarray, " string"]:
    """The sum of counts, of which either may know more strings."""
    if one is None:
        return two
    longer, shorter = (one, two) if len(one) >= len(two) else (two, one)
    longer[: len(shorter)] += shorter
    return longer


def _counted(
    connection: Connection, test_set_id: int, models: Int64[np.ndarray, " string"], view: View
) -> pd.DataFrame:
    """How many runs got each string of a test set wrong: string, label, length, models."""
    strings = strings_of(connection, test_set_id)
    wrong = np.flatnonzero(models)
    strings = those_of(strings, wrong).assign(models=models[wrong])
    if view.kind is not None:
        strings = strings[strings["label"] == KINDS.index(view.kind)]
    return strings[["string", "label", "length", "models"]]


def _kinds(labels: "pd.Series[int]") -> list[str]:
    """What an error is, by the label of its string: a negative one is a false positive."""
    return ["false negative" if label else "false positive" for label in labels]


def specifications(store: Store) -> dict[str, str]:
    """Every sweep's specification as it was submitted, as JSON, by the sweep's name."""
    with store.begin() as connection:
        return dict(connection.execute(select(Sweep.name, Sweep.spec)).all())


@dataclass(frozen=True)
class SweepRecord:
    """What is stored of a sweep as a whole. Times are UTC in ISO 8601."""

    id: int
    name: str
    description: str
    spec: str
    """The specification as it was submitted, as JSON."""
    state: str
    created_at: str
    first_started_at: str | None
    last_finished_at: str | None
    train_seconds: float | None
    """Seconds that its finished runs took, summed over workers."""


def sweep_record(store: Store, sweep_id: int) -> SweepRecord:
    """A sweep that exists."""
    query = (
        select(
            Sweep.id,
            Sweep.name,
            Sweep.description,
            Sweep.spec,
            Sweep.state,
            Sweep.created_at,
            func.min(Run.started_at),
            func.max(Run.finished_at),
            func.sum(Run.train_seconds),
        )
        .outerjoin(SweepRun, SweepRun.sweep_id == Sweep.id)
        .outerjoin(Run, Run.id == SweepRun.run_id)
        .where(Sweep.id == sweep_id)
        .group_by(Sweep.id)
    )
    with store.begin() as connection:
        return SweepRecord(*connection.execute(query).one())


@dataclass(frozen=True)
class SweepOutcome:
    """What came out of a sweep's finished runs."""

    failing: int
    """Runs that misclassify any string."""
    median: float | None
    """Of their accuracies; None where no run is done."""


def sweep_outcomes(store: Store) -> dict[int, SweepOutcome]:
    """What came out of each sweep that has a finished run, by its id."""
    right = Run.tn + Run.tp
    query = (
        select(
            SweepRun.sweep_id, cast(right, Float) / _tested(), case((right < _tested(), 1), else_=0)
        )
        .join(Run, Run.id == SweepRun.run_id)
        .where(Run.state == RunState.DONE)
    )
    with store.begin() as connection:
        _, rows = fetched(connection, query)
    table = np.array(rows, dtype=np.float64).reshape(-1, 3)
    found = ((sweep_id, table[table[:, 0] == sweep_id]) for sweep_id in np.unique(table[:, 0]))
    return {
        int(sweep_id): SweepOutcome(int(own[:, 2].sum()), float(np.median(own[:, 1])))
        for sweep_id, own in found
    }


def failures(store: Store, sweep_id: int, limit: int) -> pd.DataFrame:
    """Attempts of a sweep's runs that failed, the latest first.

    Returns:
        run_id, model_seed, attempt, at (UTC), reason, state (what the run is now).
    """
    query = (
        select(Failure.run_id, Run.model_seed, Failure.attempt, Failure.at, Failure.reason)
        .add_columns(Run.state)
        .join(Run, Run.id == Failure.run_id)
        .join(SweepRun, SweepRun.run_id == Run.id)
        .where(SweepRun.sweep_id == sweep_id)
        .order_by(Failure.at.desc(), Failure.run_id)
    )
    return _frame(store, query.limit(limit))


def _model_columns(view: View) -> list[ColumnElement[Any]]:
    return [
        Run.id.label("run_id"),
        Run.config_id.label("config_id"),
        Run.model_seed.label("model_seed"),
        (cast(Run.tn + Run.tp, Float) / _tested()).label("accuracy"),
        Run.fp.label("false_positives"),
        Run.fn.label("false_negatives"),
        Run.solved_length.label("solved_length"),
        case((_fails(view), 1), else_=0).label("failing"),
        case((_picked(view), 1), else_=0).label("picked"),
    ]


def _worst_first(view: View) -> Select[*tuple[Any, ...]]:
    finished = select(*_model_columns(view)).where(_in_scope(view), Run.state == RunState.DONE)
    return finished.order_by(_errors(view).desc(), Run.id)


def _errors(view: View) -> ColumnElement[Any]:
    """How many errors a run made, of one kind if that is meant."""
    errors: dict[Kind | None, ColumnElement[Any]] = {
        None: Run.fp + Run.fn,
        KINDS[0]: Run.fp.expression,
        KINDS[1]: Run.fn.expression,
    }
    return errors[view.kind]


def _tested() -> ColumnElement[Any]:
    return Run.tn + Run.fp + Run.fn + Run.tp


def _fails(view: View) -> ColumnElement[bool]:
    right = cast(Run.tn + Run.tp, Float)
    return and_(Run.state == RunState.DONE, right < view.below * _tested())


def _in_scope(view: View) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = []
    if view.sweeps:
        named = (
            select(SweepRun.run_id)
            .join(Sweep, Sweep.id == SweepRun.sweep_id)
            .where(Sweep.name.in_(view.sweeps))
        )
        conditions.append(Run.id.in_(named))
    if view.model_seeds:
        conditions.append(Run.model_seed.in_(view.model_seeds))
    if view.config_ids is not None:
        conditions.append(one_of(Run.config_id, view.config_ids))
    return and_(true(), *conditions)


def _picked(view: View) -> ColumnElement[bool]:
    conditions: list[ColumnElement[bool]] = []
    if view.failing:
        conditions.append(_fails(view))
    if view.kind is not None:
        cell = Run.fp if view.kind == KINDS[0] else Run.fn
        conditions.append(and_(Run.state == RunState.DONE, cell > 0))
    return and_(true(), *conditions)


def _found(store: Store, run_id: int, search: ErrorSearch) -> pd.DataFrame:
    with store.begin() as connection:
        found = errors_of_runs(connection, [run_id])
    if search.text:
        found = found[found["string"].str.contains(search.text, regex=False)]
    if search.kind is not None:
        found = found[found["label"] == KINDS.index(search.kind)]
    return found


def _frame(store: Store, query: Select[*tuple[Any, ...]]) -> pd.DataFrame:
    with store.begin() as connection:
        names, rows = fetched(connection, query)
    return pd.DataFrame(rows, columns=names)
