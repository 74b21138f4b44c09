"""Pages that are drawn while others delete runs and submit new ones."""

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from seqcls.errors import SeqclsError
from sweeps.store import queries
from sweeps.store.engine import open_reader

TRIES = "tries of a page that changed while it was drawn"
MOST_TRIES = 5
"""A page that breaks so often in a row is broken for another reason."""


@contextmanager
def redrawn_if_changed() -> Iterator[None]:
    """Draws the page anew where it broke because the database changed while it was drawn.

    A page asks several questions, one after another; what the first answer names may be deleted
    before the second.
    """
    before = _revision()
    try:
        yield
    except Exception:
        tries = st.session_state.get(TRIES, 0)
        if tries >= MOST_TRIES or _revision() == before:
            raise
        st.session_state[TRIES] = tries + 1
        st.rerun()
    st.session_state[TRIES] = 0


def _revision() -> object:
    try:
        return queries.revision(open_reader())
    except SeqclsError:
        return None
