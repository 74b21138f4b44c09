"""Opening the database: which one is meant, which version it has, and what may be done with it."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sqlalchemy import URL, Connection, Engine, inspect, make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from seqcls.errors import StoreDamagedError, StoreError, StoreMissingError, StoreVersionError
from sweeps.store import postgres, sqlite

if TYPE_CHECKING:
    from sweeps.store.survey import Survey

DEFAULT_DB = "runs.db"
DB_VARIABLE = "SEQCLS_DB"
SCHEMA_VERSIONS = ("0001", "0002", "0003")
"""The migrations, oldest first; a test holds them against the migrations themselves."""

SCHEMA_VERSION = SCHEMA_VERSIONS[-1]

EXPECTED_URL = "expected postgresql://USER:PASSWORD@HOST:PORT/NAME"
MAKE_ONE = "`seqcls sweep report` trains the report's models into it"


@dataclass(frozen=True)
class Store:
    """An open database. Each block of `begin` is one transaction and one connection."""

    name: str
    """What to call it in a message; the password of a URL is left out."""
    engine: Engine
    path: Path | None
    """The file; None where the database is a server's."""
    survey: "Survey | None" = None
    """What is damaged, where that had to be looked for; its readers do not see it."""

    def __repr__(self) -> str:
        return f"<Store {self.name}>"

    @property
    def location(self) -> str:
        """Which database this is, wherever the program was started."""
        return self.name if self.path is None else str(self.path.absolute())

    def reader(self) -> "Store":
        """The same database, read-only: it waits for no writer and holds none up."""
        if self.path is not None:
            return Store(self.name, sqlite.connect(self.path, mode="ro"), self.path).trusted()
        return Store(self.name, postgres.connect(self.engine.url, read_only=True), None)

    def as_it_is(self) -> "Store":
        """The same database with what is damaged in it."""
        if self.survey is None or self.path is None:
            return self
        return Store(self.name, sqlite.connect(self.path, mode="ro"), self.path)

    def left_out(self, table: str, row_id: int) -> str | None:
        """Why a row is left out as damaged; None where it is not."""
        return None if self.survey is None else self.survey.of(table, row_id)

    def _with_place(self, error: StoreDamagedError) -> StoreDamagedError:
        """An error with the row that it is about, and with what can be done."""
        from sweeps.store import survey, trust

        row = None
        if self.path is not None and error.table is not None and error.column is not None:
            row = survey.where_damaged(self.path, error.table, error.column)
        what = str(error) if row is None else f"{row}: {str(error).partition(': ')[2]}"
        return StoreDamagedError(f"{self.name!r}: {what}; {trust.ADVICE}")

    def trusted(self) -> "Store":
        """As a reader that sees nothing of what is damaged, where that has to be known."""
        # Imported where it is used: it needs the tables, which a store that is made does not.
        from sweeps.store import survey, trust

        if self.path is None or (found := trust.survey_of(self.path)) is None:
            return self
        engine = sqlite.connect(self.path, mode="ro", prepared=tuple(survey.views(found)))
        return replace(self, engine=engine, survey=found)

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
            explained = sqlite.explained if self.path is not None else postgres.explained
            raise explained(self.name, error) from error
        except UnicodeDecodeError as error:
            # What SQLite says of a damaged schema need not even be text.
            raise StoreError(f"{self.name!r}: {sqlite.DAMAGED} ({error.reason})") from error
        except StoreDamagedError as error:
            raise self._with_place(error) from error

    @contextmanager
    def change(self, *what: Literal["configs", "members"]) -> Iterator[Connection]:
        """One transaction that raises the revision, by which readers know that theirs is old.

        Args:
            what: besides what is known of runs, which every change may change.
        """
        with self.begin() as connection:
            yield connection
            # At the end, so that whoever else is writing waits for this row and for nothing after.
            raised = ", ".join(f"{name} = {name} + 1" for name in ("runs", *what))
            connection.exec_driver_sql(f"UPDATE revision SET {raised}")

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """A block of many transactions, none of whose connections is the last to a file.

        Whoever closes the last moves all that was written from the log into the file, and waits
        for the disk twice, which takes longer than storing a group's results.

        Raises:
            StoreError: the database cannot be opened.
        """
        with ExitStack() as held:
            if self.path is not None:
                try:
                    held.enter_context(self.engine.connect())
                except SQLAlchemyError as error:
                    raise sqlite.explained(self.name, error) from error
            yield


def limit_reads(seconds: float) -> None:
    """Ends whatever this process reads of a database after so many seconds."""
    sqlite.read_seconds = postgres.read_seconds = seconds


