"""The page of its question."""

import streamlit as st

st.title("What to train next?", anchor=False)
