"""What was found out so far: from failing seeds to their cause, to a remedy, to what came of it."""

import streamlit as st

from dashboard import data, links
from dashboard.text import verbatim
from dashboard.words import names
from sweeps.analysis.tried_remedies import Loop, Tried

MOST = 6
"""Cards."""

TITLE = "What was found out so far"


def show(failing: int) -> None:
    """Draws a card for each loop, or says what to do next.

    Args:
        failing: how many models fail.
    """
    loops = data.loops()
    if not loops:
        if failing:
            with st.container(horizontal=True, vertical_alignment="center", key="next_step"):
                st.caption("It isn't known yet why these models fail.", width="content")
                st.page_link(links.FAILING_PAGE, label="Find the causes", icon=":material/search:")
        return
    shown = loops[:MOST]
    named = _names(shown)
    with st.expander(f"{TITLE} ({len(loops)})", expanded=True):
        for loop in shown:
            with st.container(border=True):
                _card(loop, named)
        if len(loops) > MOST:
            st.caption(f"The {MOST} that mended most, of {len(loops)}.")


def _names(loops: tuple[Loop, ...]) -> dict[int, str]:
    ids = {loop.config_id: None for loop in loops}
    return names.configuration_names(list(ids))


def _card(loop: Loop, named: dict[int, str]) -> None:
    st.markdown(f"{sentence(loop)}  \n:small[{verbatim(named[loop.config_id])}]")
    sweeps = _sweeps(loop.config_id)
    number = len(loop.run_ids)
    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.page_link(
            links.FAILING_PAGE,
            label=f"{number} failing seed{'' if number == 1 else 's'}",
            icon=":material/error:",
            query_params={"sweep": sweeps, "mechanism": loop.mechanism},
            help="The seeds that fail by this cause.",
        )
        links.to_model(loop.run_ids[0], "Why")
        if loop.best is None:
            return
        links.to_model(loop.best.run_ids[0], "With the remedy")
        if st.button("Compare", key=f"loop {loop.config_id} {loop.mechanism}", type="tertiary"):
            links.to_compare({}, sweeps=[*sweeps, *_sweeps(loop.best.config_id)])


def sentence(loop: Loop) -> str:
    """From the seeds to what came of it, as Markdown."""
    seeds = f"{len(loop.run_ids)} of {loop.finished} seeds"
    cause = f"*{verbatim(loop.mechanism)}* in {seeds}"
    if loop.best is not None:
        return f"{cause} → {_changed(loop.best)} → **{_outcome(loop.best)}**"
    if loop.untried:
        text = verbatim(loop.untried[0].text)
        return f"{cause} → try {text}: not tried yet"
    return f"{cause} → no known remedy applies"


def _changed(tried: Tried) -> str:
    changes = tried.suggestion.fields.items()
    return ", ".join(verbatim(f"{name}={value}") for name, value in changes)


def _outcome(tried: Tried) -> str:
    of = "" if tried.mended in (0, tried.seeds) else f" of {tried.seeds}"
    return f"{tried.mended}{of} mended, {tried.broken} broken"


def _sweeps(config_id: int) -> list[str]:
    members = data.memberships()
    return [str(name) for name in members.loc[members["config_id"] == config_id, "sweep"]][:1]
