"""What a user does with sweeps: submit, stop, resume, retry, delete. Each is one transaction."""

import json
import uuid
from collections.abc import Sequence
from itertools import product

from sqlalchemy import Connection, exists, insert, literal, select, update
from sqlalchemy import delete as delete_rows

from seqcls.canonical import canonical_json
from seqcls.config import IMPORTED, RunConfig
from seqcls.datasets.known import dataset_of
from seqcls.errors import ConfigError
from seqcls.testset import test_set_json, test_set_key
from sweeps.grid.spec import SweepSpec
from sweeps.store.databases.engine import Store
from sweeps.store.databases.postgres import take_turns
from sweeps.store.databases.statements import (
    chunks,
    ids_of,
    in_another_sweep,
    insert_new,
    insert_sweep,
    queue_runs,
    sweeps_of,
    update_states,
)
from sweeps.store.results.datasets import delete_unused, store_dataset
from sweeps.store.results.sums import lower_sums
from sweeps.store.runs import notes
from sweeps.store.schema.tables import (
    Cause,
    Checkpoint,
    Config,
    Epoch,
    ErrorPack,
    Failure,
    LengthScore,
    OutputPack,
    Perturbation,
    Run,
    RunState,
    Sweep,
    SweepRun,
    SweepState,
    TestSet,
    TestString,
    Verdict,
)

RESULTS = (
    *(Epoch, LengthScore, ErrorPack, OutputPack, Checkpoint),
    *(Verdict, Cause, Perturbation, Failure),
)
"""The tables whose rows belong to one run."""


def submit(store: Store, spec: SweepSpec, launch_token: str | None = None) -> int:
    """Makes the sweep of that name what the specification says; queues the runs that are new.

    Runs that the specification no longer has leave the sweep: those with results stay in the
    database, those not yet begun are deleted unless another sweep has them. A stopped sweep
    goes on.

    Args:
        store: the database, open for writing.
        spec: what is to be trained.
        launch_token: names a launch that may be asked for twice, by a double click say; the second
            time nothing is done.

    Returns:
        The sweep's id.

    Raises:
        ConfigError: a sweep of that name holds imported results.
    """
    configs = list(spec.configs())
    with store.change("configs", "members") as connection:
        take_turns(connection)
        token = launch_token or uuid.uuid4().hex
        known = connection.scalar(select(Sweep.id).where(Sweep.launch_token == token))
        if known is not None:
            return known
        for digest in sorted({config.dataset for config in configs} - {""}):
            store_dataset(connection, dataset_of(digest))
        config_ids = config_ids_of(connection, configs)
        # First, as workers do: this may wait for one that is changing a run, who waits for sweeps.
        for ids in chunks(config_ids):
            insert_runs(connection, ids, spec.model_seeds)
        sweep_id = _sweep_id(connection, spec, token)
        members = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep_id)
        before = connection.scalars(members).all()
        connection.execute(delete_rows(SweepRun).where(SweepRun.sweep_id == sweep_id))
        for ids in chunks(config_ids):
            add_members(connection, sweep_id, ids, spec.model_seeds)
        delete_runs(connection, _left_over(connection, before))
        update_states(connection, [sweep_id])
    return sweep_id


def stop(store: Store, sweep_ids: Sequence[int]) -> None:
    """Has workers begin no more runs of these sweeps; what is nearly done they finish."""
    _set_state(store, sweep_ids, SweepState.STOPPED)


def resume(store: Store, sweep_ids: Sequence[int]) -> None:
    """Takes a stop back; a worker is needed to go on."""
    _set_state(store, sweep_ids, SweepState.QUEUED)


def retry(store: Store, sweep_ids: Sequence[int]) -> int:
    """Queues the failed runs of these sweeps again, and those sweeps where they were stopped.

    Returns:
        How many runs that were.
    """
    members = select(SweepRun.run_id).where(SweepRun.sweep_id.in_(sweep_ids))
    with store.change() as connection:
        again = connection.execute(
            update(Run)
            .where(Run.id.in_(members), Run.state == RunState.FAILED)
            .values(
                state=RunState.QUEUED,
                failures=0,
                error=None,
                worker_id=None,
                started_at=None,
                finished_at=None,
            )
        ).rowcount
        connection.execute(
            update(Sweep).where(Sweep.id.in_(sweep_ids)).values(state=SweepState.QUEUED)
        )
        update_states(connection, sweeps_of(connection, members))
    return again


def delete(store: Store, sweep_id: int) -> int:
    """Deletes a sweep, and those of its runs that no other sweep has.

    Returns:
        How many runs that were.
    """
    with store.change("configs", "members") as connection:
        take_turns(connection)
        members = select(SweepRun.run_id).where(SweepRun.sweep_id == sweep_id)
        doomed = connection.scalars(members.where(~in_another_sweep())).all()
        _lock_runs(connection, doomed)
        connection.execute(delete_rows(SweepRun).where(SweepRun.sweep_id == sweep_id))
        delete_runs(connection, doomed)
        notes.forget(connection, sweep_id)
        connection.execute(delete_rows(Sweep).where(Sweep.id == sweep_id))
    return len(doomed)


