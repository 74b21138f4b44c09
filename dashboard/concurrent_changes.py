"""Pages that are drawn while others delete runs and submit new ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from dashboard import data
from seqcls.errors import SeqclsError, StoreDamagedError, StoreLostError
from sweeps.store.verification import damage_of_last_opened

TRIES = "tries of a page that changed while it was drawn"
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
            changed = data.is_outdated()
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
    if isinstance(error, SeqclsError):
        data.say(error)
    elif (damage := damage_of_last_opened()) is not None:
        data.say(StoreDamagedError(damage))
    else:
        raise error
