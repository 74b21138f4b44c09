"""Figures onto the page."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import altair as alt
import streamlit as st

from dashboard.charts.encodings import SIDE, Drawing
from dashboard.figures.figure import Figure

PLANE_WIDTH = SIDE + 75
PLANES_IN_ROW = 2
"""Pixels of a plane with its axis, and how many a row of the page holds."""


def draw(figures: Iterable[Figure], prefix: str = "") -> None:
    """Each figure with its note below; planes stand side by side as far as they fit.

    Args:
        figures: in order.
        prefix: tells the figures from others of the page.
    """
    for together, some in groupby(figures, key=lambda figure: figure.is_plane):
        with st.container(horizontal=together, gap="small"):
            for _, panels in groupby(some, key=lambda figure: (figure.number, figure.title)):
                _draw_one(list(panels), prefix)


def _draw_one(panels: list[Figure], prefix: str) -> None:
    planes = len(panels[:PLANES_IN_ROW]) if panels[0].is_plane else 0
    with st.container(width=PLANE_WIDTH * planes or "stretch"):
        with st.container(horizontal=True, gap="small"):
            for figure in panels:
                show = stretch if figure.is_line else place
                show(figure.chart, prefix + figure.file_name)
        st.caption(f"Figure {panels[0].number}. {panels[0].note}")


def place(chart: Drawing, key: str) -> None:
    """A chart at its own size: stretched, its two scales would no longer be equal."""
    st.vega_lite_chart(_spec(chart.properties(autosize="pad")), width="content", key=key)


def stretch(chart: Drawing, key: str) -> None:
    """A chart as wide as the page; its height is that of the plot, axes and legend come on top."""
    fitted = alt.AutoSizeParams(type="fit-x", contains="padding")
    st.vega_lite_chart(_spec(chart.properties(autosize=fitted)), key=key)


def _spec(chart: Drawing) -> dict[str, Any]:
    # Not validated again, which would take half of the page's time; tests do that.
    return chart.to_dict(validate=False)
