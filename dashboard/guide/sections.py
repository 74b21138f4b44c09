"""The guide's picture of several sweeps; those of one model are the page Model's."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from dashboard import marks
from dashboard.section import Panel, Section, colors_present

ROW = 44
"""Pixels of a sweep."""


def compare(models: pd.DataFrame, sweeps: Sequence[str]) -> Section:
    """A row a sweep, its models along the number of test strings that they get wrong.

    Args:
        models: the report's.
        sweeps: in order.
    """
    frame = models[models["sweep"].isin(sweeps)]
    if frame.empty:
        missing = ", ".join(sweeps)
        return Section("", (f"No model of {missing} is in this database.",))
    frame = frame.rename(columns={"run_id": "run"})
    frame = frame[["run", "sweep", "model_seed", "errors", "accuracy", "outcome"]]
    clicked = alt.selection_point(name="clicked", fields=["run"], empty=False)
    axis = alt.Axis(titleAnchor="end", grid=True)
    # Square root: zero has a place, and hundreds differ visibly from thousands.
    scale = alt.Scale(type="sqrt", zero=True)
    chart = (
        alt.Chart(frame)
        .mark_circle(size=110, opacity=0.8)
        .encode(
            alt.X("errors:Q", title="Wrong test strings (square root)", axis=axis, scale=scale),
            alt.Y("sweep:N", title=None, sort=list(sweeps), axis=alt.Axis(labelLimit=260)),
            marks.color("outcome", marks.OUTCOMES),
            # A row per seed: equal counts of errors would hide one another.
            yOffset=alt.YOffset("model_seed:O"),
            tooltip=marks.tips(
                sweep="Sweep", model_seed="Seed:", errors="Wrong:,", accuracy="Accuracy:.2~%",
                outcome="Outcome",
            ),
        )
        .add_params(clicked)
        .properties(height=ROW * frame["sweep"].nunique(), width="container")
    )  # fmt: skip
    caption = "Every model of these sweeps; a click opens it."
    legend = colors_present(frame["outcome"], marks.OUTCOMES)
    return Section("", (), None, (Panel.of(chart),), caption, legend, opens="run")
