"""SQLite: how a file is opened, and what its errors mean.

Writers begin every transaction IMMEDIATE, and leave a file in WAL mode once they have changed it;
readers open it read-only. (A
deferred transaction that reads and then writes fails at once with SQLITE_BUSY_SNAPSHOT when
another process wrote in between, whatever the timeout.)
"""

import os
import shlex
import shutil
import sqlite3
import stat
import time
import warnings
from contextlib import closing, suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Literal
from urllib.parse import quote

import psutil
from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import IntegrityError, SQLAlchemyError

from seqcls import cancellation
from seqcls.errors import (
    ConfigError,
    MachineError,
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreUnavailableError,
)
from sweeps.access import connect_to, open_to_read, refuse_writes
from sweeps.files import whole_files

BUSY_SECONDS = 60.0
"""How long a connection waits for another's lock."""

STEPS = 100_000
"""Steps of SQLite's machine between two looks at the clock."""

PACKED_PAGE_BYTES = 2048
"""Half of what is usual: each table and index ends in half an empty page."""

NETWORK_FILE_SYSTEMS = (
    *("9p", "afs", "beegfs", "ceph", "cifs", "fuse.sshfs", "gpfs", "lustre"),
    *("nfs", "nfs4", "smb3", "smbfs"),
)

TOO_LONG = (
    "a page's question took too long, and was ended; choose one sweep, or fewer model seeds or "
    "settings, in the filters of the sidebar"
)
DAMAGED = "it is damaged; restore a copy (`seqcls db verify` names the runs that do not fit)"

_INTERRUPTED = (
    "a write to it was interrupted, and only who may write it and its folder can undo that: let "
    "them run `seqcls db check --db {}`, and delete nothing beside it"
)
"""What SQLite's codes for a file mean whose journal or log this process may not play back."""

READS_ONLY = "reads_only"
"""The option of an engine that says whether it refuses every write."""

_UNAVAILABLE = {
    "attempt to write a readonly database": "it may not be written; check its permissions",
    "unable to open database file": (
        "it cannot be opened; check that it and its folder are there and may be written"
    ),
    "database or disk is full": "the disk is full; free some space and run this again",
    "disk I/O error": (
        "the disk cannot be written (it is full, unmounted, or limits the size of files); fix "
        "that and run this again"
    ),
}
_EMPTIED = (
    "it was emptied or replaced while it was open, and has no tables; put a copy of it back, or "
    "remove it and begin anew"
)
_DAMAGED = {
    "file is not a database": "it is no SQLite database; name another file",
    "database disk image is malformed": DAMAGED,
}


read_seconds: float | None = None
"""How long a reader may take; None for as long as it takes. A program of pages sets it once."""


Mode = Literal["ro", "rw", "rwc", "again"]

FileId = tuple[int, int]
"""The device and the number of a file, by which it is known apart from one put in its place."""


def connect(
    path: Path,
    mode: Mode,
    busy_seconds: float | None = None,
    file: FileId | None = None,
) -> Engine:
    """An engine on a file, each of whose transactions is a connection of its own.

    Args:
        mode: `ro` reads only; `rw` leaves the file in the journal mode that it has; `rwc` puts it
            into write-ahead mode, and creates it if it is missing; `again` does the first once it
            has changed something, of a file that was open before: it is refused where it was
            emptied or replaced since.
        busy_seconds: how long a connection waits for another's lock; `BUSY_SECONDS` if None.
        file: which file it was; any where it is None.

    Raises:
        ReadOnlyError: this process only reads, and the mode is another.
    """
    if mode != "ro":
        refuse_writes(f"writing to {str(path)!r}")
    return _engine(path.absolute(), mode, busy_seconds, file)


def file_id(path: Path) -> FileId | None:
    """Which file it is; None on a network file system, where that may change by itself."""
    if network_file_system(path) is not None:
        return None
    status = os.stat(path)
    return status.st_dev, status.st_ino


