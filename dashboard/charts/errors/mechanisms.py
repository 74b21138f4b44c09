"""What the failing models of each configuration fail by."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY
from dashboard.charts.style.encodings import Drawing
from dashboard.charts.style.scales import LOW_TO_HIGH, readable_on, row_height, rows, titled

ROW_HEIGHT = 40
FURNITURE_HEIGHT = 210


def mechanism_grid(shares: pd.DataFrame, names: list[str]) -> Drawing:
    """A row a configuration, a column a mechanism: the share of failing seeds, with its interval.

    Args:
        shares: one row a cell: configuration, mechanism, seeds, failing, share, low, high (the
            last three in [0, 1]).
        names: the configurations, from the top.
    """
    order = shares.groupby("mechanism")["seeds"].sum().sort_values(ascending=False).index.tolist()
    axis = alt.Axis(labelAngle=-20, labelLimit=220)
    base = alt.Chart(shares).encode(
        x=alt.X("mechanism:N", title=None, sort=order, axis=axis),
        y=rows(names, grid=False),
        tooltip=[
            alt.Tooltip("configuration:N", title="Configuration"),
            alt.Tooltip("mechanism:N", title="Mechanism"),
            alt.Tooltip("seeds:Q", title="Failing seeds with it"),
            alt.Tooltip("failing:Q", title="Failing seeds looked at"),
            alt.Tooltip("share:Q", title="Share", format=".1%"),
            alt.Tooltip("low:Q", title="At least (95%)", format=".1%"),
            alt.Tooltip("high:Q", title="At most (95%)", format=".1%"),
        ],
    )
    cells = base.mark_rect(cornerRadius=2, stroke=GREY, strokeWidth=0.3).encode(
        color=alt.Color(
            "share:Q",
            title="Share of failing seeds",
            scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[0, 1]),
            legend=alt.Legend(format="~%", orient="bottom", gradientLength=200, tickCount=3),
        )
    )
    ink = readable_on("share")
    share = base.mark_text(dy=-7, fontSize=12).encode(
        text=alt.Text("share:Q", format=".0%"), color=ink
    )
    interval = (
        base.mark_text(dy=8, fontSize=10)
        .encode(text="interval:N", color=ink)
        .transform_calculate(
            interval="format(datum.low, '.0%') + ' to ' + format(datum.high, '.0%')"
        )
    )
    height = row_height(names, ROW_HEIGHT) * len(names) + FURNITURE_HEIGHT
    return alt.layer(cells, share, interval).properties(
        height=height, title=titled("Main mechanism of each failing seed's errors")
    )
