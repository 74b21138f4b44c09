"""Pages that are drawn while others delete runs and submit new ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dashboard import data
from seqcls.errors import SeqclsError, StoreDamagedError, StoreLostError
from sweeps.api import open_reader
from sweeps.store import trust

TRIES = "tries of a page that changed while it was drawn"
MOST_SAID = 50
"""Lines on what is damaged that are shown at once."""

MOST_TRIES = 5
"""A page that breaks so often in a row is broken for another reason."""


@contextmanager
def redraw_if_changed(*, part: bool = False) -> Iterator[None]:
    """Draws the page anew where it broke because the database changed while it was drawn, or its
    server ended the connection.

    A page asks several questions, one after another; what the first answer names may be deleted
    before the second.

    Args:
        part: of a page, run again alone too; that it was drawn says nothing of the others.
    """
    with data.at_one_revision():
        try:
            yield
        except Exception as error:
            tries = st.session_state.get(TRIES, 0)
            changed = data.is_outdated() or trust.learns_of_damage()
            changed |= isinstance(error, StoreLostError)
            if tries >= MOST_TRIES or not changed:
                _give_up(error)
                return
            st.session_state[TRIES] = tries + 1
            st.rerun()
    if not part:
        st.session_state[TRIES] = 0


def _give_up(error: Exception) -> None:
    """Says what a page broke on, where a user can know it."""
    if (damage := trust.known_damage()) is not None:
        # A page may fail on damage in the database that no check detects.
        data.say(StoreDamagedError(f"{damage} ({type(error).__name__})"))
    elif isinstance(error, SeqclsError):
        data.say(error)
    else:
        raise error


def say_what_is_damaged() -> None:
    """Says above every page what of the database is left out."""
    try:
        survey = open_reader().survey
    except SeqclsError:
        return
    if survey is None or not survey.lines:
        return
    st.warning(
        "This database is damaged. Damaged rows and the models they belong to are left out; all "
        "other models are shown."
    )
    with st.expander(f"What is damaged ({len(survey.lines):,})"):
        more = (
            [f"and {len(survey.lines) - MOST_SAID:,} more"] if len(survey.lines) > MOST_SAID else []
        )
        st.code("\n".join([*survey.lines[:MOST_SAID], *more]), language=None, wrap_lines=True)
        st.code(trust.ADVICE, language=None, wrap_lines=True)
