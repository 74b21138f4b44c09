"""Parts that charts share, as functions of frames. Colors are names; `style` has them."""

from collections.abc import Iterable, Sequence
from typing import Any, get_args

import altair as alt
import pandas as pd

from seqcls.results import ErrorKind
from seqcls.strings.alphabets import CLS_NAME, has_names

OUTCOMES = ("at every length", "generalizes", "fails beyond", "not learned", "not known")
"""Outcomes of a run, as names of colors."""

RIGHT = ("right", "wrong")
"""Correctness of an answer, as names of colors."""


ANSWERS = ("true negative", "true positive", "false positive", "false negative")
"""Cells of a language's confusion matrix, as names of colors."""

OUTPUT_ERRORS: tuple[str, ...] = get_args(ErrorKind)
"""Kinds of error of an output, or of answers at positions, as names of colors."""

_LETTERS = 8
"""Colors of letters, which begin again after the last: charts name each letter besides."""

# Between powers of ten, lines and ticks of a logarithmic axis are too many to be read.
_AT_POWERS = {"expr": "substring(format(datum.value, '.0e'), 0, 2) == '1e' ? 1 : 0"}
LOG_AXIS: dict[str, Any] = {
    "gridOpacity": _AT_POWERS,
    "tickOpacity": _AT_POWERS,
    "labelExpr": "indexof('13', format(datum.value, '.0e')[0]) < 0 ? '' : datum.label",
    "labelOverlap": "greedy",
}
"""A line and a tick at 1, 10, 100, and so on, and numbers there and at 3, 30, 300."""


def answer_color(label: bool, answer: bool) -> str:
    """The cell of the confusion matrix of an answer, which is the name of its color."""
    if label:
        return "true positive" if answer else "false negative"
    return "false positive" if answer else "true negative"


def letter_colors(tokens: Sequence[str]) -> tuple[str, ...]:
    """Names of colors: `CLS` is gray, every letter has its own by its place in the alphabet.

    Args:
        tokens: all of an alphabet in its order, `CLS` among them or not.
    """
    letters = [token for token in tokens if token != CLS_NAME]
    numbers = {letter: number for number, letter in enumerate(letters)}
    if not has_names(letters):
        # By the alphabet of all letters: `b` looks the same in tasks that have no `a`.
        numbers = {letter: ord(letter) - ord("a") for letter in letters}
    return tuple(f"letter {numbers[x] % _LETTERS}" if x in numbers else "muted" for x in tokens)


TOP = alt.Legend(orient="top", symbolOpacity=1)
"""The legend of a chart outside of a section."""


def color(
    field: str,
    names: Iterable[str],
    colors: Iterable[str] = (),
    channel: Any = alt.Color,
    legend: Any = None,
    **more: Any,
) -> Any:
    """A field whose values have colors, which the section's legend explains if the chart does not.

    Args:
        names: the values.
        colors: names of their colors; the values themselves if none are given.
        channel: `alt.Fill` or `alt.Stroke` where other marks of the chart have the color.
    """
    names = list(names)
    scale = alt.Scale(domain=names, range=[f"~{name}" for name in list(colors) or names])
    return channel(f"{field}:N", legend=legend, scale=scale, **more)


def token_color(tokens: Sequence[str], channel: Any = alt.Color, **more: Any) -> Any:
    """The color of the field `token`; `tokens`, `channel` and more as for `color`."""
    return color("token", tokens, letter_colors(tokens), channel, **more)


def rule(channel: str, value: float = 0, **drawn: Any) -> Any:
    """A rule across a chart at a value of `x` or `y`; `drawn` are options of `mark_rule`."""
    at = alt.Chart(pd.DataFrame([{"at": value}])).mark_rule(color="~muted", **drawn)
    return at.encode((alt.X if channel == "x" else alt.Y)("at:Q"))


def x_axis(field: str, title: str | None, **scale: Any) -> alt.X:
    """A horizontal axis of a quantity, without a grid and with few labels."""
    axis = alt.Axis(grid=False, tickCount=5, labelOverlap=True)
    return alt.X(field, title=title, axis=axis, scale=alt.Scale(nice=False, **scale))


