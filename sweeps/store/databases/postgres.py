"""PostgreSQL: how a server is reached, how long it is waited for, and what its errors mean.

Nothing waits for ever. A lock of another session ends a statement after `LOCK_SECONDS`, with a
message that names who holds it. The server ends a statement after `STATEMENT_SECONDS`; and since a
connection may be lost in silence, so that no answer ever comes, this process then closes it too.
"""

import logging
import os
import re
import socket
import threading
import time
from contextlib import closing, suppress
from functools import lru_cache
from typing import Any

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from seqcls.errors import StoreBusyError, StoreError
from sweeps.access import refuse_writes
from sweeps.store.databases.sqlite import READS_ONLY, TOO_LONG

_log = logging.getLogger(__name__)

CONNECT_SECONDS = 10

LOCK_SECONDS = 10.0
"""How long a statement waits for a lock that another session holds."""

STATEMENT_SECONDS = 600.0
"""How long the server works at one statement at most."""

GONE_SECONDS = 30.0
"""How much longer an answer is waited for; the network is asked for signs of life meanwhile."""

TOLD_SECONDS = 3.0
"""After so long a wait for one's turn it is said for whom."""

HURRIED_CONNECT_SECONDS = 2
"""The shortest that the driver knows."""

_SUBMITTING = 0x5E9C15
"""The advisory lock of what must not happen twice at once: making tables, submitting sweeps."""


_SHOWN_OPTIONS = ("host", "port", "user", "dbname", "service", "sslmode", "connect_timeout")
_LIKE_A_URL = (
    re.compile(r"^postgres.*@", re.IGNORECASE | re.DOTALL),
    re.compile(r"(^|//)[^/]*:.*@", re.DOTALL),
    re.compile(r"pass\w*=", re.IGNORECASE),
)


CHANGES = "changes"
"""The mark of a connection that was asked for anything but an answer."""


read_seconds: float | None = None
"""How long a statement of a reader may take, as in `sqlite`."""


def connect(url: URL, *, read_only: bool, busy_seconds: float | None = None) -> Engine:
    """An engine on a server, each of whose transactions is a connection of its own.

    Args:
        busy_seconds: how long a statement waits for another's lock; `LOCK_SECONDS` if None.

    Raises:
        StoreError: the driver is not installed, or this process only reads and may not write.
    """
    if not read_only:
        refuse_writes("writing to the database")
    try:
        return _engine(url, read_only, busy_seconds, read_seconds if read_only else None)
    except ModuleNotFoundError:
        raise StoreError(
            "PostgreSQL needs the driver psycopg; install it with: pip install 'seqcls[postgres]'"
        ) from None


# An engine asks the server what it is, and remembers how each statement is written out; a page
# opens its database dozens of times.
@lru_cache(maxsize=16)
def _engine(
    url: URL, read_only: bool, busy_seconds: float | None, most_seconds: float | None
) -> Engine:
    # What the URL says of the same is left as it is.
    arguments: dict[str, object] = {
        "connect_timeout": CONNECT_SECONDS if busy_seconds is None else HURRIED_CONNECT_SECONDS,
        "fallback_application_name": "seqcls",
        "keepalives_idle": 10,
        "keepalives_interval": 5,
        "keepalives_count": 3,
        "tcp_user_timeout": round(1e3 * GONE_SECONDS),
    }
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    options = ["default_transaction_read_only=on"] if read_only else []
    statement_seconds = STATEMENT_SECONDS if most_seconds is None else most_seconds
    lock_seconds = LOCK_SECONDS if busy_seconds is None else busy_seconds
    for name, seconds in {
        "statement_timeout": statement_seconds,
        "lock_timeout": lock_seconds,
        # Of a program that went away within a transaction, whose locks others wait for.
        "idle_in_transaction_session_timeout": 10 * STATEMENT_SECONDS,
    }.items():
        # Zero would mean no limit.
        options.append(f"{name}={max(1, round(1e3 * seconds))}ms")
    arguments["options"] = " -c ".join([str(url.query.get("options", "")), *options])
    # What a reader reads in one transaction is of one moment, as in SQLite.
    isolation = "REPEATABLE READ" if read_only else "READ COMMITTED"
    # NullPool: workers hold no connection while they train.
    engine = create_engine(
        url,
        poolclass=NullPool,
        connect_args=arguments,
        isolation_level=isolation,
        execution_options={READS_ONLY: read_only},
    )
    _answers.watch(engine)
    event.listen(engine, "before_cursor_execute", _note_change)
    return engine


def _note_change(connection: Connection, _: object, statement: str, *__: object) -> None:
    if not statement.lstrip().upper().startswith(("SELECT", "SHOW")):
        connection.info[CHANGES] = True


