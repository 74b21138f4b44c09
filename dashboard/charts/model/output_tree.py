"""The likeliest outputs of an input as a tree: prefixes shared, a row for each output."""

import altair as alt
import pandas as pd

from dashboard.charts.model.parts import WIDTH, Layers, Part, chart_of, titled
from dashboard.charts.style.colors import GREY, INK, OKABE_ITO

LEAST_STEP, STEP = 14, 30
ROW = 30
END_ROOM = 190
"""Pixels for what is said of an output at the end of its row."""

_CELLS, _LINKS, _ENDS = "tree_cells", "tree_links", "tree_ends"


def output_tree(
    cells: pd.DataFrame, links: pd.DataFrame, ends: pd.DataFrame, space: int = WIDTH
) -> Part:
    """A cell for each token, colored by its probability; rules where rows part.

    Args:
        cells: row, place (from 0), token, probability in [0, 1], so_far (likewise), strength
            (opacity), choice (the probability as text, where rows part).
        links: row, parent (another row), place: where a row leaves another.
        ends: row, place, said (of the output), output, probability, log_probability.
        space: pixels for all tokens, about.
    """
    first, last = int(cells["place"].min()), int(cells["place"].max())
    rows = int(cells["row"].max()) + 1
    data = {_CELLS: cells, _LINKS: links, _ENDS: ends}
    return Part(_output_tree, (first, last, rows, space), data)


def _output_tree(first: int, last: int, rows: int, space: int) -> Layers:
    places = last - first + 1
    step = min(max(space // (places + 1), LEAST_STEP), STEP)
    x_scale = alt.Scale(domain=[first - 0.5, last + 0.5 + END_ROOM / step], nice=False, zero=False)
    y_scale = alt.Scale(domain=[rows - 0.4, -0.6], nice=False, zero=False)
    x = alt.X("left:Q", scale=x_scale, axis=None)
    y = alt.Y("top:Q", scale=y_scale, axis=None)
    cells = (
        chart_of(_CELLS)
        .transform_calculate(
            left="datum.place - 0.44",
            right="datum.place + 0.44",
            top="datum.row - 0.3",
            bottom="datum.row + 0.3",
        )
        .mark_rect(cornerRadius=3, color=OKABE_ITO[0])
        .encode(
            x,
            y,
            x2="right:Q",
            y2="bottom:Q",
            opacity=alt.Opacity("strength:Q", scale=None),
            tooltip=[
                alt.Tooltip("token:N", title="Token"),
                alt.Tooltip("probability:Q", title="Its probability", format=".4%"),
                alt.Tooltip("so_far:Q", title="With all before it", format=".4%"),
            ],
        )
    )
    at = {"x": alt.X("place:Q", scale=x_scale, axis=None)}
    on = {"y": alt.Y("row:Q", scale=y_scale, axis=None)}
    names = chart_of(_CELLS).mark_text(fontSize=11).encode(**at, **on, text="token:N")
    choices = (
        chart_of(_CELLS)
        .transform_filter("datum.choice !== ''")
        .mark_text(fontSize=9, dy=-15, color=INK)
        .encode(**at, **on, text="choice:N")
    )
    down = (
        chart_of(_LINKS)
        .transform_calculate(side="datum.place - 0.5", top="datum.parent + 0.3")
        .mark_rule(color=GREY)
        .encode(
            x=alt.X("side:Q", scale=x_scale, axis=None),
            y=alt.Y("top:Q", scale=y_scale, axis=None),
            y2="row:Q",
        )
    )
    ends = (
        chart_of(_ENDS)
        .transform_calculate(left="datum.place + 0.7")
        .mark_text(align="left", fontSize=11)
        .encode(
            x,
            **on,
            text="said:N",
            tooltip=[
                alt.Tooltip("output:N", title="Output"),
                alt.Tooltip("probability:Q", title="Probability", format=".4%"),
                alt.Tooltip("log_probability:Q", title="Log-probability", format=".4f"),
            ],
        )
    )
    return alt.layer(down, cells, names, choices, ends).properties(
        width=step * places + END_ROOM,
        height=ROW * rows + 12,
        title=titled("Each row is an output; rows share the tokens with which they begin"),
    )
