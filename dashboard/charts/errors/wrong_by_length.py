"""All inputs up to a length: which share of each length gets a wrong output."""

import altair as alt
import pandas as pd

from dashboard.charts.style.encodings import reserved
from dashboard.charts.style.scales import OUTPUT_COLORS, class_color, titled

HEIGHT = 260


def wrong_by_length(frame: pd.DataFrame) -> alt.Chart:
    """Stacked bars, one for each length.

    Args:
        frame: length, kind (of error), wrong, inputs (of that length), share in [0, 1].
    """
    lengths = [str(length) for length in sorted(set(frame["length"]))]
    return (
        alt.Chart(frame)
        .mark_bar()
        .encode(
            x=alt.X(
                "length:O", title="Input length (tokens)", sort=lengths, axis=alt.Axis(labelAngle=0)
            ),
            y=alt.Y(
                "share:Q",
                title="Inputs with a wrong output",
                axis=alt.Axis(format="%"),
                scale=alt.Scale(domain=[0, 1]),
            ),
            color=class_color("kind", OUTPUT_COLORS, "Output", columns=4),
            tooltip=[
                alt.Tooltip("kind:N", title="Output"),
                alt.Tooltip("length:O", title="Length"),
                alt.Tooltip("wrong:Q", title="Inputs", format=","),
                alt.Tooltip("inputs:Q", title="Of all of that length", format=","),
                alt.Tooltip("share:Q", title="Share", format=".2%"),
            ],
        )
        .properties(
            height=HEIGHT, title=titled("Errors by length"), **reserved(HEIGHT, legend=True)
        )
    )
