"""Accuracy against string length: every seed a thin line, each configuration's median thick."""

import altair as alt
import pandas as pd

from dashboard.charts.colors import GREY, OKABE_ITO

PLOT_HEIGHT = 360
AXIS_HEIGHT = 70
LEGEND_ROW_HEIGHT = 20


def accuracy_by_length(
    seeds: pd.DataFrame, medians: pd.DataFrame, limits: pd.DataFrame
) -> alt.LayerChart | alt.FacetChart:
    """The chart, as high as its legend needs it.

    Args:
        seeds: one row a run and point: configuration, model_seed, run_id, middle, lengths (as
            text), strings, misclassified, accuracy in [0, 1].
        medians: configuration, middle, lengths, accuracy (the median over seeds), seeds (how many).
        limits: length and label of lengths to mark, such as where training ended.
    """
    names = list(dict.fromkeys(medians["configuration"]))
    color = alt.Color(
        "configuration:N",
        title="Configuration",
        sort=names,
        scale=alt.Scale(domain=names, range=OKABE_ITO[: len(names)]),
        legend=alt.Legend(
            orient="bottom", columns=1, labelLimit=0, symbolOpacity=1, symbolStrokeWidth=3
        ),
    )
    x = alt.X("middle:Q", title="String length (letters)", scale=alt.Scale(zero=True))
    y = alt.Y(
        "accuracy:Q",
        title="Accuracy on test strings of that length",
        axis=alt.Axis(format="%"),
        scale=alt.Scale(zero=False),
    )
    every_seed = (
        alt.Chart(seeds)
        .mark_line(strokeWidth=1, opacity=0.45)
        .encode(x, y, color, detail="run_id:N")
    )
    # Points as wide as a fingertip, unseen, so that a thin line can be hit.
    hover = (
        alt.Chart(seeds)
        .mark_point(size=120, opacity=0)
        .encode(
            x,
            y,
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip("model_seed:Q", title="Model seed"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
                alt.Tooltip("misclassified:Q", title="Misclassified strings"),
                alt.Tooltip("strings:Q", title="Test strings"),
            ],
        )
    )
    median = alt.Chart(medians).mark_line(strokeWidth=3.5).encode(x, y, color)
    height = PLOT_HEIGHT + AXIS_HEIGHT + LEGEND_ROW_HEIGHT * len(names)
    return alt.layer(*_limits(limits), every_seed, median, hover).properties(height=height)


def _limits(limits: pd.DataFrame) -> list[alt.Chart]:
    rules = alt.Chart(limits).mark_rule(color=GREY, strokeDash=[4, 4]).encode(x="length:Q")
    labels = (
        alt.Chart(limits)
        .mark_text(align="left", baseline="bottom", dx=4, dy=-4, color=GREY)
        .encode(x="length:Q", y=alt.value("height"), text="label:N")
    )
    return [rules, labels]
