"""A database: one SQLite file by its path, or PostgreSQL by its URL; its transactions and errors.

`with store.read() as db` is a read-only snapshot: all reads in the block, and in blocks within it,
are consistent. `with store.write() as db` is one transaction, which raises the revision last. Both
close their connection at the end, so that a process that trains holds none.

The first write puts a SQLite file into write-ahead mode, where readers and the writer do not wait
for each other; until then, and once it is packed, the database is a single file. Writers begin
IMMEDIATE: a transaction that reads first and writes later would fail if another process wrote in
between, whatever the timeout.

No wait is unlimited: for a lock, for an answer, or for a silent network.
"""

import os
import re
import shlex
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal
from urllib.parse import quote

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    Executable,
    NullPool,
    create_engine,
    event,
    func,
    select,
)
from sqlalchemy.engine import ExceptionContext
from sqlalchemy.exc import SQLAlchemyError

from seqcls import cancellation
from seqcls.errors import (
    StoreBusyError,
    StoreDamagedError,
    StoreError,
    StoreLostError,
    StoreUnavailableError,
)
from sweeps import processes
from sweeps.access import is_read_only, refuse_writes
from sweeps.files import COMPANIONS

BUSY_SECONDS = 60.0
"""Time that a SQLite connection waits for another's lock."""

LOCK_SECONDS = 10.0
"""Time that a statement of PostgreSQL waits for a lock that another session holds."""

HURRIED_SECONDS = 0.2
"""Time that a write that can be left out waits for another's lock."""

STATEMENT_SECONDS = 600.0
"""Limit on the time of one statement of PostgreSQL."""

STEPS = 100_000
"""Steps of SQLite's virtual machine between two checks of the clock."""

read_seconds: float | None = None
"""Limit on the time of a reader, None without one; the dashboard sets it once."""

TAKING_TURNS = 0x5E9C15
"""The advisory lock of operations that exclude each other: making tables, submitting sweeps."""

KEEPALIVE = {
    "connect_timeout": 10,
    "fallback_application_name": "seqcls",
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    # For a connection that is lost without notice, in milliseconds.
    "tcp_user_timeout": 30_000,
}
"""Defaults of the PostgreSQL driver's connection, which the URL overrides."""

DAMAGED = "is damaged; restore a copy of it"

EMPTIED = (
    "it was emptied or replaced while it was open, and has no tables; put a copy of it back, or "
    "remove it and begin anew"
)

TOO_LONG = (
    "a page's question took too long, and was ended; choose one sweep, or fewer model seeds or "
    "settings, in the filters of the sidebar"
)

INTERRUPTED = (
    "a write to it was interrupted, and only who may write it and its folder can undo that: let "
    "them run `seqcls db check --db {name}`, and delete nothing beside it"
)

ERRORS: tuple[tuple[str, type[StoreError], str], ...] = (
    # ROLLBACK or RECOVERY: the journal of a killed writer, which this process may not roll back.
    ("SQLITE_READONLY_R", StoreUnavailableError, INTERRUPTED),
    (
        "SQLITE_(READONLY|CANTOPEN|FULL|IOERR)",
        StoreUnavailableError,
        "{cause}; check that it and its folder are there and may be written, and that the disk is "
        "mounted and has space",
    ),
    ("SQLITE_BUSY", StoreBusyError, "another process holds it locked; try again later"),
    ("SQLITE_INTERRUPT", StoreError, TOO_LONG),
    ("SQLITE_NOTADB", StoreError, "is not a SQLite database; name another file"),
    ("SQLITE_CORRUPT", StoreError, DAMAGED),
    # New rows fit their tables; only copied ones may be damaged.
    ("SQLITE_CONSTRAINT", StoreDamagedError, "{cause}"),
    ("no such table", StoreUnavailableError, EMPTIED),
    ("decode", StoreDamagedError, f"{DAMAGED}: a text in it is not UTF-8"),
    (
        "(lock|statement) timeout",
        StoreBusyError,
        "{cause}; `SELECT * FROM pg_stat_activity` names what keeps the server busy: end that, or "
        "try again later",
    ),
    ("psycopg (Operational|Interface)Error", StoreBusyError, "{cause}"),
)
"""Patterns of errors with their class and message for the user; other errors keep their text."""

