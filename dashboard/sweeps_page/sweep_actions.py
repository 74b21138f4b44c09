"""What a page does to sweeps, in callbacks: a writer is open only while one runs."""

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.sweeps_page.deletions import deletions
from dashboard.text import told
from seqcls.errors import SeqclsError
from sweeps.grid.spec import SweepSpec
from sweeps.processes import background_worker
from sweeps.store import writer
from sweeps.store.databases.engine import Store
from sweeps.store.opening import open_writer
from sweeps.store.reading import sweep_queries
from sweeps.store.schema.tables import SweepState

PROBLEM = "problem"
"""Where the session keeps what went wrong, until it has been said."""


def launch(specs: Sequence[SweepSpec], token: str) -> None:
    """Submits the sweeps and starts a worker; the same token does so once."""

    def do(store: Store) -> None:
        ids = {writer.submit(store, spec, f"{token} {spec.name}"): spec.name for spec in specs}
        for sweep_id in ids:
            # One of this name that was to be deleted is wanted again.
            deletions().undo(store.address, sweep_id)
        background_worker.start_worker(store, ids)

    write(do)


def stop(sweep_id: int) -> None:
    """Has workers begin no more runs of the sweep."""
    write(lambda store: writer.stop(store, [sweep_id]))


def resume(sweep_id: int, name: str) -> None:
    """Takes a stop back, and makes sure that a worker trains."""

    def do(store: Store) -> None:
        stopped = sweep_queries.sweep_record(store, sweep_id).state == SweepState.STOPPED
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


def write(do: Callable[[Store], object]) -> None:
    """Writes anything; what is wrong with it is said on the page."""
    tried(lambda: do(open_writer()))


def tried(do: Callable[[], object]) -> None:
    """Does anything; what is wrong with it is said on the page."""
    try:
        do()
    except (SeqclsError, OSError) as error:
        st.session_state[PROBLEM] = told(error)
