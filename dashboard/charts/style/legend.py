"""The names of configurations in their colors, as a chart that stands beside another."""

import json
from collections.abc import Mapping

import altair as alt
import pandas as pd

from dashboard.charts.style.pointing import CONFIGURATION, pointed
from dashboard.charts.style.scales import LABEL_LINE_HEIGHT, broken

GAP = 10
"""Pixels between two names."""

FADED = 0.12
"""Opacity of lines while another configuration is pointed at."""


def unfaded() -> alt.Opacity:
    """Marks fade while a configuration is pointed at that is not theirs."""
    return alt.Opacity(
        condition={"param": f"pointed_{CONFIGURATION}", "empty": True, "value": 1}, value=FADED
    )


def legend(colors: Mapping[str, str]) -> alt.LayerChart | alt.FacetChart:
    """A row for each name; what is pointed at here is marked in the charts beside it.

    Args:
        colors: of each configuration, in order.
    """
    lines = {name: broken(name) for name in colors}
    heights = pd.Series([LABEL_LINE_HEIGHT * len(x) + GAP for x in lines.values()])
    rows = pd.DataFrame(
        {CONFIGURATION: list(colors), "top": heights.cumsum() - heights, "bottom": heights.cumsum()}
    )
    height = int(heights.sum())
    color = alt.Color(
        f"{CONFIGURATION}:N",
        legend=None,
        scale=alt.Scale(domain=list(colors), range=list(colors.values())),
    )
    scale = alt.Scale(domain=[0, height], reverse=True, nice=False)
    top = alt.Y("top:Q", axis=None, scale=scale)
    base = alt.Chart(rows).encode(top)
    # Over all of its row, unseen: a name need not be hit letter by letter.
    targets = (
        base.mark_rect(opacity=0.001).encode(alt.Y2("bottom:Q")).add_params(pointed(CONFIGURATION))
    )
    marks = base.mark_square(size=130, yOffset=9, opacity=1).encode(
        color=color, x=alt.value(7), opacity=unfaded()
    )
    names = base.mark_text(
        align="left", baseline="top", fontSize=12, dy=3, lineHeight=LABEL_LINE_HEIGHT
    )
    texts = names.encode(x=alt.value(20), text=alt.Text("label:N"), opacity=unfaded())
    texts = texts.transform_calculate(label=f"({json.dumps(lines)})[datum.{CONFIGURATION}]")
    return alt.layer(marks, texts, targets).properties(
        height=height, title=alt.TitleParams("", offset=0)
    )
