"""PostgreSQL: how a server is reached, how long it is waited for, and what its errors mean.

Nothing waits for ever. A lock of another session ends a statement after `LOCK_SECONDS`, the server
ends one after `STATEMENT_SECONDS`, and the network says when a connection is lost in silence.
"""

import re
from functools import lru_cache

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, event, text
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from seqcls.errors import StoreBusyError, StoreError
from sweeps.access import refuse_writes
from sweeps.store.databases.sqlite import READS_ONLY, TOO_LONG

CONNECT_SECONDS = 10

LOCK_SECONDS = 10.0
"""How long a statement waits for a lock that another session holds."""

STATEMENT_SECONDS = 600.0
"""How long the server works at one statement at most."""

GONE_SECONDS = 30.0
"""After so long without a sign of life from the network a connection is lost."""

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
    event.listen(engine, "before_cursor_execute", _note_change)
    return engine


def _note_change(connection: Connection, _: object, statement: str, *__: object) -> None:
    if not statement.lstrip().upper().startswith(("SELECT", "SHOW")):
        connection.info[CHANGES] = True


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
    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SUBMITTING})


def explain_error(name: str, error: SQLAlchemyError) -> StoreError:
    """What an error of the server means for the one who uses it, in one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    cause = lines[0] if lines else type(error).__name__
    if "lock timeout" in cause:
        return StoreBusyError(
            f"{name!r}: waited {LOCK_SECONDS:.0f} s for a lock that another session holds "
            "(`SELECT * FROM pg_stat_activity` names it); end what it does, or try again later"
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
