"""Where misclassified strings lie among all strings: two of the task's features."""

from typing import Any

import altair as alt
import pandas as pd

from dashboard.charts.style.scales import kind_color, kind_shape, titled

HEIGHT = 400


def feature_plane(errors: pd.DataFrame, x: str, y: str) -> alt.Chart:
    """One point a string.

    Args:
        errors: string, kind, length, logit, occurrences, and the two features: first, second.
        x: the name of the first, along the horizontal axis, such as `a's` or `nesting depth`.
        y: the name of the second, along the vertical axis.
    """
    return (
        alt.Chart(errors)
        .mark_point(size=40, filled=True, opacity=0.8)
        .encode(
            x=alt.X("first:Q", **_counted(errors["first"], x)),
            y=alt.Y("second:Q", **_counted(errors["second"], y)),
            color=kind_color(errors["kind"]),
            shape=kind_shape(errors["kind"]),
            tooltip=[
                alt.Tooltip("string:N", title="String"),
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("length:Q", title="Length"),
                alt.Tooltip("first:Q", title=x),
                alt.Tooltip("second:Q", title=y),
                alt.Tooltip("logit:Q", title="Logit", format=".4f"),
                alt.Tooltip("occurrences:Q", title="Occurrences"),
            ],
        )
        .properties(height=HEIGHT, title=titled(f"Errors by {x} and {y}"))
    )


def _counted(values: "pd.Series[Any]", name: str) -> dict[str, Any]:
    low, high = float(values.min()), float(values.max())
    return {
        "title": name[:1].upper() + name[1:] if "'" not in name else name,
        "axis": alt.Axis(tickMinStep=1, format="d"),
        "scale": alt.Scale(domain=[min(0.0, low), max(1.0, high)]),
    }
