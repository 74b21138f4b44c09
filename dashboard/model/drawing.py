"""Figures onto the page."""

from collections.abc import Iterable
from itertools import groupby

import streamlit as st

from dashboard.charts.encodings import SIDE
from dashboard.drawing import place, stretch
from dashboard.figures.figure import Figure

__all__ = ["draw", "place", "stretch"]

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
                show(figure.chart, prefix + figure.file_name, f"{figure.panel}. {figure.note}")
        st.caption(f"Figure {panels[0].number}. {panels[0].note}")
