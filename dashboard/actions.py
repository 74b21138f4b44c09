"""Actions of pages on sweeps: launch, stop, resume, retry, grow, describe, archive."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any, TypedDict

import streamlit as st

from dashboard.text import error_text
from seqcls.errors import SeqclsError
from sweeps.access import is_read_only
from sweeps.api import Store, open_writer, reading, watching
from sweeps.api.reading import SweepState
from sweeps.grid.spec import SweepSpec
from sweeps.processes import retry_lost
from sweeps.store import writer as writer
from sweeps.work import background_worker
from sweeps.work.progress import SweepProgress

REASON = "This page is read-only: start a dashboard of your own with `seqcls dashboard` to do this."


class Control(TypedDict):
    """Keyword arguments of a Streamlit widget: is it disabled, and its tooltip."""

    disabled: bool
    help: str | None


def control(tooltip: str | None = None, *, disabled: bool = False) -> Control:
    """Returns the arguments of a control that writes; disabled with the reason where read-only.

    Args:
        tooltip: shown otherwise.
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
        label: of the button.
        key: the widget's.
        do: what a click does.
        *args: of that.
        tooltip: shown where it may be clicked.
        disabled: whether there is nothing to do.
        **drawn: how it looks, as of `st.button`.
    """
    st.button(
        label, key=key, on_click=do, args=args, **control(tooltip, disabled=disabled), **drawn
    )


PROBLEM = "problem"
"""Key of the session's error message, until the page shows it."""


def launch(specs: Sequence[SweepSpec], token: str) -> list[int]:
    """Submits the sweeps and starts a worker; the same token does so once.

    Returns:
        The numbers of the sweeps; none where they could not be submitted.
    """
    ids: dict[int, str] = {}

    def do(store: Store) -> None:
        ids.update(
            # A token identifies one submission, and one launch may have several.
            {writer.submit(store, spec, f"{token} {spec.name}"): spec.name for spec in specs}
        )
        background_worker.start_worker(store, ids)

    write(do)
    return list(ids)


def launch_more(make: Callable[[Store], SweepSpec | None]) -> None:
    """Launches what is made of a sweep, as a sweep beside it; nothing where nothing is."""

    def do(store: Store) -> None:
        if (spec := make(store)) is not None:
            # A token of its own: each click is meant, and none repeats an earlier one.
            launch([spec], uuid.uuid4().hex)

    write(do)


def train(sweep_id: int, name: str, change: Callable[..., object], *args: Any) -> None:
    """Changes a sweep so that there is more to train, and makes sure that a worker does.

    Args:
        change: of the database, with these arguments: takes a stop back, queues failed runs again.
    """

    def do(store: Store) -> None:
        # A worker that was stopped may be about to end, so that another is started beside it.
        stopped = reading.sweep_record(store, sweep_id).state == SweepState.STOPPED
        change(store, *args)
        background_worker.start_worker(store, {sweep_id: name}, anyway=stopped)

    write(do)


def say_problem() -> None:
    """Says what the last callback could not do, once."""
    if problem := st.session_state.pop(PROBLEM, None):
        st.error("That didn't work.")
        st.code(problem, language=None, wrap_lines=True)


def is_attended(store: Store, sweep_id: int, running: int) -> bool:
    """Returns True if a worker trains the sweep, as far as this machine can know."""
    return running > 0 or background_worker.has_worker(store, sweep_id)


def doing(store: Store, sweep: SweepProgress) -> str:
    """Describes the worker's step before training, such as compiling; empty once it trains."""
    if sweep.running or not sweep.queued:
        return ""
    log = (watching.read_log(store, sweep.id) or "").strip()
    if not log:
        return "the worker is starting"
    last = log.splitlines()[-1]
    return last if last.startswith("compiling") else ""


def write(do: Callable[..., object], *args: Any) -> None:
    """Writes to the database by `do`; the page shows an error."""
    try:
        # A server may have ended the connection since the page was drawn.
        retry_lost(lambda: do(open_writer(), *args))
    except (SeqclsError, OSError) as error:
        st.session_state[PROBLEM] = error_text(error)
