"""Colors with one meaning each, sizes, and styles that Streamlit's theme does not set."""

from typing import Any

LIGHT = {
    "at every length": "#00543D", "generalizes": "#00865F", "fails beyond": "#D55E00",
    "not learned": "#8A8F98", "not known": "#B9BDC4",
    "right": "#00865F", "wrong": "#D55E00", "ink": "#1F2328", "muted": "#6B7280", "line": "#D9DCE1",
    "band": "#8A94A6", "accent": "#3B4BA8", "accent soft": "#9AA5E0", "ground": "#FFFFFF",
    "true negative": "#888888", "true positive": "#4F4F4F",
    "false positive": "#9467BD", "false negative": "#D62728",
    "stopped early": "#0072B2", "went on": "#C17D00", "repeats": "#332288",
    "wrong token": "#882255", "too much": "#9467BD", "too little": "#D62728",
    "wrong answer": "#D95F02", "up": "#2E6FB0", "down": "#CC6677", "empty": "#FFFFFF",
    "letter 0": "#0072B2", "letter 1": "#C17D00", "letter 2": "#009E73", "letter 3": "#3A93C8",
    "letter 4": "#8F8F2B", "letter 5": "#8C6D31", "letter 6": "#5A9A1B", "letter 7": "#A6912F",
}  # fmt: skip
"""Color is outcome: charts name these as `~wrong`, with the same meaning on every page.

On pages about a model letters have colors of their own (of Okabe & Ito 2008 and Tol 2021, without
what is near purple or red), and so have the kinds of its answers.
"""

DARK = {
    **LIGHT, "at every length": "#7FE0B8", "generalizes": "#2FBF8F", "fails beyond": "#FF8A3D",
    "not learned": "#8E949E", "not known": "#5B616B",
    "right": "#2FBF8F", "wrong": "#FF8A3D", "ink": "#F1F3F5", "muted": "#A2A8B2", "line": "#3A3F47",
    "accent": "#9DB0FF", "accent soft": "#5A68B8", "ground": "#0E1117",
    "true negative": "#8E8E8E", "true positive": "#D0D0D0",
    "false positive": "#A583CB", "false negative": "#E5484A",
    "stopped early": "#2E8FCC", "went on": "#E69F00", "repeats": "#B9A7FF",
    "wrong token": "#C25C92", "too much": "#A583CB", "too little": "#E5484A",
    "wrong answer": "#E2701A", "up": "#5AA0E0", "down": "#D9788A", "empty": "#171B22",
    "letter 0": "#2E8FCC", "letter 1": "#E69F00", "letter 2": "#12AD82", "letter 3": "#56B4E9",
    "letter 4": "#A9A943", "letter 5": "#A98645", "letter 6": "#7CBF3A", "letter 7": "#DDCC77",
}  # fmt: skip

HEIGHT, SMALL = 240, 120
"""Pixels of a single plot, and of one of several."""

