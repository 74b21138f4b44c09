"""The page of its question."""

import streamlit as st

st.title("Why do models fail, and what helps?", anchor=False)