def locate(db: str | None) -> Path | URL:
    """The database that is meant: the one named, else `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreError: a URL that is none or of another kind of database, or a folder.
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
    kind = "this kind" if postgres.is_meant(named) else f"the kind {scheme!r}"
    raise StoreError(
        f"cannot open a database of {kind}: expected a file, sqlite:///FILE or "
        "postgresql://USER@HOST/NAME"
    )


def _file(named: str) -> Path:
    """The file of that name, which need not exist: a regular one, else opening it could hang."""
    try:
        mode = os.stat(named).st_mode
    except FileNotFoundError:
        if postgres.is_meant(named):
            raise StoreError(f"cannot read the database's URL: {EXPECTED_URL}") from None
        return Path(named)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        shown = "the database" if postgres.is_meant(named) else repr(named[:80])
        raise StoreError(f"cannot open {shown}: {reason}; name another file") from None
    if stat.S_ISDIR(mode):
        raise StoreError(f"cannot open {named!r}: it is a folder; name a file in it")
    if not stat.S_ISREG(mode):
        raise StoreError(f"cannot open {named!r}: it is no regular file; name another")
    return Path(named)


def open_reader(db: str | None = None, *, any_version: bool = False) -> Store:
    """The database, read-only.

    Args:
        db: a file or a URL; else `SEQCLS_DB`, else `runs.db`.
        any_version: open a database of an older version too.

    Raises:
        StoreMissingError: there is no file, or it holds no tables yet.
        StoreVersionError: it was made by another version.
        StoreError: it cannot be read.
    """
    # Imported where it is used: it needs the tables, which a store that is made does not.
    from sweeps.store import trust

    store = _opened(locate(db), read_only=True)
    # A page opens the database dozens of times, mostly as it was the time before.
    if store.path is not None and not any_version and trust.is_still_sound(store.path):
        return store
    before = trust.state_of(store.path) if store.path is not None else ()
    version = schema_version(store)
    if version is None:
        raise StoreMissingError(f"{store.name!r} is empty; {MAKE_ONE}")
    if any_version:
        return store
    _refuse_older(store, version)
    trusted = store.trusted()
    if trusted is store and store.path is not None:
        trust.found_sound(store.path, before)
    return trusted


def open_writer(db: str | None = None, *, any_version: bool = False) -> Store:
    """The database for reading and writing; made where there is none.

    Args:
        db: a file or a URL; else `SEQCLS_DB`, else `runs.db`.
        any_version: open a database of an older version too.

    Raises:
        StoreVersionError: it was made by another version.
        StoreError: it cannot be opened or is no database of this program.
    """
    store = _opened(locate(db), read_only=False)
    version = schema_version(store)
    if version is None:
        # Imported where it is used: only a new database needs it.
        from sweeps.store.migrate import upgrade

        upgrade(store)
    elif not any_version:
        _refuse_older(store, version)
        if store.path is not None:
            from sweeps.store import trust

            trust.refuse_to_write(store.path, store.name)
    return store


def schema_version(store: Store) -> str | None:
    """The migration that the database is at; None where it has no tables.

    Raises:
        StoreVersionError: this version of the program does not know it.
        StoreError: it is no database of this program.
    """
    with store.begin() as connection:
        tables = inspect(connection).get_table_names()
        if not tables:
            return None
        if not {"alembic_version", "run", "sweep"} <= set(tables):
            raise StoreError(f"{store.name!r} is a database of another program; name another")
        version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
    if not version:
        raise StoreError(f"{store.name!r} does not say its version; it is damaged")
    if version not in SCHEMA_VERSIONS:
        raise StoreVersionError(
            f"{store.name!r} was made by a newer version of seqcls (its schema is "
            f"{str(version)[:40]!r}, this one's {SCHEMA_VERSION!r}); upgrade seqcls"
        )
    return str(version)


def pack(db: str | None = None) -> Path:
    """Makes the database one small file that can be copied: vacuumed, in DELETE mode.

    Raises:
        StoreError: it is no file, cannot be written, or another process has it open.
    """
    located = open_reader(db).path
    if located is None:
        raise StoreError("a PostgreSQL database is no file; `seqcls merge` copies it into one")
    store = open_writer(located.as_posix())
    sqlite.pack(store.engine, store.name)
    return located


def _opened(located: Path | URL, *, read_only: bool) -> Store:
    if isinstance(located, URL):
        return Store(
            postgres.name_of(located), postgres.connect(located, read_only=read_only), None
        )
    if read_only and not located.exists():
        raise StoreMissingError(f"{str(located)!r} does not exist; {MAKE_ONE}")
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


def _refuse_older(store: Store, version: str) -> None:
    if version != SCHEMA_VERSION:
        raise StoreVersionError(
            f"{store.name!r} was made by an older version of seqcls (its schema is {version!r}, "
            f"this one's {SCHEMA_VERSION!r}); {_how_to_upgrade(store)}"
        )


def _how_to_upgrade(store: Store) -> str:
    if store.path is None:
        return "back it up, and let `seqcls db upgrade` upgrade it"
    return f"`seqcls db upgrade --db {store.name}` upgrades it and keeps a copy"
