"""The guide's pictures that are not of one model's states."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any

import altair as alt
import pandas as pd

from dashboard import marks, style
from dashboard.figures.epochs import through_epochs
from dashboard.figures.gallery import figures
from dashboard.section import Panel, Section, colors_present
from sweeps.api import Store

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
    # Square root: zero has a place, and hundreds are told from thousands.
    scale = alt.Scale(type="sqrt", zero=True)
    chart = (
        alt.Chart(frame)
        .mark_circle(size=110, opacity=0.8)
        .encode(
            alt.X("errors:Q", title="Wrong test strings (square root)", axis=axis, scale=scale),
            alt.Y("sweep:N", title=None, sort=list(sweeps), axis=alt.Axis(labelLimit=260)),
            marks.color("outcome", marks.OUTCOMES),
            # Seeds stand below each other: equal counts of errors would hide one another.
            yOffset=alt.YOffset("model_seed:O"),
            tooltip=[
                alt.Tooltip("sweep:N", title="Sweep"),
                alt.Tooltip("model_seed:Q", title="Seed"),
                alt.Tooltip("errors:Q", title="Wrong", format=","),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2~%"),
                alt.Tooltip("outcome:N", title="Outcome"),
            ],
        )
        .add_params(clicked)
        .properties(height=ROW * frame["sweep"].nunique(), width="container")
    )
    caption = "Every model of these sweeps; a click opens it."
    legend = colors_present(frame["outcome"], marks.OUTCOMES)
    return Section("", (), None, (Panel.of(chart),), caption, legend, opens="run")


def states(
    store: Store, run: int, strings: tuple[str, ...], numbers: tuple[int, ...]
) -> list[Section]:
    """Figures of a model's states for some strings, a section each.

    Args:
        numbers: which of `dashboard.figures.gallery`.
    """
    drawn = figures(through_epochs(store, run, strings), numbers)
    named = groupby(drawn, key=lambda figure: (figure.number, figure.title))
    sections = []
    for (_, title), some in named:
        parts = list(some)
        panels = tuple(Panel(figure.spec, figure.part) for figure in parts)
        sections.append(Section(title, (), None, panels, parts[0].note))
    return sections


def family(points: pd.DataFrame, changes: Sequence[int], says: str) -> Section:
    """The logit of a model along a family of strings, and where its answer flips.

    Args:
        points: n, logit, and whether the answer is right.
        changes: values of n from which on the answer is another.
        says: the answer, in a sentence.
    """
    points = points.assign(verdict=points["right"].map({True: "right", False: "wrong"}))
    axis = alt.Axis(grid=False, tickCount=5, format="~s")
    x = alt.X("n:Q", title="n", axis=axis, scale=alt.Scale(type="log", nice=False))
    base = alt.Chart(points).encode(x, marks.y_axis("logit:Q", "Logit"))
    zero = alt.Chart(pd.DataFrame([{"zero": 0}])).encode(alt.Y("zero:Q"))
    flips = pd.DataFrame({"n": changes, "label": [f"n = {n:,}" for n in changes]})
    label: dict[str, Any] = {
        "align": "right",
        "dx": -5,
        "baseline": "top",
        "fontSize": 12,
        "color": "~ink",
    }
    chart = alt.layer(
        zero.mark_rule(color="~muted", strokeDash=[2, 2]),
        base.mark_line(color="~ink", strokeWidth=1.2, opacity=0.5),
        base.mark_circle(size=26, opacity=1).encode(
            marks.color("verdict", marks.RIGHT),
            tooltip=[alt.Tooltip("n:Q", format=","), alt.Tooltip("logit:Q", format=".3f")],
        ),
        alt.Chart(flips).mark_rule(color="~wrong").encode(alt.X("n:Q")),
        alt.Chart(flips).mark_text(y=4, **label).encode(alt.X("n:Q"), text="label:N"),
    ).properties(height=style.SMALL, width="container")
    legend = colors_present(points["verdict"], marks.RIGHT)
    return Section("", (), None, (Panel.of(chart),), says, legend)
