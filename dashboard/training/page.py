"""Sweeps: what is trained now, all sweeps, and one of them with all that can be done to it."""

import streamlit as st

from dashboard import actions, data, filters, page
from dashboard.section import Section
from dashboard.training import running, sections, selected
from sweeps.api import watching

ARCHIVED = "show_archived"
SHOWN = "shown"
"""The parameter of the sweep that is selected: `sweep` is a filter of other pages."""

_sweeps = data.cached(sections.sweeps)


def show() -> None:
    """Draws the page."""
    st.title("How far is training, and what came of it?", anchor=False)
    actions.say_problem()
    running.show(running.line_with_buttons)
    linked = _named_by_link()
    hidden = filters.archived_sweeps()
    # A link to an archived sweep shows it among all.
    everything = bool(st.session_state.get(ARCHIVED)) or linked in hidden
    section = _sweeps(everything)
    page.say(section.says)
    chosen = _table(section, linked)
    if hidden:
        st.toggle(f"Show archived ({len(hidden)})", key=ARCHIVED, bind="query-params")
    _put_in_link(chosen)
    if chosen is not None:
        selected.show(chosen)


def _table(section: Section, linked: str | None) -> str | None:
    """Draws all sweeps; the one that is selected, at first that of the link."""
    if section.table is None:
        return None
    names = section.table["sweep"].tolist()
    selected_rows = [row for row, name in enumerate(names) if name == linked]
    chosen: str | None = page.table(
        section.table, "sweeps table", "single-row", section.opens, selected=selected_rows
    )
    return chosen


def _named_by_link() -> str | None:
    """The sweep of the link, which earlier versions named by its number."""
    names = data.cached(watching.sweep_names)()
    if (number := st.query_params.get("sweep_id", "")).isdecimal() and int(number) in names:
        return names[int(number)]
    linked = st.query_params.get(SHOWN)
    return linked if linked in names.values() else None


def _put_in_link(chosen: str | None) -> None:
    # The number that earlier versions wrote gives way to the name.
    st.query_params.pop("sweep_id", None)
    if chosen is None:
        st.query_params.pop(SHOWN, None)
    elif st.query_params.get(SHOWN) != chosen:
        st.query_params[SHOWN] = chosen


show()
