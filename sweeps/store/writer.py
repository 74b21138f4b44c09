"""Every write to the database."""

import os
import socket
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Insert,
    bindparam,
    case,
    delete,
    exists,
    func,
    insert,
    literal,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert as insert_or_ignore

from seqcls import results
from seqcls.config import RunConfig, canonical_json
from sweeps.grouping import PlannedRun, RunGroup
from sweeps.outcome import Outcome
from sweeps.spec import SweepSpec
from sweeps.store.digest import run_digest
from sweeps.store.engine import Store
from sweeps.store.tables import (
    Base,
    Checkpoint,
    Config,
    Epoch,
    Failure,
    LengthScore,
    Run,
    RunState,
    StringError,
    Sweep,
    SweepRun,
    SweepState,
    Verdict,
    Worker,
    now,
)

MAX_ATTEMPTS = 3
"""A run that failed this often is not tried again by itself."""


@dataclass(frozen=True)
class Claim:
    """Runs that this worker, and nobody else, trains; and which attempt this is of each."""

    worker_id: int
    runs: RunGroup
    attempts: dict[int, int]


def submit(store: Store, spec: SweepSpec) -> int:
    """Makes the sweep of that name what the specification says; queues the runs that are new.

    Runs that it no longer asks for stay in the database, outside of it. One transaction.

    Returns:
        The sweep's id.
    """
    with store.begin() as connection:
        sweep_id = _sweep_id(connection, spec)
        connection.execute(delete(SweepRun).where(SweepRun.sweep_id == sweep_id))
        for config in spec.configs():
            _add_runs(connection, sweep_id, _config_id(connection, config), spec.model_seeds)
        _update_sweep_states(connection)
    return sweep_id


def register_worker(store: Store) -> int:
    """Makes this process known as one that claims runs.

    Returns:
        The worker's id.
    """
    with store.begin() as connection:
        return _inserted_id(
            connection,
            insert(Worker).values(
                host=socket.gethostname(), pid=os.getpid(), started_at=now(), heartbeat_at=now()
            ),
        )


def release_dead(store: Store) -> int:
    """Queues the runs again whose worker was a process of this machine that is no more.

    Returns:
        How many runs that were.
    """
    with store.begin() as connection:
        here = select(Worker.id, Worker.pid).where(
            Worker.host == socket.gethostname(),
            exists().where(Run.worker_id == Worker.id, Run.state == RunState.RUNNING),
        )
        dead = [worker for worker, pid in connection.execute(here) if not _alive(pid)]
        return _queue_again(connection, Run.worker_id.in_(dead))


def release(store: Store, worker_id: int) -> int:
    """Queues this worker's unfinished runs again.

    Returns:
        How many runs that were.
    """
    with store.begin() as connection:
        return _queue_again(connection, Run.worker_id == worker_id)


def claim(store: Store, worker_id: int, group: RunGroup) -> Claim | None:
    """Takes those runs of a group that are still queued; None where others took them all."""
    ids = [run.id for run in group]
    with store.begin() as connection:
        connection.execute(
            update(Run)
            .where(Run.id.in_(ids), Run.state == RunState.QUEUED)
            .values(
                state=RunState.RUNNING,
                attempt=Run.attempt + 1,
                worker_id=worker_id,
                started_at=now(),
            )
        )
        mine = select(Run.id, Run.attempt).where(
            Run.id.in_(ids), Run.state == RunState.RUNNING, Run.worker_id == worker_id
        )
        attempts = dict(connection.execute(mine).all())
        _update_sweep_states(connection)
    if not attempts:
        return None
    return Claim(worker_id, tuple(run for run in group if run.id in attempts), attempts)


def record(store: Store, claimed: Claim, outcomes: Sequence[Outcome]) -> int:
    """Stores a group's results and the change of its runs' state, all in one transaction.

    Fenced on run, attempt and worker: a run that was meanwhile given to another worker is left
    to that one.

    Returns:
        How many runs were recorded.
    """
    recorded = 0
    with store.begin() as connection:
        for run, outcome in zip(claimed.runs, outcomes, strict=True):
            if not _is_held(connection, claimed, run.id):
                continue
            recorded += 1
            if outcome.failure is None:
                _insert_results(connection, run, outcome)
            else:
                # Training again would diverge again: nothing in it is left to chance.
                attempt = claimed.attempts[run.id]
                _insert_failure(connection, run.id, attempt, outcome.failure, final=True)
        _update_sweep_states(connection)
    return recorded


def record_verdict(store: Store, run_id: int, found: results.Verdict) -> None:
    """Stores what the exhaustive check of a finished run has found."""
    with store.begin() as connection:
        connection.execute(delete(Verdict).where(Verdict.run_id == run_id))
        connection.execute(insert(Verdict).values(run_id=run_id, **asdict(found)))


def record_lost(store: Store, claimed: Claim, reason: str) -> None:
    """Stores that an attempt ended without a result; queues its runs again, but not for ever."""
    with store.begin() as connection:
        for run in claimed.runs:
            if _is_held(connection, claimed, run.id):
                attempt = claimed.attempts[run.id]
                # Failures count, not claims: stopping a sweep by hand is no fault of its runs.
                before = select(func.count()).where(Failure.run_id == run.id)
                final = connection.scalars(before).one() + 1 >= MAX_ATTEMPTS
                _insert_failure(connection, run.id, attempt, reason, final=final)
        _update_sweep_states(connection)


