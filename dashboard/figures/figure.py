"""A figure: what it is called, what it is drawn from, and the drawing."""

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.style.encodings import Drawing, View
from dashboard.figures.projection import Projection

SHOWN_ENTRIES = 8
"""The most entries of a vector that a tooltip's text shows; the rest is left out."""


@dataclass(frozen=True, eq=False)
class Figure:
    """One drawing. Several of one number are panels of one figure: a head or a string each."""

    number: int | None
    """Its place among a one-block model's figures; of any other model they have none."""
    title: str
    panel: str
    """Which panel it is; empty where there is only one."""
    note: str
    """What it shows and how to read it, for somebody who knows Transformers."""
    data: pd.DataFrame
    """The numbers that the chart is drawn from, and nothing else."""
    chart: Drawing

    @property
    def is_plane(self) -> bool:
        """A single square, of which two fit beside each other."""
        return "y" in self.data and "panel" not in self.data

    @property
    def is_line(self) -> bool:
        """Number lines or curves, which may be as wide as there is room."""
        return not self.is_plane and isinstance(self.chart, alt.LayerChart)

    @property
    def file_name(self) -> str:
        """A name for files: `05_keys_and_queries_head_0`."""
        number = "" if self.number is None else f"{self.number:02}"
        words = f"{number} {self.title} {self.panel}".lower()
        kept = "".join(letter if letter.isalnum() else " " for letter in words)
        return "_".join(kept.split())


def view_of(projection: Projection) -> View:
    return View(projection.titles, projection.domains)


def kept_share(projection: Projection, states: np.ndarray) -> str:
    """How much of the states a drawing shows, as a sentence to add; empty where it is all."""
    if projection.exact:
        return ""
    dimensions = len(projection.directions[0])
    share = projection.share_kept(states)
    return f" Two of {dimensions} dimensions are drawn, {share:.0%} of the points' variance."


def points(projection: Projection, states: np.ndarray, **columns: Any) -> pd.DataFrame:
    """One row a state: x, and y in a plane, the exact vector as text, and what else is known."""
    coordinates = projection.coordinates(states)
    frame = pd.DataFrame(columns, index=range(len(states)))
    for number, axis in enumerate("xy"[: coordinates.shape[1]]):
        frame[axis] = coordinates[:, number]
    return frame.assign(values=list(map(vector_text, states)))


def vector_text(vector: np.ndarray) -> str:
    """`(0.1197, 2.3601)`; the first entries of a long one."""
    entries = [f"{value:.4f}" for value in vector[:SHOWN_ENTRIES].tolist()]
    return f"({', '.join(entries)}{', …' if len(vector) > SHOWN_ENTRIES else ''})"
