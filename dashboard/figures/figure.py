"""A figure: its name, its data, its drawing, and vectors of any size projected for it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.scales import ChartAxes, Drawing

MARGIN = 0.15
"""The part of the span that stays free on each side, for arrow heads and names."""


@dataclass(frozen=True, eq=False)
class Projection:
    """A linear map to one or two coordinates; the origin stays where it is."""

    directions: np.ndarray
    """Orthonormal, shape (coordinate, hidden)."""
    titles: tuple[str, ...]
    domains: tuple[tuple[float, float], ...]
    exact: bool
    """Nothing is lost: the coordinates are the vector's own."""

    def coordinates(self, states: np.ndarray) -> np.ndarray:
        """Shape (state, hidden) to (state, coordinate)."""
        return np.asarray(states @ self.directions.T)

    def share_kept(self, states: np.ndarray) -> float:
        """The part of the variance of these states that the drawing shows, from 0 to 1."""
        spread = states - states.mean(axis=0)
        total = float((spread**2).sum())
        return float((self.coordinates(spread) ** 2).sum()) / total if total else 1.0


def project(
    epochs: Sequence[np.ndarray], kept: int, name: str, towards: np.ndarray | None = None
) -> Projection:
    """How to draw states so that they can be followed over the epochs.

    One or two hidden dimensions are drawn as they are. Of more, the first two principal components
    of the kept epoch's states and the origin are drawn, so that the axes stand still.

    Args:
        epochs: the states of each epoch, shape (state, hidden).
        kept: which of them is the kept epoch.
        name: what a coordinate is called, such as `dimension`; two are numbered.
        towards: a direction that becomes the first axis where there are more than two dimensions,
            such as the classifier's; the second is then the first principal component beside it.
    """
    hidden = epochs[kept].shape[1]
    if hidden <= 2:
        directions = np.eye(hidden)
        titles = tuple(f"{name} {number}" for number in range(hidden)) if hidden > 1 else (name,)
    elif towards is not None and np.any(towards):
        first = towards / np.linalg.norm(towards)
        directions = np.stack([first, _beside(first, epochs[kept])])
        titles = ("along the classifier", "first principal component beside it")
    else:
        directions = _principal(epochs[kept], 2)
        titles = ("first principal component", "second principal component")
    drawn = np.concatenate([states @ directions.T for states in epochs])
    return Projection(directions, titles, _limits(drawn), exact=hidden <= 2)


def _principal(states: np.ndarray, number: int) -> np.ndarray:
    """Orthonormal directions of greatest variance, their largest entry positive."""
    points = np.concatenate([states, np.zeros((1, states.shape[1]))])
    directions = np.linalg.svd(points - points.mean(axis=0))[2][:number]
    largest = np.take_along_axis(directions, np.abs(directions).argmax(axis=1)[:, None], axis=1)
    return np.asarray(directions * np.sign(largest))


def _beside(first: np.ndarray, states: np.ndarray) -> np.ndarray:
    """The direction of greatest variance of states at right angles to a unit vector."""
    rest = states - np.outer(states @ first, first)
    principal = _principal(rest, 1)[0]
    # Where no variance is left, the principal direction is any; this one is beside the first.
    basis = np.linalg.qr(np.column_stack([first, principal]))[0]
    return np.asarray(basis[:, 1] * np.sign(basis[:, 1] @ principal or 1))


def _limits(points: np.ndarray) -> tuple[tuple[float, float], ...]:
    """Limits that hold all points and the origin; a square, so that scales are equal."""
    low = np.minimum(points.min(axis=0, initial=0), 0)
    high = np.maximum(points.max(axis=0, initial=0), 0)
    half = (high - low).max() * (0.5 + MARGIN) or 1.0
    middle = (low + high) / 2
    return tuple((float(m - half), float(m + half)) for m in middle)


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


def selection_of(projection: Projection) -> ChartAxes:
    return ChartAxes(projection.titles, projection.domains)


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
