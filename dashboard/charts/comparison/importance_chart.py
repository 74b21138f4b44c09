"""How far each setting changes the models' results."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, OKABE_ITO
from dashboard.charts.style.scales import row_height, rows, titled

ROW = 34
FURNITURE = 90

FORMATS = {"Median accuracy": ".1%", "Median solved length": ".1f", "Failing share": ".0%"}


def written(value: float, measure: str) -> str:
    """A value of a measure as text."""
    letters = " letters" if measure == "Median solved length" else ""
    return format(value, FORMATS[measure]) + letters


def importance_chart(frame: pd.DataFrame, measure: str) -> alt.LayerChart | alt.FacetChart:
    """A row a setting: the difference between its worst and its best value, with its interval.

    Args:
        frame: field, moves, low, high (differences), worst, at_worst, best, at_best, values; in
            the order in which settings are to stand.
        measure: what is moved, one of `FORMATS`.
    """
    unit = FORMATS[measure]
    share = unit.endswith("%")
    low = min(0.0, float(frame["low"].fillna(0).min()))
    top = 1.0 if share else max(1.0, float(frame[["moves", "high"]].max().max()))
    x = alt.X(
        "moves:Q",
        title=f"{measure}: worst value against best" + ("" if share else " (letters)"),
        axis=alt.Axis(format="%" if share else "d"),
        scale=alt.Scale(domain=[low, top]),
    )
    fields = list(frame["field"])
    y = rows(fields, "field", grid=False)
    tooltip = [
        alt.Tooltip("field:N", title="Setting"),
        alt.Tooltip("moves:Q", title=f"Moves the {measure.lower()} by", format=unit),
        alt.Tooltip("low:Q", title="95% interval, from", format=unit),
        alt.Tooltip("high:Q", title="to", format=unit),
        alt.Tooltip("worst:N", title="Worst value"),
        alt.Tooltip("at_worst:Q", title=f"{measure} (worst)", format=unit),
        alt.Tooltip("best:N", title="Best value"),
        alt.Tooltip("at_best:Q", title=f"{measure} (best)", format=unit),
        alt.Tooltip("values:Q", title="Values"),
    ]
    base = alt.Chart(frame).encode(y)
    spans = base.mark_rule(color=GREY, strokeWidth=3).encode(alt.X("low:Q"), alt.X2("high:Q"))
    points = base.mark_point(filled=True, size=110, opacity=1, color=OKABE_ITO[0]).encode(
        x, tooltip=tooltip
    )
    title = titled(
        f"What moves the {measure.lower()}",
        subtitle="A point is the difference between a setting's worst and best value; the bar, "
        "its 95% interval.",
    )
    return alt.layer(spans, points).properties(
        height=row_height(fields, ROW) * len(frame) + FURNITURE, title=title
    )
