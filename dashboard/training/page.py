"""The page of its question."""

import streamlit as st

st.title("How far is training, and what came of it?", anchor=False)
