"""Navigation and the sidebar, nothing else. Start it with `seqcls dashboard`.

The pages are in `screens`: Streamlit would run a file in a folder named `pages` by itself, without
this one, if it is the first page that a new server is asked for.
"""

import sys
from functools import partial
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.starlette import App

# Where `streamlit run` starts it without its being installed, the packages are beside this folder.
if (root := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.append(root)

from dashboard import concurrent_changes, data, filters, layout, links
from dashboard.launch import panel
from dashboard.live import route
from dashboard.server import first_page, serving, visitors
from dashboard.views import running
from sweeps.api.old_pages.reading import limit_reads

# Pages that are about what their link names.
UNFILTERED = ("Compare two", "Model", "Guide", "Launch")

# Of those, the ones whose models are judged by the filters' thresholds.
JUDGING = ("Compare two", "Model")


def draw() -> None:
    """Draws the page that the address bar names, and all around it."""
    page = st.navigation(
        [
            st.Page("screens/compare.py", title="Compare", default=True),
            st.Page("screens/compare_two.py", title="Compare two"),
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
    panel.switch(page.url_path, partial(filters.clear, keep=links.THRESHOLDS))
    limit_reads(data.PAGE_SECONDS)
    with visitors.drawing(), concurrent_changes.redraw_if_changed():
        came = links.is_another_page(page.url_path)
        if came:
            filters.take_from_link()
        if links.was_switched() or (came and not links.went_back()):
            filters.send_again()
        with st.sidebar:
            panel.show_link(page.url_path)
            running.show(page.title == "Sweeps")
            filters.show(page.title not in UNFILTERED, page.title in JUDGING)
        filters.say_read_only()
        if page.title not in UNFILTERED:
            filters.say_what_is_unknown()
        with data.explaining():
            page.run()
        layout.add_keyboard()


if get_script_run_ctx(suppress_warning=True) is None:
    # No page is being drawn: Streamlit looks for the server in this file.
    app = App(
        __file__,
        routes=[*first_page.ROUTES, *route.ROUTES],
        lifespan=serving.lifespan,
        middleware=[Middleware(serving.OwnPages), Middleware(serving.NoUploads)],
        on_script_error=serving.hide_from_visitors,
    )
else:
    draw()
