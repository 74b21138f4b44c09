"""Locating and opening a database, and packing it."""

import logging
import os
import re
import shlex
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

from sqlalchemy import URL, inspect, make_url
from sqlalchemy.exc import ArgumentError

from seqcls.errors import (
    ConfigError,
    MachineError,
    StoreError,
    StoreMissingError,
    StoreUnavailableError,
    StoreVersionError,
)
from seqcls.strings import datasets
from seqcls.strings.datasets import Content
from sweeps.access import DB_VARIABLE, DEFAULT_DB, refuse_writes
from sweeps.files import whole_files
from sweeps.store.database import BUSY_SECONDS, Store, explain_error, open_file, take_turns
from sweeps.store.tables import Base

SCHEMA_VERSION = "0008"
"""The newest of the migrations; a test holds it against them."""

OLDER = ("0005", "0006", "0007")
"""Schemas of databases that are converted: no migration of this version begins with them."""

MIGRATIONS = Path(__file__).with_name("migrations")

EXPECTED = (
    "expected a file, sqlite:///FILE or postgresql://USER:PASSWORD@HOST:PORT/NAME (an @ in the "
    "password is %40, a / %2F)"
)

PACKED_PAGE_BYTES = 2048
"""Half the default: each table and index wastes half a page on average."""

_LIKE_A_URL = re.compile(r"^[^/].*:.*@|pass\w*=", re.DOTALL)
"""Texts that look like a server's URL, even a malformed one, and so may hold a password."""

_SHOWN_OPTIONS = ("host", "port", "user", "dbname", "service", "sslmode", "connect_timeout")

_log = logging.getLogger(__name__)


# Which database.


def locate(db: str | None) -> Path | URL:
    """The path or URL of the database: the one named, else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreError: an invalid URL, one of another kind of database, or no regular file, which could
            hang when it is opened.
    """
    named = (db or os.environ.get(DB_VARIABLE) or DEFAULT_DB).removeprefix("sqlite:///")
    if "://" in named or (_LIKE_A_URL.search(named) and not os.path.exists(named)):
        try:
            url = make_url(named)
        except (ArgumentError, ValueError):
            raise StoreError(f"cannot read the database's URL: {EXPECTED}") from None
        if url.drivername.partition("+")[0] not in ("postgresql", "postgres"):
            raise StoreError(f"cannot open a database of kind {url.drivername!r}: {EXPECTED}")
        # An @ that is not escaped leaves part of the password in the host that messages show.
        if "@" in f"{url.host}{url.database}":
            raise StoreError(f"cannot read the database's URL: {EXPECTED}")
        return url.set(drivername="postgresql+psycopg")
    try:
        named.encode()  # SQLite knows no other names of files than in UTF-8.
        mode = os.stat(named).st_mode
    except FileNotFoundError:
        return Path(named)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreError(f"cannot open {named[:80]!r}: {reason}; name another file") from None
    if not stat.S_ISREG(mode):
        kind = "folder" if stat.S_ISDIR(mode) else "device"
        raise StoreError(f"cannot open {named!r}: it is a {kind}; name a file")
    return Path(named)


def _place_of(db: Store | str | Path | None) -> Path | URL:
    if isinstance(db, Store):
        return db.place
    return locate(None if db is None else str(db))


def _name_of(place: Path | URL) -> str:
    """The path, or the URL without its password and without unknown options.

    No other code shows URLs. An unknown option may be a misspelled password.
    """
    if isinstance(place, Path):
        return str(place)
    options = {name: value for name, value in place.query.items() if name in _SHOWN_OPTIONS}
    shown = place.set(drivername="postgresql", query=options)
    return shown.render_as_string(hide_password=True)


# Checks of its version.

last_opened: Store | None = None
"""The database that this process opened last, which is checked for damage after a failure."""


def open_reader(db: Store | str | Path | None = None) -> Store:
    """Opens an existing database for reading.

    Args:
        db: a file or a URL; else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreMissingError: there is no file, or it holds no tables yet.
        StoreVersionError: it was made by another version.
        StoreError: it cannot be read.
    """
    store = open_as_it_is(_place_of(db))
    if schema_version(store) is None:
        raise _missing(f"{store.name!r} is empty", store.name)
    return _remember(store)


def open_as_it_is(place: Path | URL) -> Store:
    """Opens an existing database for reading, of any version or another program."""
    store = Store(_name_of(place), place)
    if store.path is not None and not store.path.exists():
        raise _missing(f"{store.name!r} does not exist", store.name)
    return store


def open_writer(db: Store | str | Path | None = None) -> Store:
    """Opens a database for reading and writing, and creates it if it is missing.

    Args:
        db: a file, or the URL of a PostgreSQL database; else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreVersionError: it was made by another version.
        StoreError: it cannot be opened or written, or is no database of this program.
    """
    place = _place_of(db)
    store = Store(_name_of(place), place)
    refuse_writes(f"writing to {store.name!r}")
    path = store.path
    if path is None:
        if schema_version(store) is None:
            make_tables(store)
        return _remember(store)
    if not path.parent.is_dir():
        raise StoreError(f"cannot make {str(path)!r}: the folder {str(path.parent)!r} is missing")
    if path.exists() and (reason := why_not_permitted(path)) is not None:
        raise StoreUnavailableError(f"{store.name!r}: {reason}")
    if not path.exists() or schema_version(store) is None:
        make_tables(store)
    status = os.stat(path)
    return _remember(replace(store, file=(status.st_dev, status.st_ino)))


