"""An open database: its transactions, and which version of the schema it has."""

import re
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from sqlalchemy import Connection, Engine, inspect
from sqlalchemy.exc import SQLAlchemyError

from seqcls import cancellation
from seqcls.errors import (
    StoreBusyError,
    StoreError,
    StoreLostError,
    StoreVersionError,
)
from sweeps import processes
from sweeps.store.databases import postgres, sqlite

SCHEMA_VERSIONS = ("0007",)
"""The migrations, oldest first; a test holds them against the migrations themselves."""

SCHEMA_VERSION = SCHEMA_VERSIONS[-1]

OLDER = dict.fromkeys(
    ("0005", "0006"),
    "`seqcls db convert OLD NEW` writes it into a new database, and leaves it as it is",
)
"""What is done about a database that no migration of this version begins with."""

STILL_OLDER = (
    'seqcls 0.3 (`pip install "seqcls<0.4"`) upgrades it to 0005 with `seqcls db upgrade`, and '
    "`seqcls db convert` goes on from there"
)

LOST = "the connection was lost as the change was stored: see whether it is, before you repeat it"

HURRIED_SECONDS = 0.2
"""How long a write that is not worth a wait waits for another's lock."""


@dataclass(frozen=True)
class Store:
    """An open database. Each block of `begin` is one transaction and one connection.

    But in a block of `one_moment`, where all of a reader are.
    """

    name: str
    """What to call it in a message; the password of a URL is left out."""
    engine: Engine
    path: Path | None
    """The file; None where the database is a server's."""
    file: sqlite.FileId | None = None
    """Which file a writer has opened, so that it writes into no other of that name."""

    def __repr__(self) -> str:
        return f"<Store {self.name}>"

    @property
    def location(self) -> str:
        """Which database this is, wherever the program was started."""
        return self.name if self.path is None else str(self.path.absolute())

    @property
    def address(self) -> str:
        """What opens it anew; of a server's with the password, so for no message and no log."""
        if self.path is not None:
            return str(self.path)
        return self.engine.url.render_as_string(hide_password=False)

    def reader(self) -> "Store":
        """The same database, read-only: it waits for no writer and holds none up."""
        if self.path is not None:
            return Store(self.name, sqlite.connect(self.path, mode="ro"), self.path)
        return Store(self.name, postgres.connect(self.engine.url, read_only=True), None)

    def without_waiting(self) -> "Store":
        """The same database for writes that are not worth a wait for others' locks."""
        if self.path is not None:
            engine = sqlite.connect(
                self.path, mode="again", busy_seconds=HURRIED_SECONDS, file=self.file
            )
        else:
            engine = postgres.connect(
                self.engine.url, read_only=False, busy_seconds=HURRIED_SECONDS
            )
        return Store(self.name, engine, self.path)

    @property
    def is_of_one_moment(self) -> bool:
        """Whether all that is read is as it was at one moment, as a block of `one_moment` has it.

        Of a file that is not in write-ahead mode it is not: a reader would hold up its writers.
        """
        return (_moments.get() or {}).get(self.engine) is not None

    def _held_connection(self) -> Connection | None:
        """The transaction of the moment that is read; None where each block has its own."""
        moments = _moments.get()
        if moments is None or not self.engine.get_execution_options().get(sqlite.READS_ONLY):
            return None
        if self.engine not in moments:
            moments[self.engine] = None
            connection = self.engine.connect()
            if self.path is None or sqlite.holds_up_no_writer(connection):
                moments[self.engine] = connection
            else:
                connection.close()
        held = moments[self.engine]
        if held is not None and self.path is not None:
            sqlite.begin_reading(sqlite.driver_of(held))
        return held

    def _let_go(self) -> None:
        """Ends the transaction of the moment: after an error nothing more is read in it."""
        moments = _moments.get() or {}
        if (held := moments.get(self.engine)) is not None:
            moments[self.engine] = None
            with suppress(SQLAlchemyError):
                held.close()

    @contextmanager
    def _only_block(self) -> Iterator[None]:
        """A block of this thread in which it begins no other one that writes the same file.

        That would wait for this one's lock until it gave up.

        Raises:
            AssertionError: there is such a block around this one.
        """
        if self.path is None or self.engine.get_execution_options().get(sqlite.READS_ONLY):
            yield
            return
        block = threading.get_ident(), self.location
        if block in _blocks:
            raise AssertionError(
                f"{self.name!r}: a block of begin() within another one would wait for it; read and "
                "write by the outer block's connection, or read from store.reader()"
            )
        _blocks.add(block)
        try:
            yield
        finally:
            _blocks.discard(block)

    @contextmanager
    def begin(self) -> Iterator[Connection]:
        """One transaction: committed at the end of the block, rolled back on an error.

        Raises:
            StoreLostError: a server ended the connection; nothing of the block is kept.
            StoreError: the database could not do what was asked; nothing of the block is kept,
                unless it says that this is not known.
        """
        cancellation.check()
        may_be_kept = False
        try:
            if (held := self._held_connection()) is not None:
                yield held
            else:
                with self._only_block(), self.engine.begin() as connection:
                    yield connection
                    if connection.info.get(postgres.CHANGES):
                        # From here on it may be kept, even if no answer says so.
                        may_be_kept = True
                        processes.note_lasting()
        except SQLAlchemyError as error:
            self._let_go()
            # It was interrupted because nobody waits for it.
            cancellation.check()
            if self.path is not None:
                raise sqlite.explain_error(self.name, error) from error
            told = postgres.explain_error(self.name, error)
            if getattr(error, "connection_invalidated", False):
                lost = (
                    StoreBusyError(f"{told}; {LOST}") if may_be_kept else StoreLostError(f"{told}")
                )
                raise lost from error
            raise told from error
        except UnicodeDecodeError as error:
            # What SQLite says of a damaged schema need not even be text.
            raise StoreError(f"{self.name!r}: {sqlite.DAMAGED} ({error.reason})") from error

    @contextmanager
    def change(self, *what: Literal["configs", "members"]) -> Iterator[Connection]:
        """One transaction that raises the revision, by which readers know that theirs is old.

        Args:
            what: what else changes; every change may change runs.
        """
        with self.begin() as connection:
            yield connection
            # Last, so that other writers wait for this row only briefly.
            raised = ", ".join(f"{name} = {name} + 1" for name in ("runs", *what))
            connection.exec_driver_sql(f"UPDATE revision SET {raised}")

    @contextmanager
    def kept_open(self) -> Iterator[None]:
        """A block of many transactions, none of whose connections is the last to a file.

        Closing the last connection moves all writes from the log into the file and waits for the
        disk twice, which takes longer than storing a group's results.

        Raises:
            StoreError: the database cannot be opened.
        """
        with ExitStack() as held:
            if self.path is not None:
                try:
                    held.enter_context(self.engine.connect())
                except SQLAlchemyError as error:
                    raise sqlite.explain_error(self.name, error) from error
            yield


