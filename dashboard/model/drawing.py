"""Figures onto the page."""

from collections.abc import Iterable
from itertools import groupby
from typing import Literal

import altair as alt
import streamlit as st

from dashboard.charts.encodings import SIDE, Drawing
from dashboard.figures.figure import Figure

PLANE_WIDTH = SIDE + 80
PLANES_IN_ROW = 2
"""Pixels of a plane with its axis, and how many a row of the page holds."""


def draw(figures: Iterable[Figure]) -> None:
    """Each figure with its note, the panels of one under one; planes side by side if they fit."""
    with st.container(horizontal=True, gap="medium"):
        for _, panels in groupby(figures, key=lambda figure: (figure.number, figure.title)):
            own = list(panels)
            width: int | Literal["stretch"] = "stretch"
            if own[0].is_plane:
                width = PLANE_WIDTH * len(own[:PLANES_IN_ROW])
            with st.container(width=width):
                with st.container(horizontal=True, gap="small"):
                    for figure in own:
                        place(figure.chart, figure.file_name)
                st.caption(f"Figure {own[0].number}. {own[0].note}")


def place(chart: Drawing, key: str) -> None:
    """A chart at its own size: stretched, its two scales would no longer be equal."""
    st.altair_chart(chart.properties(autosize="pad"), width="content", key=key)


def stretch(chart: Drawing, key: str) -> None:
    """A chart as wide as the page; its height is that of the plot, axes and legend come on top."""
    fitted = alt.AutoSizeParams(type="fit-x", contains="padding")
    st.altair_chart(chart.properties(autosize=fitted), key=key)