# An engine remembers how each statement is written out; a page opens its file dozens of times.
@lru_cache(maxsize=16)
def _engine(path: Path, mode: Mode, busy_seconds: float | None, file: FileId | None) -> Engine:
    seconds = BUSY_SECONDS if busy_seconds is None else busy_seconds
    creator = partial(_new_connection, path, mode, seconds, file)
    # NullPool: a connection that idles in a pool would keep its file open for nothing.
    engine = create_engine(
        "sqlite://",
        creator=creator,
        poolclass=NullPool,
        execution_options={READS_ONLY: mode == "ro"},
    )

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_isolation_level() != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN" if mode == "ro" else "BEGIN IMMEDIATE")

    if mode == "again":
        event.listen(engine, "checkin", _write_ahead_from_now)

    return engine


def _new_connection(
    path: Path, mode: Mode, busy_seconds: float, file: FileId | None
) -> sqlite3.Connection:
    if mode == "ro":
        connection = open_to_read(path, busy_seconds)
    else:
        if mode == "again":
            # SQLite would wait for locks on an empty file, and fill another one.
            _refuse_changed(path, file)
        how = "rw" if mode == "again" else mode
        connection = connect_to(f"file:{quote(str(path))}?mode={how}", busy_seconds)
    connection.execute("PRAGMA foreign_keys=ON")
    if mode == "ro":
        # What a file says of its own schema calls no function that does more than compute.
        connection.execute("PRAGMA trusted_schema=OFF")
    if mode == "ro":
        begin_reading(connection)
    if mode == "rwc":
        connection.execute("PRAGMA journal_mode=WAL")
    if mode in ("rwc", "again") and _is_write_ahead(connection):
        connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def _is_write_ahead(connection: sqlite3.Connection) -> bool:
    (mode,) = connection.execute("PRAGMA journal_mode").fetchone()
    return bool(mode == "wal")


def _write_ahead_from_now(connection: sqlite3.Connection | None, _: object) -> None:
    """Puts the file into write-ahead mode whose connection ends; one that only read leaves it."""
    if connection is not None and connection.total_changes:
        # Where others read it just now, the next change does.
        with suppress(sqlite3.Error):
            connection.execute("PRAGMA journal_mode=WAL")


def _refuse_changed(path: Path, file: FileId | None) -> None:
    """Refuses a file that is not the one that was open before.

    Raises:
        StoreUnavailableError: it was emptied, or another one is in its place.
    """
    try:
        status = os.stat(path)
    except OSError:
        # SQLite says that it cannot be opened.
        return
    if status.st_size == 0:
        raise StoreUnavailableError(f"{str(path)!r}: {_EMPTIED}")
    if file is not None and (status.st_dev, status.st_ino) != file:
        raise StoreUnavailableError(
            f"{str(path)!r}: it was replaced by another file while it was open, into which nothing "
            "is written; put the first one back, or run this again to go on with the other"
        )


def driver_of(connection: Connection) -> sqlite3.Connection:
    """SQLite's own connection."""
    driver = connection.connection.driver_connection
    assert isinstance(driver, sqlite3.Connection)
    return driver


def holds_up_no_writer(connection: Connection) -> bool:
    """Whether a transaction that reads leaves writers alone: in write-ahead mode alone."""
    try:
        return _is_write_ahead(driver_of(connection))
    except sqlite3.Error:
        # What is wrong with the file, its next question says.
        return False


def begin_reading(connection: sqlite3.Connection) -> None:
    """Gives a reader's next statements as long as a reader may take."""
    if read_seconds is not None:
        end = time.monotonic() + read_seconds
        connection.set_progress_handler(
            lambda: time.monotonic() > end or cancellation.is_cancelled(), STEPS
        )


