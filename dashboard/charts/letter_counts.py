"""Where misclassified strings lie among all strings: how often each of two letters occurs."""

from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts.scales import kind_color, titled

HEIGHT = 400


def letter_counts(errors: pd.DataFrame, x: str, y: str) -> alt.Chart:
    """One point a string.

    Args:
        errors: string, kind, length, logit, occurrences, and a column for each letter.
        x: the letter counted along the horizontal axis.
        y: the letter counted along the vertical axis.
    """
    chart: alt.Chart = (
        alt.Chart(errors)
        .mark_point(size=28, filled=True, opacity=0.6)
        .encode(
            x=alt.X(f"{x}:Q", **_counted(errors, x)),
            y=alt.Y(f"{y}:Q", **_counted(errors, y)),
            color=kind_color(),
            tooltip=[
                alt.Tooltip("string:N", title="String"),
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("length:Q", title="Length"),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("occurrences:Q", title="Occurrences"),
            ],
        )
        .properties(
            height=HEIGHT,
            title=titled(f"Errors by letters {x} and {y}"),
        )
    )
    return chart


def _counted(errors: pd.DataFrame, letter: str) -> dict[str, Any]:
    return {
        "title": f"Letters {letter} in the string",
        "axis": alt.Axis(tickMinStep=1, format="d"),
        "scale": alt.Scale(domain=[0, max(1, int(errors[letter].max()))]),
    }
