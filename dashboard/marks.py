"""Parts that charts share, as functions of frames. Colors are names; `style` has them."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd

OUTCOMES = ("at every length", "generalizes", "fails beyond", "not learned", "not known")
"""What a run came to, as names of colors."""

RIGHT = ("right", "wrong")
"""What an answer is, as names of colors."""


def color(field: str, names: Sequence[str], **more: Any) -> alt.Color:
    """A field whose values are names of colors; the section's legend says what they mean."""
    scale = alt.Scale(domain=list(names), range=[f"~{name}" for name in names])
    return alt.Color(f"{field}:N", legend=None, scale=scale, **more)


def x_axis(field: str, title: str | None, **scale: Any) -> alt.X:
    """A horizontal axis of a quantity, without a grid and with few labels."""
    axis = alt.Axis(grid=False, tickCount=5, labelOverlap=True)
    return alt.X(field, title=title, axis=axis, scale=alt.Scale(nice=False, **scale))


def y_axis(field: str, title: str | None = None, *, form: str = "~g", **scale: Any) -> alt.Y:
    """A vertical axis of a quantity, with a grid and neither line nor ticks.

    Args:
        form: of its labels, as D3 writes it; `%` for shares.
    """
    axis = alt.Axis(tickCount=4, domain=False, ticks=False, format=form)
    return alt.Y(field, title=title, axis=axis, scale=alt.Scale(**scale))


def trained_band(trained: range) -> Any:
    """The trained lengths, shaded behind a plot over length.

    Args:
        trained: from the shortest to one beyond the longest.
    """
    span = pd.DataFrame([{"first": trained[0], "last": trained[-1]}])
    return (
        alt.Chart(span)
        .mark_rect(opacity=0.16, color="~band")
        .encode(alt.X("first:Q"), alt.X2("last:Q"))
    )


def single_points(lines: Any, *groups: str) -> Any:
    """The points of lines that have one alone, of which a line draws nothing.

    Args:
        lines: what they encode.
        *groups: the fields that tell one line from another.
    """
    counted = lines.transform_joinaggregate(points="count()", groupby=list(groups))
    return counted.transform_filter("datum.points == 1").mark_point(filled=True, size=36, opacity=1)
