"""Scales that several charts share, so that one meaning has one color."""

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


def kind_color(field: str = "kind") -> alt.Color:
    """Purple for false positives, red for false negatives."""
    return alt.Color(
        f"{field}:N",
        title=None,
        scale=alt.Scale(domain=list(KIND_COLORS), range=list(KIND_COLORS.values())),
        legend=alt.Legend(orient="bottom"),
    )
