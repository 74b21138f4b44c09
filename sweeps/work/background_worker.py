"""Workers that are started from elsewhere, such as a page, and live on without it.

Each registers in the table `worker`; its command line says which sweeps it was started for. The
folder `runs.db.logs` beside the database `runs.db` has its log, which is named by their ids.
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
"""What this process started, which may not have registered yet: for which database and sweeps."""

_starting = Lock()


def start_worker(store: Store, sweeps: Mapping[int, str], *, anyway: bool = False) -> bool:
    """Starts one worker process for those of these sweeps that no living one was started for.

    Asking twice, even at the same time, starts only one. The process is a session of its own and
    outlives the caller.

    Args:
        sweeps: names by id.
        anyway: start one beside a living one too, which may be about to end: it was stopped.

    Returns:
        Whether a process was started.

    Raises:
        StoreError: in place of the folder of logs is a link, which may lead anywhere; or this
            process only reads.
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
        # The name of a file has room for the ids of so many sweeps; of others no log is found.
        ids = "-".join(map(str, list(waiting)[:30]))
        # Mode x writes into no file, and through no link, that is there already.
        with (folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}-{ids}.log").open("xb") as output:
            process = subprocess.Popen(
                # Behind the dashes nothing is an option, whatever a sweep is called.
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
    """Whether a process of this machine that was started for the sweep is still alive."""
    # Each is asked: one that has ended is waited for by it and leaves no zombie.
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
    """Where the logs of a database's workers are; it need not exist."""
    if store.path is not None:
        return store.path.absolute().with_name(f"{store.path.name}.logs")
    # A server's database has no folder that is ours.
    name = hashlib.sha256(store.name.encode()).hexdigest()[:16]
    return platformdirs.user_log_path("seqcls") / name


# Their logs.

MAX_LOG_BYTES = 20_000
"""The most bytes of a log whose end is read."""


def read_log(store: Store, sweep_id: int) -> str | None:
    """The end of the log of the sweep's last worker; None where `start_worker` started none."""
    for path in _logs(store, sweep_id):
        # A link, a pipe or a second name of a file elsewhere would show that file.
        with suppress(OSError), open(path, "rb", opener=_open_no_link) as log:
            status = os.fstat(log.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                log.seek(max(0, status.st_size - MAX_LOG_BYTES))
                return log.read(MAX_LOG_BYTES).decode(errors="replace")
    return None


def _open_no_link(path: str, flags: int) -> int:
    # Without NONBLOCK, opening a pipe would wait for whoever writes it.
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def forget(store: Store, sweep_id: int) -> None:
    """Removes the logs of a deleted sweep's workers: another may get its id."""
    refuse_writes("removing a log")
    for path in _logs(store, sweep_id):
        path.unlink(missing_ok=True)


def _logs(store: Store, sweep_id: int) -> list[Path]:
    """The logs of a sweep's workers, the last first."""
    folder = log_folder(store)
    # Names begin with the time, and so the last in their order is the latest.
    named = [] if folder.is_symlink() else sorted(folder.glob("*-*.log"), reverse=True)
    return [path for path in named if str(sweep_id) in path.stem.split("-")[1:]]
