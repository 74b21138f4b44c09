"""Colors, shapes and sizes that charts share, so that one meaning looks the same everywhere."""

import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import altair as alt
import pandas as pd

from dashboard.charts.colors import (
    DEEP_GREY,
    FALSE_NEGATIVE,
    FALSE_POSITIVE,
    GREY,
    REPEATS,
    STOPPED_EARLY,
    WENT_ON,
    WRONG,
    WRONG_TOKEN,
    colors_of,
)
from sweeps.api.reading import NO_ANSWER

KIND_COLORS = {"false positive": FALSE_POSITIVE, "false negative": FALSE_NEGATIVE}

OUTPUT_COLORS = {
    "stopped early": STOPPED_EARLY,
    "went on": WENT_ON,
    "repeats": REPEATS,
    "wrong token": WRONG_TOKEN,
}
"""Colors of the errors of transductions."""

PLACE_COLORS = {
    "too much": FALSE_POSITIVE,
    "too little": FALSE_NEGATIVE,
    "wrong answer": WRONG,
}
"""Those of answers at every place."""

KIND_SHAPES = ("triangle-down", "triangle-up")

LOW_TO_HIGH: Final = "viridis"
"""The scheme of amounts: the lighter the more, for the color-blind too."""


SUBTITLE_LETTERS = 56
"""That fit into the narrowest window."""


def title_params(
    title: str, subtitle: str = "", letters: int = SUBTITLE_LETTERS
) -> alt.TitleParams:
    """A chart's title, with a line below that says how to read it, or two.

    Args:
        title: what is drawn.
        subtitle: how to read it.
        letters: that fit into a line.
    """
    lines = textwrap.wrap(subtitle, letters, break_on_hyphens=False)
    wrapped = textwrap.wrap(title, letters)
    text = wrapped if len(wrapped) > 1 else title
    return alt.TitleParams(text, subtitle=lines, subtitleFontSize=12, anchor="start")


LABEL_WIDTH = 245
"""Pixels of a name beside a chart; its tooltips have what is longer as a whole."""
BLANK = "\N{NO-BREAK SPACE}"
"""The label of a row of nothing, which parts two groups; as many as its number, since a name has
one row."""


def readable_on(field: str) -> Any:
    """Black or white for the text of a cell, whichever can be read on the color of its value."""
    # Where both have the same contrast, 4.6:1, the ground has this luminance.
    light = f"luminance(scale('color', datum[{field!r}])) > 0.179"
    return alt.when(light).then(alt.value("black")).otherwise(alt.value("white"))


LETTERS, NARROW_LETTERS = 46, 30
"""Letters of a name that fit into a line beside a chart; in a narrow window."""


def rows(names: Collection[str], field: str = "configuration", *, grid: bool = True) -> alt.Y:
    """A row for each name, in this order, with a line through it or none."""
    # In a narrow window marks need room, too.
    narrow = f"containerSize()[0] < {2 * LABEL_WIDTH}"
    limit = {"expr": f"{narrow} ? {LABEL_WIDTH * 7 // 10} : {LABEL_WIDTH}"}
    # Two names may differ at their ends alone, so that a long one is cut in its middle.
    said = f"truncate(datum.label, {narrow} ? {NARROW_LETTERS} : {LETTERS}, 'center')"
    axis = alt.Axis(labelLimit=limit, labelOverlap=False, grid=grid, labelExpr=said)
    spaced = alt.Scale(paddingInner=0.06, domain=list(names))
    return alt.Y(f"{field}:N", title=None, sort=list(names), scale=spaced, axis=axis)


def class_color(
    field: str, colors: Mapping[str, str], title: str | None = None, **legend: Any
) -> alt.Color:
    """Each class in its color, named above the chart unless `legend` puts the names elsewhere."""
    return alt.Color(
        f"{field}:N",
        title=title,
        scale=alt.Scale(domain=list(colors), range=list(colors.values())),
        legend=alt.Legend(**{"orient": "top", **legend}),
    )


# Between powers of ten, lines and ticks of a logarithmic axis are too many to be read.
_AT_POWERS = {"expr": "substring(format(datum.value, '.0e'), 0, 2) == '1e' ? 1 : 0"}
LOG_AXIS: dict[str, Any] = {
    "gridOpacity": _AT_POWERS,
    "tickOpacity": _AT_POWERS,
    "labelExpr": "indexof('13', format(datum.value, '.0e')[0]) < 0 ? '' : datum.label",
    "labelOverlap": "greedy",
}
"""What an axis of a logarithmic scale has: a line and a tick at 1, 10, 100, and so on, and numbers
there and at 3, 30, 300.
"""


def share_axis(field: str, title: str, **scale: Any) -> alt.Y:
    """The vertical axis of a share, from 0% to 100% unless its scale is another."""
    limits = alt.Scale(**(scale or {"domain": [0, 1]}))
    return alt.Y(f"{field}:Q", title=title, axis=alt.Axis(format="%"), scale=limits)


# Below each other, since half of a window is often not wide enough for both.
_KINDS: dict[str, Any] = {"orient": "bottom", "columns": 1}


def kind_color(kinds: Iterable[str]) -> alt.Color:
    """Purple for false positives, red for false negatives; of errors that are neither, others."""
    return class_color("kind", _known_kinds(kinds), **_KINDS)


def kind_shape(kinds: Iterable[str]) -> alt.Shape:
    """False positives point down, false negatives up: as in every other chart of strings."""
    known = _known_kinds(kinds)
    shapes = (*KIND_SHAPES, "circle")
    return alt.Shape(
        "kind:N",
        title=None,
        scale=alt.Scale(domain=list(known), range=list(shapes[: len(known)])),
        legend=alt.Legend(**_KINDS),
    )


def _known_kinds(kinds: Iterable[str]) -> dict[str, str]:
    """The kinds of errors that there can be beside those that are drawn, with their colors."""
    drawn = set(kinds)
    for colors in (OUTPUT_COLORS, PLACE_COLORS):
        if drawn & colors.keys():
            return colors
    if "wrong" in drawn:
        return {"wrong": WRONG}
    return {**KIND_COLORS, NO_ANSWER: WRONG} if NO_ANSWER in drawn else KIND_COLORS


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
class ChartAxes:
    """The axes of a drawing: one is a number line, two are a plane."""

    titles: tuple[str, ...]
    domains: tuple[Domain, ...]
    """The limits of each axis, the same at every epoch."""


def outcome(label: bool, answer: bool) -> str:
    """What an answer is called, given whether the string is in the language."""
    if label:
        return "true positive" if answer else "false negative"
    return "false positive" if answer else "true negative"


def reserve_height(plot: float, *, legend: bool = False) -> dict[str, Any]:
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


def axis(view: ChartAxes, number: int, channel: type[alt.X] | type[alt.Y]) -> alt.X | alt.Y:
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
