"""Figures onto the page."""

from collections.abc import Iterable
from itertools import groupby

import altair as alt
import streamlit as st

from dashboard.charts.encodings import Drawing
from dashboard.figures.figure import Figure


def draw(figures: Iterable[Figure]) -> None:
    """Each figure with its note; the panels of one figure beside each other as far as they fit."""
    for _, panels in groupby(figures, key=lambda figure: (figure.number, figure.title)):
        own = list(panels)
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
