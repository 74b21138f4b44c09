"""Navigation and the sidebar, nothing else. Start it with `streamlit run dashboard/app.py`."""

import streamlit as st

from dashboard import filters

st.set_page_config(page_title="seqcls", layout="wide")
page = st.navigation(
    [
        st.Page("views/compare.py", title="Compare", default=True),
        st.Page("views/model.py", title="Model", url_path="model"),
        st.Page("views/guide.py", title="Guide", url_path="guide"),
    ],
    position="top",
)
with st.sidebar:
    filters.show()
page.run()