def _remember(store: Store) -> Store:
    global last_opened
    last_opened = store
    # Resolving a configuration looks its dataset up by digest, in any opened database.
    datasets.add_source(store.location, partial(_dataset_in, store))
    return store


def _dataset_in(store: Store, digest: str) -> Content | None:
    if store.path is not None and not store.path.exists():
        return None
    # Imported where it is used: the tables take a while to load.
    from sweeps.store.test_sets import load_dataset

    with store.read() as db:
        return load_dataset(db, digest)


def _missing(message: str, name: str) -> StoreMissingError:
    """The error for a missing database; a server's is named without its password."""
    named = "" if name == DEFAULT_DB or "://" in name else f" --db {shlex.quote(name)}"
    command = f"seqcls sweep report{named}"
    message = f"{message}; name one that is there, or have it made: `{command}` trains the report's"
    message += " models into it"
    return StoreMissingError(message, command=command)


def schema_version(store: Store) -> str | None:
    """The revision of the database's schema; None if it has no tables.

    Raises:
        StoreVersionError: this version of the program does not know it, or no longer.
        StoreError: it is no database of this program, or lacks a table.
    """
    with store.read() as db:
        tables = inspect(db).get_table_names()
        if not tables:
            return None
        if not {"alembic_version", "run", "sweep"} <= set(tables):
            raise StoreError(f"{store.name!r} is a database of another program; name another")
        version = str(db.exec_driver_sql("SELECT version_num FROM alembic_version").scalar())
    if version == SCHEMA_VERSION:
        # A view in the place of a table might have rows without end.
        if lacking := sorted(set(Base.metadata.tables) - set(tables)):
            raise StoreError(f"{store.name!r} has no table {lacking[0]!r}; restore a copy of it")
        return version
    # Versions have four digits, which sort as numbers do.
    if re.fullmatch(r"[0-9]{4}", version) and version < SCHEMA_VERSION:
        raise StoreVersionError(
            f"{store.name!r} is of schema {version!r}; `seqcls db convert OLD NEW` writes one of "
            f"{OLDER[0]} or later into a new database; `seqcls db upgrade` of seqcls 0.3 brings "
            "others there"
        )
    raise StoreVersionError(
        f"{store.name!r} was made by a newer version of seqcls (its schema is "
        f"{version[:40]!r}, this one's {SCHEMA_VERSION!r}); upgrade seqcls"
    )


def make_tables(store: Store) -> None:
    """Runs every migration that the database lacks, all in one transaction.

    Raises:
        StoreError: a migration failed; the database is unchanged.
    """
    # Imported where it is used: only a new database needs it.
    from alembic.command import upgrade
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS))
    # Alembic warns where this is left open.
    config.set_main_option("path_separator", "os")
    with store.write(quiet=True) as db:
        # Two processes that find no tables must not both make them.
        take_turns(db)
        config.attributes["connection"] = db
        upgrade(config, "head")


def existing(db: str | None = None) -> Store | None:
    """Opens like `open_reader`; None if there is no database, or an empty one."""
    try:
        return open_reader(db)
    except StoreMissingError:
        return None


@contextmanager
def try_to_store(what: str) -> Iterator[None]:
    """Logs a warning, instead of failing, where a result cannot be stored in the database."""
    try:
        yield
    except StoreUnavailableError as error:
        _log.warning("%s: not stored: %s", what, error)


# The file.


def pack(db: Store | str | Path | None = None) -> Path:
    """Turns the database into one small file that can be copied: vacuumed, in DELETE mode.

    Raises:
        StoreError: it is no file, cannot be written, or another process has it open.
    """
    path = open_reader(db).path
    if path is None:
        raise StoreError(
            "a PostgreSQL database is not a file; `seqcls db merge` copies it into one"
        )
    store = open_writer(path)
    try:
        with (
            closing(open_file(path, "rw", BUSY_SECONDS)) as connection,
            whole_files(path.parent) as new,
        ):
            # Leaving write-ahead mode fails while another process has it open.
            if connection.execute("PRAGMA journal_mode=DELETE").fetchone() != ("delete",):
                raise StoreUnavailableError(
                    f"cannot pack {store.name!r}: another process has it open"
                )
            connection.execute(f"PRAGMA page_size={PACKED_PAGE_BYTES}")
            packed = new / f"{path.name}.packed"
            connection.execute("VACUUM INTO ?", (str(packed),))
            shutil.copymode(path, packed)
            os.replace(packed, path)
    except sqlite3.Error as error:
        raise explain_error(store.name, error) from error
    except (MachineError, ConfigError) as error:
        raise StoreUnavailableError(f"cannot pack {store.name!r}: {error}") from error
    return path


def why_not_permitted(path: Path) -> str | None:
    """The reason why this user may not write the file; None if that is permitted."""
    # SQLite does not report a folder without room for a journal until the first write.
    for place, name in ((path, "it"), (path.absolute().parent, "its folder")):
        if not os.access(place, os.W_OK):
            mode = stat.S_IMODE(place.stat().st_mode)
            return f"{name} may not be written; check its permissions (mode {mode:04o})"
    return None
