"""What one head attends to while an output is written: tokens that are written against those read.

A model that copies the tokens of its input one after another has a diagonal here.
"""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.model.parts import (
    TOKENS,
    WIDTH,
    Layers,
    Names,
    Part,
    Places,
    chart_of,
    marked,
    places_of,
    titled,
    token_axis,
    tokens_frame,
    width_of,
)
from dashboard.charts.model.token_states import ROW, compact, weight_color
from dashboard.charts.style.pointing import pointed

_WRITTEN = "written"
"""The data set of the tokens that are written: row and name."""


def output_attention(
    frame: pd.DataFrame, names: Names, written: Sequence[str], title: str, width: int = WIDTH
) -> Part:
    """One head's weights, a row for each token that is written.

    Args:
        frame: row (of the token written), letter (place of the token read), weight in [0, 1].
        names: of all tokens that are read.
        written: the tokens that are written.
        title: above it.
        width: pixels for all tokens that are read, about.
    """
    cells = compact(frame, "row", "letter", "weight").assign(
        writes=np.array(written)[frame["row"]], to=np.array(names)[frame["letter"]]
    )
    rows = pd.DataFrame({"row": range(len(written)), "name": list(written)})
    data = {"output_attention": cells, TOKENS: tokens_frame(names), _WRITTEN: rows}
    return Part(_output_attention, (places_of(names), len(written), title, width), data)


def _output_attention(tokens: Places, rows: int, title: str, width: int) -> Layers:
    axis = alt.Axis(
        labelExpr=f"data('{_WRITTEN}')[datum.value].name",
        labelOverlap=False,
        title="Token that is written",
    )
    # Every row is there, whatever the weights.
    height = chart_of(_WRITTEN).mark_rect(opacity=0, aria=False)
    row = alt.Y("row:O", scale=alt.Scale(domain=list(range(rows))), axis=axis)
    cells = chart_of("output_attention").encode(
        x=token_axis(tokens, "Token attended to"),
        y=row,
        color=weight_color(),
        tooltip=[
            alt.Tooltip("writes:N", title="Writes"),
            alt.Tooltip("to:N", title="Attends to"),
            alt.Tooltip("weight:Q", title="Weight", format=".4f"),
        ],
    )
    rectangles = cells.mark_rect().add_params(pointed())
    return alt.layer(height.encode(y=row), rectangles, marked()).properties(
        width=width_of(tokens.number, width), height=max(ROW * rows, 60), title=titled(title)
    )
