"""How many strings of each length a model misclassifies, by kind of error."""

import altair as alt
import pandas as pd

from dashboard.charts.style.scales import KIND_COLORS, kind_color, titled
from seqcls.kinds import MISCLASSIFIED, Words

HEIGHT = 400


def errors_by_length(errors: pd.DataFrame, words: Words = MISCLASSIFIED) -> alt.Chart:
    """Stacked bars.

    Args:
        errors: first_length and last_length of each bar, lengths (as text), kind, strings
            (misclassified), tested (strings of that label, if any, and those lengths), rate in
            [0, 1].
        words: what the errors are called.
    """
    missed, tested = words.missed.capitalize(), words.plural("test")
    length = f"{words.string.capitalize()} length (letters)"
    labelled = " with that label" if set(errors["kind"]) <= set(KIND_COLORS) else ""
    # A label at the end of the axis stays within the chart.
    axis = alt.Axis(tickMinStep=1, labelFlush=12)
    return (
        alt.Chart(errors)
        .mark_bar()
        .encode(
            x=alt.X("begins:Q", bin="binned", title=length, axis=axis),
            x2="ends:Q",
            y=alt.Y(
                "strings:Q",
                title=f"{missed} {tested}",
                stack=True,
                axis=alt.Axis(tickMinStep=1),
            ),
            color=kind_color(errors["kind"]),
            tooltip=[
                alt.Tooltip("kind:N", title="Kind"),
                alt.Tooltip("lengths:N", title="Lengths"),
                alt.Tooltip("strings:Q", title=f"{missed} {words.plural('')}"),
                alt.Tooltip("tested:Q", title=f"Of {tested}{labelled}"),
                alt.Tooltip("rate:Q", title="Share", format=".2%"),
            ],
        )
        # A bar of one length stands in the middle above it.
        .transform_calculate(begins=alt.datum.first_length - 0.5, ends=alt.datum.last_length + 0.5)
        .properties(height=HEIGHT, title=titled("Errors by length"))
    )