class _Answers:
    """Which answers of servers this process waits for, and since when."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[float, int, Any]] = {}
        self._lock = threading.Lock()
        self._watcher: threading.Thread | None = None

    def watch(self, engine: Engine) -> None:
        """Waits for no answer to this engine for ever."""
        for name in ("before_cursor_execute", "commit", "rollback"):
            event.listen(engine, name, self._ask)
        event.listen(engine, "after_cursor_execute", self._receive)
        event.listen(engine.pool, "checkin", lambda driver, _: self._forget(driver))
        event.listen(engine.pool, "close", lambda driver, _: self._forget(driver))

    def longest_wait(self, apart_from: int) -> float:
        """For how many seconds an answer has been waited for, in other threads than this one."""
        with self._lock:
            since = [began for began, thread, _ in self._asked.values() if thread != apart_from]
        return time.monotonic() - min(since) if since else 0.0

    def _ask(self, connection: Connection, *_: object) -> None:
        if connection.invalidated:
            return
        driver = connection.connection.driver_connection
        with self._lock:
            self._asked[id(driver)] = (time.monotonic(), threading.get_ident(), driver)
            if self._watcher is None or not self._watcher.is_alive():
                # A fork of this process has none.
                self._watcher = threading.Thread(target=self._end_overdue, daemon=True)
                self._watcher.start()

    def _receive(self, connection: Connection, *_: object) -> None:
        self._forget(connection.connection.driver_connection)

    def _forget(self, driver: object) -> None:
        with self._lock:
            self._asked.pop(id(driver), None)

    def _end_overdue(self) -> None:
        while True:
            time.sleep(min(1.0, GONE_SECONDS / 4))
            most = time.monotonic() - STATEMENT_SECONDS - GONE_SECONDS
            with self._lock:
                overdue = [driver for began, _, driver in self._asked.values() if began < most]
            for driver in overdue:
                # Whoever waits is told by the driver that the connection is lost.
                with (
                    suppress(Exception),
                    closing(socket.socket(fileno=os.dup(driver.fileno()))) as s,
                ):
                    s.shutdown(socket.SHUT_RDWR)


_answers = _Answers()


def longest_wait() -> float:
    """For how many seconds another thread of this process has waited for a server's answer."""
    return _answers.longest_wait(threading.get_ident())


def name_of(url: URL) -> str:
    """The URL as it may be shown: without its password, wherever that stands in it.

    This alone shows URLs. An option that is not known may be a password whose name has a slip.
    """
    options = {name: value for name, value in url.query.items() if name in _SHOWN_OPTIONS}
    shown = url.set(drivername="postgresql", query=options)
    return shown.render_as_string(hide_password=True)


def is_address(text: str) -> bool:
    """Whether a text looks like a server's URL, though it may be none: it may hold a password."""
    return any(pattern.search(text) for pattern in _LIKE_A_URL)


def take_turns(connection: Connection) -> None:
    """Waits until no other process submits; does nothing on SQLite, which has one writer anyway."""
    if connection.dialect.name != "postgresql":
        return
    mine = text("SELECT pg_try_advisory_xact_lock(:key)")
    tell_at = time.monotonic() + TOLD_SECONDS
    while not connection.scalar(mine, {"key": _SUBMITTING}):
        if time.monotonic() > tell_at:
            _log.warning("waiting for a lock held by %s", _holder(connection) or "another session")
            tell_at = float("inf")
        time.sleep(0.1)


_HOLDERS = text(
    """
    SELECT activity.pid, application_name, usename, coalesce(host(client_addr), 'its own machine'),
           state, extract(epoch FROM clock_timestamp() - coalesce(xact_start, backend_start))
    FROM pg_stat_activity AS activity
    JOIN pg_locks AS held ON held.pid = activity.pid AND held.granted
    WHERE activity.datname = current_database() AND activity.pid <> pg_backend_pid()
      AND backend_type = 'client backend' AND xact_start IS NOT NULL
      AND (held.locktype = 'advisory' OR held.relation >= 16384)
      AND held.mode <> 'AccessShareLock'
    ORDER BY xact_start LIMIT 1
    """
)
"""The session that has held locks on tables for longest, or the turn to submit."""


def _holder(connection: Connection) -> str | None:
    """Who holds a lock that others may wait for, as a message says it; None if nobody does."""
    row = connection.execute(_HOLDERS).one_or_none()
    if row is None:
        return None
    pid, program, user, host, state, seconds = row
    program = program or "a program without a name"
    return f"process {pid} ({program} of {user} at {host}: {state}, for {seconds:.0f} s)"


def holder(engine: Engine) -> str | None:
    """Who holds a lock for which a statement has just waited in vain; None if nobody does now."""
    with suppress(SQLAlchemyError), engine.connect() as connection:
        return _holder(connection)
    return None


def explain_error(name: str, error: SQLAlchemyError, engine: Engine | None = None) -> StoreError:
    """What an error of the server means for the one who uses it, in one line.

    Args:
        engine: on which it happened: the server is asked who is in the way.
    """
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    cause = lines[0] if lines else type(error).__name__
    if "lock timeout" in cause:
        who = None if engine is None else holder(engine)
        return StoreBusyError(
            f"{name!r}: waited for a lock held by {who or 'another session'}; end what it does, "
            "or try again later"
        )
    if "statement timeout" in cause:
        if read_seconds is None:
            return StoreBusyError(
                f"{name!r}: the server worked at a statement for more than "
                f"{STATEMENT_SECONDS:.0f} s; see what keeps it busy, and try again"
            )
        return StoreError(f"{name!r}: {TOO_LONG}")
    if isinstance(error, OperationalError | InterfaceError):
        return StoreBusyError(f"{name!r}: {cause}")
    return StoreError(f"{name!r}: {cause}")
