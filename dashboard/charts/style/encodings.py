"""What the charts of one model share: color and shape of tokens and of strings, and their sizes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import DEEP_GREY, FALSE_NEGATIVE, FALSE_POSITIVE, GREY, colors_of

SIDE = 330
"""Pixels of a plane's side; both sides are equal, and so are the scales."""

SMALL_SIDE = 210
"""The same where planes stand side by side."""

OUTCOMES = ("true negative", "true positive", "false positive", "false negative")
OUTCOME_COLORS = (GREY, DEEP_GREY, FALSE_POSITIVE, FALSE_NEGATIVE)
OUTCOME_SHAPES = ("triangle-down", "triangle-up", "triangle-down", "triangle-up")

Domain = tuple[float, float]
Drawing = alt.Chart | alt.LayerChart | alt.FacetChart | alt.VConcatChart
"""What the builders of charts return."""


AXIS, TITLE, LEGEND = 50, 28, 60
"""Pixels around a plot: an axis with its title, a title, a legend above."""


@dataclass(frozen=True)
class View:
    """The axes of a drawing: one is a number line, two are a plane."""

    titles: tuple[str, ...]
    domains: tuple[Domain, ...]
    """The limits of each axis, the same at every epoch."""


def outcome(label: bool, answer: bool) -> str:
    """What an answer is called, given whether the string is in the language."""
    if label:
        return "true positive" if answer else "false negative"
    return "false positive" if answer else "true negative"


def reserved(plot: float, *, legend: bool = False) -> dict[str, Any]:
    """What a chart states of its height on the page, rather too little: kept until it is drawn.

    Args:
        plot: pixels of its plots from top to bottom; a title and an axis come on top.
        legend: whether a legend does, too.
    """
    return {"usermeta": {"height": round(TITLE + LEGEND * legend + plot + AXIS)}}


def by_panel(frame: pd.DataFrame, field: str, limit: int = 200) -> dict[str, Any]:
    """What makes facets of a field: in the order of the frame, their names up to some pixels."""
    return {
        "shorthand": f"{field}:N",
        "title": None,
        "sort": list(dict.fromkeys(frame[field])),
        "header": alt.Header(labelFontSize=13, labelLimit=limit),
    }


def axis(view: View, number: int, channel: type[alt.X] | type[alt.Y]) -> alt.X | alt.Y:
    """The x (0) or y (1) axis of a view, on fixed limits."""
    return channel(
        f"{'xy'[number]}:Q",
        title=view.titles[number],
        scale=alt.Scale(domain=view.domains[number], nice=False, zero=False),
    )


def token_colors(tokens: Sequence[str]) -> alt.Color:
    """Each token in its color, in the order of the vocabulary."""
    return alt.Color(
        "token:N",
        title="Token",
        sort=list(tokens),
        scale=alt.Scale(domain=list(tokens), range=colors_of(tokens)),
        legend=alt.Legend(orient="top", symbolOpacity=1),
    )


def outcome_colors(*, legend: bool = True) -> alt.Color:
    """Strings that are predicted wrongly are colored, the others grey."""
    return alt.Color(
        "outcome:N",
        title="String",
        scale=alt.Scale(domain=OUTCOMES, range=OUTCOME_COLORS),
        legend=alt.Legend(orient="top", columns=2, symbolOpacity=1) if legend else None,
    )


def outcome_shapes() -> alt.Shape:
    """Strings in the language point up, the others down."""
    return alt.Shape(
        "outcome:N",
        title="String",
        scale=alt.Scale(domain=OUTCOMES, range=OUTCOME_SHAPES),
        legend=alt.Legend(orient="top", columns=2, symbolOpacity=1),
    )
