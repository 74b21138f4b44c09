"""Reads of work: which runs wait, which workers are dead, how long finished runs took."""

import hashlib
import os
import socket
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
from sqlalchemy import Connection, Select, exists, select, text

from seqcls.config import RunConfig
from sweeps.grid.grouping import PlannedRun
from sweeps.store.databases.engine import Store
from sweeps.store.databases.statements import chunks, wanted_of
from sweeps.store.reads.stored import config_of
from sweeps.store.tables import Config, Run, RunState, Sweep, SweepRun, Worker, now


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
            config_id: config_of(config_id, text, key)
            for config_id, key, text in {(row.config_id, row.key, row.json) for row in rows}
        }
    return [
        PlannedRun(row.id, configs[row.config_id], row.model_seed, *wants[row.id], row.failures)
        for row in rows
    ]


def trained_runs(store: Store, worker_id: int) -> list[int]:
    """The finished runs that a worker trained."""
    query = select(Run.id).where(Run.worker_id == worker_id, Run.state == RunState.DONE)
    with store.begin() as connection:
        return list(connection.scalars(query))


def runs_that_go_on(store: Store, run_ids: Sequence[int]) -> set[int]:
    """Those of these runs that belong to a sweep that is not stopped."""
    with store.begin() as connection:
        members = _members_that_go_on().where(SweepRun.run_id.in_(run_ids))
        return set(connection.scalars(members))


def _members_that_go_on() -> Select[int]:
    return (
        select(SweepRun.run_id)
        .join(Sweep, Sweep.id == SweepRun.sweep_id)
        .where(Sweep.stopped_at.is_(None))
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


def time_of(connection: Connection, seconds_ago: float = 0.0) -> str:
    """The time that heartbeats are measured by: a server's own, since all share its clock."""
    if connection.dialect.name != "postgresql":
        return now(seconds_ago)
    return str(connection.scalar(_SERVERS_TIME, {"seconds": seconds_ago}))


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


# Reads of how long finished runs took, and of which runs are finished.


@dataclass(frozen=True)
class Timing:
    """How long a finished run took."""

    key: str
    """The key of its configuration."""
    train_seconds: float
    epochs: int
    worker_id: int | None
    started_at: str
    finished_at: str
    host: str | None


def finished_runs(store: Store, keys: Collection[str]) -> set[tuple[str, int]]:
    """Finished runs of these configurations, by the configuration's key and the model seed."""
    known: set[tuple[str, int]] = set()
    query = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    with store.begin() as connection:
        for some in chunks(sorted(keys)):
            done = query.where(Config.key.in_(some), Run.state == RunState.DONE)
            known |= {(key, seed) for key, seed in connection.execute(done)}
    return known


NEWEST = 10_000
"""Finished runs of other configurations that are read: more tell nothing new."""


def timings(store: Store, keys: Collection[str] = ()) -> tuple[list[Timing], dict[str, RunConfig]]:
    """What finished runs took, and their configurations by key.

    Args:
        keys: of configurations of which all runs are read; of others the newest.
    """
    query = (
        select(
            Config.key,
            Run.train_seconds,
            Run.epochs,
            Run.worker_id,
            Run.started_at,
            Run.finished_at,
            Worker.host,
            Config.id,
            Config.json,
            Run.id.label("run_id"),
        )
        .join(Run, Run.config_id == Config.id)
        .outerjoin(Worker, Worker.id == Run.worker_id)
        .where(Run.state == RunState.DONE, Run.train_seconds.is_not(None))
        .where(Run.epochs.is_not(None))
        .where(Run.started_at.is_not(None), Run.finished_at.is_not(None))
    )
    with store.begin() as connection:
        rows: list[Any] = list(connection.execute(query.order_by(Run.id.desc()).limit(NEWEST)))
        if len(rows) == NEWEST:
            oldest = rows[-1].run_id
            for some in chunks(sorted(keys)):
                rows += connection.execute(query.where(Config.key.in_(some), Run.id < oldest))
        one_each = {row.key: row for row in rows}
        configs = {key: config_of(row.id, row.json) for key, row in one_each.items()}
    return [Timing(*row[:-3]) for row in rows], configs
