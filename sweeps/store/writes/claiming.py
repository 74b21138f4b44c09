"""Who trains what: queued runs, workers, heartbeats, claims, and what dead workers leave."""

import hashlib
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil
from sqlalchemy import ColumnElement, Connection, Select, exists, insert, select, text, update

from sweeps.grid.grouping import PlannedRun, RunGroup
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import (
    chunks,
    forget_losses,
    inserted_id,
    sweeps_of,
    update_states,
    wanted_of,
)
from sweeps.store.tables import Config, Run, RunState, Sweep, SweepRun, SweepState, Worker, now
from sweeps.store.writes.stored import config_with_key


def queued_runs(store: Store, sweep_ids: Sequence[int] | None = None) -> list[PlannedRun]:
    """The runs of these sweeps, or of all, that no worker trains yet and no stop holds back."""
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


GRACE_SECONDS = 120.0
"""Without a heartbeat for so long, a worker counts as dead wherever it is."""

_SERVERS_TIME = text(
    "SELECT to_char((clock_timestamp() - make_interval(secs => :seconds)) AT TIME ZONE 'UTC', "
    '\'YYYY-MM-DD"T"HH24:MI:SS.MS"+00:00"\')'
)
"""The server's time as `now` writes it: such texts sort as times do."""

_FIRST_PID_SPACE = 0xEFFFFFFC
"""The inode of the name space of processes that Linux begins with; a container has another."""

_MACHINE, _BOOT = "/etc/machine-id", "/proc/sys/kernel/random/boot_id"
"""What tells a machine from others. A container may have a copy of any file, but the kernel's."""

_CLOCK_SECONDS = 60.0
"""A process that began so much later than a worker was registered is not that worker."""


@dataclass(frozen=True)
class Claim:
    """Runs that this worker alone trains, and which attempt this is of each."""

    worker_id: int
    runs: RunGroup
    attempts: dict[int, int]


def this_host() -> str:
    """The machine's name, and what tells it from others, and from containers, of that name.

    Process numbers mean something only where this is the same: containers have their own.
    """
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
        known_by = _MACHINE if space == _FIRST_PID_SPACE else _BOOT
        told = f"{Path(known_by).read_text().strip()} {space}"
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} {hashlib.sha256(told.encode()).hexdigest()[:8]}"


def register_worker(store: Store) -> int:
    """Makes this process known as one that claims runs.

    Returns:
        The worker's id.
    """
    # By this machine's clock, as what its system says of its processes.
    values = {"host": this_host(), "pid": os.getpid(), "started_at": now()}
    with store.begin() as connection:
        values["heartbeat_at"] = time_of(connection)
        return inserted_id(connection, insert(Worker).values(**values))


def beat(store: Store, worker_id: int) -> None:
    """Says that this worker is alive."""
    with store.begin() as connection:
        alive = {"heartbeat_at": time_of(connection)}
        connection.execute(update(Worker).where(Worker.id == worker_id).values(alive))


def release_dead(store: Store, asking_worker: int | None = None) -> int:
    """Queues the runs again whose worker is dead.

    A worker is dead when its heartbeat has been missing for `GRACE_SECONDS`, and one on this
    machine as soon as its process is gone. The asking worker, if any, never counts as dead: the
    clock may just have been set.

    Returns:
        How many runs that were.
    """
    dead = [worker_id for worker_id in dead_workers(store) if worker_id != asking_worker]
    return _queue_again(store, Run.worker_id.in_(dead)) if dead else 0


def dead_workers(store: Store) -> list[int]:
    """The dead workers that have runs in training; see `release_dead`."""
    busy = exists().where(Run.worker_id == Worker.id, Run.state == RunState.RUNNING)
    columns = (Worker.id, Worker.host, Worker.pid, Worker.started_at, Worker.heartbeat_at)
    with store.begin() as connection:
        workers = connection.execute(select(*columns).where(busy)).all()
        silent = time_of(connection, GRACE_SECONDS)
    here = this_host()
    return [
        worker.id
        for worker in workers
        if worker.heartbeat_at < silent
        or (worker.host == here and not is_alive(worker.pid, worker.started_at))
    ]


