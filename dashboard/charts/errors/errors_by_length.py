"""How many strings of each length a model misclassifies, by kind of error."""

import altair as alt
import pandas as pd

from dashboard.charts.style.scales import kind_color, titled

HEIGHT = 400


def errors_by_length(errors: pd.DataFrame) -> alt.Chart:
    """Stacked bars.

    Args:
        errors: first_length and last_length of each bar, lengths (as text), kind, strings
            (misclassified), tested (strings of that label and those lengths), rate in [0, 1].
    """
    return (
        alt.Chart(errors)
        .mark_bar()
        .encode(
            x=alt.X("first_length:Q", bin="binned", title="String length (letters)"),
            x2="after:Q",
            y=alt.Y(
                "strings:Q",
                title="Misclassified test strings",
                stack=True,
                axis=alt.Axis(tickMinStep=1),
            ),
            color=kind_color(errors["kind"]),
            tooltip=[
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("strings:Q", title="Misclassified strings"),
                alt.Tooltip("tested:Q", title="Of test strings with that label"),
                alt.Tooltip("rate:Q", title="Share", format=".2%"),
            ],
        )
        .transform_calculate(after=alt.datum.last_length + 1)
        .properties(height=HEIGHT, title=titled("Errors by length"))
    )
