"""Navigation and the sidebar, nothing else. Start it with `seqcls dashboard`.

The pages are in `screens`: Streamlit would run a file in a folder named `pages` by itself, without
this one, if it is the first page that a new server is asked for.
"""

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.starlette import App

from dashboard import concurrent_changes, data, filters, keyboard, layout, links, sidebar
from dashboard.launch import panel
from dashboard.server import first_page, serving
from sweeps.store.databases.engine import limit_reads


def draw() -> None:
    """Draws the page that the address bar names, and all around it."""
    page = st.navigation(
        [
            st.Page("screens/compare.py", title="Compare", default=True),
            st.Page("screens/map.py", title="Map"),
            st.Page("screens/failing.py", title="Failing models"),
            st.Page("screens/sweeps.py", title="Sweeps"),
            st.Page("screens/model.py", title="Model", url_path="model"),
            st.Page("screens/guide.py", title="Guide", url_path="guide"),
            st.Page("screens/launch.py", title="Launch", url_path="launch"),
        ],
        position="top",
    )
    layout.set_up(page.title)
    panel.switch(page.url_path)
    limit_reads(data.PAGE_SECONDS)
    with concurrent_changes.redrawn_if_changed():
        if links.is_another_page(page.url_path):
            filters.take_from_link()
        concurrent_changes.say_what_is_damaged()
        if links.was_switched():
            filters.send_again()
        with st.sidebar:
            sidebar.show(page.url_path, filtered=page.title not in ("Model", "Guide", "Launch"))
        page.run()
        keyboard.show()


if get_script_run_ctx(suppress_warning=True) is None:
    # No page is being drawn: Streamlit looks for the server in this file.
    app = App(
        __file__,
        routes=first_page.ROUTES,
        lifespan=serving.lifespan,
        middleware=[Middleware(serving.SameOrigin)],
    )
else:
    draw()
