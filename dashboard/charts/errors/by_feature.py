"""How right a model's outputs are by a number of their input, such as its lines."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, OKABE_ITO
from dashboard.charts.style.encodings import Drawing
from dashboard.charts.style.scales import class_color, titled

HEIGHT = 300


def by_feature(measured: pd.DataFrame, feature: str, trained: int) -> Drawing:
    """A line a measure.

    Args:
        measured: value (of the feature), measure, share (in [0, 1], a rate of errors may be more),
            of (how many strings or tokens), tested (strings).
        feature: what is counted, such as `lines`.
        trained: the most that training has.
    """
    names = list(dict.fromkeys(measured["measure"]))
    whole = alt.Axis(tickMinStep=1, format="d")
    # Dashed too: colors alone would not tell lines apart for everybody.
    lines = (
        alt.Chart(measured)
        .mark_line(point=True)
        .encode(
            x=alt.X("value:Q", title=feature.capitalize(), scale=alt.Scale(zero=True), axis=whole),
            y=alt.Y("share:Q", title="Share", axis=alt.Axis(format="%")),
            color=class_color(
                "measure", dict(zip(names, OKABE_ITO, strict=False)), orient="bottom"
            ),
            strokeDash=alt.StrokeDash(
                "measure:N", title=None, scale=alt.Scale(domain=names, range=[[1, 0], [6, 3]])
            ),
            tooltip=[
                alt.Tooltip("measure:N", title="Measure"),
                alt.Tooltip("value:Q", title=feature.capitalize()),
                alt.Tooltip("share:Q", title="Value", format=".2%"),
                alt.Tooltip("of:Q", title="Out of", format=","),
                alt.Tooltip("tested:Q", title="Test inputs"),
            ],
        )
    )
    rule = (
        alt.Chart(pd.DataFrame({"value": [trained]}))
        .mark_rule(color=GREY, strokeDash=[4, 4])
        .encode(x="value:Q")
    )
    title = titled(
        f"Outputs by number of {feature}", subtitle=f"Dashed: the most {feature} in training."
    )
    return alt.layer(lines, rule).properties(height=HEIGHT, title=title)