FAILURES = (SQLAlchemyError, sqlite3.Error, UnicodeDecodeError)
"""The exceptions of drivers: with a damaged schema even the error message may be no text."""

FileId = tuple[int, int]
"""The device and inode of a file, which distinguish it from one put in its place."""

moments: ContextVar[Mapping[str, Connection]] = ContextVar("moments", default=MappingProxyType({}))
"""The connections of the blocks of `Store.read` around the present code, by location."""


@dataclass(frozen=True)
class Store:
    """A database of this program.

    Args:
        name: its name in messages; the password of a URL is left out.
        place: the file, or the URL of a server's database.
        file: the only file that may be written, so that none put in its place is; None for any,
            or a new one.
        is_hurried: True if writes do not wait for locks that others hold.
    """

    name: str
    place: Path | URL
    file: FileId | None = None
    is_hurried: bool = False

    def __repr__(self) -> str:
        return f"<Store {self.name}>"

    @property
    def path(self) -> Path | None:
        """The file; None where the database is a server's."""
        return self.place if isinstance(self.place, Path) else None

    @property
    def location(self) -> str:
        """The absolute path or the name, which does not depend on the working directory."""
        return self.name if self.path is None else str(self.path.absolute())

    @property
    def address(self) -> str:
        """The argument that opens it again; it may hold a password, so it is never shown."""
        if isinstance(self.place, Path):
            return str(self.place)
        return self.place.render_as_string(hide_password=False)

    def without_waiting(self) -> "Store":
        """The same database, whose writes fail soon where others hold a lock."""
        return replace(self, is_hurried=True)

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Opens a snapshot of the database, which blocks no writer of a file in write-ahead mode.

        Nested blocks share the snapshot, until one fails.

        Raises:
            StoreLostError: a server ended the connection.
            StoreError: the database cannot be read.
        """
        cancellation.check()
        before = moments.get()
        held = before.get(self.location)
        try:
            with self._engine(writes=False).connect() if held is None else nullcontext(held) as db:
                driver = db.connection.driver_connection
                # A server ends statements itself.
                if read_seconds is not None and isinstance(driver, sqlite3.Connection):
                    end = time.monotonic() + read_seconds
                    driver.set_progress_handler(
                        lambda: time.monotonic() > end or cancellation.is_cancelled(), STEPS
                    )
                db.info["name"] = self.name
                # Blocks within this one use its connection, and so the same snapshot.
                moments.set({**before, self.location: db})
                yield db
        except FAILURES as error:
            # PostgreSQL answers nothing more in a transaction that failed.
            before = {name: other for name, other in before.items() if other is not held}
            raise explain_error(self.name, error) from error
        finally:
            moments.set(before)

    def rows(self, query: Executable) -> list[Any]:
        """The rows of a query."""
        with self.read() as db:
            return list(db.execute(query))

    def column(self, query: Executable) -> list[Any]:
        """The values of a query's first column."""
        with self.read() as db:
            return list(db.scalars(query))

    def one(self, query: Executable) -> Any:
        """The only row of a query."""
        with self.read() as db:
            return db.execute(query).one()

    def value(self, query: Executable) -> Any:
        """The first value of a query's first row; None if there is no row."""
        with self.read() as db:
            return db.scalar(query)

    @contextmanager
    def write(
        self, *also: Literal["configs", "members"], quiet: bool = False
    ) -> Iterator[Connection]:
        """Opens a transaction: committed at the end of the block, rolled back on an error.

        Read through its connection within the block: another block of reads does not see the
        changes, and another one that writes waits in vain.

        Args:
            also: columns of the revision to raise besides `runs`.
            quiet: True if the revision is not raised: for heartbeats and losses of runs in
                training.

        Raises:
            StoreLostError: a server ended the connection; nothing of the block is stored.
            StoreError: nothing of the block is stored, unless the message says otherwise.
        """
        cancellation.check()
        refuse_writes(f"writing to {self.name!r}")
        may_be_kept = False
        try:
            with self._engine(writes=True).begin() as db:
                db.info["name"] = self.name
                yield db
                if not quiet:
                    # Last, so that other writers wait for this row only briefly.
                    raised = ", ".join(f"{name} = {name} + 1" for name in ("runs", *also))
                    db.exec_driver_sql(f"UPDATE revision SET {raised}")
                # From here on it may be stored, even if no answer comes.
                may_be_kept = True
                processes.note_lasting()
        except FAILURES as error:
            raise explain_error(self.name, error, may_be_kept=may_be_kept) from error

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """Holds a connection to a file open during a block of many transactions.

        Closing the last connection moves all writes from the log into the file and waits for the
        disk twice, which takes longer than storing a group's results.
        """
        with nullcontext() if self.path is None else self._engine(writes=True).connect():
            yield

    def _engine(self, *, writes: bool) -> Engine:
        if isinstance(self.place, Path):
            seconds = HURRIED_SECONDS if self.is_hurried else BUSY_SECONDS
            return _sqlite(self.place.absolute(), writes, seconds, self.file)
        lock_seconds = HURRIED_SECONDS if self.is_hurried else LOCK_SECONDS
        seconds = STATEMENT_SECONDS if writes or read_seconds is None else read_seconds
        return _postgresql(self.place, writes, lock_seconds, seconds)