def still_held(store: Store, worker_id: int, run_ids: Sequence[int]) -> set[int]:
    """Those of these runs that this worker still trains."""
    mine = select(Run.id).where(
        Run.id.in_(run_ids), Run.worker_id == worker_id, Run.state == RunState.RUNNING
    )
    with store.begin() as connection:
        return set(connection.scalars(mine))


def time_of(connection: Connection, seconds_ago: float = 0.0) -> str:
    """The time that heartbeats are measured by: a server's own, since all share its clock."""
    if connection.dialect.name != "postgresql":
        return now(seconds_ago)
    return str(connection.scalar(_SERVERS_TIME, {"seconds": seconds_ago}))


def release(store: Store, worker_id: int, run_ids: Sequence[int] | None = None) -> int:
    """Queues this worker's unfinished runs again, or those of them that are named.

    Returns:
        How many runs that were.
    """
    whose = Run.worker_id == worker_id
    return _queue_again(store, whose if run_ids is None else whose & Run.id.in_(run_ids))


def end_worker(store: Store, worker_id: int) -> None:
    """Queues this worker's unfinished runs again and says that it has ended."""
    release(store, worker_id)
    with store.begin() as connection:
        connection.execute(update(Worker).where(Worker.id == worker_id).values(ended_at=now()))


def claim(store: Store, worker_id: int, group: RunGroup) -> Claim | None:
    """Takes those runs of a group that are still queued, of a sweep that is not stopped.

    Returns:
        None where others took them all.
    """
    ids = [run.id for run in group]
    goes_on = exists().where(
        SweepRun.run_id == Run.id,
        SweepRun.sweep_id == Sweep.id,
        Sweep.state != SweepState.STOPPED,
    )
    # Where the database can, runs that another worker is just taking are passed over.
    free = (
        select(Run.id, Run.attempt, Run.model_seed, Config.key)
        .join(Config, Config.id == Run.config_id)
        .where(Run.id.in_(ids), Run.state == RunState.QUEUED, goes_on)
        .with_for_update(skip_locked=True, of=Run, key_share=True)
    )
    with store.change() as connection:
        # An id may have been given to another run since the group was planned, and a sweep that
        # was submitted since may want more of a run.
        wants = wanted_of(connection, ids)
        planned = {run.id: (run.model_seed, run.config.key) for run in group}
        wanted = (group[0].every_epoch, group[0].verdict)
        attempts = {
            run_id: attempt + 1
            for run_id, attempt, *key in connection.execute(free)
            if tuple(key) == planned[run_id] and wants[run_id] == wanted
        }
        if not attempts:
            return None
        # A worker that was killed, or one of another version, may have left some.
        forget_losses(connection, attempts)
        taken = {"state": RunState.RUNNING, "worker_id": worker_id, "started_at": now()}
        mine = update(Run).where(Run.id.in_(attempts))
        connection.execute(mine.values(**taken, attempt=Run.attempt + 1))
        update_states(connection, sweeps_of(connection, attempts))
    return Claim(worker_id, tuple(run for run in group if run.id in attempts), attempts)


def is_alive(pid: int, started_at: str) -> bool:
    """Whether the process of this machine that registered then is still there.

    Another process may have its number by now; a zombie trains nothing.
    """
    try:
        process = psutil.Process(pid)
        began_later = process.create_time() - datetime.fromisoformat(started_at).timestamp()
        return process.status() != psutil.STATUS_ZOMBIE and began_later < _CLOCK_SECONDS
    except (psutil.NoSuchProcess, ValueError, OverflowError):
        # No process has a number like that.
        return False
    except psutil.AccessDenied:
        return True


def _queue_again(store: Store, whose: ColumnElement[bool]) -> int:
    lost = select(Run.id).where(whose, Run.state == RunState.RUNNING)
    with store.change() as connection:
        ids = connection.scalars(lost.order_by(Run.id).with_for_update(key_share=True)).all()
        forget_losses(connection, ids)
        affected = sweeps_of(connection, lost)
        released = connection.execute(
            update(Run)
            .where(whose, Run.state == RunState.RUNNING)
            .values(state=RunState.QUEUED, worker_id=None, started_at=None)
        ).rowcount
        update_states(connection, affected)
    return released
