"""Sweeps that will be deleted: gone from the page at once, from the database a minute later.

Until then it can be taken back. A server that ends before has deleted nothing.
"""

import time
from dataclasses import dataclass
from functools import partial
from threading import Lock, Timer

import streamlit as st

from seqcls.errors import ConfigError, SeqclsError
from sweeps.processes import background_worker
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.work.progress import counts

GRACE_SECONDS = 60.0
"""So long a deletion can be taken back."""

_Sweep = tuple[str, int]
"""A database's address, and the sweep's id."""


@dataclass(frozen=True)
class _Deletion:
    name: str
    due: float
    timer: Timer


class Deletions:
    """Those that this server will do, unless they are taken back."""

    def __init__(self) -> None:
        self._waiting: dict[_Sweep, _Deletion] = {}
        self._problems: list[str] = []
        self._lock = Lock()

    def begin(self, address: str, sweep_id: int, name: str) -> None:
        """Deletes a sweep when its grace is over."""
        timer = Timer(GRACE_SECONDS, partial(self.finish, address, sweep_id))
        # The end of the server waits for no deletion.
        timer.daemon = True
        with self._lock:
            if (address, sweep_id) not in self._waiting:
                due = time.monotonic() + GRACE_SECONDS
                self._waiting[address, sweep_id] = _Deletion(name, due, timer)
                timer.start()

    def undo(self, address: str, sweep_id: int) -> None:
        """Takes a deletion back."""
        with self._lock:
            if deletion := self._waiting.pop((address, sweep_id), None):
                deletion.timer.cancel()

    def finish(self, address: str, sweep_id: int) -> None:
        """Does what was begun, now; nothing where it was taken back."""
        with self._lock:
            deletion = self._waiting.get((address, sweep_id))
            if deletion is None:
                return
            deletion.timer.cancel()
            try:
                store = open_writer(address)
                _check_name(store, sweep_id, deletion.name)
                writer.delete(store, sweep_id)
                background_worker.forget(store, sweep_id)
            except (SeqclsError, OSError) as error:
                self._problems.append(f"{deletion.name} was not deleted: {error}")
            del self._waiting[address, sweep_id]

    def waiting(self, address: str) -> dict[int, tuple[str, float]]:
        """Sweeps of a database that will be deleted: their names, and the seconds until then."""
        now = time.monotonic()
        return {
            sweep_id: (deletion.name, max(0.0, deletion.due - now))
            for (location, sweep_id), deletion in list(self._waiting.items())
            if location == address
        }

    def problems(self) -> list[str]:
        """What could not be deleted, said once."""
        said, self._problems = self._problems, []
        return said


def _check_name(store: Store, sweep_id: int, name: str) -> None:
    """Refuses to delete another sweep, which a file that was put in the place of the database has.

    Raises:
        ConfigError: the sweep of this number has another name.
    """
    found = {each.id: each.name for each in counts(store)}.get(sweep_id, name)
    if found != name:
        raise ConfigError(f"the database was replaced, and its sweep {sweep_id} is {found!r}")


@st.cache_resource(show_spinner=False)
def deletions() -> Deletions:
    """Those of this server."""
    return Deletions()
