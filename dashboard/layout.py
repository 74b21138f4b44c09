"""What every page looks like: its tab's title, its margins, and how it is printed."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard.charts.colors import WRONG

SIDEBAR = 300
"""Pixels that Streamlit gives the sidebar."""

FOLDED = 1000
"""Pixels of a window up to which the sidebar is folded at first: the page has the room."""

CELL = 400
"""Pixels of a grid's narrowest cell; two stand side by side where there is room for them."""

STEP = 10
"""Places are kept to so many pixels."""

MOST = 1200
"""The most pixels that are reserved: what is larger goes on below the first screen."""

SIZES = "".join(
    f'[class*="-{name}-{pixels}px"]{{min-{side}:{pixels}px}}'
    for name, side in (("tall", "height"), ("wide", "width"))
    for pixels in range(STEP, MOST + STEP, STEP)
)

STYLE = f"""
<style>
{SIZES}
.stMain .stMainBlockContainer {{ max-width: initial; padding: 4rem 2.5rem 3rem; }}
@media (min-width: {FOLDED + 1}px) {{
  .stAppViewContainer:not(:has(.stSidebar)) {{ padding-left: {SIDEBAR}px; }}
}}
@media (min-width: 1001px) {{
  /* Rows whose parts move sideways when they are loaded: nothing below may move besides. */
  .st-key-glance {{ min-height: 76px; }}
  .st-key-controls {{ min-height: 63px; }}
  .st-key-differences {{ min-height: 87px; }}
  .st-key-next_step, .st-key-leads {{ min-height: 40px; }}
}}
/* What is loaded late stands as a block of 40 pixels until then. Controls, with their labels: */
.st-key-tag, .st-key-sweep, .st-key-seed, .st-key-outcome, .st-key-below, .st-key-learned,
.st-key-kind,
[class*="st-key-two_config_"], [class*="st-key-two_run_"],
.st-key-launch_start, .st-key-launch_name, .st-key-launch_seeds, .st-key-launch_variants,
[class*="st-key-launch-"] [data-testid="stSkeleton"] {{ min-height: 68px; }}
.st-key-two_what {{ min-height: 60px; }}
.st-key-controls [role="radiogroup"] {{ flex-wrap: wrap; }}
.st-key-glance [data-testid="stSkeleton"] {{ width: 130px; }}
.st-key-differences [data-testid="stSkeleton"] {{ width: 200px; }}
/* And what is lower. */
.st-key-launch_kind [data-testid="stSkeleton"] {{ height: 32px; }}
.st-key-to_launch [data-testid="stSkeleton"] {{ height: 20px; }}
.st-key-failing [data-testid="stSkeleton"], .st-key-apart [data-testid="stSkeleton"] {{
  height: 24px; }}
:has(> .st-key-launch_offer) {{ position: sticky; bottom: 0.5rem; z-index: 2; }}
.st-key-launch_offer {{ backdrop-filter: blur(1.5rem); }}
/* A card is a line until it is unfolded. */
.st-key-story summary * {{ min-width: 0; }}
.st-key-story details:not([open]) summary p {{ white-space: nowrap; overflow: hidden;
  text-overflow: ellipsis; }}
[class*="st-key-grid-"] > * {{ flex: 1 1 {CELL}px !important; min-width: min({CELL}px, 100%); }}
.keys {{ display: flex; flex-wrap: wrap; gap: 0 2.5rem; font-size: 0.875rem; }}
.keys p {{ margin: 0; display: flex; flex-wrap: wrap; }}
.keys em {{ font-style: normal; font-weight: 600; margin-right: 0.8rem; }}
.keys span {{ margin-right: 0.8rem; white-space: nowrap; }}
.title {{ margin-bottom: -0.5rem; }}
.title b, .title span {{ display: block; }}
.title b {{ font-size: 0.875rem; font-weight: 600; }}
.title span {{ font-size: 0.8125rem; opacity: 0.8; line-height: 1.35; }}
.chips {{ display: flex; flex-wrap: wrap; gap: 0.35rem; font-size: 0.8125rem; }}
.chips span {{ border: 1px solid rgba(128, 128, 128, 0.4); border-radius: 1rem;
  padding: 0.05rem 0.6rem; overflow-wrap: anywhere; }}
.chips em, .chips b {{ unicode-bidi: isolate; }}
.chips em {{ font-style: normal; opacity: 0.75; }}
.chips b {{ font-weight: 600; }}
.chips i {{ font-style: normal; opacity: 0.6; }}
.aligned {{ overflow-x: auto; padding-bottom: 0.25rem; }}
.aligned table {{ border-collapse: collapse; }}
.aligned th {{ position: sticky; left: 0; text-align: left; font-weight: 600;
  padding: 0.15rem 1rem 0.15rem 0; }}
.aligned td {{ font-family: monospace; text-align: center; padding: 0.15rem 0.3rem;
  min-width: 1.6rem; white-space: pre; }}
.aligned mark {{ background: {WRONG}; color: black; font-weight: 700; padding: 0.1rem 0.3rem;
  border-radius: 0.2rem; }}
.aligned .after {{ opacity: 0.6; }}
/* A chart and its legend, which goes below where there is no room for both. */
div:has(> [class*="st-key-drawn-"]) {{ flex: 1 1 440px !important; min-width: 0; }}
div:has(> [class*="st-key-named-"]) {{ flex: 0 1 230px !important; min-width: 200px;
  padding-top: 2rem; }}
/* Charts in two parts are as wide as their plots, and their axes come on top. */
[class*="st-key-by_length"] {{ padding-right: 4.2rem; box-sizing: border-box; }}
/* By itself it would lie on what stands above. */
[data-testid="stElementToolbar"] {{ top: 0 !important; }}
.stDataFrame [data-testid="stElementToolbar"] {{ top: auto !important; bottom: 0; }}
.stVegaLiteChart {{ max-width: 100%; overflow-x: auto; }}
[class*="st-key-by_length"] .stVegaLiteChart {{ max-width: none; overflow: visible; }}
@media (max-width: 1000px) {{
  .stMain .stMainBlockContainer {{ padding-left: 1rem; padding-right: 1rem; }}
}}
@media (max-width: 640px) {{
  [data-testid="stMetricValue"] {{ font-size: 1.5rem; }}
}}
/* That there are more tabs than fit is seen. */
[role="tablist"] {{ overflow-x: auto !important; scrollbar-width: thin !important; }}
[role="tablist"]::-webkit-scrollbar {{ display: block !important; height: 6px; }}
@media print {{
  .stSidebar, .stAppHeader, .stToolbar {{ display: none !important; }}
  .stMain .stMainBlockContainer {{ padding: 0; max-width: 100%; }}
}}
</style>
"""


