"""Parallel coordinates: each configuration a line through its settings to its failing share."""

import math
from collections.abc import Sequence
from numbers import Real

import altair as alt
import pandas as pd

from dashboard.charts.coded import chart_of
from dashboard.charts.scales import LOW_TO_HIGH, titled

HEIGHT = 360
OUTCOME = "failing share"


def places(table: pd.DataFrame, fields: Sequence[str]) -> pd.DataFrame:
    """One row a configuration and axis, its value placed between 0 and 1.

    Args:
        table: a row a configuration: its name (configuration), failing_share, and the fields.
        fields: the axes, from the left; the failing share is the last.

    Returns:
        configuration, failing_share, axis, place, value (as text).
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
    return pd.concat(rows, ignore_index=True)


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
    """A line a configuration, colored by its failing share.

    Args:
        frame: as `places` makes it.
    """
    order = list(dict.fromkeys(frame["axis"]))
    x = alt.X(
        "axis:N",
        title=None,
        sort=order,
        scale=alt.Scale(type="point", padding=0.3),
        axis=alt.Axis(labelAngle=0, orient="top", labelLimit=150, grid=True),
    )
    y = alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[-0.04, 1.04], nice=False))
    lines = (
        chart_of(frame, list(dict.fromkeys(frame["configuration"])))
        .mark_line(strokeWidth=2, opacity=1)
        .encode(
            x,
            y,
            detail=alt.Detail("configuration:N"),
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
    marks = frame.drop_duplicates(["axis", "value"])[["axis", "place", "value"]]
    names = alt.Chart(marks).mark_text(align="left", dx=6, dy=-6, fontSize=11)
    title = titled("Settings of every configuration", subtitle="A line is one configuration.")
    return alt.layer(lines, names.encode(x, y, alt.Text("value:N"))).properties(
        height=HEIGHT, title=title
    )
