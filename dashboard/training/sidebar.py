"""The part of the sidebar on training: a link to a new sweep, and the sweeps in training."""

import streamlit as st

from dashboard import actions, data, page
from dashboard.training import form, offer, running, settings
from seqcls.errors import SeqclsError
from sweeps.access import is_read_only


def offer_new(title: str) -> None:
    """Draws the short form of a new sweep, folded, in the sidebar.

    Args:
        title: of the page that is shown.
    """
    offer.follow()
    if title != "New sweep" and not is_read_only():
        popover = st.popover(
            "New sweep", icon=":material/add:", width="stretch", key=form.SHORT, on_change="rerun"
        )
        if popover.open:
            with popover:
                # A fragment: typing draws the form again, and not the page beside it.
                st.fragment(_short_form)()


def show_running(title: str) -> None:
    """Draws what is trained now, a line each, where the page does not.

    Args:
        title: of the page that is shown.
    """
    if title != "Sweeps":
        actions.say_problem()
        running.show(running.line)


@data.explaining()
def _short_form() -> None:
    offer.follow()
    offer.prepare()
    read = form.read(*form.lists(in_short=True), form.numbers(with_name=False))
    more = _more()
    if problem := read.problem or more:
        st.caption(page.plain(problem))
    try:
        specs = offer.specs_of([form.as_json(read.table)]) if read.table is not None else []
    except SeqclsError as error:
        st.error(page.plain(str(error)))
        specs = []
    offer.show(specs, "short")
    st.page_link(page.NEW_SWEEP, label="All settings", icon=":material/tune:")


def _more() -> str:
    """Describes the settings added by the rows of page New sweep."""
    try:
        values = settings.read(st.session_state.get(settings.TYPED))
    except SeqclsError:
        # `form.read` reads the same rows, and reports their errors.
        return ""
    return f"With {settings.say(values)}, as on the page New sweep." if values else ""