def key_of_place(name: str, height: int, width: int = 0) -> str:
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


def table_height(rows: int, most: int = 320) -> int:
    """Pixels of a table of so many rows, which scrolls beyond `most`."""
    return min(38 + 35 * rows, most)


def grid(name: str) -> DeltaGenerator:
    """A row of cells that share its width, and wrap where each would be too narrow."""
    return st.container(horizontal=True, gap="medium", key=f"grid {name}")


def name_tab(title: str) -> None:
    """What the browser's tab is called: the most particular first, for there is little room."""
    st.set_page_config(page_title=f"{title} · seqcls", layout="wide")


# Keys of every page: `/` finds a model, `?` lists the keys. Nothing happens while one types.

KEYS_HTML = """
<p hidden>Keys: <kbd>/</kbd> finds a model, <kbd>?</kbd> lists all keys.</p>
<div id="keys" popover role="dialog" aria-label="Keys">
<h2>Keys</h2>
<dl>
<dt><kbd>/</kbd></dt><dd>Find a model</dd>
<dt><kbd>?</kbd></dt><dd>Show or hide this list</dd>
<dt><kbd>Esc</kbd></dt><dd>Close it</dd>
<dt><kbd>Tab</kbd></dt><dd>Go to the next control</dd>
</dl>
</div>
"""

KEYS_CSS = """
p { margin: 0; font-size: 0.75rem; opacity: 0.7; }
kbd { font-family: var(--st-code-font); padding: 0 0.3rem; border-radius: 0.2rem;
  border: 1px solid var(--st-border-color); }
#keys { border: 1px solid var(--st-border-color); border-radius: 0.5rem; padding: 1rem 1.5rem;
  background: var(--st-background-color); color: var(--st-text-color); margin: auto; }
h2 { font-size: 1rem; margin: 0 0 0.5rem; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 0.4rem 1rem; margin: 0; }
dd { margin: 0; }
@media (hover: none) { p { display: none; } }
@media print { p { display: none; } }
"""

KEYS_JS = """
const FIND = "seqcls find";
const typing = (event) => event.composedPath().some(
  (x) => x.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(x.tagName));
const focus = (tries) => {
  const box = document.querySelector(".st-key-model_run input");
  if (box) { sessionStorage.removeItem(FIND); box.focus(); box.select(); }
  else if (tries > 0) setTimeout(() => focus(tries - 1), 200);
};
const find = () => {
  if (document.querySelector(".st-key-model_run input")) { focus(0); return; }
  const link = [...document.querySelectorAll('a[href]')].find(
    (x) => new URL(x.href).pathname.endsWith("/model"));
  if (link) { sessionStorage.setItem(FIND, "1"); link.click(); focus(50); }
};
export default function ({ parentElement }) {
  const list = parentElement.querySelector("#keys");
  const pressed = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
    if (event.key === "/") { event.preventDefault(); find(); }
    if (event.key === "?") { event.preventDefault(); list.togglePopover(); }
  };
  document.addEventListener("keydown", pressed);
  // What stands on the page before this runs would promise keys that do nothing yet.
  parentElement.querySelector("p").hidden = false;
  if (sessionStorage.getItem(FIND)) focus(50);
  return () => document.removeEventListener("keydown", pressed);
}
"""

_keys = st.components.v2.component("seqcls_keys", html=KEYS_HTML, css=KEYS_CSS, js=KEYS_JS)


def add_keyboard() -> None:
    """Has the page listen, and says at its end that it does."""
    _keys(key="keys")