def _sweep_id(connection: Connection, spec: SweepSpec) -> int:
    fields = {"description": spec.description, "spec": spec.submitted}
    known = connection.scalar(select(Sweep.id).where(Sweep.name == spec.name))
    if known is not None:
        connection.execute(update(Sweep).where(Sweep.id == known).values(**fields))
        return known
    return _inserted_id(
        connection,
        insert(Sweep).values(
            name=spec.name,
            created_at=now(),
            state=SweepState.QUEUED,
            launch_token=uuid.uuid4().hex,
            **fields,
        ),
    )


def _config_id(connection: Connection, config: RunConfig) -> int:
    connection.execute(
        insert_or_ignore(Config)
        .values(key=config.key, json=canonical_json(config.model_dump()))
        .on_conflict_do_nothing()
    )
    return connection.scalars(select(Config.id).where(Config.key == config.key)).one()


def _add_runs(
    connection: Connection, sweep_id: int, config_id: int, model_seeds: Sequence[int]
) -> None:
    rows = [{"seed": seed} for seed in model_seeds]
    connection.execute(
        insert_or_ignore(Run)
        .values(config_id=config_id, model_seed=bindparam("seed"), state=RunState.QUEUED, attempt=0)
        .on_conflict_do_nothing(),
        rows,
    )
    found = select(literal(sweep_id), Run.id).where(
        Run.config_id == config_id, Run.model_seed == bindparam("seed")
    )
    connection.execute(insert(SweepRun).from_select(["sweep_id", "run_id"], found), rows)


def _inserted_id(connection: Connection, statement: Insert) -> int:
    key = connection.execute(statement).inserted_primary_key
    assert key is not None
    return int(key[0])


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _queue_again(connection: Connection, whose: ColumnElement[bool]) -> int:
    released = connection.execute(
        update(Run)
        .where(whose, Run.state == RunState.RUNNING)
        .values(state=RunState.QUEUED, worker_id=None, started_at=None)
    ).rowcount
    _update_sweep_states(connection)
    return released


def _is_held(connection: Connection, claimed: Claim, run_id: int) -> bool:
    held = select(Run.id).where(
        Run.id == run_id,
        Run.state == RunState.RUNNING,
        Run.attempt == claimed.attempts[run_id],
        Run.worker_id == claimed.worker_id,
    )
    return connection.scalar(held) is not None


def _insert_results(connection: Connection, run: PlannedRun, outcome: Outcome) -> None:
    evaluation = outcome.evaluation
    assert evaluation is not None
    assert outcome.best_epoch is not None
    losses = zip(outcome.train_losses, outcome.validation_losses, strict=True)
    rows: dict[type[Base], list[dict[str, Any]]] = {
        Epoch: [
            {"epoch": epoch, "train_loss": train, "validation_loss": validation}
            for epoch, (train, validation) in enumerate(losses, start=1)
        ],
        LengthScore: [
            {"length": length, **confusion._asdict()}
            for length, confusion in evaluation.by_length.items()
        ],
        StringError: [error._asdict() for error in evaluation.errors],
        Checkpoint: [
            {"epoch": epoch, "weights": weights} for epoch, weights in outcome.checkpoints.items()
        ],
    }
    for table, own in rows.items():
        if own:
            connection.execute(insert(table).values(run_id=run.id), own)
    if outcome.verdict is not None:
        connection.execute(insert(Verdict).values(run_id=run.id, **asdict(outcome.verdict)))
    summary = {
        "epochs": len(outcome.train_losses),
        "best_epoch": outcome.best_epoch,
        "best_validation_loss": outcome.validation_losses[outcome.best_epoch - 1],
        "solved_length": evaluation.solved_length,
        **evaluation.confusion._asdict(),
    }
    digest = run_digest(
        run.config.key,
        run.model_seed,
        summary,
        epochs=rows[Epoch],
        lengths=rows[LengthScore],
        errors=rows[StringError],
        checkpoints=rows[Checkpoint],
    )
    done = {
        "state": RunState.DONE,
        "finished_at": now(),
        "error": None,
        "engine": outcome.engine,
        "train_seconds": outcome.train_seconds,
        "digest": digest,
        **summary,
    }
    connection.execute(update(Run).where(Run.id == run.id).values(done))


def _insert_failure(
    connection: Connection, run_id: int, attempt: int, reason: str, *, final: bool
) -> None:
    connection.execute(
        insert(Failure).values(run_id=run_id, attempt=attempt, at=now(), reason=reason)
    )
    ended = {"state": RunState.FAILED, "finished_at": now(), "error": reason}
    again = {"state": RunState.QUEUED, "worker_id": None, "started_at": None}
    connection.execute(update(Run).where(Run.id == run_id).values(ended if final else again))


def _update_sweep_states(connection: Connection) -> None:
    """Every sweep's state follows from those of its runs."""

    def has_run(*states: RunState) -> ColumnElement[bool]:
        return exists().where(
            SweepRun.sweep_id == Sweep.id, SweepRun.run_id == Run.id, Run.state.in_(states)
        )

    connection.execute(
        update(Sweep).values(
            state=case(
                (has_run(RunState.RUNNING), SweepState.RUNNING),
                (has_run(RunState.QUEUED), SweepState.QUEUED),
                else_=SweepState.DONE,
            )
        )
    )
