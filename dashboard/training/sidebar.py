"""What every page shows of training: a way to a new sweep, and what is trained now."""

import streamlit as st

from dashboard import page


def show(title: str) -> None:
    """Draws it in the sidebar.

    Args:
        title: of the page that is shown.
    """
    if title != "New sweep":
        st.page_link(page.NEW_SWEEP, label="New sweep", icon=":material/add:")
