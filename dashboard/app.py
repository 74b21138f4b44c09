"""Navigation and the sidebar, nothing else. Start it with `seqcls dashboard`."""

import sys
from contextlib import suppress
from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.starlette import App

# Where `streamlit run` starts it without its being installed, the packages are beside this folder.
if (root := str(Path(__file__).parents[1])) not in sys.path:
    sys.path.append(root)

from dashboard import data, filters, old_addresses, page, style
from dashboard.server import serving
from dashboard.training import sidebar
from seqcls.errors import SeqclsError, StoreLostError
from sweeps.api.reading import limit_reads

FILTERED = ("Results", "Failures")
"""Pages that are about the models that the sidebar leaves."""

FOLDED = "Filters of other pages"

TITLES = {
    page.RESULTS: ("Results", ""),
    page.FAILURES: ("Failures", "failures"),
    page.MODEL: ("Model", "model"),
    page.SWEEPS: ("Sweeps", "sweeps"),
    page.GUIDE: ("Guide", "guide"),
    page.NEW_SWEEP: ("New sweep", "launch"),
}
"""Pages in the order of the navigation, with their paths."""


def draw() -> None:
    """Draws the page that the address bar names, and all around it."""
    shown = st.navigation(
        [
            *(
                st.Page(file, title=title, url_path=path or None, default=not path)
                for file, (title, path) in TITLES.items()
            ),
            # Hidden pages of their own, or Streamlit would not know their addresses.
            *old_addresses.pages(),
        ],
        position="top",
    )
    st.set_page_config(page_title=f"{shown.title} · seqcls", layout="wide")
    st.html(style.CSS)
    # A query that never ends would hold the session's thread and its transaction.
    limit_reads(data.PAGE_SECONDS)
    if shown.url_path in old_addresses.PATHS:
        # Before any widget takes the parameters of its link.
        shown.run()
    elif not shown.url_path:
        old_addresses.follow()
    with data.at_one_moment(), data.explaining():
        unknown: list[str] = []
        # The page shows the error; a new sweep needs no database.
        with suppress(SeqclsError):
            unknown = filters.unknown_in_link()
        with st.sidebar:
            _show_sidebar(shown.title)
        for sentence in unknown:
            st.warning(page.plain(sentence))
        shown.run()
        # This page is whole, so that the next lost connection may be tried anew, too.
        st.session_state.pop(data.LOST, None)


def _show_sidebar(title: str) -> None:
    sidebar.offer_new(title)
    try:
        # Drawn on every page: a browser's Back would else lead through states without them.
        folded = "Thresholds, and filters of other pages" if title == "Model" else FOLDED
        with st.container() if title in FILTERED else page.unfold(folded, "folded"):
            filters.show()
    # Raised on: what is around the page draws all of it anew.
    except StoreLostError:
        raise
    except SeqclsError:
        # The page shows the error.
        return
    finally:
        sidebar.show_running(title)


if get_script_run_ctx(suppress_warning=True) is None:
    # No page is being drawn: Streamlit looks for the server in this file.
    app = App(
        __file__,
        lifespan=serving.lifespan,
        middleware=[Middleware(serving.OwnPages), Middleware(serving.NoUploads)],
        on_script_error=serving.hide_from_visitors,
    )
else:
    draw()
