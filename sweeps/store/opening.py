"""Opening the database: which one, and whether this program can work with it."""

import logging
import os
import shlex
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from seqcls.errors import (
    StoreError,
    StoreMissingError,
    StoreUnavailableError,
)
from seqcls.strings import datasets
from seqcls.strings.datasets import Content
from sweeps.access import DB_VARIABLE, DEFAULT_DB
from sweeps.store.databases import postgres, sqlite
from sweeps.store.databases.engine import Store, schema_version

_log = logging.getLogger(__name__)

EXPECTED_URL = "expected postgresql://USER:PASSWORD@HOST:PORT/NAME"


def locate(db: str | None) -> Path | URL:
    """The database to use: the one named, else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreError: an invalid URL, one of another kind of database, or a folder.
    """
    named = db or os.environ.get(DB_VARIABLE) or DEFAULT_DB
    if named.startswith(("postgresql:", "postgres:")) and "://" not in named:
        raise StoreError("a URL that begins with postgresql: expected postgresql:// there")
    scheme, path = named.partition("://")[0], named.partition(":///")[2]
    if "://" not in named:
        return _file(named)
    if scheme.partition("+")[0] in ("postgresql", "postgres"):
        return _postgres_url(named)
    if scheme == "sqlite" and path:
        return _file(path)
    kind = "this kind" if postgres.is_address(named) else f"the kind {scheme!r}"
    raise StoreError(
        f"cannot open a database of {kind}: expected a file, sqlite:///FILE or "
        "postgresql://USER@HOST/NAME"
    )


