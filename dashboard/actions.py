"""What pages do to sweeps: launch, stop, resume, retry, delete, and take that back.

Sweeps that will be deleted are gone from the page at once, from the database a minute later. A
server that ends before has deleted nothing.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock, Timer

import streamlit as st

from dashboard.text import error_text, verbatim
from seqcls.errors import ConfigError, SeqclsError
from sweeps.access import control, refuse_writes
from sweeps.api import Store, open_reader, open_writer, reading
from sweeps.api.reading import SweepState
from sweeps.grid.spec import SweepSpec
from sweeps.processes import retry_lost
from sweeps.store import writer
from sweeps.work import background_worker
from sweeps.work.progress import SweepProgress, counts

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


PROBLEM = "problem"
"""Where the session keeps what went wrong, until it has been said."""


def launch(specs: Sequence[SweepSpec], token: str) -> list[int]:
    """Submits the sweeps and starts a worker; the same token does so once.

    Returns:
        The numbers of the sweeps; none where they could not be submitted.
    """
    ids: dict[int, str] = {}

    def do(store: Store) -> None:
        ids.update(
            {writer.submit(store, spec, f"{token} {spec.name}"): spec.name for spec in specs}
        )
        for sweep_id in ids:
            # One of this name that was to be deleted is wanted again.
            deletions().undo(store.address, sweep_id)
        background_worker.start_worker(store, ids)

    write(do)
    return list(ids)


def stop(sweep_id: int) -> None:
    """Has workers begin no more runs of the sweep."""
    write(lambda store: writer.stop(store, [sweep_id]))


def resume(sweep_id: int, name: str) -> None:
    """Takes a stop back, and makes sure that a worker trains."""

    def do(store: Store) -> None:
        stopped = reading.sweep_record(store, sweep_id).state == SweepState.STOPPED
        writer.resume(store, [sweep_id])
        background_worker.start_worker(store, {sweep_id: name}, anyway=stopped)

    write(do)


def retry(sweep_id: int, name: str) -> None:
    """Queues the sweep's failed runs again, and makes sure that a worker trains."""

    def do(store: Store) -> None:
        writer.retry(store, [sweep_id])
        background_worker.start_worker(store, {sweep_id: name})

    write(do)


def say_problem() -> None:
    """Says what the last callback could not do, once."""
    if problem := st.session_state.pop(PROBLEM, None):
        st.error("That didn't work.")
        st.code(problem, language=None, wrap_lines=True)


def is_attended(store: Store, sweep_id: int, running: int) -> bool:
    """Whether a worker trains the sweep, as far as this machine can know."""
    return running > 0 or background_worker.has_worker(store, sweep_id)


def doing(store: Store, sweep: SweepProgress) -> str:
    """What the worker of a sweep does before it trains; empty where it trains."""
    if sweep.running or not sweep.queued:
        return ""
    log = (background_worker.read_log(store, sweep.id) or "").strip()
    if not log:
        return "the worker is starting"
    last = log.splitlines()[-1]
    return last if last.startswith("compiling") else ""


def write(do: Callable[[Store], object]) -> None:
    """Writes anything; what is wrong with it is said on the page."""
    attempt(lambda: do(open_writer()))


def attempt(do: Callable[[], object]) -> None:
    """Does anything; what is wrong with it is said on the page."""
    try:
        retry_lost(do)
    except (SeqclsError, OSError) as error:
        st.session_state[PROBLEM] = error_text(error)


LOOK_SECONDS = 1.0


def delete_later(sweep_id: int, name: str) -> None:
    """Has a sweep deleted, unless that is taken back."""

    def do() -> None:
        refuse_writes("deleting a sweep")
        deletions().begin(open_reader().address, sweep_id, name)

    attempt(do)


def hidden_sweeps() -> set[int]:
    """The sweeps that are shown no longer."""
    return set(deletions().waiting(open_reader().address))


def show_deletions() -> None:
    """Offers to take back what was deleted, for as long as that can be done."""
    for problem in deletions().problems():
        st.error(verbatim(problem))
    waiting = deletions().waiting(open_reader().address)
    if waiting:
        # In sight wherever the page is: what deletes stands at its end.
        with st.container(key="undo", border=True):
            st.fragment(_offer_restoring, run_every=LOOK_SECONDS)(set(waiting))


def _offer_restoring(shown: set[int]) -> None:
    address = open_reader().address
    waiting = deletions().waiting(address)
    if set(waiting) != shown:
        # Done, or taken back elsewhere: what is listed has changed.
        st.rerun()
    for sweep_id, (name, seconds) in waiting.items():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(f"{name} is deleted. It can be restored for {seconds:.0f} more seconds.")
            st.button(
                "Undo",
                key=f"undo {sweep_id}",
                on_click=deletions().undo,
                args=(address, sweep_id),
                **control(),
            )
