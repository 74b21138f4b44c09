"""The logit as a sum of steps along the residual stream."""

import altair as alt
import pandas as pd

from dashboard.charts.model.parts import Layers, Limits, Part, reached_by, unseen
from dashboard.charts.style.colors import AWAY, GREY, INK, TOWARDS
from dashboard.charts.style.encodings import Domain, Drawing, by_panel, reserved

ROW = 26
WIDTH = 210
ROOM_FOR_TEXT = 64
"""Pixels between panels, where the numbers of the left one stand."""

TEXT = alt.Text("change:Q", format="+.3f")
DIRECTIONS = ("toward positive", "toward negative", "the logit")


def waterfall(frame: pd.DataFrame, domain: Domain, title: str) -> Drawing:
    """What each part of the model adds to the logit, from top to bottom, a panel a string.

    Args:
        frame: string, step (its name), change, start and end (the logit before and after it),
            direction (one of `DIRECTIONS`), in the order of the computation; the last row of a
            string is its logit.
        domain: limits of the logit.
        title: above the drawing.
    """
    layers = _steps(alt.Scale(domain=domain, nice=False), columns=2)
    panel = alt.layer(*layers).properties(width=WIDTH, height=alt.Step(ROW), data=frame)
    facet = alt.Facet(**by_panel(frame, "string", WIDTH))
    # Each panel is drawn alone.
    rows = ROW * frame["step"].nunique()
    return panel.facet(facet, columns=2, spacing=ROOM_FOR_TEXT).properties(
        title=title, **reserved(rows)
    )


def steps_of_one(frame: pd.DataFrame, limits: Limits | None) -> Part:
    """The same of one string, whose name stands elsewhere.

    Args:
        frame: as for `waterfall`.
        limits: logits that the axis reaches at least; those of the steps if none are given.
    """
    columns = ["string", "step", "change", "start", "end", "direction"]
    reached = reached_by("start", limits)
    return Part(_of_one, (len(frame),), {"steps": frame[columns], "reached_by_steps": reached})


def _of_one(steps: int) -> Layers:
    drawn = alt.layer(
        unseen("reached_by_steps").encode(x="start:Q"), *_steps(alt.Scale(), columns=3)
    )
    return drawn.properties(
        width=WIDTH,
        height=ROW * steps,
        padding={"left": 5, "top": 5, "bottom": 5, "right": ROOM_FOR_TEXT},
        data=alt.NamedData(name="steps"),
    )


def _steps(scale: alt.Scale, columns: int) -> list[alt.Chart]:
    y = alt.Y("step:N", title=None, sort=None, axis=alt.Axis(labelLimit=120))
    x = alt.X("start:Q", title="Running logit", scale=scale)
    base = alt.Chart().encode(
        y,
        tooltip=[
            alt.Tooltip("string:N", title="String"),
            alt.Tooltip("step:N", title="After"),
            alt.Tooltip("change:Q", title="Adds to the logit", format="+.4f"),
            alt.Tooltip("end:Q", title="Logit so far", format=".4f"),
        ],
    )
    bars = base.mark_bar(height=18).encode(
        x,
        x2="end:Q",
        color=alt.Color(
            "direction:N",
            title=None,
            sort=None,
            scale=alt.Scale(domain=DIRECTIONS, range=[TOWARDS, AWAY, GREY]),
            legend=alt.Legend(orient="top", columns=columns),
        ),
    )
    # In a column of their own: beside its bar a number would cross the line at zero, and the sign
    # of -0.871 would look like a plus.
    # Aligned at the right, one sign and one point below the other.
    texts = base.mark_text(align="right", dx=ROOM_FOR_TEXT - 8, color=INK, font="monospace").encode(
        x=alt.value("width"), text=TEXT
    )
    zero = alt.Chart().mark_rule(color=GREY).encode(x=alt.datum(0, scale=scale))
    return [zero, bars, texts]
