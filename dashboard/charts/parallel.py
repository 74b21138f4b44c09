"""Parallel coordinates: each configuration a line through its settings to its failing share."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Literal

import altair as alt
import pandas as pd

from dashboard.charts.coded import chart_of
from dashboard.charts.scales import LABEL_WIDTH, LOW_TO_HIGH, titled

AXIS_HEIGHT, FURNITURE_HEIGHT = 44, 110
"""Pixels of an axis, and of what stands above and below all of them."""

OUTCOME = "failing share"
SHARES = (0.0, 0.5, 1.0)
"""Those that are written below the outcome's axis."""


def places(table: pd.DataFrame, fields: Sequence[str]) -> pd.DataFrame:
    """One row a configuration and axis, its value placed between 0 and 1.

    Args:
        table: a row a configuration: its name (configuration), failing_share, and the fields.
        fields: the axes, from the left; the failing share is the last.

    Returns:
        configuration, failing_share, axis, line (the number of the axis), place, value (as text).
    """
    rows = []
    for field in fields:
        texts = pd.Series([_text(value) for value in table[field]], index=table.index)
        ranks = dict(zip(texts, map(_rank, table[field]), strict=True))
        values = sorted(ranks, key=lambda text: ranks[text])
        where = {value: i / max(1, len(values) - 1) for i, value in enumerate(values)}
        rows.append(_axis(table, field, texts.map(where), texts))
    share = table["failing_share"]
    rows.append(_axis(table, OUTCOME, share, share.map("{:.0%}".format)))
    return pd.concat([own.assign(line=i) for i, own in enumerate(rows)], ignore_index=True)


def _text(value: object) -> str:
    if _is_missing(value):
        return "none"
    # A column of whole numbers of which one is missing has them as floating ones.
    return f"{value:g}" if isinstance(value, float) else str(value)


def _rank(value: object) -> tuple[int, float, str]:
    """Where a value stands among any others: numbers by size, then words, then what is missing."""
    if _is_missing(value):
        return 2, 0.0, ""
    if isinstance(value, Real):
        return 0, float(value), ""
    return 1, 0.0, str(value)


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _axis(
    table: pd.DataFrame, name: str, place: "pd.Series[float]", value: "pd.Series[str]"
) -> pd.DataFrame:
    own = table[["configuration", "failing_share"]]
    return own.assign(axis=name, place=place, value=value)


def parallel_coordinates(frame: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """A line a configuration, from the top down, colored by its failing share.

    The axes lie below each other, so that the names of settings stand beside them whole.

    Args:
        frame: as `places` makes it.
    """
    axes = list(dict.fromkeys(frame["axis"]))
    x = alt.X("place:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))
    y = alt.Y(
        "axis:N",
        title=None,
        sort=axes,
        scale=alt.Scale(type="point", padding=0.5),
        axis=alt.Axis(labelLimit=LABEL_WIDTH, labelOverlap=False, grid=True),
    )
    lines = (
        chart_of(frame, list(dict.fromkeys(frame["configuration"])))
        .mark_line(strokeWidth=2, opacity=1)
        .encode(
            x,
            y,
            detail=alt.Detail("configuration:N"),
            order=alt.Order("line:Q"),
            color=alt.Color(
                "failing_share:Q",
                title="Failing share",
                scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[0, 1], reverse=True),
                legend=alt.Legend(format=".0%", orient="bottom", values=[0, 0.5, 1]),
            ),
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip("failing_share:Q", title="Failing share", format=".1%"),
            ],
        )
    )
    title = titled("Settings of every configuration", subtitle="A line is one configuration.")
    return alt.layer(lines, *_values(frame, x, y)).properties(
        height=AXIS_HEIGHT * len(axes) + FURNITURE_HEIGHT, title=title
    )


def _values(frame: pd.DataFrame, x: alt.X, y: alt.Y) -> list[alt.Chart]:
    """What each place on an axis stands for, off the lines as far as can be.

    At the ends it stands towards the middle; the outcome's below the axis, where no line goes on.
    """
    marks = frame[frame["axis"] != OUTCOME].drop_duplicates(["axis", "value"])
    # Of a number between 0 and 1 a scale is enough: shares lie as close together as they like.
    shares = pd.DataFrame({"axis": OUTCOME, "place": SHARES})
    shares["value"] = shares["place"].map("{:.0%}".format)
    marks = pd.concat([marks[shares.columns], shares], ignore_index=True)
    left, right = marks["place"] <= 0, marks["place"] >= 1
    sides: list[tuple[Literal["left", "center", "right"], int, pd.Series[bool]]]
    sides = [("left", 5, left), ("center", 0, ~(left | right)), ("right", -5, right)]
    rows = [(-8, marks["axis"] != OUTCOME), (10, marks["axis"] == OUTCOME)]
    return [
        alt.Chart(marks[own & row])
        .mark_text(align=side, dx=dx, dy=dy, fontSize=11)
        .encode(x, y, alt.Text("value:N"))
        for side, dx, own in sides
        for dy, row in rows
        if (own & row).any()
    ]
