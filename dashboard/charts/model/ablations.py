"""What a model is without its parts."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, OKABE_ITO
from dashboard.charts.style.encodings import Drawing

HEIGHT = 240


def costs(frame: pd.DataFrame, errors_as_trained: int) -> Drawing:
    """What each part's ablation alone costs, the dearest first.

    Args:
        frame: part, errors (strings), accuracy in [0, 1], logit_change (mean absolute).
        errors_as_trained: with every part.
    """
    bars = (
        alt.Chart(frame)
        .mark_bar(color=OKABE_ITO[0])
        .encode(
            y=alt.Y("part:N", title=None, sort=list(frame["part"])),
            x=alt.X("errors:Q", title="Strings misclassified without it"),
            tooltip=[
                alt.Tooltip("part:N", title="Without"),
                alt.Tooltip("errors:Q", title="Misclassified", format=","),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
                alt.Tooltip("logit_change:Q", title="Mean change of the logit", format=".4g"),
            ],
        )
    )
    rule = alt.Chart(pd.DataFrame([{"errors": errors_as_trained}])).mark_rule(
        color=GREY, strokeDash=[4, 4]
    )
    return alt.layer(bars, rule.encode(x="errors:Q")).properties(height=alt.Step(18))


def accuracy_by_length(frame: pd.DataFrame) -> Drawing:
    """Accuracy by length with every part, and without one.

    Args:
        frame: model (its name), length, accuracy in [0, 1], strings.
    """
    names = list(dict.fromkeys(frame["model"]))
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X("length:Q", title="String length (tokens)"),
            y=alt.Y("accuracy:Q", title="Accuracy", axis=alt.Axis(format="%")),
            color=alt.Color(
                "model:N",
                title=None,
                scale=alt.Scale(domain=names, range=[GREY, OKABE_ITO[0]]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("length:Q", title="Length"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".1%"),
                alt.Tooltip("strings:Q", title="Strings"),
            ],
        )
    )
    return chart.properties(height=HEIGHT)


def pruning(frame: pd.DataFrame) -> Drawing:
    """Misclassified strings as parts are removed, the cheapest first.

    Args:
        frame: removed (how many), part (the last), errors, accuracy in [0, 1].
    """
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_line(point=True, color=OKABE_ITO[0])
        .encode(
            x=alt.X("removed:Q", title="Parts removed", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y("errors:Q", title="Strings misclassified"),
            tooltip=[
                alt.Tooltip("removed:Q", title="Parts removed"),
                alt.Tooltip("part:N", title="Last"),
                alt.Tooltip("errors:Q", title="Misclassified", format=","),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
            ],
        )
    )
    return chart.properties(height=HEIGHT)
