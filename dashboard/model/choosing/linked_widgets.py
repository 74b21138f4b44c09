"""Widgets whose values stand in the link."""

import streamlit as st


def from_link(name: str, otherwise: str) -> str:
    """Sets a widget to what the link says. The link decides: another run's has nothing of this."""
    value = st.query_params.get(name, otherwise)
    st.session_state[name] = value
    return value


def into_link(name: str) -> None:
    """Writes what a widget holds into the link."""
    value = st.session_state[name]
    st.query_params[name] = "" if value is None else str(value)
