"""Launch: what to train next, a shipped sweep or one of your own."""

import streamlit as st

from dashboard.launch import panel


def show() -> None:
    st.title("Launch a sweep")
    panel.show()


show()
