"""Which database and which run a command is about."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sweeps.store.databases.engine import Store


def opened(db: str | None, reference: str) -> "tuple[Store, int]":
    """The database, open for reading, and the id of the run that a reference names.

    Raises:
        UnknownRunError: there is no such run.
    """
    from sweeps.store.opening import open_reader
    from sweeps.store.reading.queries import find_run

    store = open_reader(db)
    return store, find_run(store, reference)