def _file(named: str) -> Path:
    """The file of that name, which need not exist: a regular one, else opening it could hang."""
    try:
        named.encode()  # SQLite knows no other names of files than in UTF-8.
        mode = os.stat(named).st_mode
    except FileNotFoundError:
        if postgres.is_address(named):
            raise StoreError(f"cannot read the database's URL: {EXPECTED_URL}") from None
        return Path(named)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = "the database" if postgres.is_address(named) else repr(named[:80])
        raise StoreError(f"cannot open {shown}: {reason}; name another file") from None
    if stat.S_ISDIR(mode):
        raise StoreError(f"cannot open {named!r}: it is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise StoreError(f"cannot open {named!r}: it is no regular file; name another")
    return Path(named)


def open_reader(db: str | None = None) -> Store:
    """The database, read-only.

    Args:
        db: a file or a URL; else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreMissingError: there is no file, or it holds no tables yet.
        StoreVersionError: it was made by another version.
        StoreError: it cannot be read.
    """
    store = _open(locate(db), read_only=True)
    # A page opens the database dozens of times, mostly as it was the time before.
    before = None if store.path is None else _state_of(store.path)
    if before is not None and _known.get(store.location) == before:
        return store
    if schema_version(store) is None:
        raise _missing(f"{store.name!r} is empty", store.name)
    _refuse_foreign(store)
    if before is not None:
        _known[store.location] = before
    return store


def open_writer(db: str | None = None) -> Store:
    """The database for reading and writing; made where there is none.

    Raises:
        StoreVersionError: it was made by another version.
        StoreError: it cannot be opened or is no database of this program.
    """
    store = _open(locate(db), read_only=False)
    writable = store
    if store.path is not None and store.path.exists():
        if (reason := sqlite.why_not_permitted(store.path)) is not None:
            raise StoreUnavailableError(f"{store.name!r}: {reason}")
        # Write-ahead mode would change a file that may be another program's.
        writable = Store(store.name, sqlite.connect(store.path, mode="rw"), store.path)
    if schema_version(writable) is None:
        # Imported where it is used: only a new database needs it.
        from sweeps.store.migrate import upgrade

        upgrade(store)
    else:
        _refuse_foreign(writable)
    if store.path is None:
        return store
    file = sqlite.file_id(store.path)
    engine = sqlite.connect(store.path, mode="again", file=file)
    return replace(store, engine=engine, file=file)


_State = tuple[tuple[int, int, int], ...]

_known: dict[str, _State] = {}
"""Files whose version and tables are this program's, as they were when that was seen."""


def _state_of(path: Path) -> _State:
    """Which file it is, with its log: number, size and time change when something is written."""
    state = []
    for file in (path, path.with_name(f"{path.name}-wal")):
        with suppress(OSError):
            status = os.stat(file)
            state.append((status.st_ino, status.st_size, status.st_mtime_ns))
    return tuple(state)


def _refuse_foreign(store: Store) -> None:
    """Refuses a file whose tables are not those that this program makes, strict ones.

    Raises:
        StoreError: a table is missing, checks no types or has not each column.
    """
    if store.path is None:
        return
    # Imported where it is used: the tables take a while to load.
    from sweeps.store.tables import Base

    query = (
        "SELECT list.name, info.name FROM pragma_table_list AS list, "
        "pragma_table_xinfo(list.name) AS info "
        "WHERE list.schema = 'main' AND list.type = 'table' AND list.strict"
    )
    with store.begin() as connection:
        there = {tuple(row) for row in connection.exec_driver_sql(query)}
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            if (table.name, column.name) not in there:
                raise StoreError(
                    f"{store.name!r} was not made by this program: it has no strict table "
                    f"{table.name!r} with a column {column.name!r}; name another file"
                )


def existing(db: str | None = None) -> Store | None:
    """Opens like `open_reader`; None where there is no database, or nothing in it yet."""
    try:
        return open_reader(db)
    except StoreMissingError:
        return None


def why_unreadable(db: str | None = None) -> str | None:
    """Why the database cannot be read; None where it can."""
    try:
        open_reader(db)
    except StoreError as error:
        return str(error)
    return None


def to_write(store: Store) -> Store:
    """The same database, open for writing, however it is open.

    Raises:
        StoreError: it may not be written.
    """
    return open_writer(store.address)


@contextmanager
def try_to_store(what: str) -> Iterator[None]:
    """Says that what was found is not stored, where the database may not be written: it is told
    all the same.
    """
    try:
        yield
    except StoreUnavailableError as error:
        _log.warning("%s: not stored: %s", what, error)


def _missing(said: str, name: str) -> StoreMissingError:
    """The error of a database that is missing; a server's is named without its password."""
    named = "" if name == DEFAULT_DB or "://" in name else f" --db {shlex.quote(name)}"
    command = f"seqcls sweep report{named}"
    message = f"{said}; `{command}` trains the report's models into it"
    return StoreMissingError(message, command=command)


def pack(db: Store | str | Path | None = None) -> Path:
    """Makes the database one small file that can be copied: vacuumed, in DELETE mode.

    Raises:
        StoreError: it is no file, cannot be written, or another process has it open.
    """
    named = db.address if isinstance(db, Store) else None if db is None else str(db)
    located = open_reader(named).path
    if located is None:
        raise StoreError("a PostgreSQL database is no file; `seqcls db merge` copies it into one")
    store = open_writer(located.as_posix())
    sqlite.pack(store.engine, store.name, located)
    return located


last_opened: Store | None = None
"""The database that this process opened last, to look for damage where something fails."""


def _open(located: Path | URL, *, read_only: bool) -> Store:
    global last_opened
    store = last_opened = open_as_it_is(located, read_only=read_only)
    # Configurations name datasets by their digest, wherever they are resolved.
    datasets.add_source(store.location, partial(_dataset_in, store))
    return store


def _dataset_in(store: Store, digest: str) -> Content | None:
    if store.path is not None and not store.path.exists():
        return None
    # Imported where it is used: the tables take a while to load.
    from sweeps.store.reads.test_sets import load_dataset

    if store.path is not None and not store.engine.get_execution_options().get(sqlite.READS_ONLY):
        # Configurations are resolved within blocks that write this file, too.
        store = Store(store.name, sqlite.connect(store.path, mode="ro"), store.path)
    with store.begin() as connection:
        return load_dataset(connection, digest)


def open_as_it_is(located: Path | URL, *, read_only: bool = True) -> Store:
    if isinstance(located, URL):
        return Store(
            postgres.name_of(located), postgres.connect(located, read_only=read_only), None
        )
    if read_only and not located.exists():
        raise _missing(f"{str(located)!r} does not exist", str(located))
    if not located.parent.is_dir():
        raise StoreError(
            f"cannot make {str(located)!r}: the folder {str(located.parent)!r} is missing"
        )
    if not read_only:
        sqlite.warn_of_network(located)
    engine = sqlite.connect(located, mode="ro" if read_only else "rwc")
    return Store(str(located), engine, located)


def _postgres_url(text: str) -> URL:
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):
        raise StoreError(f"cannot read the database's URL: {EXPECTED_URL}") from None
    if "@" in f"{url.host}{url.database}":
        raise StoreError(
            f"cannot read the database's URL: {EXPECTED_URL}; write an @ in the password as %40, "
            "a / as %2F"
        )
    return url.set(drivername="postgresql+psycopg")
