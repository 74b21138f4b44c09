"""Opening the database: where it is, which version it has, and what may be done with it.

SQLite is opened in WAL mode for writing, every writing transaction begins IMMEDIATE, and readers
open the file read-only. (A deferred transaction that reads and then writes fails at once with
SQLITE_BUSY_SNAPSHOT when another process wrote in between, whatever the timeout.)
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, urlsplit

from sqlalchemy import Connection, Engine, NullPool, create_engine, event
from sqlalchemy.exc import SQLAlchemyError

from seqcls.errors import StoreError, StoreMissingError, StoreVersionError

DEFAULT_DB = "runs.db"
DB_VARIABLE = "SEQCLS_DB"
SCHEMA_VERSION = "0001"
"""The newest migration; a test holds it against the migrations themselves."""

MAKE_ONE = "`seqcls sweep report` trains the report's models into it"

BUSY_SECONDS = 60
"""How long a connection waits for another's lock."""


@dataclass(frozen=True)
class Store:
    """An open database. Each block of `begin` is one transaction and one connection."""

    path: Path
    engine: Engine

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One transaction: committed at the end of the block, rolled back on an error.

        Raises:
            StoreError: the database could not do what was asked; nothing of the block is kept.
        """
        try:
            with self.engine.begin() as connection:
                yield connection
        except SQLAlchemyError as error:
            cause = str(getattr(error, "orig", None) or error)
            raise StoreError(_explained(self.path, cause)) from error


def locate(db: str | None) -> Path:
    """The database file that is meant: the one named, else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreError: a URL of a database that is not SQLite, or a folder.
    """
    named = db or os.environ.get(DB_VARIABLE) or DEFAULT_DB
    if "://" in named:
        scheme, path = urlsplit(named).scheme, named.partition(":///")[2]
        if scheme != "sqlite" or not path:
            raise StoreError(
                f"cannot open a database of the kind {scheme!r}: expected a file or "
                "sqlite:///FILE; no other is supported yet"
            )
        named = path
    try:
        if Path(named).is_dir():
            raise StoreError(f"cannot open {named!r}: it is a folder; name a file in it")
        Path(named).exists()
    except OSError as error:
        raise StoreError(f"cannot open {named[:80]!r}: {error.strerror}") from None
    return Path(named)


def open_reader(db: str | None = None) -> Store:
    """The database, read-only.

    Raises:
        StoreMissingError: there is no file, or it holds no tables yet.
        StoreVersionError: it was made by a newer version.
        StoreError: it cannot be read.
    """
    path = locate(db)
    if not path.exists():
        raise StoreMissingError(f"{str(path)!r} does not exist; {MAKE_ONE}")
    store = Store(path, _sqlite_engine(path, "ro"))
    if _schema_version(store) is None:
        raise StoreMissingError(f"{str(path)!r} is empty; {MAKE_ONE}")
    return store


def open_writer(db: str | None = None) -> Store:
    """The database for reading and writing; made where there is none.

    Raises:
        StoreVersionError: it was made by a newer version.
        StoreError: it cannot be opened or is no database of this program.
    """
    path = locate(db)
    if not path.parent.is_dir():
        raise StoreError(f"cannot make {str(path)!r}: the folder {str(path.parent)!r} is missing")
    store = Store(path, _sqlite_engine(path, "rwc"))
    if _schema_version(store) is None:
        # Imported where it is used: only a new database needs it.
        from sweeps.store.migrate import upgrade

        upgrade(store)
    return store


def pack(db: str | None = None) -> Path:
    """Makes the database one small file that can be copied: vacuumed, in DELETE mode.

    Raises:
        StoreError: it cannot be written, or another process has it open.
    """
    store = open_writer(open_reader(db).path.as_posix())
    try:
        # Neither statement can stand in a transaction, so none is begun.
        with closing(store.engine.raw_connection()) as connection:
            cursor = connection.cursor()
            (mode,) = cursor.execute("PRAGMA journal_mode=DELETE").fetchone()
            cursor.execute("VACUUM")
    except sqlite3.Error as error:
        raise StoreError(_explained(store.path, str(error))) from error
    if mode != "delete":
        raise StoreError(f"cannot pack {str(store.path)!r}: another process has it open")
    return store.path


def _sqlite_engine(path: Path, mode: str) -> Engine:
    location = f"file:{quote(str(path.absolute()))}?mode={mode}"

    def connect() -> sqlite3.Connection:
        # isolation_level=None leaves transactions to the events below.
        connection = sqlite3.connect(
            location, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        connection.execute("PRAGMA foreign_keys=ON")
        if mode != "ro":
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
        return connection

    # NullPool: a connection that idles in a pool would keep its file open for nothing.
    engine = create_engine("sqlite://", creator=connect, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        if connection.get_isolation_level() != "AUTOCOMMIT":
            connection.exec_driver_sql("BEGIN" if mode == "ro" else "BEGIN IMMEDIATE")

    return engine


def _schema_version(store: Store) -> str | None:
    """The migration that the database is at; None where it has no tables."""
    with store.begin() as connection:
        tables = connection.exec_driver_sql("SELECT name FROM sqlite_master").scalars().all()
        if not tables:
            return None
        if "alembic_version" not in tables:
            raise StoreError(
                f"{str(store.path)!r} is a database of another program; name another file"
            )
        version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if version != SCHEMA_VERSION:
        raise StoreVersionError(
            f"{str(store.path)!r} was made by a newer version of seqcls (its schema is "
            f"{version!r}, this one's {SCHEMA_VERSION!r}); upgrade seqcls"
        )
    return SCHEMA_VERSION


def _explained(path: Path, cause: str) -> str:
    advice = {
        "database is locked": f"another process has held it for {BUSY_SECONDS} s; try again later",
        "file is not a database": "it is no SQLite database; name another file",
        "attempt to write a readonly database": "it may not be written; check its permissions",
        "unable to open database file": "it cannot be opened; check the path and its permissions",
        "database or disk is full": "the disk is full; free some space and run this again",
    }
    return f"{str(path)!r}: {advice.get(cause, cause)}"
