"""Logs of workers that pages started, which stand in a folder beside the database."""

import os
import stat
from contextlib import suppress
from pathlib import Path

from sweeps.access import refuse_writes
from sweeps.store.database import Store
from sweeps.work.background_worker import log_folder

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
    named = [] if folder.is_symlink() else sorted(folder.glob("*-*.log"), reverse=True)
    return [path for path in named if str(sweep_id) in path.stem.split("-")[1:]]
