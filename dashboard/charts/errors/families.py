"""A family of strings: the logit as a count grows, and where the answer changes."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, INK
from dashboard.charts.style.encodings import (
    OUTCOME_COLORS,
    OUTCOMES,
    SIDE,
    Drawing,
    outcome_colors,
    reserved,
)
from dashboard.charts.style.scales import class_color

HEIGHT = 260
_COLORS = dict(zip(OUTCOMES, OUTCOME_COLORS, strict=True))


def family_curve(
    curve: pd.DataFrame,
    flips: pd.DataFrame,
    limit: float | None,
    name: str,
    text: str,
    height: int = HEIGHT,
) -> Drawing:
    """Logit against one free count, on a log scale.

    Args:
        curve: n, logit, probability, outcome.
        flips: n, logit, label (what to write beside the rule): where the answer changes.
        limit: the logit as the count grows without end, where it is known.
        name: of the count.
        text: the family, for the title.
        height: pixels of the plot.
    """
    x = _counted(alt.X, "n", f"{name}, the free count")
    y = alt.Y("logit:Q", title="Logit (positive above 0)")
    line = alt.Chart().mark_line(color=GREY, strokeWidth=1.5).encode(x, y)
    dots = (
        alt.Chart()
        .mark_point(filled=True, size=16, opacity=1)
        .encode(
            x,
            y,
            outcome_colors(),
            tooltip=[
                alt.Tooltip("n:Q", title=name, format=","),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("probability:Q", title="Probability", format=".6f"),
                alt.Tooltip("outcome:N", title="Outcome"),
            ],
        )
    )
    ends = pd.DataFrame(
        [] if limit is None else [{"logit": limit, "label": f"limit {limit:.3f}"}],
        columns=["logit", "label"],
    )
    limit_rule = alt.Chart(ends).mark_rule(color=GREY, strokeDash=[2, 4]).encode(y="logit:Q")
    limit_text = (
        alt.Chart(ends)
        .mark_text(align="right", baseline="bottom", dy=-6, color=INK)
        .encode(x=alt.value("width"), y="logit:Q", text="label:N")
    )
    zero = alt.Chart().mark_rule(color=GREY, strokeWidth=0.5).encode(y=alt.datum(0))
    layers = [zero, limit_rule, line, dots, limit_text, *_flip_marks(flips)]
    return alt.layer(*layers, data=curve).properties(
        height=height, title=f"The family {text}", **reserved(height, legend=True)
    )


def probability_curve(curve: pd.DataFrame, name: str) -> Drawing:
    """Probability of being in the language against the free count, on a log scale.

    Args:
        curve: n, logit, probability, outcome.
        name: of the count.
    """
    base = alt.Chart(curve).encode(
        _counted(alt.X, "n", f"{name}, the free count"),
        alt.Y(
            "probability:Q",
            title="Probability",
            scale=alt.Scale(domain=[0, 1]),
            axis=alt.Axis(format="%"),
        ),
    )
    half = alt.Chart().mark_rule(color=GREY, strokeWidth=0.5).encode(y=alt.datum(0.5))
    dots = base.mark_point(filled=True, size=16, opacity=1).encode(
        outcome_colors(legend=False),
        tooltip=[
            alt.Tooltip("n:Q", title=name, format=","),
            alt.Tooltip("probability:Q", title="Probability", format=".6f"),
        ],
    )
    line = base.mark_line(color=GREY, strokeWidth=1.5)
    return alt.layer(half, line, dots, data=curve).properties(
        height=HEIGHT // 2, **reserved(HEIGHT // 2)
    )


def family_map(cells: pd.DataFrame, flips: pd.DataFrame, names: tuple[str, str]) -> Drawing:
    """Two free counts as a map of what the model says, with the boundary between its answers.

    Args:
        cells: x, x2, y, y2 (the cell's edges), first, second (the counts), logit, outcome, strength
            (opacity).
        flips: first, second: where the answer changes.
        names: of the two counts, the first one along the horizontal axis.
    """
    x, y = _counted(alt.X, "x", names[0]), _counted(alt.Y, "y", names[1])
    rectangles = (
        alt.Chart(cells)
        .mark_rect()
        .encode(
            x,
            y,
            x2="x2:Q",
            y2="y2:Q",
            color=class_color("outcome", _COLORS, "Outcome", columns=2),
            opacity=alt.Opacity("strength:Q", scale=None),
            tooltip=[
                alt.Tooltip("first:Q", title=names[0], format=","),
                alt.Tooltip("second:Q", title=names[1], format=","),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("outcome:N", title="Outcome"),
            ],
        )
    )
    boundary = (
        alt.Chart(flips)
        .mark_point(filled=True, size=22, color="black", opacity=1, stroke="white", strokeWidth=0.5)
        .encode(
            alt.X("first:Q"),
            alt.Y("second:Q"),
            tooltip=[
                alt.Tooltip("first:Q", title=names[0], format=","),
                alt.Tooltip("second:Q", title=f"the answer changes at {names[1]}", format=","),
            ],
        )
    )
    side = int(1.3 * SIDE)
    return alt.layer(rectangles, boundary).properties(
        width=side, height=side, **reserved(side, legend=True)
    )


def _counted(channel: type[alt.X] | type[alt.Y], field: str, name: str) -> alt.X | alt.Y:
    """An axis of counts on a log scale."""
    return channel(
        f"{field}:Q",
        title=f"{name} (log)",
        scale=alt.Scale(type="log", nice=False),
        axis=alt.Axis(format="~s"),
    )


def _flip_marks(flips: pd.DataFrame) -> list[alt.Chart]:
    base = alt.Chart(flips).encode(alt.X("n:Q"))
    return [
        base.mark_rule(strokeDash=[6, 4], color=GREY),
        base.mark_text(align="left", dx=5, fontWeight="bold", color=INK).encode(
            y=alt.value(10), text="label:N"
        ),
    ]
