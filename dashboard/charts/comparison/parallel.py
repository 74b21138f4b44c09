"""Parallel coordinates: each configuration a line through its settings to what it comes to."""

import math
from collections.abc import Sequence
from numbers import Real

import altair as alt
import pandas as pd

from dashboard.charts.style.lookup import chart_of
from dashboard.charts.style.scales import LABEL_WIDTH, LOW_TO_HIGH, titled
from dashboard.text import written

AXIS_HEIGHT, FURNITURE_HEIGHT = 260, 130
"""Pixels of an axis, and of what stands above and below all of them."""

NARROW = 75
"""Pixels between two axes, below which their names do not fit side by side."""

NOT_READ = "not read"
"""A setting of another network or language; `none` is a value of some settings."""

OUTCOME = "failing share"
WRITTEN = (0.0, 0.5, 1.0)
"""Where the outcome is written beside its axis."""


def places(table: pd.DataFrame, fields: Sequence[str], outcome: str = OUTCOME) -> pd.DataFrame:
    """One row a configuration and axis, its value placed between 0 and 1.

    Args:
        table: a row a configuration: its name (configuration), the outcome's column, the fields.
        fields: the axes, from the left; the outcome is the last.
        outcome: a share or a length, such as `failing share`, whose column is failing_share.

    Returns:
        configuration, the outcome, axis, line (the number of the axis), place, value (as text).
    """
    rows = []
    for field in fields:
        texts = pd.Series([_text(value) for value in table[field]], index=table.index)
        ranks = dict(zip(texts, map(_rank, table[field]), strict=True))
        values = sorted(ranks, key=lambda text: ranks[text])
        place_of = {value: i / max(1, len(values) - 1) for i, value in enumerate(values)}
        rows.append(_axis(table, outcome, field, texts.map(place_of), texts))
    place = (table[_column(outcome)] / _top(table, outcome)).clip(lower=0)
    texts = pd.Series([_said(x, outcome) for x in table[_column(outcome)]], index=table.index)
    rows.append(_axis(table, outcome, outcome, place, texts))
    return pd.concat(
        [axis_rows.assign(line=i) for i, axis_rows in enumerate(rows)], ignore_index=True
    )


def _column(outcome: str) -> str:
    return outcome.replace(" ", "_")


def _top(table: pd.DataFrame, outcome: str) -> float:
    """The value at the end of the outcome's axis: a share of 1, or the greatest length."""
    return max(1.0, float(table[_column(outcome)].max())) if _is_length(outcome) else 1.0


def _is_length(outcome: str) -> bool:
    return outcome.endswith("length")


def _said(value: float, outcome: str) -> str:
    return f"{value:g}" if _is_length(outcome) else f"{value:.0%}"


def _text(value: object) -> str:
    if _is_missing(value):
        return NOT_READ
    return written(value)


def _rank(value: object) -> tuple[int, float, str]:
    """The sort key of a value: numbers by size, then words, then what is missing."""
    if _is_missing(value):
        return 2, 0.0, ""
    if isinstance(value, Real):
        return 0, float(value), ""
    return 1, 0.0, str(value)


def _is_missing(value: object) -> bool:
    return value is None or value is pd.NA or (isinstance(value, float) and math.isnan(value))


def _axis(
    table: pd.DataFrame,
    outcome: str,
    name: str,
    place: "pd.Series[float]",
    value: "pd.Series[str]",
) -> pd.DataFrame:
    base = table[["configuration", _column(outcome)]]
    return base.assign(axis=name, place=place, value=value)


def parallel_coordinates(
    frame: pd.DataFrame, outcome: str = OUTCOME
) -> alt.LayerChart | alt.FacetChart:
    """A line a configuration, from the left to the right, colored by its outcome.

    Args:
        frame: as `places` makes it.
        outcome: likewise.
    """
    top, column, said = _top(frame, outcome), _column(outcome), outcome.capitalize()
    legend, exact = (".1~f", ".1~f") if _is_length(outcome) else (".0%", ".1%")
    x, y = _axes(list(dict.fromkeys(frame["axis"])))
    lines = (
        chart_of(frame, list(dict.fromkeys(frame["configuration"])))
        .mark_line(strokeWidth=2, opacity=1)
        .encode(
            x,
            y,
            detail=alt.Detail("configuration:N"),
            order=alt.Order("line:Q"),
            color=alt.Color(
                f"{column}:Q",
                title=said,
                scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[0, top], reverse=outcome == OUTCOME),
                legend=alt.Legend(
                    format=legend, orient="right", values=[top * place for place in WRITTEN]
                ),
            ),
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip(f"{column}:Q", title=said, format=exact),
            ],
        )
    )
    title = titled("Settings of every configuration", subtitle="A line is one configuration.")
    return alt.layer(lines, _values(frame, x, y, outcome)).properties(
        height=AXIS_HEIGHT + FURNITURE_HEIGHT, title=title
    )


def _axes(names: list[str]) -> tuple[alt.X, alt.Y]:
    """An upright axis for each setting: its name below, in lines, or upright in a narrow window."""
    narrow = f"width < {NARROW * len(names)}"
    x = alt.X(
        "axis:N",
        title=None,
        sort=names,
        scale=alt.Scale(type="point", padding=0.4),
        axis=alt.Axis(
            labelExpr=f"{narrow} ? datum.label : split(datum.label, '_')",
            labelAngle={"expr": f"{narrow} ? -90 : 0"},
            labelAlign={"expr": f"{narrow} ? 'right' : 'center'"},
            labelBaseline={"expr": f"{narrow} ? 'middle' : 'top'"},
            labelLimit=LABEL_WIDTH,
            labelOverlap=False,
            grid=True,
        ),
    )
    return x, alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))


def _values(frame: pd.DataFrame, x: alt.X, y: alt.Y, outcome: str) -> alt.Chart:
    """What each place on an axis stands for, right beside it and above the line."""
    marks = frame[frame["axis"] != outcome].drop_duplicates(["axis", "value"])
    # Of a number a scale is enough: shares lie as close together as they like.
    shares = pd.DataFrame({"axis": outcome, "place": WRITTEN})
    shares["value"] = [_said(place * _top(frame, outcome), outcome) for place in WRITTEN]
    marks = pd.concat([marks[shares.columns], shares], ignore_index=True)
    texts = alt.Chart(marks).mark_text(align="left", dx=5, dy=-7, fontSize=11, clip=False)
    return texts.encode(x, y, alt.Text("value:N"))
