"""Figures onto the page."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

import streamlit as st

from dashboard.charts.style.encodings import SIDE
from dashboard.charts.style.keys import told_once
from dashboard.charts.style.pointing import hint
from dashboard.elements.placement import place_spec, placed, show_keys, stretch_spec, stretched
from dashboard.figures.figure import Figure

PLANE_WIDTH = SIDE + 75
PLANES_IN_ROW = 2
"""Pixels of a plane with its axis, and how many a row of the page holds."""


def draw(figures: Iterable[Figure], prefix: str = "") -> None:
    """Each figure with its note below; planes stand side by side as far as they fit.

    What colors and shapes mean stands above them all, once, and what pointing at them does.

    Args:
        figures: in order.
        prefix: tells the figures from others of the page.
    """
    drawn, keys = [], []
    for figure in figures:
        make = stretched if figure.is_line else placed
        spec, its_keys = told_once(make(figure.chart, f"{figure.panel}. {figure.note}"))
        drawn.append((figure, spec))
        keys += its_keys
    show_keys(keys)
    if said := hint([spec for _, spec in drawn]):
        st.caption(said)
    for together, some in groupby(drawn, key=lambda pair: pair[0].is_plane):
        with st.container(horizontal=together, gap="small"):
            for _, panels in groupby(some, key=lambda pair: (pair[0].number, pair[0].title)):
                _draw_one(list(panels), prefix)


def _draw_one(panels: list[tuple[Figure, dict[str, Any]]], prefix: str) -> None:
    first, _ = panels[0]
    planes = len(panels[:PLANES_IN_ROW]) if first.is_plane else 0
    with st.container(width=PLANE_WIDTH * planes or "stretch"):
        with st.container(horizontal=True, gap="small"):
            for figure, spec in panels:
                show = stretch_spec if figure.is_line else place_spec
                show(spec, prefix + figure.file_name)
        st.caption(f"Figure {first.number}. {first.note}")
