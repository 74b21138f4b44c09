"""The page of its question."""

import streamlit as st

st.title("Which configurations generalize to longer strings?", anchor=False)
