"""What every page looks like: its tab's title, its margins, and how it is printed."""

import streamlit as st

from dashboard.charts.style.colors import WRONG

SIDEBAR = 300
"""Pixels that Streamlit gives the sidebar."""

STEP = 10
"""Places are kept to so many pixels."""

MOST = 1200
"""Of what is larger no more is kept: it goes on below the first screen."""

ROOMS = "".join(
    f'[class*="-{name}-{pixels}px"]{{min-{side}:{pixels}px}}'
    for name, side in (("tall", "height"), ("wide", "width"))
    for pixels in range(STEP, MOST + STEP, STEP)
)

STYLE = f"""
<style>
{ROOMS}
.stMain .stMainBlockContainer {{ max-width: initial; padding: 4rem 5rem 3rem; }}
@media (min-width: 769px) {{
  .stAppViewContainer:not(:has(.stSidebar)) {{ padding-left: {SIDEBAR}px; }}
}}
@media (min-width: 1001px) {{
  /* Rows whose parts move sideways when they are loaded: nothing below may move besides. */
  .st-key-glance {{ min-height: 76px; }}
  .st-key-controls {{ min-height: 63px; }}
}}
/* Controls that are loaded late, with their labels. */
.st-key-tag, .st-key-sweep, .st-key-seed, .st-key-below, .st-key-kind {{ min-height: 68px; }}
:has(> .st-key-launch_offer) {{ position: sticky; bottom: 0.5rem; z-index: 2; }}
.st-key-undo {{ position: fixed; bottom: 1rem; z-index: 10; width: fit-content; max-width: 95vw;
  backdrop-filter: blur(1.5rem); }}
.st-key-launch_offer {{ backdrop-filter: blur(1.5rem); }}
.keys {{ display: flex; flex-wrap: wrap; gap: 0 2.5rem; font-size: 0.875rem; }}
.keys p {{ margin: 0; display: flex; flex-wrap: wrap; }}
.keys em {{ font-style: normal; font-weight: 600; margin-right: 0.8rem; }}
.keys span {{ margin-right: 0.8rem; white-space: nowrap; }}
.aligned {{ overflow-x: auto; padding-bottom: 0.25rem; }}
.aligned table {{ border-collapse: collapse; }}
.aligned th {{ position: sticky; left: 0; text-align: left; font-weight: 600;
  padding: 0.15rem 1rem 0.15rem 0; }}
.aligned td {{ font-family: monospace; text-align: center; padding: 0.15rem 0.3rem;
  min-width: 1.6rem; white-space: pre; }}
.aligned mark {{ background: {WRONG}; color: black; font-weight: 700; padding: 0.1rem 0.3rem;
  border-radius: 0.2rem; }}
.aligned .after {{ opacity: 0.6; }}
.stVegaLiteChart {{ max-width: 100%; overflow-x: auto; }}
@media (max-width: 1000px) {{
  .stMain .stMainBlockContainer {{ padding-left: 1rem; padding-right: 1rem; }}
}}
@media (max-width: 640px) {{
  [data-testid="stMetricValue"] {{ font-size: 1.5rem; }}
}}
@media print {{
  .stSidebar, .stAppHeader, .stToolbar {{ display: none !important; }}
  .stMain .stMainBlockContainer {{ padding: 0; max-width: 100%; }}
}}
</style>
"""


def room(name: str, height: int, width: int = 0) -> str:
    """A key for what will take so much of the page: its place is kept until it is there.

    Streamlit makes a key a class of the element's container, and so the class says how large it is.

    Args:
        name: tells it from others of the page.
        height: in pixels, 0 where it is not known.
        width: likewise; nothing that is as wide as the page needs one.
    """
    for side, pixels in (("tall", height), ("wide", width)):
        if pixels >= STEP:
            name += f" {side} {min(pixels, MOST) // STEP * STEP}px"
    return name


def set_up(title: str) -> None:
    """The page at its full width; to be called before anything is drawn."""
    name_tab(title)
    st.html(STYLE)


def name_tab(title: str) -> None:
    """What the browser's tab is called: the most particular first, for there is little room."""
    st.set_page_config(page_title=f"{title} · seqcls", layout="wide")
