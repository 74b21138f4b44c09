"""Marks along the tokens of a string, as functions of frames. Colors are names; `style` has them.

Two models share one scale: a chart's domain includes the values of its data set `span`.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from dashboard import marks, style

NAMED = 66
"""Tokens up to which an axis names them; of more it counts them."""

ROOM = 60
"""Characters that fit beside each other below a picture that shares the page with another."""

CELL = 16
"""Pixels of a row of a map at least."""

NUMBERS = ",.4~g"

FLAT: dict[str, Any] = {"domain": False, "ticks": False}


def tokens_axis(names: Sequence[str], title: str | None = None, *, rows: bool = False) -> alt.Axis:
    """An axis of the positions of a string, each called by its token.

    Args:
        names: of the tokens, that of position 0 first.
        rows: whether it is the vertical axis.
    """
    if len(names) > NAMED:
        # About a dozen numbers fit below a picture.
        every = next(x for x in (10, 20, 50, 100) if len(names) <= 12 * x or x == 100)
        values = list(range(0, len(names), every))
        return alt.Axis(title=title or "Tokens read", values=values, labelAngle=0, **FLAT)
    is_upright = (
        not rows
        and max(map(len, names)) * len(names) > ROOM
        and any(len(name) > 4 for name in names)
    )
    return alt.Axis(
        title=title,
        # The axis is of positions, since a token may occur at several of them.
        labelExpr=f"{json.dumps(list(names))}[datum.value]",
        labelAngle=-90 if is_upright else 0,
        labelFontSize=12,
        labelOverlap="greedy" if len(names) > NAMED // 2 else False,
        **FLAT,
    )


def along(field: str, names: Sequence[str], title: str | None = None) -> alt.X:
    """The tokens along the horizontal axis, all of them, drawn or not."""
    scale = alt.Scale(domain=list(range(len(names))))
    return alt.X(f"{field}:O", scale=scale, axis=tokens_axis(names, title))


def with_span(chart: Any, low: float, high: float) -> Any:
    """A chart whose data set `span` has these two values."""
    return chart.properties(datasets={"span": [{"value": low}, {"value": high}]}, width="container")


def _reaching(**encoding: Any) -> Any:
    """Marks of `span` that only a scale knows of."""
    # Not read aloud either, as it shows nothing.
    return alt.Chart(alt.NamedData("span")).mark_rule(opacity=0, aria=False).encode(**encoding)


def running(frame: pd.DataFrame, names: Sequence[str], number: str) -> Any:
    """A number after every token, in the color of whether the answer is right so far.

    Args:
        frame: place, prefix (text), value, answer (`right`, `wrong` or `not known`).
        names: of the tokens.
        number: what the values are called.
    """
    y = marks.y_axis("value:Q", number, form=NUMBERS, zero=True)
    base = alt.Chart(frame).encode(along("place", names), y)
    colors = marks.color("answer", (*marks.RIGHT, "not known"))
    points = base.mark_point(filled=True, opacity=1, size=60 if len(names) <= NAMED else 12)
    tooltip = marks.tips(prefix="Beginning", value=f"{number}:.4f", answer="Answer")
    drawn = alt.layer(
        _reaching(y="value:Q"),
        marks.rule("y"),
        base.mark_line(color="~muted", strokeWidth=1),
        points.encode(colors, tooltip=tooltip),
    ).properties(height=180)
    return with_span(drawn, *_ends(frame["value"]))


def _ends(values: "pd.Series[Any]") -> tuple[float, float]:
    known = values.dropna()
    return (float(min(known.min(), 0.0)), float(max(known.max(), 0.0))) if len(known) else (0, 0)


DIRECTIONS = {"toward positive": "up", "toward negative": "down", "the logit": "muted"}
"""Direction of a part's contribution, and the name of its color."""

STEP, ROOM_FOR_NUMBERS = 22, 60
"""Pixels of a step, and of its number at the right."""


def sum_up(parts: Sequence[str], adds: Sequence[float]) -> pd.DataFrame:
    """Parts whose sum is the logit, as `steps` draws them: part, adds, start, end, direction."""
    ends = np.cumsum(adds)
    frame = pd.DataFrame({"part": parts, "adds": adds, "start": ends - adds, "end": ends})
    frame["direction"] = np.where(frame["adds"] < 0, "toward negative", "toward positive")
    total = {"part": "logit", "adds": ends[-1], "start": 0.0, "end": ends[-1]}
    return pd.concat([frame, pd.DataFrame([{**total, "direction": "the logit"}])])


