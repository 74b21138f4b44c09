"""The two circuits of a head: what it looks for, and what it then writes."""

from collections.abc import Sequence
from typing import Literal

import altair as alt
import pandas as pd

from dashboard.charts.style.encodings import Drawing, by_panel, reserved
from dashboard.charts.style.pointing import TOKEN, framed, pointed
from dashboard.charts.style.scales import readable_on

CELL = 52
ROW = 30


def matrix(
    frame: pd.DataFrame,
    tokens: Sequence[str],
    titles: tuple[str, str],
    what: str,
    limit: float,
    attended: Literal["row", "column"],
) -> Drawing:
    """A number for every pair of a row and a column, one square grid a head.

    Args:
        frame: head, row, column and value.
        tokens: the columns in order.
        titles: what a row is and what a column is.
        what: what the value is, with its unit.
        limit: the largest absolute value of the color scale, the same at every epoch.
        attended: which of the two is the token that is attended to, and is pointed at.
    """
    x = alt.X(
        "column:N",
        title=titles[1],
        sort=list(tokens),
        axis=alt.Axis(labelAngle=0, labelLimit=CELL),
    )
    y = alt.Y("row:N", title=titles[0], sort=None)
    base = alt.Chart().encode(
        x,
        y,
        tooltip=[
            alt.Tooltip("head:N", title="Head"),
            alt.Tooltip("row:N", title=titles[0]),
            alt.Tooltip("column:N", title=titles[1]),
            alt.Tooltip("value:Q", title=what, format=".4f"),
        ],
    )
    color = alt.Color(
        "value:Q",
        title=what,
        scale=alt.Scale(scheme="blueorange", domain=[-limit, limit], domainMid=0, reverse=True),
        legend=alt.Legend(orient="bottom", gradientLength=200),
    )
    cells = base.mark_rect().encode(color).add_params(pointed(TOKEN))
    number = alt.Text("value:Q", format=".2f")
    texts = base.mark_text(fontSize=11).encode(text=number, color=readable_on("value"))
    size = {"width": alt.Step(CELL), "height": alt.Step(ROW)}
    frames = framed(alt.Chart().encode(y if attended == "row" else x), TOKEN)
    grid = alt.layer(cells, texts, frames, data=frame).properties(**size)
    grid = grid.transform_calculate(token=f"datum.{attended}")
    panels = grid.facet(alt.Facet(**by_panel(frame, "head")), columns=2, spacing=24)
    # Each panel is drawn alone.
    return panels.resolve_scale(y="independent").properties(
        **reserved(ROW * frame["row"].nunique())
    )
