"""Sweeps in training: a line each, refreshed by itself while any is active."""

from collections.abc import Callable
from functools import partial

import streamlit as st

from dashboard import actions, data, page
from dashboard.training import offer
from seqcls.errors import SeqclsError
from seqcls.text import count
from sweeps.api import Selection, Store, open_reader, watching
from sweeps.api.reading import SweepState
from sweeps.results import OutcomeCounts, describe_counts
from sweeps.terminal import format_duration
from sweeps.work.progress import SweepProgress

SECONDS = 2.0
"""Between two looks at the database."""

MAX_SHOWN = 4
SEEN = "active sweeps"
"""Key in the session of the names of sweeps seen in training, by id."""


def show(draw: Callable[[Store, SweepProgress], None]) -> None:
    """Draws each sweep in training by `draw`, and refreshes itself.

    Once a sweep has ended, the page is drawn anew with its results; until then it is left alone.
    """
    try:
        polls = any(map(goes_on, data.progress()))
    except SeqclsError:
        # The page shows the error.
        return
    st.fragment(partial(_refresh, draw, polls), run_every=SECONDS if polls else None)()


def goes_on(sweep: SweepProgress) -> bool:
    """Returns True if the sweep may change by itself, so that it is polled."""
    return sweep.running > 0 or sweep.state not in (SweepState.DONE, SweepState.STOPPED)


def _refresh(draw: Callable[[Store, SweepProgress], None], polls: bool) -> None:
    try:
        store = open_reader()
        active = [sweep for sweep in data.progress() if sweep.state != SweepState.DONE]
    except SeqclsError:
        return
    before: dict[int, str] = st.session_state.get(SEEN, {})
    # Before the rerun below, or each run would report the same sweeps again.
    st.session_state[SEEN] = now = {sweep.id: sweep.name for sweep in active}
    if ended := [name for key, name in before.items() if key not in now]:
        for name in ended:
            _tell(name)
        st.rerun()
    if polls and not any(map(goes_on, active)):
        # All that is left is stopped: the page is drawn once more, and then no longer by itself.
        st.rerun()
    for sweep in active[:MAX_SHOWN]:
        draw(store, sweep)
    if len(active) > MAX_SHOWN:
        st.caption(f"{len(active) - MAX_SHOWN} more are on the page Sweeps.")


def _tell(name: str) -> None:
    # Silent, since the page itself shows the database's error.
    with data.explaining(lambda _: None):
        counts = OutcomeCounts.from_configurations(data.configurations(Selection(sweeps=(name,))))
        message = f"{name} is done: {describe_counts(counts)}."
        st.toast(page.plain(message), icon=":material/check:")


def line(store: Store, sweep: SweepProgress) -> None:
    """A sweep in one line, with a bar."""
    doing, attended = _doing(store, sweep)
    left = sweep.seconds_left
    if left is None and attended and sweep.state != SweepState.STOPPED:
        # Until the first epoch has ended, the time is estimated by cost.
        left = offer.guess(watching.specifications(store)[sweep.name])
    description = page.plain(describe(sweep, attended, doing, left))
    st.progress(sweep.share, f"**{page.plain(sweep.name)}** · {description}")


def line_with_buttons(store: Store, sweep: SweepProgress) -> None:
    """A sweep in one line, and beside it what stops it or has it go on."""
    with st.container(border=True):
        left, right = st.columns([6, 1], vertical_alignment="center")
        with left:
            line(store, sweep)
        with right:
            _stop_or_resume(sweep, _doing(store, sweep)[1])


def _doing(store: Store, sweep: SweepProgress) -> tuple[str, bool]:
    """The worker's step before training, and whether there is a worker."""
    # Runs whose worker died are attended by nobody.
    attended = actions.is_attended(store, sweep.id, sweep.running - sweep.orphaned)
    return (actions.doing(store, sweep) if attended else ""), attended


def _stop_or_resume(sweep: SweepProgress, attended: bool) -> None:
    if sweep.state == SweepState.STOPPED or ((sweep.queued or sweep.orphaned) and not attended):
        which = (sweep.id, sweep.name, actions.writer.resume, [sweep.id])
        actions.button("Resume", f"resume {sweep.id}", actions.train, *which, width="stretch")
    else:
        note = "Models in training stay queued; no result is lost."
        actions.button(
            "Stop",
            f"stop {sweep.id}",
            actions.write,
            actions.writer.stop,
            [sweep.id],
            tooltip=note,
            width="stretch",
        )


def describe(
    sweep: SweepProgress, attended: bool, doing: str = "", left: float | None = None
) -> str:
    """Describes the progress of a sweep, in models and in time, in one line.

    Args:
        attended: whether a worker trains it.
        doing: its step before training.
        left: remaining seconds; None if not known.
    """
    parts = [f"{sweep.done:,} of {count(sweep.total, 'model')}"]
    if sweep.running:
        parts.append(f"{sweep.running:,} in training{_epochs(sweep)}")
    if sweep.orphaned:
        parts.append(f"the worker of {sweep.orphaned:,} died")
    if sweep.failed:
        parts.append(f"training failed for {sweep.failed:,}")
    if sweep.state == SweepState.STOPPED:
        parts.append("stopped")
    elif sweep.queued and not attended and not sweep.orphaned:
        parts.append("no worker")
    elif doing:
        parts.append(doing)
    if left and attended and sweep.state != SweepState.STOPPED:
        parts.append(f"{format_duration(left)} left")
    return " · ".join(parts)


def _epochs(sweep: SweepProgress) -> str:
    """Describes the progress of the models in training."""
    if not sweep.epochs:
        return ""
    epochs = [epoch for epoch, _ in sweep.epochs]
    first, last, most = min(epochs), max(epochs), max(most for _, most in sweep.epochs)
    epochs_range = f"epoch {last}" if first == last else f"epochs {first} to {last}"
    return f" ({epochs_range} of {most})"