_blocks: set[tuple[int, str]] = set()
"""The threads that are in a block of `begin` which may write, each with the file."""

_moments: ContextVar[dict[Engine, Connection | None] | None] = ContextVar("moments", default=None)


@contextmanager
def one_moment() -> Iterator[None]:
    """A block in which readers see each database as it was when they first read it.

    All of a reader's blocks of `begin` are one transaction then, which holds up no writer; see
    `Store.is_of_one_moment`. A nested block is part of the outer one.
    """
    if _moments.get() is not None:
        yield
        return
    moments: dict[Engine, Connection | None] = {}
    before = _moments.set(moments)
    try:
        yield
    finally:
        _moments.reset(before)
        for held in moments.values():
            if held is not None:
                # A server may have ended it.
                with suppress(SQLAlchemyError):
                    held.close()


@contextmanager
def as_of_now() -> Iterator[None]:
    """A block within one of `one_moment` whose readers see databases as they are by now."""
    before = _moments.set(None)
    try:
        yield
    finally:
        _moments.reset(before)


def limit_reads(seconds: float) -> None:
    """Ends whatever this process reads of a database after so many seconds."""
    sqlite.read_seconds = postgres.read_seconds = seconds


def schema_version(store: Store) -> str | None:
    """The migration that the database is at; None where it has no tables.

    Raises:
        StoreVersionError: this version of the program does not know it, or no longer.
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
        # Versions have four digits, which sort as numbers do.
        if re.fullmatch(r"[0-9]{4}", str(version)) and str(version) < SCHEMA_VERSIONS[0]:
            advice = OLDER.get(str(version), STILL_OLDER)
            raise StoreVersionError(f"{store.name!r} is of schema {str(version)[:40]!r}; {advice}")
        raise StoreVersionError(
            f"{store.name!r} was made by a newer version of seqcls (its schema is "
            f"{str(version)[:40]!r}, this one's {SCHEMA_VERSION!r}); upgrade seqcls"
        )
    return str(version)