CSS = """<style>
.stMain .stMainBlockContainer { padding: 3.75rem 2rem 4rem; max-width: 1240px; }
.stMain h1 { font-size: 1.5rem; line-height: 1.25; padding: .25rem 0 .35rem; }
.stMain h2 { font-size: 1.1rem; padding: 1rem 0 .35rem; }
.stMain [data-testid=stVerticalBlock] { gap: .75rem; }
[class*=st-key-panel] p { margin: 0; line-height: 1.35; }
[class*=st-key-panel] [data-testid=stMarkdownContainer] { margin-bottom: .3rem; }
[class*=st-key-panel] [data-testid=stPageLink-NavLink] {
  padding: 0; min-height: 0; background: none; }
[data-testid=stVegaLiteChart] { overflow-x: auto; }
[data-testid=stVegaLiteChart], :has(> [data-testid=stVegaLiteChart]) { max-width: 100%; }
[data-testid=stCaptionContainer] p { line-height: 1.45; }
.legend { margin: 0; font-size: .875rem; line-height: 1.45; opacity: .75;
  display: flex; flex-wrap: wrap; gap: 0 1rem; }
.legend span { min-width: 0; overflow-wrap: anywhere; }
.legend i { font-style: normal; }
.legend span:not(:last-child) { white-space: nowrap; }
[data-testid=stBottomBlockContainer] {
  max-width: 1240px; padding: .75rem 2rem 1rem;
  border-top: 1px solid rgba(128, 128, 128, .25); }
.st-key-guide { max-width: 960px; }
@media (max-width: 1000px) { .stMain .stColumn { min-width: min(100%, 13rem); } }
@media (max-width: 640px) { .stMain .stMainBlockContainer { padding: 3.5rem 1rem 3rem; } }
@media print {
  .stSidebar, .stAppHeader, .stToolbar { display: none !important; }
  .stMain .stMainBlockContainer { padding: 0; max-width: 100%; } }
</style>"""
"""CSS of every page: two sizes of heading, a grid of 16 pixels, nothing sticky."""


SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"

_AXIS = {
    "labelColor": "~muted", "titleColor": "~muted", "gridColor": "~line", "domainColor": "~line",
    "tickColor": "~line", "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal",
    "gridOpacity": 0.6,
}  # fmt: skip
_LEGEND = {"labelColor": "~muted", "titleColor": "~muted", "labelFontSize": 11, "titleFontSize": 11}
_HEADER = {"labelColor": "~ink", "titleColor": "~muted", "labelFontSize": 12, "titleFontSize": 11}

CONFIG = {
    "view": {"stroke": None}, "axis": _AXIS, "header": _HEADER, "legend": _LEGEND,
    "title": {"color": "~ink"},
    "font": "Source Sans, Source Sans Pro, system-ui, sans-serif", "background": "transparent",
}  # fmt: skip
PAPER_CONFIG = {**CONFIG, "background": "~ground", "font": "Helvetica, Arial, sans-serif"}


def paint(spec: Any, colors: dict[str, str]) -> Any:
    """A picture whose names of colors, such as `~wrong`, are those of a ground."""
    if isinstance(spec, dict):
        # Most of it are rows of numbers.
        return {
            key: value if isinstance(value, float) else paint(value, colors)
            for key, value in spec.items()
        }
    if isinstance(spec, list):
        return [paint(value, colors) for value in spec]
    # Formats of numbers may begin with a tilde as well, as `~%` does.
    is_name = isinstance(spec, str) and spec[:1] == "~" and spec[1:] in colors
    return colors[spec[1:]] if is_name else spec


def on_screen(spec: dict[str, Any], *, dark: bool) -> dict[str, Any]:
    """A picture in the colors of the page, as wide as its place."""
    fit = {"type": "fit-x", "contains": "padding"}
    painted_spec: dict[str, Any] = paint(
        # A picture with a size of its own keeps it: the scales of a plane are equal.
        {"autosize": fit, **spec, "config": CONFIG},
        DARK if dark else LIGHT,
    )
    return painted_spec


def on_paper(spec: dict[str, Any], width: int) -> dict[str, Any]:
    """A picture on white.

    Args:
        width: of all of it, in pixels.
    """
    own = {name: value for name, value in spec.items() if name not in ("width", "autosize")}
    # About 60 pixels are taken by the vertical axis and its labels.
    paper: dict[str, Any] = paint({"width": width - 60, **own, "config": PAPER_CONFIG}, LIGHT)
    return paper


def without_selections(spec: Any) -> Any:
    """A picture of which nothing can be pointed at."""
    if isinstance(spec, list):
        return [without_selections(part) for part in spec]
    if not isinstance(spec, dict):
        return spec
    return {
        name: without_selections(value)
        for name, value in spec.items()
        if name not in ("params", "tooltip")
        # A condition on a selection that is gone is an error to Vega-Lite.
        and not (name == "condition" and "'param'" in str(value))
    }