def steps(legend: Any = None, **scale: Any) -> list[Any]:
    """Layers of what each part adds, from top to bottom, from where the part before it ended.

    Args:
        legend: of the directions, where no section explains them.
        **scale: of the logit.
    """
    axis = alt.Axis(labelLimit=220, **FLAT)
    base = alt.Chart().encode(
        alt.Y("part:N", title=None, sort=None, axis=axis),
        tooltip=marks.tips(part="Part", adds="Adds to the logit:+.4f", end="Logit so far:.4f"),
    )
    colors = marks.color("direction", DIRECTIONS, DIRECTIONS.values(), legend=legend, title=None)
    bars = base.mark_bar(height=14).encode(
        marks.x_axis("start:Q", "Logit so far", **scale), alt.X2("end:Q"), colors
    )
    # In a column of their own: beside its bar a number would cross the line at zero. Aligned at the
    # right, one sign and one point below the other.
    texts = base.mark_text(align="right", dx=ROOM_FOR_NUMBERS - 8, color="~ink", font="monospace")
    text = alt.Text("adds:Q", format="+.3f")
    return [marks.rule("x"), bars, texts.encode(x=alt.value("width"), text=text)]


def all_steps(frame: pd.DataFrame) -> Any:
    """The steps of one string, which `sum_up` has."""
    drawn = alt.layer(_reaching(x="value:Q"), *steps(), data=frame).properties(
        height=STEP * len(frame),
        padding={"right": ROOM_FOR_NUMBERS, "left": 5, "top": 5, "bottom": 5},
    )
    return with_span(drawn, float(frame[["start", "end"]].min().min()), float(frame["end"].max()))


