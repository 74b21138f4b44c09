"""How far each setting moves the share of failing models."""

import altair as alt
import pandas as pd

from dashboard.charts.colors import GREY, OKABE_ITO
from dashboard.charts.scales import row_height, rows, titled

ROW = 34
FURNITURE = 90


def importance_chart(frame: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """A row a setting: the difference between its worst and its best value, with its interval.

    Args:
        frame: field, moves, low, high (differences of shares), worst, worst_share, best,
            best_share, values; in the order in which settings are to stand.
    """
    x = alt.X(
        "moves:Q",
        title="Failing share: worst value less best",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(domain=[min(0.0, float(frame["low"].min())), 1]),
    )
    fields = list(frame["field"])
    y = rows(fields, "field", grid=False)
    tooltip = [
        alt.Tooltip("field:N", title="Setting"),
        alt.Tooltip("moves:Q", title="Moves the failing share by", format=".1%"),
        alt.Tooltip("low:Q", title="95% interval, from", format=".1%"),
        alt.Tooltip("high:Q", title="to", format=".1%"),
        alt.Tooltip("worst:N", title="Worst value"),
        alt.Tooltip("worst_share:Q", title="Failing share (worst)", format=".1%"),
        alt.Tooltip("best:N", title="Best value"),
        alt.Tooltip("best_share:Q", title="Failing share (best)", format=".1%"),
        alt.Tooltip("values:Q", title="Values"),
    ]
    base = alt.Chart(frame).encode(y)
    spans = base.mark_rule(color=GREY, strokeWidth=3).encode(alt.X("low:Q"), alt.X2("high:Q"))
    points = base.mark_point(filled=True, size=110, opacity=1, color=OKABE_ITO[0]).encode(
        x, tooltip=tooltip
    )
    title = titled(
        "What moves the failing share",
        subtitle="A point is the difference between a setting's worst and best value; the bar, "
        "its 95% interval.",
    )
    return alt.layer(spans, points).properties(
        height=row_height(fields, ROW) * len(frame) + FURNITURE, title=title
    )
