"""How pages open the database: many questions of one moment, and controls that may write or not."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TypedDict

from sweeps.access import is_read_only
from sweeps.store.database import Store

REASON = "This page is read-only: start a dashboard of your own with `seqcls dashboard` to do this."


class Control(TypedDict):
    """Whether a control of a page is disabled, and what its tooltip says."""

    disabled: bool
    help: str | None


def control(tooltip: str | None = None, *, disabled: bool = False) -> Control:
    """What a control that writes is given: disabled with the reason where this process only reads.

    Args:
        tooltip: what it says otherwise.
    """
    if is_read_only():
        return {"disabled": True, "help": REASON}
    return {"disabled": disabled, "help": tooltip}


@contextmanager
def one_moment(store: Store) -> Iterator[None]:
    """A block in which a database is seen as it was at its beginning; it holds up no writer.

    Of a file that is not in write-ahead mode each block of `Store.read` is a moment of its own: a
    reader would hold up its writers.
    """
    held = ExitStack()
    db = held.enter_context(store.read())
    is_file = db.dialect.name == "sqlite"
    if is_file and db.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
        held.close()
    try:
        yield
    finally:
        # Not as an error of the database: it is one of whatever the page does.
        held.close()