def weights(frame: pd.DataFrame, names: Sequence[str], label: str = "") -> Any:
    """A weight for each token, as bars.

    Args:
        frame: place, token, weight in [0, 1].
        names: of the tokens along the axis.
        label: the column of the text above each bar.
    """
    axis = alt.Axis(values=[0, 0.5, 1], format="~%", **FLAT)
    y = alt.Y("weight:Q", title=None, axis=axis, scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(frame).encode(along("place", names), y)
    tooltip = marks.tips(token="Token", weight="Weight:.4f")
    bars = base.mark_bar(color="~accent").encode(
        # About 420 pixels are shared out, and no bar is so thin that it vanishes.
        tooltip=tooltip,
        size=alt.value(max(1.5, min(24, 420 / len(names)))),
    )
    layers = [bars]
    if label:
        layers.append(base.mark_text(dy=-7, fontSize=12, color="~ink").encode(text=f"{label}:N"))
    return alt.layer(*layers).properties(height=style.SMALL, width="container")


def rows_axis(field: str, names: Sequence[str], title: str | None = None) -> alt.Y:
    """Tokens from top to bottom, all of them."""
    scale = alt.Scale(domain=list(range(len(names))))
    return alt.Y(f"{field}:O", scale=scale, axis=tokens_axis(names, title, rows=True))


def _map_size(rows: int) -> dict[str, Any]:
    return {
        "height": min(rows * max(CELL, min(26, 240 // max(rows, 1))), 560),
        "width": "container",
    }


def cells(
    values: np.ndarray, rows: Sequence[str], columns: Sequence[str], *titles: str, form: str = ".4f"
) -> Any:
    """A cell for each pair of a row and a column, without its color: fields row, place, value.

    Args:
        values: row by column.
        rows: what they are called.
        columns: likewise.
        *titles: what a row is, what a column is, and what a value is.
        form: of values, as D3 writes it.
    """
    row, place = np.indices(values.shape).reshape(2, -1)
    named = {"of": np.array(rows)[row], "to": np.array(columns)[place]}
    frame = pd.DataFrame({"row": row, "place": place, "value": values.ravel(), **named})
    return alt.Chart(frame).encode(
        along("place", columns, titles[1]),
        rows_axis("row", rows, titles[0]),
        tooltip=marks.tips(of=titles[0], to=titles[1], value=f"{titles[2]}:{form}"),
    )


def share_map(base: Any, field: str, rows: int, dots: str = "") -> Any:
    """A map of cells, colored from nothing to all.

    Args:
        base: a chart with both axes, such as `cells`.
        field: of shares; what is beyond 0 and 1 is colored as these.
        rows: of the map.
        dots: the column that marks cells with a dot.
    """
    scale = alt.Scale(domain=[0, 1], range=["~empty", "~accent"], clamp=True)
    color = alt.Color(f"{field}:Q", legend=None, scale=scale)
    layers = [base.mark_rect(stroke="~line", strokeWidth=0.4).encode(color)]
    if dots:
        layers.append(base.transform_filter(f"datum.{dots}").mark_circle(color="~wrong", size=40))
    return alt.layer(*layers).properties(**_map_size(rows))


def signed_map(
    values: np.ndarray, rows: Sequence[str], columns: Sequence[str], *titles: str
) -> Any:
    """A map of cells, one color below zero and one above it, the stronger the farther from it.

    Args:
        values: row by column.
        rows: what they are called.
        columns: likewise.
        *titles: as of `cells`.
    """
    base = cells(values, rows, columns, *titles)
    # A map of zeros needs a scale as well.
    reach = max(float(np.abs(values).max(initial=0)), 1e-9)
    scale = alt.Scale(domainMid=0, range=["~down", "~empty", "~up"], interpolate="rgb")
    color = alt.Color("value:Q", legend=None, scale=scale)
    layers = [_reaching(color=color), base.mark_rect().encode(color)]
    return with_span(alt.layer(*layers).properties(**_map_size(len(rows))), -reach, reach)


def path(frame: pd.DataFrame, axes: tuple[str, str]) -> Any:
    """The path of a state in a plane, with the tokens along it.

    Args:
        frame: place, token, first, second.
        axes: what they are called.
    """
    x, y = (
        marks.x_axis("first:Q", axes[0]),
        marks.y_axis("second:Q", axes[1], form=NUMBERS, zero=False),
    )
    base = alt.Chart(frame).encode(x, y)
    late = alt.Color(
        "place:Q", legend=None, scale=alt.Scale(range=["~accent soft", "~accent"]), title="Place"
    )
    tooltip = marks.tips(place="Place:", token="After")
    return alt.layer(
        # Without an order Vega-Lite joins points from left to right.
        base.mark_line(color="~muted", strokeWidth=1).encode(order="place:Q"),
        base.mark_point(filled=True, size=60, opacity=1).encode(late, tooltip=tooltip),
        base.mark_text(dy=-10, fontSize=12, color="~ink").encode(text="token:N"),
    ).properties(height=style.HEIGHT, width="container")


SHOWN = 44
"""Tokens shown of strings drawn below each other, at most."""

LETTER = 8
"""Pixels of a letter of a token."""

BEFORE = 8
"""Tokens that are shown before the first wrong one, where it is far behind."""


def alignment(rows: Mapping[str, Sequence[str]], wrong: int | None) -> Any:
    """Strings below each other, token by token, with the first wrong token of the last marked.

    Args:
        rows: the tokens of each string, by what it is called.
        wrong: the place of the first wrong token; None where all are right.
    """
    longest = max(map(len, rows.values()))
    first = max(0, wrong - BEFORE) if wrong is not None and wrong >= SHOWN else 0
    last = list(rows)[-1]
    cells = [
        {
            "name": name,
            "place": place,
            "token": token,
            "ink": _ink(place, wrong, name == last),
            "is_wrong": name == last and place == wrong,
        }
        for name, tokens in rows.items()
        for place, token in enumerate(tokens)
        if first <= place < first + SHOWN
    ]
    scale = alt.Scale(domain=list(range(first, first + min(longest, SHOWN))))
    # Without numbers a picture that begins later would seem to show the first tokens.
    axis = alt.Axis(title=None, labels=first > 0, labelAngle=0, labelOverlap=True, **FLAT)
    names = alt.Axis(labelFontSize=12, **FLAT)
    base = alt.Chart(pd.DataFrame(cells)).encode(
        alt.X("place:O", scale=scale, axis=axis),
        alt.Y("name:N", title=None, sort=list(rows), axis=names),
    )
    marked = base.transform_filter("datum.is_wrong").mark_rect(
        color="~wrong", opacity=0.18, cornerRadius=3
    )
    # The field holds colors, not names that are to have some.
    ink = alt.Color("ink:N", legend=None, scale=None)
    texts = base.mark_text(fontSize=13, font="monospace").encode(ink, text="token:N")
    drawn = alt.layer(marked, texts).resolve_scale(color="independent")
    width = width_of(chain(*rows.values()), min(longest, SHOWN), max(map(len, rows)))
    return drawn.properties(height=24 * len(rows), width=width)


def width_of(tokens: Iterable[str], places: int, letters: int) -> int:
    """A picture's own width, in which no token lies on the next; where it is narrow it scrolls.

    Args:
        tokens: all of them.
        places: beside each other.
        letters: of the longest name of a row.
    """
    return (LETTER * max(map(len, tokens), default=1) + 8) * places + LETTER * letters + 24


def _ink(place: int, wrong: int | None, is_last: bool) -> str:
    """The color of a token; those after the first wrong one are muted."""
    if wrong is None or not is_last or place < wrong:
        return "~ink"
    return "~wrong" if place == wrong else "~muted"
