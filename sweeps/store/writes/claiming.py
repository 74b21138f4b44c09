"""Workers, their heartbeats and claims, and the release of dead workers' runs."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, exists, insert, select, update

from sweeps.grid.grouping import RunGroup
from sweeps.store.database import Store
from sweeps.store.reads.workers import dead_workers, this_host, time_of
from sweeps.store.statements import requirements_of
from sweeps.store.tables import Run, RunState, Sweep, SweepRun, Worker, now


@dataclass(frozen=True)
class Claim:
    """Runs that one worker alone trains, with the number of each run's attempt."""

    worker_id: int
    runs: RunGroup
    attempts: dict[int, int]


def register_worker(store: Store) -> int:
    """Registers this process as one that claims runs.

    Returns:
        The worker's id.
    """
    # By this machine's clock, like the start times of its processes.
    values = {"host": this_host(), "pid": os.getpid(), "started_at": now()}
    with store.write(quiet=True) as connection:
        values["heartbeat_at"] = time_of(connection)
        new = insert(Worker).values(**values).returning(Worker.id)
        return connection.execute(new).scalar_one()


def beat(store: Store, worker_id: int) -> None:
    """Stores a heartbeat of this worker."""
    with store.write(quiet=True) as connection:
        alive = {"heartbeat_at": time_of(connection)}
        connection.execute(update(Worker).where(Worker.id == worker_id).values(alive))


def release_dead(store: Store, asking_worker: int | None = None) -> int:
    """Queues the runs of dead workers again.

    A worker is dead when its heartbeat has been missing for `GRACE_SECONDS`, and one on this
    machine as soon as its process is gone. The asking worker, if any, never counts as dead: the
    clock may just have been set.

    Returns:
        The number of runs.
    """
    dead = [worker_id for worker_id in dead_workers(store) if worker_id != asking_worker]
    # Without a dead worker nothing is written: a write raises the revision, after which pages read
    # everything again.
    return _queue_again(store, Run.worker_id.in_(dead)) if dead else 0


def release(store: Store, worker_id: int, run_ids: Sequence[int] | None = None) -> int:
    """Queues this worker's unfinished runs again, or those of them that are named.

    Returns:
        The number of runs.
    """
    whose = Run.worker_id == worker_id
    return _queue_again(store, whose if run_ids is None else whose & Run.id.in_(run_ids))


def end_worker(store: Store, worker_id: int) -> None:
    """Queues this worker's unfinished runs again and stores that it has ended."""
    release(store, worker_id)
    with store.write(quiet=True) as connection:
        connection.execute(update(Worker).where(Worker.id == worker_id).values(ended_at=now()))


def claim(store: Store, worker_id: int, group: RunGroup) -> Claim | None:
    """Claims those runs of a group that are still queued, in a sweep that is not stopped.

    Returns:
        None if others claimed all of them.
    """
    ids = [run.id for run in group]
    goes_on = exists().where(
        SweepRun.run_id == Run.id,
        SweepRun.sweep_id == Sweep.id,
        Sweep.stopped_at.is_(None),
    )
    # Where the database can, runs that another worker is just claiming are skipped.
    free = (
        select(Run.id, Run.attempt)
        .where(Run.id.in_(ids), Run.state == RunState.QUEUED, goes_on)
        .with_for_update(skip_locked=True, key_share=True)
    )
    with store.write() as connection:
        # A sweep that was submitted since the group was planned may require more of a run.
        required = requirements_of(connection, ids)
        planned = (group[0].every_epoch, group[0].verdict)
        rows = connection.execute(free)
        attempts = {run_id: x + 1 for run_id, x in rows if required[run_id] == planned}
        if not attempts:
            return None
        taken = {"state": RunState.RUNNING, "worker_id": worker_id, "started_at": now()}
        mine = update(Run).where(Run.id.in_(attempts))
        connection.execute(mine.values(**taken, attempt=Run.attempt + 1, losses=None))
    return Claim(worker_id, tuple(run for run in group if run.id in attempts), attempts)


def _queue_again(store: Store, whose: ColumnElement[bool]) -> int:
    lost = select(Run.id).where(whose, Run.state == RunState.RUNNING)
    with store.write() as connection:
        # Locked in the order of ids, so that no two workers deadlock.
        connection.execute(lost.order_by(Run.id).with_for_update(key_share=True))
        return connection.execute(
            update(Run)
            .where(whose, Run.state == RunState.RUNNING)
            .values(state=RunState.QUEUED, worker_id=None, started_at=None, losses=None)
        ).rowcount
