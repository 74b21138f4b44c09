"""How sweeps progress: refreshed without a rerun of the page while anything is trained."""

from dataclasses import replace

import streamlit as st

from dashboard import actions, data, links
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.text import count
from sweeps.api import Store, open_reader
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.database import control
from sweeps.api.old_pages.reading import SweepState
from sweeps.results import OutcomeCounts, describe_counts
from sweeps.terminal import format_duration
from sweeps.work.progress import SweepProgress

SECONDS = 2.0
"""Between two looks at the database."""

MAX_SHOWN = 4
SEEN = "active sweeps"
SHOWN_REVISION = "shown revision"
ENDED = "ended sweeps"
TOLD = "ended sweeps that a toast has told of"
"""Sweeps that ended while this session looked on, until that has been put away."""


def show(follows: bool) -> None:
    """Draws what is in training, and refreshes itself; the page too, if it follows."""
    try:
        store = open_reader()
        st.session_state[SHOWN_REVISION] = _revision_of(store)
        polls = any(map(goes_on, data.progress()))
    except SeqclsError:
        st.session_state[SHOWN_REVISION], polls = None, False
    st.fragment(_refresh, run_every=SECONDS if polls else None)(polls, follows)
    _show_ended()


def _revision_of(store: Store) -> tuple[object, ...]:
    """Which file is read, and at which revision."""
    return data.which_file(store), reading.revision(store)


def goes_on(sweep: SweepProgress) -> bool:
    """Whether anything may come of a sweep by itself, so that it is worth another look."""
    return sweep.running > 0 or sweep.state not in (SweepState.DONE, SweepState.STOPPED)


def _refresh(polls: bool, follows: bool) -> None:
    actions.say_problem()
    try:
        store = open_reader()
        active = [sweep for sweep in data.progress() if sweep.state != SweepState.DONE]
        new_results = _revision_of(store) != st.session_state.get(SHOWN_REVISION)
    except SeqclsError:
        return
    before = st.session_state.get(SEEN, set())
    st.session_state[SEEN] = {sweep.id for sweep in active}
    if ended := before - st.session_state[SEEN]:
        st.session_state[ENDED] = [*st.session_state.get(ENDED, []), *ended][-MAX_SHOWN:]
        # A sweep has ended: the page shows its results. Until then it is left alone.
        st.rerun()
    if polls and not any(map(goes_on, active)):
        # All that is left is stopped: the page is drawn once more, and then no longer by itself.
        st.rerun()
    if active:
        st.header("Running")
    for sweep in active[:MAX_SHOWN]:
        st.text(sweep.name)
        show_sweep(store, sweep, "sidebar")
    if len(active) > MAX_SHOWN:
        st.caption(f"{len(active) - MAX_SHOWN} more are on the Sweeps page.")
    if new_results and (follows or st.button("Show new results", key="refresh", width="stretch")):
        st.rerun()


def _show_ended() -> None:
    """The results of sweeps that ended during this session."""
    try:
        names = {sweep.id: sweep.name for sweep in data.progress()}
        ended = [names[x] for x in st.session_state.get(ENDED, []) if x in names]
        for name in ended:
            counts = data.configurations(replace(links.thresholds(), sweeps=(name,)))
            told = describe_counts(OutcomeCounts.of(counts))
            # Not as a success: none of them may have learned.
            st.info(verbatim(f"{name} is done: {told}."), icon=":material/check:")
            if st.button("Compare them", key=f"compare {name}", icon=":material/bar_chart:"):
                links.to_compare({}, sweeps=[name])
            if name not in st.session_state.setdefault(TOLD, set()):
                st.session_state[TOLD].add(name)
                st.toast(verbatim(f"{name} is done: {told}."), icon=":material/check:")
    except SeqclsError:
        return
    if ended:
        st.button("Dismiss", key="dismiss_ended", on_click=_dismiss)


def _dismiss() -> None:
    st.session_state[ENDED] = []


def show_sweep(store: Store, sweep: SweepProgress, place: str) -> None:
    """How far a sweep is, and what can be done to it.

    Args:
        store: the database.
        sweep: the sweep.
        place: where on the page, which tells its buttons from others.
    """
    st.progress(sweep.share)
    attended = actions.is_attended(store, sweep.id, sweep.running - sweep.orphaned)
    doing = verbatim(actions.doing(store, sweep)) if attended else ""
    st.caption(describe_progress(sweep, attended, doing))
    _buttons(sweep, attended, place)


def describe_progress(sweep: SweepProgress, attended: bool, doing: str = "") -> str:
    """How far a sweep is, and what its worker does before it trains, in one line."""
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
    elif sweep.runs_per_second:
        parts.append(f"{sweep.runs_per_second:.1f}/s")
    if sweep.seconds_left and attended and sweep.state != SweepState.STOPPED:
        parts.append(f"{format_duration(sweep.seconds_left)} left")
    return " · ".join(parts)


def _epochs(sweep: SweepProgress) -> str:
    """How far the models in training are."""
    if not sweep.epochs:
        return ""
    epochs = [epoch for epoch, _ in sweep.epochs]
    first, last, most = min(epochs), max(epochs), max(most for _, most in sweep.epochs)
    said = f"epoch {last}" if first == last else f"epochs {first} to {last}"
    return f" ({said} of {most})"


def _buttons(sweep: SweepProgress, attended: bool, place: str) -> None:
    """What can be done to a sweep as it is: stop, resume, retry what failed."""
    named = (sweep.id, sweep.name)
    with st.container(horizontal=True):
        left = sweep.queued or sweep.orphaned
        waits = sweep.state == SweepState.STOPPED or (left and not attended)
        if waits:
            st.button(
                "Resume",
                key=f"resume {place} {sweep.id}",
                on_click=actions.resume,
                args=named,
                **control(),
            )
        elif sweep.state != SweepState.DONE:
            st.button(
                "Stop",
                key=f"stop {place} {sweep.id}",
                on_click=actions.stop,
                args=(sweep.id,),
                **control("Models in training stay queued; no result is lost."),
            )
        if sweep.failed:
            st.button(
                f"Retry {sweep.failed:,} failed",
                key=f"retry {place} {sweep.id}",
                on_click=actions.retry,
                args=named,
                **control(),
            )
