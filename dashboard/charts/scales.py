"""Scales that several charts share, so that one meaning has one color."""

from collections.abc import Sequence
from typing import Final

import altair as alt

from dashboard.charts.colors import FALSE_NEGATIVE, FALSE_POSITIVE, GREY

KIND_COLORS = {"false positive": FALSE_POSITIVE, "false negative": FALSE_NEGATIVE}

LOW_TO_HIGH: Final = "viridis"
"""The scheme of amounts: the lighter the more, for the color-blind too."""


def titled(title: str, subtitle: str = "") -> alt.TitleParams:
    """A chart's title, with a second line that can be read on light and dark ground."""
    return alt.TitleParams(
        title, subtitle=subtitle, subtitleColor=GREY, subtitleFontSize=12, anchor="start"
    )


LABEL_WIDTH = 230
LABEL_LINE_HEIGHT = 14


def rows(names: Sequence[str], field: str = "configuration") -> alt.Y:
    """A row for each name, in this order; what a name's commas separate stands in lines."""
    lines = alt.Axis(labelExpr="split(datum.label, ', ')", labelLimit=LABEL_WIDTH, grid=True)
    return alt.Y(
        f"{field}:N", title=None, sort=list(names), scale=alt.Scale(paddingInner=0.06), axis=lines
    )


def row_height(names: Sequence[str], least: int) -> int:
    """Pixels that a row needs so that its label fits."""
    return max(least, LABEL_LINE_HEIGHT * max(name.count(", ") + 1 for name in names) + 6)


def kind_color(field: str = "kind") -> alt.Color:
    """Purple for false positives, red for false negatives."""
    return alt.Color(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(KIND_COLORS), range=list(KIND_COLORS.values())),
        legend=alt.Legend(orient="bottom"),
    )