def explain_error(name: str, error: SQLAlchemyError | sqlite3.Error) -> StoreError:
    """What an error of SQLite means for the one who uses the file, in one line."""
    original = getattr(error, "orig", None) or error
    cause = str(original)
    if getattr(original, "sqlite_errorname", None) in (
        "SQLITE_READONLY_ROLLBACK",
        "SQLITE_READONLY_RECOVERY",
    ):
        return StoreUnavailableError(f"{name!r}: {_INTERRUPTED.format(shlex.quote(name))}")
    if cause.startswith("database is locked"):
        return StoreBusyError(f"{name!r}: another process holds it locked; try again later")
    if cause.startswith("interrupted"):
        return StoreError(f"{name!r}: {TOO_LONG}")
    if cause.startswith("Could not decode"):
        return StoreDamagedError(f"{name!r}: a text in it is no UTF-8; {DAMAGED}")
    if cause.startswith("no such table"):
        return StoreUnavailableError(f"{name!r}: {_EMPTIED}")
    for text, advice in _UNAVAILABLE.items():
        if cause.startswith(text):
            return StoreUnavailableError(f"{name!r}: {advice}")
    # What this program makes fits its tables; what it copies is as good as where it is from.
    kind = StoreDamagedError if isinstance(error, IntegrityError) else StoreError
    return kind(f"{name!r}: {_DAMAGED.get(cause, cause)}")


def pack(engine: Engine, name: str, path: Path) -> None:
    """Replaces a file by a packed copy: all in one file, without unused space.

    Raises:
        StoreError: the file cannot be written, or another process has it open.
    """
    try:
        # No statement here is allowed in a transaction, so none is begun.
        with closing(engine.raw_connection()) as connection, whole_files(path.parent) as new:
            cursor = connection.cursor()
            # To leave write-ahead mode nobody else may have it open.
            (mode,) = cursor.execute("PRAGMA journal_mode=DELETE").fetchone()
            if mode != "delete":
                raise StoreUnavailableError(f"cannot pack {name!r}: another process has it open")
            cursor.execute(f"PRAGMA page_size={PACKED_PAGE_BYTES}")
            packed = new / f"{path.name}.packed"
            cursor.execute("VACUUM INTO ?", (str(packed),))
            shutil.copymode(path, packed)
            os.replace(packed, path)
    except (sqlite3.Error, MachineError, ConfigError) as error:
        raise _pack_error(name, error) from error


def _pack_error(name: str, error: Exception) -> StoreError:
    if isinstance(error, sqlite3.Error):
        return explain_error(name, error)
    return StoreUnavailableError(f"cannot pack {name!r}: {error}")


def why_not_permitted(path: Path) -> str | None:
    """Why this user may not write the file; None where that is allowed."""
    folder = path.absolute().parent
    if not os.access(path, os.W_OK):
        mode = stat.S_IMODE(path.stat().st_mode)
        return f"it may not be written; check its permissions (mode {mode:04o})"
    if not os.access(folder, os.W_OK):
        # SQLite says nothing of it until the first write.
        return (
            f"its folder {str(folder)!r} may not be written, where SQLite keeps a journal; check "
            "the folder's permissions"
        )
    return None


def why_not_writable(path: Path) -> str | None:
    """Why the file is not writable at the moment; None if it is."""
    if (reason := why_not_permitted(path)) is not None:
        return reason
    try:
        with closing(connect_to(f"file:{quote(str(path.absolute()))}?mode=rw", 1.0)) as connection:
            # Takes the lock that a write takes, and changes nothing.
            connection.execute("BEGIN IMMEDIATE")
            connection.rollback()
    except sqlite3.Error as error:
        return str(explain_error(str(path), error)).partition(": ")[2]
    return None


def network_file_system(path: Path) -> str | None:
    """The kind of network file system that holds the path; None where its disk is local."""
    resolved = path.absolute().resolve()
    mounts = {Path(mount.mountpoint): mount.fstype for mount in psutil.disk_partitions(all=True)}
    for folder in (resolved, *resolved.parents):
        if folder in mounts:
            return mounts[folder] if mounts[folder] in NETWORK_FILE_SYSTEMS else None
    return None


def warn_of_network(path: Path) -> None:
    """Warns where SQLite's locks cannot be relied on."""
    kind = network_file_system(path)
    if kind is not None:
        warnings.warn(
            f"{str(path)!r} is on a network file system ({kind}), where SQLite's locks may fail: "
            "let one machine write to it at a time, or use PostgreSQL",
            stacklevel=2,
        )
