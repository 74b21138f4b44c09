"""The page of its question."""

import streamlit as st

st.title("How does a small Transformer fail?", anchor=False)
