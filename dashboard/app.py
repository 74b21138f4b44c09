"""Navigation and the sidebar, nothing else. Start it with `seqcls dashboard`."""

import streamlit as st

from dashboard import sidebar

st.set_page_config(page_title="seqcls", layout="wide")
page = st.navigation(
    [
        st.Page("pages/compare.py", title="Compare", default=True),
        st.Page("pages/map.py", title="Map"),
        st.Page("pages/failing.py", title="Failing models"),
        st.Page("pages/sweeps.py", title="Sweeps"),
        st.Page("pages/model.py", title="Model"),
    ],
    position="top",
)
with st.sidebar:
    sidebar.show()
page.run()
