"""How large the parameters of a model are."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import GREY, OKABE_ITO
from dashboard.charts.style.encodings import SIDE, Domain, Drawing, reserved

ROW = 30


def magnitudes(frame: pd.DataFrame, domain: Domain) -> Drawing:
    """Every parameter as a tick, its absolute value on a log scale; dots are root mean squares.

    Args:
        frame: parameter (the matrix it is of), entry (its place, as text), value, magnitude.
        domain: limits of the magnitude, above zero. A value below them is drawn at the lower one.
    """
    drawn = frame.assign(shown=frame["magnitude"].clip(lower=domain[0]))
    squares = (frame["value"] ** 2).groupby(frame["parameter"], sort=False).mean()
    means = squares.pow(0.5).clip(lower=domain[0]).rename("rms").reset_index()
    names = list(dict.fromkeys(frame["parameter"]))
    y = alt.Y("parameter:N", title=None, sort=names, axis=alt.Axis(labelLimit=220))

    def x(field: str) -> alt.X:
        return alt.X(
            f"{field}:Q",
            title="Absolute value (log)",
            scale=alt.Scale(type="log", domain=domain, nice=False),
        )

    ticks = (
        alt.Chart(drawn)
        .mark_tick(color=OKABE_ITO[0], thickness=1, opacity=1)
        .encode(
            x("shown"),
            y,
            tooltip=[
                alt.Tooltip("parameter:N", title="Matrix"),
                alt.Tooltip("entry:N", title="Row, column"),
                alt.Tooltip("value:Q", title="Value", format=".6f"),
            ],
        )
    )
    dots = (
        alt.Chart(means)
        .mark_point(filled=True, size=80, color=GREY, opacity=1)
        .encode(
            x("rms"),
            y,
            tooltip=[
                alt.Tooltip("parameter:N", title="Matrix"),
                alt.Tooltip("rms:Q", title="Root mean square", format=".6f"),
            ],
        )
    )
    return alt.layer(ticks, dots).properties(
        width=2 * SIDE - 160,
        height=alt.Step(ROW),
        title="How large the parameters are (dot: root mean square)",
        **reserved(ROW * len(names)),
    )
