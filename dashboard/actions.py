"""What pages do to sweeps: launch, stop, resume, retry, grow, describe, archive."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import streamlit as st

from dashboard.text import error_text
from seqcls.errors import SeqclsError
from sweeps.access import is_read_only
from sweeps.api import Store, budgets, open_writer, reading, watching
from sweeps.api.reading import SweepState
from sweeps.grid.spec import SweepSpec
from sweeps.processes import retry_lost
from sweeps.store import writer
from sweeps.work import background_worker
from sweeps.work.progress import SweepProgress

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


def button(
    label: str,
    key: str,
    do: Callable[..., Any],
    *args: Any,
    tooltip: str | None = None,
    disabled: bool = False,
    **drawn: Any,
) -> None:
    """Draws a button that writes, disabled where this process only reads.

    Args:
        label: on it.
        key: the widget's.
        do: what a click does.
        *args: of that.
        tooltip: what it says where it may be clicked.
        disabled: whether there is nothing to do.
        **drawn: how it looks, as of `st.button`.
    """
    st.button(
        label, key=key, on_click=do, args=args, **control(tooltip, disabled=disabled), **drawn
    )


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
        # A worker that was stopped may be about to end, so that another is started beside it.
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


def train_longer(name: str, budget: str) -> None:
    """Launches those runs of a sweep that have not learned with a larger budget, as a sweep."""

    def do(store: Store) -> None:
        more = budgets.more_training(store, name, budget)
        if more.spec is not None:
            # A token of its own: each click is meant, and none repeats an earlier one.
            launch([more.spec], uuid.uuid4().hex)

    write(do)


def add_seeds(name: str, number: int) -> None:
    """Trains so many more seeds of each configuration of a sweep."""
    write(lambda store: launch([budgets.more_seeds(store, name, number)], uuid.uuid4().hex))


def add_seeds_until(sweep_id: int, name: str, until: str) -> None:
    """Trains as many more seeds of a sweep as it takes, until its shares are known so well."""

    def do(store: Store) -> None:
        budgets.seeds(store, name, until)
        background_worker.start_worker(store, {sweep_id: name})

    write(do)


def describe(sweep_id: int, title: str, note: str, tags: Sequence[str]) -> None:
    """Replaces what is written about a sweep."""
    write(lambda store: writer.write_note(store, sweep_id, title, note, tags))


def archive(sweep_id: int, *, archived: bool) -> None:
    """Hides a sweep from lists and filters, or takes that back; nothing is deleted."""
    write(lambda store: writer.archive(store, sweep_id, archived))


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
    log = (watching.read_log(store, sweep.id) or "").strip()
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
        # A server may have ended the connection since the page was drawn.
        retry_lost(do)
    except (SeqclsError, OSError) as error:
        st.session_state[PROBLEM] = error_text(error)
