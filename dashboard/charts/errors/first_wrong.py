"""After how many right tokens outputs go wrong, against the length of the input."""

import altair as alt
import pandas as pd

from dashboard.charts.style.colors import INK
from dashboard.charts.style.encodings import Drawing
from dashboard.charts.style.scales import LOW_TO_HIGH, titled

HEIGHT = 400


def first_wrong_places(places: pd.DataFrame) -> Drawing:
    """Cells colored by the number of inputs, with a line where as many tokens are right as it has.

    Args:
        places: first_length and last_length of each cell, lengths (as text), first_place and
            last_place (tokens that are right before the first wrong one), places (as text),
            strings.
    """
    top = int(places["last_length"].max())
    most = max(int(places["last_place"].max()), top)
    x = alt.Scale(domain=[0, top + 1], nice=False)
    y = alt.Scale(domain=[-0.5, most + 0.5], nice=False)
    whole = alt.Axis(tickMinStep=1, format="d")
    cells = (
        alt.Chart(places)
        .transform_calculate(
            left=alt.datum.first_length - 0.5,
            right=alt.datum.last_length + 0.5,
            low=alt.datum.first_place - 0.5,
            high=alt.datum.last_place + 0.5,
        )
        .mark_rect()
        .encode(
            x=alt.X("left:Q", title="Input length (letters)", scale=x, axis=whole),
            x2="right:Q",
            y=alt.Y("low:Q", title="Right tokens before the first wrong one", scale=y, axis=whole),
            y2="high:Q",
            color=alt.Color(
                "strings:Q",
                title="Test inputs",
                scale=alt.Scale(scheme=LOW_TO_HIGH, domainMin=0),
                legend=alt.Legend(orient="bottom", format="d", tickMinStep=1),
            ),
            tooltip=[
                alt.Tooltip("lengths:N", title="Input lengths"),
                alt.Tooltip("places:N", title="Right tokens"),
                alt.Tooltip("strings:Q", title="Test inputs"),
            ],
        )
    )
    ends = pd.DataFrame({"left": [0, top + 1], "low": [0, top + 1]})
    line = (
        alt.Chart(ends)
        .mark_line(color=INK, strokeDash=[4, 4], clip=True)
        .encode(x="left:Q", y="low:Q")
    )
    title = titled(
        "Where outputs go wrong first",
        subtitle="Dashed: as many tokens are right as the input has.",
    )
    return alt.layer(cells, line).properties(height=HEIGHT, title=title)
