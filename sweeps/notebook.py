"""The interface for notebooks: `seqcls.open("runs.db").runs("heads")`.

The functions of `sweeps.api` that take a database are methods here, with the same arguments.
"""

from collections.abc import Callable
from functools import partial, update_wrapper
from pathlib import Path
from typing import Any

from seqcls.text import count
from sweeps import api

NO_METHODS = {"convert", "data", "draw", "engines", "open_store", "shortcuts", "theory"}
"""Names of `sweeps.api` that take no open database."""

METHODS = [name for name in api.__all__ if name not in NO_METHODS]


class Database:
    """A database of runs: one SQLite file, or a PostgreSQL database.

    Its methods are the functions of `sweeps.api` that take a database, such as `runs`, `compare`,
    `model`, `explain`, `causes` and `work`.

    Args:
        db: a file, which is created if missing, or the URL of a PostgreSQL database; by default
            `SEQCLS_DB`, else `runs.db`.

    Raises:
        StoreError: it cannot be opened, or was made by another version.
    """

    def __init__(self, db: str | Path | None = None) -> None:
        self.store = api.open_store(db)

    def __repr__(self) -> str:
        sweeps = api.status(self.store)
        runs = sum(sweep.total for sweep in sweeps)
        return (
            f"<Database {self.store.name}: {count(len(sweeps), 'sweep')} of {count(runs, 'run')}>"
        )

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name not in METHODS:
            raise AttributeError(f"a database has no {name!r}; it has {', '.join(METHODS)}")
        function = getattr(api, name)
        # A partial lacks the name and the docstring for `help`.
        return update_wrapper(partial(function, self.store), function)

    def __dir__(self) -> list[str]:
        return ["store", *METHODS]


def sweep(spec: Any, db: str | Path | None = None, **how: Any) -> Database:
    """Trains the runs of a specification that the database lacks.

    Args:
        spec: a TOML file, a folder of them, a shipped one's name, or a table with the same keys.
        db: as for `Database`.
        **how: as for `sweeps.api.work`: `workers`, `engine`, `device`, `dask`.

    Returns:
        The database.

    Raises:
        SpecError: the specification cannot be read or is refused; nothing is trained.
    """
    database = Database(db)
    api.work(database.store, api.submit(database.store, spec), **how)
    return database
