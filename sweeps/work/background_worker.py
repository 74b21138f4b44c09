"""Workers that are started by another program, such as a page, and outlive it.

Each registers in the table `worker`; its command line names the sweeps that it was started for. Its
log is in the folder `runs.db.logs` beside the database `runs.db`, and is named by their ids.
"""

import hashlib
import os
import stat
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock

import platformdirs
import psutil

from seqcls.errors import StoreError
from sweeps.access import refuse_writes
from sweeps.processes import environment_of, python
from sweeps.store.database import Store
from sweeps.store.reads.sweep_queries import sweep_names
from sweeps.store.reads.workers import pids_here

_started: dict[subprocess.Popen[bytes], tuple[str, list[int]]] = {}
"""Workers that this process started, with their database's address and their sweeps."""

_starting = Lock()


def start_worker(store: Store, sweeps: Mapping[int, str], *, anyway: bool = False) -> bool:
    """Starts one worker process for those of these sweeps that no living one was started for.

    Two calls, even at the same time, start only one. The process has its own session and outlives
    the caller.

    Args:
        sweeps: names by id.
        anyway: True to start one even beside a living one, which may be about to end.

    Returns:
        True if a process was started.

    Raises:
        StoreError: the folder of logs is a link, which may lead anywhere; or this process only
            reads.
    """
    refuse_writes("starting a worker")
    folder = log_folder(store)
    if folder.is_symlink():
        raise StoreError(f"{str(folder)!r} is a link: expected a folder for logs; remove the link")
    folder.mkdir(parents=True, exist_ok=True)
    with _starting:
        waiting = {key: sweeps[key] for key in sweeps if anyway or not has_worker(store, key)}
        if not waiting:
            return False
        # The length of a file's name limits the number of ids; for further sweeps no log is found.
        ids = "-".join(map(str, list(waiting)[:30]))
        # Mode x never writes into an existing file or through a link.
        with (folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{ids}.log").open("xb") as output:
            process = subprocess.Popen(
                # After the dashes no name of a sweep is read as an option.
                python("sweeps", "work", "--", *waiting.values()),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment_of(store.address),
                start_new_session=True,
            )
        _started[process] = (store.address, list(waiting))
    return True


def has_worker(store: Store, sweep_id: int) -> bool:
    """True if a process of this machine that was started for the sweep is alive."""
    # `poll` is called on each, so that those that have ended leave no zombies.
    alive = [own for process, own in list(_started.items()) if process.poll() is None]
    if any(address == store.address and sweep_id in ids for address, ids in alive):
        return True
    name = sweep_names(store).get(sweep_id)
    for pid in pids_here(store):
        with suppress(psutil.Error):
            command = psutil.Process(pid).cmdline()
            if "--" in command and name in command[command.index("--") + 1 :]:
                return True
    return False


def log_folder(store: Store) -> Path:
    """The folder of the logs of a database's workers, which may not exist."""
    if store.path is not None:
        return store.path.absolute().with_name(f"{store.path.name}.logs")
    # A server's database has no folder here.
    name = hashlib.sha256(store.name.encode()).hexdigest()[:16]
    return platformdirs.user_log_path("seqcls") / name


# Their logs.

MAX_LOG_BYTES = 20_000
"""The number of bytes that are read from the end of a log."""


def read_log(store: Store, sweep_id: int) -> str | None:
    """The end of the log of the sweep's last worker; None if `start_worker` started none."""
    for path in _logs(store, sweep_id):
        # Links, hard links and pipes are skipped: they would reveal another file.
        with suppress(OSError), open(path, "rb", opener=_open_no_link) as log:
            status = os.fstat(log.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                log.seek(max(0, status.st_size - MAX_LOG_BYTES))
                return log.read(MAX_LOG_BYTES).decode(errors="replace")
    return None


def _open_no_link(path: str, flags: int) -> int:
    # Without NONBLOCK, opening a pipe would wait for its writer.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def forget(store: Store, sweep_id: int) -> None:
    """Removes the logs of a deleted sweep's workers."""
    refuse_writes("removing a log")
    for path in _logs(store, sweep_id):
        path.unlink(missing_ok=True)


def _logs(store: Store, sweep_id: int) -> list[Path]:
    """The logs of a sweep's workers, the last first."""
    folder = log_folder(store)
    # Names begin with the time.
    named = [] if folder.is_symlink() else sorted(folder.glob("*-*.log"), reverse=True)
    return [path for path in named if str(sweep_id) in path.stem.split("-")[1:]]
