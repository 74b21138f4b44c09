"""How many test strings every model of some sweeps misclassifies: a point a model."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import FAILS, GENERALIZES
from dashboard.charts.style.encodings import Drawing, reserved
from dashboard.charts.style.scales import class_color

ROW = 44
OUTCOMES = ("fails", "generalizes")

# Away from the points at zero, which lie across the axis.
_NAMES = alt.Axis(labelLimit=260, labelPadding=10, grid=True)


def sweeps_compared(frame: pd.DataFrame) -> Drawing:
    """A row a sweep, its models along the number of test strings that they misclassify.

    Args:
        frame: sweep, model_seed, errors, accuracy in [0, 1], outcome (one of `OUTCOMES`), in the
            order in which sweeps are to stand.
    """
    names = list(dict.fromkeys(frame["sweep"]))
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_point(filled=True, size=110, opacity=0.75)
        .encode(
            # Square root: zero has a place, and hundreds are told from thousands.
            x=alt.X(
                "errors:Q",
                title="Misclassified test strings (square root)",
                scale=alt.Scale(type="sqrt", zero=True),
                # Where there is little room it goes on below the names.
                axis=alt.Axis(titleAnchor="end"),
            ),
            y=alt.Y("sweep:N", title=None, sort=names, axis=_NAMES),
            yOffset=alt.YOffset("model_seed:O"),
            color=class_color(
                "outcome", dict(zip(OUTCOMES, (FAILS, GENERALIZES), strict=True)), "Model"
            ),
            tooltip=[
                alt.Tooltip("sweep:N", title="Sweep"),
                alt.Tooltip("model_seed:Q", title="Model seed"),
                alt.Tooltip("errors:Q", title="Misclassified", format=","),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2%"),
            ],
        )
    )
    height = ROW * len(names)
    return chart.properties(
        height=height, title="Every model of these sweeps", **reserved(height, legend=True)
    )
