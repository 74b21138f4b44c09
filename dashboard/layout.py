"""What every page looks like: its tab's title, its margins, and how it is printed."""

import streamlit as st

STYLE = """
<style>
.stMainBlockContainer { padding-top: 4rem; padding-bottom: 3rem; }
.stVegaLiteChart { max-width: 100%; overflow-x: auto; }
@media (max-width: 1000px) {
  .stMainBlockContainer { padding-left: 1rem; padding-right: 1rem; }
}
@media (max-width: 640px) {
  [data-testid="stMetricValue"] { font-size: 1.5rem; }
}
@media print {
  .stSidebar, .stAppHeader, .stToolbar { display: none !important; }
  .stMainBlockContainer { padding: 0; max-width: 100%; }
}
</style>
"""


def set_up(title: str) -> None:
    """The page at its full width; to be called before anything is drawn."""
    name_tab(title)
    st.html(STYLE)


def name_tab(title: str) -> None:
    """What the browser's tab is called: the most particular first, for there is little room."""
    st.set_page_config(page_title=f"{title} · seqcls", layout="wide")
