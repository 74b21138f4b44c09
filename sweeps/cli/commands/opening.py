"""Which database and which run a command is about."""

from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_reader
from sweeps.store.reading.queries import find_run


def opened(db: str | None, reference: str) -> tuple[Store, int]:
    """The database, open for reading, and the id of the run that a reference names.

    Raises:
        UnknownRunError: there is no such run.
    """
    store = open_reader(db)
    return store, find_run(store, reference)