def _left_over(connection: Connection, run_ids: Sequence[int]) -> list[int]:
    """Those of these runs that no sweep has any longer and that have not begun."""
    left: list[int] = []
    for ids in chunks(run_ids):
        query = select(Run.id).where(
            Run.id.in_(ids),
            Run.state == RunState.QUEUED,
            Run.attempt == 0,
            ~exists().where(SweepRun.run_id == Run.id),
        )
        left += connection.scalars(query.order_by(Run.id).with_for_update())
    return left


def _lock_runs(connection: Connection, run_ids: Sequence[int]) -> None:
    """Waits until no worker is storing results of these runs; SQLite has one writer anyway."""
    for ids in chunks(sorted(run_ids)):
        query = select(Run.id).where(Run.id.in_(ids)).order_by(Run.id)
        connection.execute(query.with_for_update())


def delete_runs(connection: Connection, run_ids: Sequence[int]) -> None:
    """Deletes runs with all that was stored of them, and configurations that no run has."""
    lower_sums(connection, run_ids)
    for ids in chunks(run_ids):
        for table in RESULTS:
            connection.execute(delete_rows(table).where(table.run_id.in_(ids)))
        connection.execute(delete_rows(Run).where(Run.id.in_(ids)))
    if run_ids:
        used = exists().where(Run.config_id == Config.id)
        connection.execute(delete_rows(Config).where(~used))
        delete_unused(connection)
        tested = select(Config.test_set_id).where(Config.test_set_id.is_not(None))
        connection.execute(delete_rows(TestString).where(TestString.test_set_id.not_in(tested)))
        connection.execute(delete_rows(TestSet).where(TestSet.id.not_in(tested)))


def _set_state(store: Store, sweep_ids: Sequence[int], state: SweepState) -> None:
    with store.change() as connection:
        connection.execute(update(Sweep).where(Sweep.id.in_(sweep_ids)).values(state=state))
        update_states(connection, sweep_ids)


def _sweep_id(connection: Connection, spec: SweepSpec, token: str) -> int:
    rows = connection.execute(select(Sweep.id, Sweep.spec).where(Sweep.name == spec.name))
    known = rows.one_or_none()
    if known is not None:
        if json.loads(known.spec).get("fixed", {}).get("architecture") == IMPORTED:
            raise ConfigError(
                f"sweep {spec.name!r} holds imported results; give the sweep to be trained "
                f"another name"
            )
        fields = {"description": spec.description, "spec": spec.submitted, "launch_token": token}
        this = update(Sweep).where(Sweep.id == known.id)
        connection.execute(this.values(**fields, state=SweepState.QUEUED))
        return int(known.id)
    return insert_sweep(connection, spec.name, spec.description, spec.submitted, launch_token=token)


def config_ids_of(connection: Connection, configs: Sequence[RunConfig]) -> list[int]:
    by_key = {config.key: config for config in configs}
    test_set_ids = _test_set_ids(connection, configs)
    rows = [
        {
            "key": key,
            "json": canonical_json(config.model_dump()),
            "test_set_id": test_set_ids[test_set_key(config)],
        }
        for key, config in by_key.items()
    ]
    insert_new(connection, Config, rows)
    ids = ids_of(connection, Config, by_key)
    return [ids[key] for key in by_key]


def _test_set_ids(connection: Connection, configs: Sequence[RunConfig]) -> dict[str, int]:
    """The test sets of these configurations, by their keys."""
    fields = {test_set_key(config): test_set_json(config) for config in configs}
    rows = [{"key": key, "json": canonical_json(value)} for key, value in fields.items()]
    insert_new(connection, TestSet, rows)
    return ids_of(connection, TestSet, fields)


def insert_runs(
    connection: Connection, config_ids: Sequence[int], model_seeds: Sequence[int]
) -> None:
    """Queues every one of these configurations with every seed, where that is no run yet."""
    for seeds in chunks(model_seeds):
        queue_runs(connection, product(config_ids, seeds))


def add_members(
    connection: Connection, sweep_id: int, config_ids: Sequence[int], model_seeds: Sequence[int]
) -> None:
    """Adds every one of these configurations with every seed to the sweep."""
    for seeds in chunks(model_seeds):
        members = select(literal(sweep_id), Run.id).where(
            Run.config_id.in_(config_ids), Run.model_seed.in_(seeds)
        )
        connection.execute(insert(SweepRun).from_select(["sweep_id", "run_id"], members))