# Cached, since an engine caches compiled statements, and a page opens its database dozens of times.
# NullPool: an idle connection in a pool would keep its file open.
@lru_cache(maxsize=16)
def _sqlite(path: Path, writes: bool, busy_seconds: float, file: FileId | None) -> Engine:
    connect = partial(_write_file, file=file) if writes else _read_file
    engine = create_engine(
        "sqlite://", creator=partial(connect, path, busy_seconds), poolclass=NullPool
    )

    @event.listens_for(engine, "begin")
    def begin(db: Connection) -> None:
        db.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def open_file(path: Path, mode: str, busy_seconds: float) -> sqlite3.Connection:
    """Opens a connection to a file, which waits for others' locks for so many seconds."""
    # isolation_level=None leaves transactions to the events of the engine.
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode={mode}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
    )


def _read_file(path: Path, busy_seconds: float) -> sqlite3.Connection:
    mode = "ro"
    if not is_read_only() and _holds_something(f"{path}-journal"):
        # An unfinished write of a killed process is rolled back by the first connection that may
        # write the file; for one that may not, the reader's own error explains it.
        with suppress(sqlite3.Error), closing(open_file(path, "rw", busy_seconds)) as writer:
            writer.execute("SELECT count(*) FROM sqlite_master")
    makes_no_files = is_read_only() or not os.access(path.parent, os.W_OK)
    if makes_no_files and not any(_holds_something(f"{path}{end}") for end in COMPANIONS):
        # SQLite needs no other files as long as no process writes this one.
        mode += "&immutable=1"
    connection = open_file(path, mode, busy_seconds)
    # The schema in a file can call no function with side effects.
    connection.execute("PRAGMA trusted_schema=OFF")
    return connection


def _holds_something(path: str) -> bool:
    """True if there is a file of that name that is not empty."""
    return os.path.exists(path) and os.path.getsize(path) > 0


