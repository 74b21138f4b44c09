"""Accuracy, or a rate of errors, against string length: seeds thin, medians thick."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, INK, OKABE_ITO
from dashboard.charts.style.lookup import chart_of
from dashboard.charts.style.scales import (
    LABEL_LINE_HEIGHT,
    configuration_color,
    legend_height,
    titled,
)

PLOT_HEIGHT = 340
FURNITURE_HEIGHT = 150

CLICKED = "clicked_line"
"""The selection that holds the run_id of a line that was clicked."""


def accuracy_by_length(
    seeds: pd.DataFrame,
    medians: pd.DataFrame,
    limits: pd.DataFrame,
    measure: str,
    colors: Mapping[str, str] | None = None,
) -> alt.LayerChart | alt.FacetChart:
    """The chart, as high as its legend needs it.

    Args:
        seeds: one row a run and point: configuration, model_seed, run_id, middle (length), lengths
            (as text), value in [0, 1], and the strings that it is a share of: strings.
        medians: configuration, middle, median, low, high (an interval of the median,
            missing where there is none), n (seeds).
        limits: length and label of lengths to mark, such as where training ended.
        measure: what `value` is, for the axis: Accuracy, False positive rate.
        colors: of each configuration; those of the palette in order, where none are given.
    """
    names = list(dict.fromkeys(medians["configuration"]))
    color_of = colors or dict(zip(names, OKABE_ITO, strict=False))
    color = configuration_color({name: color_of[name] for name in names})
    lines, summed = chart_of(seeds, names), chart_of(medians, names)
    axis = alt.Axis(tickMinStep=1, format=",.0f")
    x = alt.X("middle:Q", title="String length (letters)", scale=alt.Scale(zero=True), axis=axis)
    title = titled(f"{measure} by string length", subtitle=_SUBTITLE)
    height = PLOT_HEIGHT + FURNITURE_HEIGHT + legend_height(names)
    return alt.layer(
        *_limits(limits),
        _band(chart_of(medians.dropna(subset=["low"]), names), x, color),
        _seeds(lines, x, color, measure),
        _medians(summed, x, color, measure),
        _targets(lines, x, measure),
    ).properties(height=height, title=title)


_SUBTITLE = (
    "Thin: one model. Thick: the median over seeds, with its 95% interval for six seeds or more."
)


def _y(field: str, measure: str) -> alt.Y:
    return alt.Y(
        f"{field}:Q",
        title=f"{measure} on test strings of that length",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(zero=False),
    )


def _band(medians: alt.Chart, x: alt.X, color: alt.Color) -> alt.Chart:
    # Without a legend entry of its own: the band has the color of its line.
    return medians.mark_area(opacity=0.15).encode(x, alt.Y("low:Q"), alt.Y2("high:Q"), color)


def _seeds(seeds: alt.Chart, x: alt.X, color: alt.Color, measure: str) -> alt.Chart:
    lines = seeds.mark_line(strokeWidth=1)
    return lines.encode(x, _y("value", measure), color, alt.Detail("run_id:N"))


def _medians(medians: alt.Chart, x: alt.X, color: alt.Color, measure: str) -> alt.Chart:
    return medians.mark_line(strokeWidth=3.5).encode(x, _y("median", measure), color)


def _targets(seeds: alt.Chart, x: alt.X, measure: str) -> alt.Chart:
    """Points as wide as a fingertip, unseen until pointed at, so that a thin line can be hit."""
    pointed = alt.selection_point(
        name="pointed", fields=["run_id"], on="pointerover", clear="pointerout", empty=False
    )
    clicked = alt.selection_point(name=CLICKED, fields=["run_id"], empty=False)
    return (
        seeds.mark_point(size=120, filled=True, color=GREY)
        .encode(
            x,
            _y("value", measure),
            opacity=alt.when(pointed).then(alt.value(0.5)).otherwise(alt.value(0)),
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip("model_seed:Q", title="Model seed"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("value:Q", title=measure, format=".2%"),
                alt.Tooltip("strings:Q", title="Of test strings"),
            ],
        )
        .add_params(pointed, clicked)
    )


def _limits(limits: pd.DataFrame) -> list[alt.Chart]:
    # Each label in a line of its own: in a narrow window two lengths lie close together.
    places = limits.assign(line=[-4 - LABEL_LINE_HEIGHT * i for i in range(len(limits))])
    rules = alt.Chart(places).mark_rule(color=GREY, strokeDash=[4, 4]).encode(alt.X("length:Q"))
    labels = (
        alt.Chart(places)
        .mark_text(
            align="left",
            baseline="bottom",
            dx=4,
            dy={"expr": "datum.line"},
            color=INK,
        )
        .encode(alt.X("length:Q"), alt.Text("label:N"), y=alt.value("height"))
    )
    return [rules, labels]
