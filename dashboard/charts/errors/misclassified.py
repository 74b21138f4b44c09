"""Where all misclassified strings up to a length lie, by letter counts and by length."""

import altair as alt
import pandas as pd

from dashboard.charts.style.encodings import SIDE, Drawing, reserved
from dashboard.charts.style.scales import KIND_COLORS, class_color

KINDS = tuple(KIND_COLORS)
HEIGHT = 220

MAP_SIDE = int(1.2 * SIDE)
"""Pixels of the map's plot; it is a square where the window is wide enough."""

_COLOR = class_color("kind", KIND_COLORS, "Misclassified", symbolOpacity=1)


def error_map(cells: pd.DataFrame, letters: tuple[str, str], longest: int, title: str) -> Drawing:
    """How often two letters occur in misclassified multisets, in cells of several counts.

    Args:
        cells: x, x2, y, y2 (edges), firsts, seconds (the counts in the cell, as text), kind,
            errors (multisets in the cell that are misclassified so), share (of the cell's
            multisets of that label), in (0, 1].
        letters: counted along the horizontal and the vertical axis.
        longest: length that was tried.
        title: above the drawing.
    """
    scale = alt.Scale(domain=[int(min(0, cells[["x", "y"]].min().min())), longest], nice=False)
    axis = alt.Axis(values=list(range(0, longest + 1, max(1, longest // 10))))
    first, second = letters
    return (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            x=alt.X("x:Q", title=f"Letters {first} (left of 0: none)", scale=scale, axis=axis),
            x2="x2:Q",
            y=alt.Y("y:Q", title=f"Letters {second} (below 0: none)", scale=scale, axis=axis),
            y2="y2:Q",
            color=_COLOR,
            opacity=alt.Opacity(
                "share:Q",
                title="Share of the cell's strings",
                scale=alt.Scale(domain=[0, 1], range=[0.12, 1]),
                legend=alt.Legend(orient="bottom", format="%", values=[0.1, 0.5, 1]),
            ),
            tooltip=[
                alt.Tooltip("kind:N", title="Misclassified"),
                alt.Tooltip("firsts:N", title=f"Letters {first}"),
                alt.Tooltip("seconds:N", title=f"Letters {second}"),
                alt.Tooltip("errors:Q", title="Multisets wrong", format=","),
                alt.Tooltip("share:Q", title="Share of such strings", format=".1%"),
            ],
        )
        .properties(height=MAP_SIDE, title=title, **reserved(MAP_SIDE, legend=True))
    )


def errors_by_length(frame: pd.DataFrame, longest: int) -> Drawing:
    """How many multisets of each length are misclassified.

    Args:
        frame: length, kind, errors.
        longest: length that was tried.
    """
    return (
        alt.Chart(frame)
        .mark_bar(width=3)
        .encode(
            x=alt.X(
                "length:Q",
                title="String length (letters)",
                scale=alt.Scale(domain=[0, longest + 1], nice=False),
            ),
            y=alt.Y("errors:Q", title="Multisets misclassified"),
            color=_COLOR,
            tooltip=[
                alt.Tooltip("length:Q", title="Length"),
                alt.Tooltip("kind:N", title="Misclassified"),
                alt.Tooltip("errors:Q", title="Multisets", format=","),
            ],
        )
        .properties(height=HEIGHT, title="By length", **reserved(HEIGHT, legend=True))
    )
