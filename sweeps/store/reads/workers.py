"""Reads of work: which runs wait, which workers are dead, how long finished runs took."""

import hashlib
import os
import socket
from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import psutil
from sqlalchemy import Connection, Select, exists, select, text

from seqcls.config import RunConfig
from sweeps.grid.grouping import PlannedRun
from sweeps.store.database import Store
from sweeps.store.reads.stored import config_of
from sweeps.store.statements import chunks, wanted_of
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
    with store.read() as connection:
        rows = connection.execute(query).all()
        for ids in chunks(row.id for row in rows):
            wants |= wanted_of(connection, ids)
    stored = {(row.config_id, row.json, row.key) for row in rows}
    configs = {config_id: config_of(config_id, *rest) for config_id, *rest in stored}
    return [
        PlannedRun(row.id, configs[row.config_id], row.model_seed, *wants[row.id], row.failures)
        for row in rows
    ]


def pids_here(store: Store) -> list[int]:
    """The processes of this machine that registered as workers lately and are still there."""
    query = select(Worker.pid, Worker.started_at).where(Worker.host == this_host())
    with store.read() as connection:
        rows = connection.execute(query.order_by(Worker.id.desc()).limit(LATELY)).all()
    return [row.pid for row in rows if is_alive(row.pid, row.started_at)]


def trained_runs(store: Store, worker_id: int) -> list[int]:
    """The finished runs that a worker trained."""
    query = select(Run.id).where(Run.worker_id == worker_id, Run.state == RunState.DONE)
    with store.read() as connection:
        return list(connection.scalars(query))


def runs_that_go_on(store: Store, run_ids: Sequence[int]) -> set[int]:
    """Those of these runs that belong to a sweep that is not stopped."""
    with store.read() as connection:
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


LATELY = 100
"""Workers that are looked for among the processes of this machine."""


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
    with store.read() as connection:
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


def finished_runs(store: Store, keys: Collection[str]) -> set[tuple[str, int]]:
    """Finished runs of these configurations, by the configuration's key and the model seed."""
    known: set[tuple[str, int]] = set()
    query = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    with store.read() as connection:
        for some in chunks(sorted(keys)):
            done = query.where(Config.key.in_(some), Run.state == RunState.DONE)
            known |= {(key, seed) for key, seed in connection.execute(done)}
    return known


NEWEST = 10_000
"""Finished runs that are read: more tell nothing new."""

START_SECONDS = 1.0
"""What importing PyTorch or Numba takes of a processor, at a process's first group."""


class Timing(NamedTuple):
    """What a finished run took."""

    config: RunConfig
    epochs: int
    seconds: float
    """With what is done beside the training, divided by the runs of its group."""


def timings(store: Store) -> list[Timing]:
    """What the newest finished runs took that a worker of this machine trained."""
    name = socket.gethostname()
    query = (
        select(Run.worker_id, Run.started_at, Run.finished_at, Run.epochs, Run.train_seconds)
        .add_columns(Config.id, Config.json)
        .join(Config, Config.id == Run.config_id)
        .join(Worker, Worker.id == Run.worker_id)
        .where(Run.state == RunState.DONE, Run.epochs.is_not(None), Run.train_seconds.is_not(None))
        .where(Run.started_at.is_not(None), Run.finished_at.is_not(None))
        .where((Worker.host == name) | Worker.host.startswith(f"{name} ", autoescape=True))
        .order_by(Run.id.desc())
        .limit(NEWEST)
    )
    with store.read() as connection:
        rows = connection.execute(query).all()
    configs = {key: config_of(key, text) for key, text in {(row.id, row.json) for row in rows}}
    members = Counter((row.worker_id, row.started_at) for row in rows)
    found = []
    for row in rows:
        began, ended = map(datetime.fromisoformat, (row.started_at, row.finished_at))
        in_all = (ended - began).total_seconds() - START_SECONDS
        seconds = max(row.train_seconds, in_all / members[row.worker_id, row.started_at])
        found.append(Timing(configs[row.id], row.epochs, seconds))
    return found