def _write_file(path: Path, busy_seconds: float, file: FileId | None) -> sqlite3.Connection:
    # SQLite itself reports a missing file, but would fill an empty or a replaced one.
    if file is not None:
        with suppress(FileNotFoundError):
            status = path.stat()
            if status.st_size == 0:
                raise StoreUnavailableError(f"{str(path)!r}: {EMPTIED}")
            if (status.st_dev, status.st_ino) != file:
                raise StoreUnavailableError(
                    f"{str(path)!r}: it was replaced by another file while it was open, into which "
                    "nothing is written; put the first one back, or run this again"
                )
    connection = open_file(path, "rwc" if file is None else "rw", busy_seconds)
    connection.execute("PRAGMA foreign_keys=ON")
    # Where another process uses it just now, the next write does this.
    with suppress(sqlite3.OperationalError):
        if connection.execute("PRAGMA journal_mode=WAL").fetchone() == ("wal",):
            # In this mode a killed process loses nothing; a power cut may lose the last commits.
            connection.execute("PRAGMA synchronous=NORMAL")
    return connection


def limit_reads(seconds: float) -> None:
    """Limits each read of a database by this process to so many seconds."""
    global read_seconds
    read_seconds = seconds


@lru_cache(maxsize=16)
def _postgresql(url: URL, writes: bool, lock_seconds: float, statement_seconds: float) -> Engine:
    timeouts = {
        "statement_timeout": statement_seconds,
        "lock_timeout": lock_seconds,
        # For a program that vanished within a transaction, whose locks others wait for.
        "idle_in_transaction_session_timeout": 10 * STATEMENT_SECONDS,
    }
    # Zero would mean no limit.
    options = [f"{name}={max(1, round(1e3 * seconds))}ms" for name, seconds in timeouts.items()]
    arguments: dict[str, object] = {x: y for x, y in KEEPALIVE.items() if x not in url.query}
    arguments["options"] = " -c ".join([str(url.query.get("options", "")), *options])
    try:
        engine = create_engine(url, poolclass=NullPool, connect_args=arguments)
    except ModuleNotFoundError:
        raise StoreError(
            "PostgreSQL needs the driver psycopg; install it with: pip install 'seqcls[postgres]'"
        ) from None
    if writes:
        return engine
    # All reads of one transaction are consistent, as in SQLite.
    return engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)


def take_turns(db: Connection) -> None:
    """Waits until no other process submits; does nothing on SQLite, which has a single writer."""
    if db.dialect.name == "postgresql":
        db.execute(select(func.pg_advisory_xact_lock(TAKING_TURNS)))


@event.listens_for(Engine, "handle_error")
def _note_database(context: ExceptionContext) -> None:
    """Adds the database's name to an error: a block may read one while it writes another."""
    if context.connection is not None:
        error = context.sqlalchemy_exception or context.original_exception
        error.add_note(str(context.connection.info.get("name", "")))


def explain_error(name: str, error: Exception, *, may_be_kept: bool = False) -> StoreError:
    """Translates a driver's error into one for the user, in one line.

    Args:
        may_be_kept: True if the transaction failed while it was committed.
    """
    # Raises where the query was interrupted because nobody waits for it.
    cancellation.check()
    # Added by `_note_database`.
    name = next(filter(None, getattr(error, "__notes__", ())), name)
    original = getattr(error, "orig", None) or error
    cause = (str(original).strip().splitlines() or [type(original).__name__])[0]
    driver = type(original).__module__.partition(".")[0]
    # The text that the patterns match: driver, class, SQLite's code and the message.
    words = f"{driver} {type(error).__name__} {getattr(original, 'sqlite_errorname', '')} {cause}"
    # The first pattern that matches decides, so special cases come before general ones.
    meanings = ((kind, sentence) for part, kind, sentence in ERRORS if re.search(part, words))
    kind, sentence = next(meanings, (StoreError, "{cause}"))
    if "statement timeout" in words and read_seconds is not None:
        kind, sentence = StoreError, TOO_LONG
    colon = "" if sentence.startswith("is ") else ":"
    message = f"{name!r}{colon} {sentence.format(name=shlex.quote(name), cause=cause)}"
    if not getattr(error, "connection_invalidated", False):
        return kind(message)
    if not may_be_kept:
        return StoreLostError(message)
    return StoreBusyError(
        f"{message}; the connection was lost as the change was stored: see whether it is, before "
        "you repeat it"
    )
