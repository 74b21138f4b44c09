"""Configurations by seeds, a cell a model: which fail, at a glance."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY
from dashboard.charts.style.lookup import chart_of
from dashboard.charts.style.scales import LOW_TO_HIGH, row_height, rows, titled

ROW_HEIGHT = 26
FURNITURE_HEIGHT = 110

SPACED = alt.Scale(paddingInner=0.06)

CLICKED = "clicked_cell"
"""The selection that holds the run_id of a cell that was clicked."""


def seed_grid(models: pd.DataFrame, names: list[str]) -> alt.Chart:
    """A grid of accuracies; no cell where a seed has no finished model.

    Args:
        models: one row a model: configuration, run_id, model_seed, accuracy in [0, 1],
            false_positives, false_negatives.
        names: the configurations, from the top.
    """
    clicked = alt.selection_point(name=CLICKED, fields=["run_id"], empty=False)
    title = titled("Accuracy of each seed", subtitle="Outlined: no errors. Darker is worse.")
    fails = alt.datum.accuracy < 1
    lowest = min(float(models["accuracy"].min()), 0.99)
    accuracy = alt.Color(
        "accuracy:Q",
        title="Accuracy",
        scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[lowest, 1]),
        legend=alt.Legend(format="~%", tickCount=3, orient="right", gradientLength=110),
    )
    return (
        chart_of(models, names)
        .mark_rect(cornerRadius=2, stroke=GREY)
        .encode(
            x=alt.X("model_seed:O", title="Model seed", axis=alt.Axis(labelAngle=0), scale=SPACED),
            y=rows(names, grid=False),
            color=alt.when(fails).then(accuracy).otherwise(alt.value(GREY)),
            fillOpacity=alt.when(fails).then(alt.value(1)).otherwise(alt.value(0.12)),
            strokeWidth=alt.when(fails).then(alt.value(0)).otherwise(alt.value(1)),
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip("model_seed:Q", title="Model seed"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
                *_false(models),
            ],
        )
        .add_params(clicked)
        .properties(
            height=row_height(names, ROW_HEIGHT) * len(names) + FURNITURE_HEIGHT, title=title
        )
    )


def _false(models: pd.DataFrame) -> list[alt.Tooltip]:
    """Errors by kind, where they are known."""
    titles = {"false_positives": "False positives", "false_negatives": "False negatives"}
    known = {name: title for name, title in titles.items() if not models[name].isna().all()}
    return [alt.Tooltip(f"{name}:Q", title=title) for name, title in known.items()]
