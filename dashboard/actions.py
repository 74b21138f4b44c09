"""What pages do to sweeps: launch, stop, resume, retry, delete."""

from collections.abc import Callable, Sequence

import streamlit as st

from dashboard.text import error_text
from seqcls.errors import ConfigError, SeqclsError
from sweeps.api import Store, open_writer
from sweeps.api.old_pages import reading, work_logs
from sweeps.api.old_pages.reading import SweepState
from sweeps.grid.spec import SweepSpec
from sweeps.processes import retry_lost
from sweeps.store import writer
from sweeps.work import background_worker
from sweeps.work.progress import SweepProgress, counts


def _check_name(store: Store, sweep_id: int, name: str) -> None:
    """Refuses to delete another sweep, which a file that was put in the place of the database has.

    Raises:
        ConfigError: the sweep of this number has another name.
    """
    found = {each.id: each.name for each in counts(store)}.get(sweep_id, name)
    if found != name:
        raise ConfigError(f"the database was replaced, and its sweep {sweep_id} is {found!r}")


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


def delete(sweep_id: int, name: str) -> None:
    """Deletes a sweep, and the runs that belong to no other."""

    def do(store: Store) -> None:
        _check_name(store, sweep_id, name)
        writer.delete(store, sweep_id)
        work_logs.forget(store, sweep_id)

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
    log = (work_logs.read_log(store, sweep.id) or "").strip()
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
