"""What is left of a model without some of its parts."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, OKABE_ITO
from dashboard.charts.style.encodings import Drawing, reserved
from dashboard.charts.style.scales import titled

HEIGHT = 260
BAR, ROW = 14, 18
WAYS = ("zero", "mean")

COSTS = [
    alt.Tooltip("errors:Q", title="Misclassified", format=","),
    alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
    alt.Tooltip("loss:Q", title="Loss (mean nats)", format=".4g"),
    alt.Tooltip("logit_change:Q", title="Mean change of the logit", format=".4g"),
]


def accuracy_by_length(frame: pd.DataFrame, tokens: str = "tokens") -> Drawing:
    """Accuracy by string length of a model as it was trained and ablated.

    Args:
        frame: model (its name, that of the whole one first), length (the middle of the bin),
            lengths (as text), strings, wrong, accuracy in [0, 1].
        tokens: what they are called.
    """
    names = list(dict.fromkeys(frame["model"]))
    return (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X("length:Q", title=f"String length ({tokens})", scale=alt.Scale(zero=True)),
            y=alt.Y(
                "accuracy:Q",
                title="Accuracy on test strings",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(zero=False),
            ),
            color=alt.Color(
                "model:N",
                title="Model",
                scale=alt.Scale(domain=names, range=[GREY, OKABE_ITO[0]]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("model:N", title="Model"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
                alt.Tooltip("wrong:Q", title="Misclassified"),
                alt.Tooltip("strings:Q", title="Test strings"),
            ],
        )
        .properties(height=HEIGHT, title="Accuracy by length", **reserved(HEIGHT, legend=True))
    )


def part_ranking(frame: pd.DataFrame, errors_as_trained: int, what: str = "part") -> Drawing:
    """What removing each part alone costs.

    Args:
        frame: part, way (`zero`: it adds nothing, `mean`: always its mean), errors (test strings),
            accuracy in [0, 1], loss (mean nats), logit_change (mean absolute), the dearest first.
        errors_as_trained: of the model with all parts.
        what: the parts are.
    """
    parts = list(dict.fromkeys(frame["part"]))
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("part:N", title=None, sort=parts),
            yOffset=alt.YOffset("way:N", sort=list(WAYS)),
            x=alt.X("errors:Q", title="Test strings misclassified without it"),
            color=alt.Color(
                "way:N",
                title=f"The {what} is",
                scale=alt.Scale(domain=WAYS, range=[OKABE_ITO[0], OKABE_ITO[4]]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("part:N", title=what.capitalize()),
                alt.Tooltip("way:N", title="Is"),
                *COSTS,
            ],
        )
    )
    rule = (
        alt.Chart(pd.DataFrame([{"errors": errors_as_trained}]))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(x="errors:Q")
    )
    title = titled(f"What each {what}'s removal costs", subtitle="Dashed: the model as trained.")
    return alt.layer(bars, rule).properties(
        height=alt.Step(BAR), title=title, **reserved(BAR * len(frame), legend=True)
    )


def pruning_curve(frame: pd.DataFrame) -> Drawing:
    """Misclassified test strings as parts are removed one by one, the cheapest first.

    Args:
        frame: removed (how many), part (the last one, as text), errors, accuracy, loss,
            logit_change, and how many are left of each kind, as `heads left`.
    """
    parts = list(dict.fromkeys(frame["part"]))
    left = [name for name in map(str, frame) if name.endswith(" left")]
    base = alt.Chart(frame).encode(
        # A row a part: names along the horizontal axis would be turned and cut off.
        y=alt.Y("part:N", title="Removed, from the top", sort=parts),
        x=alt.X("errors:Q", title="Test strings misclassified", scale=alt.Scale(zero=True)),
        order="removed:Q",
        tooltip=[
            alt.Tooltip("removed:Q", title="Parts removed"),
            alt.Tooltip("part:N", title="Last"),
            *COSTS,
            *(alt.Tooltip(f"{name}:Q", title=name.capitalize()) for name in left),
        ],
    )
    line: alt.Chart = base.mark_line(point=True, color=OKABE_ITO[0])
    return line.properties(
        height=alt.Step(ROW),
        title="Pruning, the cheapest part first",
        **reserved(ROW * len(parts)),
    )
