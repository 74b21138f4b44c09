"""Every seed, so that no summary hides one: points by configuration, and a grid of failures."""

from collections.abc import Iterable
from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts.colors import GREY, HATCH, MODEL_OUTCOMES
from dashboard.charts.pointing import SETTINGS, Named, chart_with_names, naming_tooltips
from dashboard.charts.scales import (
    KIND_SHAPES,
    LOW_TO_HIGH,
    model_outcome_color,
    rows,
    title_params,
)
from sweeps.results import Outcome

ROW_HEIGHT = 34
FURNITURE_HEIGHT = 120

MOSTLY = ["no error", "mostly false positives", "mostly false negatives"]
SHAPES = ["circle", *KIND_SHAPES]

SOME = ["no error", "some errors"]
"""Models whose errors are neither."""

CLICKED_POINT = "clicked_point"
"""The selection that holds the run_id of a point that was clicked."""


def every_seed(models: pd.DataFrame, names: Named) -> alt.LayerChart | alt.FacetChart:
    """A strip of points for each configuration, its median a line across.

    Args:
        models: one row a model: configuration, run_id, model_seed, accuracy in [0, 1],
            errors, false_positives, false_negatives, solved_length (missing where none is),
            outcome, jitter in [-1, 1] (which only keeps points apart).
        names: the configurations, from the top.
    """
    x = alt.X(
        "accuracy:Q",
        title="Accuracy on all test strings",
        axis=alt.Axis(format=".4~%"),
        scale=alt.Scale(zero=False, nice=True),
    )
    y = rows(names)
    known = models.columns[~models.isna().all()]
    shown = {*known, "solved", SETTINGS}
    base = chart_with_names(models, names)
    medians = base.mark_tick(thickness=3, size=ROW_HEIGHT * 0.7, color=GREY).encode(
        alt.X("median(accuracy):Q", title="Accuracy on all test strings"), y
    )
    more_negatives = alt.datum.false_negatives >= alt.datum.false_positives
    kind: Any = alt.expr.if_(more_negatives, *MOSTLY[1:][::-1])
    domain = MOSTLY
    if models["false_positives"].isna().all():
        kind, domain = SOME[1], SOME
    shapes = SHAPES[:: 1 if domain is MOSTLY else 2]
    clicked = alt.selection_point(name=CLICKED_POINT, fields=["run_id"], empty=False)
    points = (
        base.mark_point(size=70, filled=True, opacity=0.9)
        .encode(
            x,
            y,
            yOffset=alt.YOffset("jitter:Q", scale=alt.Scale(domain=[-2, 2])),
            color=model_outcome_color(values=outcomes_among(models["outcome"])),
            shape=alt.Shape(
                "kind:N",
                title="Errors",
                scale=alt.Scale(domain=domain, range=shapes),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[x for x in _tooltips(names) if x.shorthand.partition(":")[0] in shown],
        )
        .transform_calculate(
            solved=alt.expr.if_(
                alt.expr.isValid(alt.datum.solved_length), alt.datum.solved_length, "none"
            )
        )
        .transform_calculate(kind=alt.expr.if_(alt.datum.errors > 0, kind, MOSTLY[0]))
        .add_params(clicked)
    )
    title = title_params(
        "Every seed's accuracy", subtitle="A point is one model; the bar, the median."
    )
    height = ROW_HEIGHT * len(names) + FURNITURE_HEIGHT
    return alt.layer(medians, points).properties(height=height, title=title)


def outcomes_among(outcomes: Iterable[str]) -> list[str]:
    """Those of `Outcome` that are among these, in their order."""
    known = set(outcomes)
    return [outcome.value for outcome in MODEL_OUTCOMES if outcome in known]


def _tooltips(names: Named) -> list[alt.Tooltip]:
    return [
        *naming_tooltips(names),
        alt.Tooltip("model_seed:Q", title="Model seed"),
        alt.Tooltip("outcome:N", title="Outcome"),
        alt.Tooltip("every_length:N", title="Every length"),
        alt.Tooltip("accuracy:Q", title="Accuracy", format=".2~%"),
        alt.Tooltip("false_positives:Q", title="False positives"),
        alt.Tooltip("false_negatives:Q", title="False negatives"),
        alt.Tooltip("solved:N", title="Solved length"),
    ]


# Configurations by seeds, a cell a model: which fail, at a glance.

GRID_ROW_HEIGHT = 26
GRID_FURNITURE_HEIGHT = 110

SPACED = alt.Scale(paddingInner=0.06)

CLICKED_CELL = "clicked_cell"
"""The selection that holds the run_id of a cell that was clicked."""


def seed_grid(models: pd.DataFrame, names: Named) -> alt.Chart:
    """A grid of accuracies; no cell where a seed has no finished model.

    Args:
        models: one row a model: configuration, run_id, model_seed, accuracy in [0, 1],
            false_positives, false_negatives, outcome.
        names: the configurations, from the top.
    """
    clicked = alt.selection_point(name=CLICKED_CELL, fields=["run_id"], empty=False)
    not_learned = alt.datum.outcome == Outcome.NOT_LEARNED.value
    gray = "Dashed and gray: not learned. " * bool((models["outcome"] == Outcome.NOT_LEARNED).any())
    title = title_params(
        "Accuracy of each seed", subtitle=f"Outlined: no errors. {gray}Darker is worse."
    )
    fails = alt.datum.accuracy < 1
    lowest = min(float(models["accuracy"].min()), 0.99)
    accuracy = alt.Color(
        "accuracy:Q",
        title="Accuracy",
        scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[lowest, 1]),
        legend=alt.Legend(format="~%", tickCount=3, orient="right", gradientLength=110),
    )
    return (
        chart_with_names(models, names)
        .mark_rect(cornerRadius=2, stroke=GREY)
        .encode(
            x=alt.X("model_seed:O", title="Model seed", axis=alt.Axis(labelAngle=0), scale=SPACED),
            y=rows(names, grid=False),
            color=alt.when(not_learned | ~fails).then(alt.value(GREY)).otherwise(accuracy),
            fillOpacity=alt.when(fails & ~not_learned)
            .then(alt.value(1))
            .when(not_learned)
            .then(alt.value(0.45))
            .otherwise(alt.value(0.12)),
            strokeWidth=alt.when(fails & ~not_learned).then(alt.value(0)).otherwise(alt.value(1)),
            strokeDash=alt.when(not_learned).then(alt.value(HATCH)).otherwise(alt.value([1, 0])),
            tooltip=[
                *naming_tooltips(names),
                alt.Tooltip("model_seed:Q", title="Model seed"),
                alt.Tooltip("outcome:N", title="Outcome"),
                *[alt.Tooltip("every_length:N", title="Every length")] * ("every_length" in models),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2~%"),
                *_false(models),
            ],
        )
        .add_params(clicked)
        .properties(
            height=GRID_ROW_HEIGHT * len(names) + GRID_FURNITURE_HEIGHT,
            title=title,
        )
    )


def _false(models: pd.DataFrame) -> list[alt.Tooltip]:
    """Errors by kind, where they are known."""
    titles = {"false_positives": "False positives", "false_negatives": "False negatives"}
    known = {name: title for name, title in titles.items() if not models[name].isna().all()}
    return [alt.Tooltip(f"{name}:Q", title=title) for name, title in known.items()]
