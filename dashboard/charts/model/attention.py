"""How the heads of one model divide their attention over the tokens of strings."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import INK
from dashboard.charts.style.encodings import Drawing, by_panel, reserved, token_colors
from dashboard.charts.style.pointing import row_frames

WIDTH = 250
ROW = 24
ROOM_FOR_TEXT = 1.75
"""The axis goes on beyond a weight of 1, where nothing but the numbers stands."""


def attention_weights(frame: pd.DataFrame, tokens: Sequence[str], title: str) -> Drawing:
    """One head as a table of bars: one row a kind of token, strings below another.

    Args:
        frame: string, head, token, count, label (token and count), score, weight in [0, 1], which
            is that of all tokens of the kind together.
        tokens: the vocabulary in order.
        title: above the drawing.
    """
    base = alt.Chart().encode(
        y=alt.Y("label:N", title=None, sort=None),
        tooltip=[
            alt.Tooltip("string:N", title="String"),
            alt.Tooltip("head:N", title="Head"),
            alt.Tooltip("token:N", title="Token"),
            alt.Tooltip("count:Q", title="Occurs"),
            alt.Tooltip("score:Q", title="Score of each", format=".4f"),
            alt.Tooltip("weight:Q", title="Weight of all together", format=".6f"),
        ],
    )
    weight = alt.X(
        "weight:Q",
        title="Attention weight of all tokens of a type",
        scale=alt.Scale(domain=[0, ROOM_FOR_TEXT], nice=False),
        axis=alt.Axis(values=[0, 0.5, 1], format="%", grid=False),
    )
    bars = base.mark_bar().encode(weight, token_colors(tokens))
    texts = base.mark_text(align="left", dx=5, fontSize=12, color=INK).encode(weight, text="text:N")
    texts = texts.transform_calculate(
        text="format(datum.weight, '.3f') + '  (score ' + format(datum.score, '.2f') + ')'"
    )
    cell = alt.layer(row_frames(base), bars, texts, data=frame).properties(
        width=WIDTH, height=alt.Step(ROW)
    )
    string = alt.Row(**by_panel(frame, "string"))
    string = string.header(labelAngle=0, labelAlign="left", labelLimit=160, labelFontSize=13)
    facets = cell.facet(row=string, spacing=12).resolve_scale(y="independent")
    return facets.properties(title=title, **reserved(ROW * len(frame)))
