"""Reads about work: queued runs, timings of finished runs, living and dead workers."""

import hashlib
import os
import socket
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
from sqlalchemy import Connection, Select, exists, func, select

from sweeps.grid.grouping import PlannedRun
from sweeps.store.database import Store
from sweeps.store.reads.stored import config_of
from sweeps.store.statements import frame, one_of, requirements_of
from sweeps.store.tables import Config, Run, RunState, Sweep, SweepRun, Worker, now

if TYPE_CHECKING:
    import pandas as pd

GRACE_SECONDS = 120.0
"""Time without a heartbeat after which a worker on any machine counts as dead."""

START_SECONDS = 1.0
"""Processor time to import PyTorch or Numba, at a process's first group."""


def queued_runs(store: Store, sweep_ids: Sequence[int] | None = None) -> list[PlannedRun]:
    """The queued runs of these sweeps, or of all, that belong to a sweep that is not stopped."""
    members = _members_that_go_on()
    if sweep_ids is not None:
        members = members.where(SweepRun.sweep_id.in_(sweep_ids))
    query = (
        select(Run.id, Run.model_seed, Run.failures, Run.config_id, Config.key, Config.json)
        .join(Config, Config.id == Run.config_id)
        .where(Run.state == RunState.QUEUED, Run.id.in_(members))
        .order_by(Run.id)
    )
    with store.read() as connection:
        rows = store.rows(query)
        required = requirements_of(connection, [row.id for row in rows])
    # Each configuration is parsed once, however many of its seeds are queued.
    stored = {(row.config_id, row.json, row.key) for row in rows}
    configs = {config_id: config_of(config_id, *rest) for config_id, *rest in stored}
    return [
        PlannedRun(row.id, configs[row.config_id], row.model_seed, *required[row.id], row.failures)
        for row in rows
    ]


def runs_that_go_on(store: Store, run_ids: Sequence[int]) -> set[int]:
    """Those of these runs that belong to a sweep that is not stopped."""
    return set(store.column(_members_that_go_on().where(SweepRun.run_id.in_(run_ids))))


def _members_that_go_on() -> Select[int]:
    sweep = Sweep.id == SweepRun.sweep_id
    return select(SweepRun.run_id).join(Sweep, sweep).where(Sweep.stopped_at.is_(None))


def finished_runs(store: Store, keys: Collection[str]) -> set[tuple[str, int]]:
    """The finished runs of these configurations, as (configuration's key, model seed)."""
    query = select(Config.key, Run.model_seed).join(Run, Run.config_id == Config.id)
    done = query.where(Run.state == RunState.DONE, one_of(Config.key, keys))
    return {(key, seed) for key, seed in store.rows(done)}


def timings(store: Store) -> "pd.DataFrame":
    """The durations of the newest 10,000 finished runs that were trained on this machine.

    Returns:
        config, a `RunConfig`; epochs; seconds, including work besides training, divided by the
        number of runs of its group.
    """
    import pandas as pd

    name = socket.gethostname()
    query = (
        select(Run.worker_id, Run.started_at, Run.finished_at, Run.epochs, Run.train_seconds)
        .add_columns(Config.id, Config.json)
        .join(Config, Config.id == Run.config_id)
        .join(Worker, Worker.id == Run.worker_id)
        .where(Run.state == RunState.DONE, Run.epochs > 0, Run.train_seconds.is_not(None))
        .where((Worker.host == name) | Worker.host.startswith(f"{name} ", autoescape=True))
    )
    runs = frame(store, query.order_by(Run.id.desc()).limit(10_000))
    began, ended = (pd.to_datetime(runs[f"{x}_at"], utc=True) for x in ("started", "finished"))
    members = runs.groupby(["worker_id", "started_at"])["id"].transform("size")
    # The members of a group were trained together, and share its duration.
    took = ((ended - began).dt.total_seconds() - START_SECONDS) / members
    stored = set(runs[["id", "json"]].itertuples(index=False, name=None))
    configs = {config_id: config_of(config_id, text) for config_id, text in stored}
    # Clocks may be set back, but no run took less than its own training.
    seconds = took.where(took > runs["train_seconds"], runs["train_seconds"])
    return runs.assign(config=runs["id"].map(configs), seconds=seconds)[
        ["config", "epochs", "seconds"]
    ]


# Living and dead workers.


def this_host() -> str:
    """The machine's name with a hash that tells it from others, and from containers, of that name.

    Process numbers are comparable only where this is the same: containers have their own.
    """
    try:
        space = os.stat("/proc/self/ns/pid").st_ino
        # The number of Linux's initial name space. A container may have a copy of any file but the
        # kernel's.
        known_by = "etc/machine-id" if space == 0xEFFFFFFC else "proc/sys/kernel/random/boot_id"
        identity = f"{Path('/', known_by).read_text().strip()} {space}"
    except OSError:
        return socket.gethostname()
    return f"{socket.gethostname()} {hashlib.sha256(identity.encode()).hexdigest()[:8]}"


def pids_here(store: Store) -> list[int]:
    """The process numbers of those of the last 100 workers of this machine that are alive."""
    query = select(Worker.pid, Worker.started_at).where(Worker.host == this_host())
    rows = store.rows(query.order_by(Worker.id.desc()).limit(100))
    return [row.pid for row in rows if is_alive(row.pid, row.started_at)]


def dead_workers(store: Store) -> list[int]:
    """The ids of dead workers that have runs in training; see `release_dead`."""
    busy = exists().where(Run.worker_id == Worker.id, Run.state == RunState.RUNNING)
    with store.read() as connection:
        workers = connection.execute(select(Worker.__table__).where(busy)).all()
        silent = time_of(connection, GRACE_SECONDS)
    here = this_host()
    return [
        worker.id
        for worker in workers
        if worker.heartbeat_at < silent
        or (worker.host == here and not is_alive(worker.pid, worker.started_at))
    ]


def time_of(connection: Connection, seconds_ago: float = 0.0) -> str:
    """The time by which heartbeats are measured: that of a server, whose clock all share."""
    if connection.dialect.name != "postgresql":
        return now(seconds_ago)
    then = connection.scalars(select(func.clock_timestamp())).one() - timedelta(0, seconds_ago)
    return str(then.astimezone(UTC).isoformat(timespec="milliseconds"))


def is_alive(pid: int, started_at: str) -> bool:
    """True if the process of this machine that registered at that time is alive.

    A process that began a minute later or more is another one with the same number; a zombie counts
    as dead.
    """
    try:
        process = psutil.Process(pid)
        began_later = process.create_time() - datetime.fromisoformat(started_at).timestamp()
        return process.status() != psutil.STATUS_ZOMBIE and began_later < 60
    except psutil.NoSuchProcess:
        return False
    except psutil.AccessDenied:
        return True