def y_axis(field: str, title: str | None = None, *, form: str = "~g", **scale: Any) -> alt.Y:
    """A vertical axis of a quantity, with a grid and neither line nor ticks.

    Args:
        form: of its labels, as D3 writes it; `%` for shares.
    """
    axis = alt.Axis(tickCount=4, domain=False, ticks=False, format=form)
    return alt.Y(field, title=title, axis=axis, scale=alt.Scale(**scale))


def tips(**fields: str) -> list[alt.Tooltip]:
    """Tooltips of a mark.

    Args:
        **fields: title of each; of a number with its D3 format after a colon.
    """
    tooltips = []
    for name, called in fields.items():
        title, colon, form = called.partition(":")
        field = f"{name}:{'Q' if colon else 'N'}"
        tooltips.append(alt.Tooltip(field, title=title, format=form or alt.Undefined))
    return tooltips


def trained_band(trained: range) -> Any:
    """The trained lengths, shaded behind a plot over length.

    Args:
        trained: from the shortest to one beyond the longest.
    """
    span = pd.DataFrame([{"first": trained[0], "last": trained[-1]}])
    return (
        alt.Chart(span)
        .mark_rect(opacity=0.16, color="~band")
        .encode(alt.X("first:Q"), alt.X2("last:Q"))
    )


def single_points(lines: Any, *groups: str) -> Any:
    """Points of lines with a single one, of which a line draws nothing.

    Args:
        lines: their encoded chart.
        *groups: fields that identify a line.
    """
    counted = lines.transform_joinaggregate(points="count()", groupby=list(groups))
    return counted.transform_filter("datum.points == 1").mark_point(filled=True, size=36, opacity=1)


def lines(frame: pd.DataFrame, which: str, tooltip: Sequence[alt.Tooltip], *channels: Any) -> Any:
    """Lines whose points a pointer meets easily.

    Args:
        frame: a row a point.
        which: field that identifies a line.
        tooltip: of a point.
        *channels: axes and colors.
    """
    base = alt.Chart(frame).encode(*channels)
    met = base.mark_point(size=80, opacity=0).encode(tooltip=tooltip)
    return alt.layer(base.mark_line(strokeWidth=2), single_points(base, which), met)


def bars(frame: pd.DataFrame, name: str, value: str, form: str = ",.4~g") -> Any:
    """A horizontal bar for each row, in its order, with its label at the end.

    Args:
        frame: the names, the values, and label (text).
        name: the column of the names.
        value: the column of the values.
        form: of the axis, as D3 writes it.
    """
    low, high = min(0.0, float(frame[value].min())), max(0.0, float(frame[value].max()))
    # A scale from zero to zero would draw nothing.
    high += low == high
    # Numbers are written beyond the ends of bars.
    room = 0.12 * (high - low)
    scale = alt.Scale(domain=[low - room * (low < 0), high + room], nice=False)
    axis = alt.Axis(grid=False, tickCount=5, format=form)
    names = alt.Axis(domain=False, ticks=False, labelLimit=260, labelOverlap=False)
    base = alt.Chart(frame).encode(
        alt.Y(f"{name}:N", sort=None, title=None, axis=names),
        alt.X(f"{value}:Q", title=None, axis=axis, scale=scale),
        tooltip=[f"{name}:N", alt.Tooltip(f"{value}:Q", format=",.4~g")],
    )
    text: dict[str, Any] = {"fontSize": 12, "color": "~ink"}
    right = base.transform_filter(f"datum['{value}'] >= 0").mark_text(align="left", dx=5, **text)
    left = base.transform_filter(f"datum['{value}'] < 0").mark_text(align="right", dx=-5, **text)
    return alt.layer(
        base.mark_bar(color="~accent soft", height=14),
        right.encode(text="label:N"),
        left.encode(text="label:N"),
    ).properties(height=22 * len(frame), width="container")
