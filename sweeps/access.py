"""Which database is used where none is named, and whether this process may write."""

import contextlib
import os
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import TypedDict
from urllib.parse import quote

from platformdirs import user_data_path

from seqcls.errors import ConfigError, MachineError, ReadOnlyError
from sweeps.files import COMPANIONS, whole_files

DEFAULT_DB = "runs.db"
DB_VARIABLE = "SEQCLS_DB"


READ_ONLY_VARIABLE = "SEQCLS_READ_ONLY"
REASON = "This page is read-only: start a dashboard of your own with `seqcls dashboard` to do this."
_OFF = ("", "0", "false", "no", "off")


class Control(TypedDict):
    """Whether a control of a page is disabled, and what its tooltip says."""

    disabled: bool
    help: str | None


def is_read_only() -> bool:
    """Whether `SEQCLS_READ_ONLY` is set to anything but 0, false, no or off."""
    return not is_off(os.environ.get(READ_ONLY_VARIABLE, ""))


def is_off(value: str) -> bool:
    """Whether a variable's value means no: it is empty, 0, false, no or off."""
    return value.strip().lower() in _OFF


def refuse_writes(what: str) -> None:
    """Refuses what would write or start a process.

    Raises:
        ReadOnlyError: this process only reads.
    """
    if is_read_only():
        raise ReadOnlyError(
            f"{what} is refused: {READ_ONLY_VARIABLE} is set, so nothing is written; unset it"
        )


def control(tooltip: str | None = None, *, disabled: bool = False) -> Control:
    """What a control that writes is given: disabled with the reason where this process only reads.

    Args:
        tooltip: what it says otherwise.
    """
    if is_read_only():
        return {"disabled": True, "help": REASON}
    return {"disabled": disabled, "help": tooltip}


def reading_address(path: Path) -> str:
    """The URI by which a reader opens a file.

    A process that only reads, or may make no files beside it, takes it as immutable while nobody
    writes it: SQLite then makes none, so that it may stand on a read-only medium.
    """
    address = f"file:{quote(str(path.absolute()))}?mode=ro"
    makes_no_files = is_read_only() or not os.access(path.absolute().parent, os.W_OK)
    if makes_no_files and not any(holds_something(f"{path}{end}") for end in COMPANIONS):
        address += "&immutable=1"
    return address


def open_to_read(path: Path, busy_seconds: float) -> sqlite3.Connection:
    """A connection that only reads, after what a killed writer left half-written is rolled back.

    SQLite plays a journal back when a file is opened, which needs the right to write: a reader
    alone would refuse the file until the next writer came.
    """
    # Asked of each connection: a writer may have come or gone.
    if not is_read_only() and holds_something(f"{path}-journal"):
        # Whoever may not write is told so by the reader's own error.
        with (
            suppress(sqlite3.Error),
            closing(connect_to(f"file:{quote(str(path))}?mode=rw", busy_seconds)) as writer,
        ):
            writer.execute("SELECT count(*) FROM sqlite_master")
    return connect_to(reading_address(path), busy_seconds)


def connect_to(address: str, busy_seconds: float) -> sqlite3.Connection:
    """A connection by a URI, which waits for others' locks for so long."""
    # isolation_level=None leaves transactions to the events of the engine.
    return sqlite3.connect(
        address, uri=True, timeout=busy_seconds, isolation_level=None, check_same_thread=False
    )


def holds_something(path: str) -> bool:
    """Whether there is a file of that name that is not empty."""
    try:
        return os.stat(path).st_size > 0
    except OSError:
        return False


# The report's models, which an installed package brings: a database to begin with.

SHIPPED = Path(__file__).with_name("shipped") / DEFAULT_DB
"""Where a wheel has it; a clone has it in its own folder, where it is found anyway."""

NONE_HERE = "There is no runs.db in this folder; using your copy of the report's models."


def to_begin_with(db: str | None) -> Path | None:
    """The user's own copy of the shipped database, created if missing.

    Returns:
        None if a database is named or in this folder, if none is shipped, or if no copy can be
        made.
    """
    if db or os.environ.get(DB_VARIABLE) or os.path.lexists(DEFAULT_DB) or not SHIPPED.is_file():
        return None
    place = user_data_path("seqcls") / DEFAULT_DB
    if not place.exists():
        with contextlib.suppress(ConfigError, MachineError), whole_files(place.parent) as new:
            shutil.copyfile(SHIPPED, new / DEFAULT_DB)
    return place if place.exists() else None
