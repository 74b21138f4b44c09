"""Workers that are started from elsewhere, such as a page, and live on without it.

The folder `runs.db.logs` beside the database `runs.db` has the log of every such worker and, for
each sweep, a record of the last process started for it.
"""

import hashlib
import json
import os
import re
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

import platformdirs
import psutil
from filelock import FileLock

from seqcls.errors import StoreError
from sweeps.access import refuse_writes
from sweeps.processes import environment_of, python
from sweeps.store.databases.engine import Store

_started: list[subprocess.Popen[bytes]] = []
"""Kept so that those that have ended are waited for and leave no zombie."""


MAX_RECORD_BYTES = 10_000
"""A record is a line; whoever may write beside the database may write anything there."""

MAX_LOG_BYTES = 20_000
"""The most bytes of a log whose end is read."""

_LOG_NAME = re.compile(r"[0-9]{8}T[0-9]{6}\.[0-9]{6}\.log")


@dataclass(frozen=True)
class _Record:
    """The process that was started for a sweep; a process's number alone may come again."""

    pid: int
    created: float
    log: str

    def __post_init__(self) -> None:
        if type(self.pid) is not int or not 0 < self.pid < 2**31:
            raise ValueError(f"pid {self.pid!r}: expected the number of a process")
        if type(self.created) not in (int, float) or not 0 <= self.created < 1e11:
            raise ValueError(f"created {self.created!r}: expected a time in seconds")
        if type(self.log) is not str or not _LOG_NAME.fullmatch(self.log):
            raise ValueError(f"log {self.log!r}: expected the plain name of a log")


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
    # A link of that name may lead anywhere: filelock opens none.
    with FileLock(folder / "lock"):
        waiting = {
            key: name for key, name in sweeps.items() if anyway or not _lives(_record(folder, key))
        }
        if not waiting:
            return False
        record = _start(store, folder, list(waiting.values()))
        for sweep_id in waiting:
            _replace_file(_record_path(folder, sweep_id), json.dumps(asdict(record)))
    return True


def has_worker(store: Store, sweep_id: int) -> bool:
    """Whether a process that `start_worker` started for the sweep is still alive."""
    return _lives(_record(log_folder(store), sweep_id))


def read_log(store: Store, sweep_id: int) -> str | None:
    """The end of the log of the sweep's last worker; None where `start_worker` started none."""
    folder = log_folder(store)
    record = _record(folder, sweep_id)
    if record is None:
        return None
    try:
        return _end_of(folder / record.log, MAX_LOG_BYTES).decode(errors="replace")
    except OSError:
        return None


def forget(store: Store, sweep_id: int) -> None:
    """Removes what is known of a deleted sweep's worker; the log itself stays."""
    refuse_writes("removing a record")
    path = _record_path(log_folder(store), sweep_id)
    with suppress(OSError), _open_folder(path.parent) as folder:
        os.unlink(path.name, dir_fd=folder)


def log_folder(store: Store) -> Path:
    """Where the logs of a database's workers are; it need not exist."""
    if store.path is not None:
        return store.path.absolute().with_name(f"{store.path.name}.logs")
    # A server's database has no folder that is ours.
    name = hashlib.sha256(store.name.encode()).hexdigest()[:16]
    return platformdirs.user_log_path("seqcls") / name


def _start(store: Store, folder: Path, names: list[str]) -> _Record:
    _started[:] = [process for process in _started if process.poll() is None]
    log = folder / f"{datetime.now(UTC):%Y%m%dT%H%M%S.%f}.log"
    with log.open("xb") as output:
        process = subprocess.Popen(
            python("sweeps", "work", "--", *names),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment_of(store.address),
            start_new_session=True,
        )
    _started.append(process)
    return _Record(process.pid, psutil.Process(process.pid).create_time(), log.name)


def _replace_file(path: Path, content: str) -> None:
    """Writes a file anew: one that a link of this name leads to stays as it is."""
    new = path.with_name(f"{path.name}.{os.getpid()}")
    new.unlink(missing_ok=True)
    with new.open("x") as file:
        file.write(content)
    new.replace(path)


def _end_of(path: Path, max_bytes: int) -> bytes:
    """The last bytes of a file of its own; a link, a pipe or a device is refused, not read.

    Raises:
        OSError: there is no such file, or it is not a regular one.
    """
    with _open_folder(path.parent) as folder:
        file = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    try:
        status = os.fstat(file)
        # A second name of a file elsewhere would show that file.
        if not stat.S_ISREG(status.st_mode) or status.st_nlink != 1:
            raise OSError(f"{str(path)!r} is no file of its own")
        return os.pread(file, max_bytes, max(0, status.st_size - max_bytes))
    finally:
        os.close(file)


@contextmanager
def _open_folder(folder: Path) -> Iterator[int]:
    """A folder as a file descriptor; a link in its place is not followed.

    Raises:
        OSError: there is no such folder.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        yield opened
    finally:
        os.close(opened)


def _record_path(folder: Path, sweep_id: int) -> Path:
    return folder / f"sweep-{sweep_id}.json"


def _record(folder: Path, sweep_id: int) -> _Record | None:
    try:
        path = _record_path(folder, sweep_id)
        return _Record(**json.loads(_end_of(path, MAX_RECORD_BYTES)))
    except (OSError, ValueError, TypeError, RecursionError):
        return None


def _lives(record: _Record | None) -> bool:
    if record is None:
        return False
    for started in _started:
        started.poll()
    try:
        process = psutil.Process(record.pid)
        same: bool = process.create_time() == record.created
        return same and process.status() != psutil.STATUS_ZOMBIE
    except (psutil.Error, ValueError, OverflowError):
        return False
