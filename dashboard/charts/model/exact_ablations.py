"""What is left of a model without some of its parts."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, OKABE_ITO
from dashboard.charts.style.encodings import Drawing
from dashboard.charts.style.scales import titled

HEIGHT = 260
MODELS = ("as trained", "ablated")
WAYS = ("zero", "mean")


def accuracy_before_and_after(frame: pd.DataFrame) -> Drawing:
    """Accuracy by string length of a model as it was trained and ablated.

    Args:
        frame: model (one of `MODELS`), length (the middle of the bin), lengths (as text), strings,
            wrong, accuracy in [0, 1].
    """
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_line(point=True)
        .encode(
            x=alt.X("length:Q", title="String length (letters)", scale=alt.Scale(zero=True)),
            y=alt.Y(
                "accuracy:Q",
                title="Accuracy on test strings",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(zero=False),
            ),
            color=alt.Color(
                "model:N",
                title="Model",
                scale=alt.Scale(domain=MODELS, range=[GREY, OKABE_ITO[0]]),
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
    )
    return chart.properties(height=HEIGHT, title="Accuracy by length")


def head_ranking(frame: pd.DataFrame, errors_as_trained: int) -> Drawing:
    """What removing each head alone costs.

    Args:
        frame: head, way (`zero`: it adds nothing, `mean`: always its mean), errors (test strings),
            loss (mean nats), logit_change (mean absolute), the dearest head first.
        errors_as_trained: of the model with all heads.
    """
    heads = list(dict.fromkeys(frame["head"]))
    bars = (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            y=alt.Y("head:N", title=None, sort=heads),
            yOffset=alt.YOffset("way:N", sort=list(WAYS)),
            x=alt.X("errors:Q", title="Test strings misclassified without it"),
            color=alt.Color(
                "way:N",
                title="The head is",
                scale=alt.Scale(domain=WAYS, range=[OKABE_ITO[0], OKABE_ITO[4]]),
                legend=alt.Legend(orient="top"),
            ),
            tooltip=[
                alt.Tooltip("head:N", title="Head"),
                alt.Tooltip("way:N", title="Is"),
                alt.Tooltip("errors:Q", title="Misclassified", format=","),
                alt.Tooltip("loss:Q", title="Loss (mean nats)", format=".4g"),
                alt.Tooltip("logit_change:Q", title="Mean change of the logit", format=".4g"),
            ],
        )
    )
    rule = (
        alt.Chart(pd.DataFrame([{"errors": errors_as_trained}]))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(x="errors:Q")
    )
    title = titled("What each head's removal costs", subtitle="Dashed: the model as trained.")
    return alt.layer(bars, rule).properties(height=alt.Step(14), title=title)


def pruning_curve(frame: pd.DataFrame) -> Drawing:
    """Misclassified test strings as parts are removed one by one, the cheapest first.

    Args:
        frame: removed (how many), part (the last one, as text), errors, loss, heads_left,
            dimensions_left.
    """
    parts = list(dict.fromkeys(frame["part"]))
    base = alt.Chart(frame).encode(
        # A row a part: names along the horizontal axis would be turned and cut off.
        y=alt.Y("part:N", title="Removed, from the top", sort=parts),
        x=alt.X("errors:Q", title="Test strings misclassified", scale=alt.Scale(zero=True)),
        order="removed:Q",
        tooltip=[
            alt.Tooltip("removed:Q", title="Parts removed"),
            alt.Tooltip("part:N", title="Last"),
            alt.Tooltip("errors:Q", title="Misclassified", format=","),
            alt.Tooltip("loss:Q", title="Loss (mean nats)", format=".4g"),
            alt.Tooltip("heads_left:Q", title="Heads left"),
            alt.Tooltip("dimensions_left:Q", title="Dimensions left"),
        ],
    )
    line: alt.Chart = base.mark_line(point=True, color=OKABE_ITO[0])
    return line.properties(height=alt.Step(18), title="Pruning, the cheapest part first")
