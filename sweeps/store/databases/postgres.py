"""PostgreSQL: how a server is reached, and what its errors mean."""

import re
from functools import lru_cache

from sqlalchemy import URL, Connection, Engine, NullPool, create_engine, text
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from seqcls.errors import StoreBusyError, StoreError
from sweeps.read_only import refuse_writes
from sweeps.store.databases.sqlite import READS_ONLY, TOO_LONG

CONNECT_SECONDS = 10

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


read_seconds: float | None = None
"""How long a statement of a reader may take, as in `sqlite`."""


def connect(url: URL, *, read_only: bool, busy_seconds: float | None = None) -> Engine:
    """An engine on a server, each of whose transactions is a connection of its own.

    Args:
        url: of the server.
        read_only: refuse every write.
        busy_seconds: how long a statement waits for another's lock; as long as it takes if None.

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
    arguments: dict[str, object] = {}
    if "connect_timeout" not in url.query:
        arguments["connect_timeout"] = CONNECT_SECONDS
    options = ["default_transaction_read_only=on"] if read_only else []
    # Zero would mean no limit.
    if most_seconds is not None:
        options.append(f"statement_timeout={max(1, round(1e3 * most_seconds))}ms")
    if busy_seconds is not None:
        options.append(f"lock_timeout={max(1, round(1e3 * busy_seconds))}ms")
        arguments["connect_timeout"] = HURRIED_CONNECT_SECONDS
    if options:
        arguments["options"] = " -c ".join([str(url.query.get("options", "")), *options])
    # What a reader reads in one transaction is of one moment, as in SQLite.
    isolation = "REPEATABLE READ" if read_only else "READ COMMITTED"
    # NullPool: workers hold no connection while they train.
    return create_engine(
        url,
        poolclass=NullPool,
        connect_args=arguments,
        isolation_level=isolation,
        execution_options={READS_ONLY: read_only},
    )


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
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SUBMITTING})


def explained(name: str, error: SQLAlchemyError) -> StoreError:
    """What an error of the server means for the one who uses it, in one line."""
    lines = str(getattr(error, "orig", None) or error).strip().splitlines()
    cause = lines[0] if lines else type(error).__name__
    if "statement timeout" in cause:
        return StoreError(f"{name!r}: {TOO_LONG}")
    if isinstance(error, OperationalError | InterfaceError):
        return StoreBusyError(f"{name!r}: {cause}")
    return StoreError(f"{name!r}: {cause}")
