"""All heads of a Transformer as small pictures, a row a block and a column a head."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.model.parts import Layers, Part, chart_of
from dashboard.charts.model.token_states import weight_color
from dashboard.charts.style.pointing import framed, pointed

ROW_WIDTH, LARGEST = 880, 220
"""Pixels for the pictures of a row, and of one picture with the gap beside it at most."""

FILLED = 0.94
"""The part of it that is no gap."""


def small_patterns(runs: pd.DataFrame, letters: Sequence[int], width: int = ROW_WIDTH) -> Part:
    """What every head attends to, in one drawing; pointing at a column marks it in all of them.

    Args:
        runs: block, head, query (the place that attends), rows (how many places from there on),
            first and last (places attended to), weight in [0, 1]; what comes later lies above.
        letters: the number of each place, as in the other parts.
        width: pixels for a row of pictures, about.
    """
    blocks, heads = int(runs["block"].max()) + 1, int(runs["head"].max()) + 1
    step = FILLED / len(letters)
    pieces = pd.DataFrame(
        {
            "x": runs["head"] + runs["first"] * step,
            "x2": runs["head"] + (runs["last"] + 1) * step,
            "y": runs["block"] + runs["query"] * step,
            "y2": runs["block"] + (runs["query"] + runs["rows"]) * step,
            "weight": runs["weight"],
        }
    ).astype(np.float32)
    data = {"pieces": pieces, "columns": _columns(heads, blocks, letters)}
    return Part(_small_patterns, (heads, blocks, min(LARGEST, width // heads)), data, True)


def _small_patterns(heads: int, blocks: int, side: int) -> Layers:
    cells = chart_of("pieces").mark_rect().encode(*_axes(heads, blocks), color=weight_color())
    columns = chart_of("columns").encode(x="x:Q", x2="x2:Q", y="y:Q", y2="y2:Q")
    drawn = columns.mark_rect(fillOpacity=0).add_params(pointed())
    return alt.layer(cells, drawn, framed(columns)).properties(
        width=side * heads, height=side * blocks
    )


def _axes(heads: int, blocks: int) -> list[alt.X | alt.Y | alt.X2 | alt.Y2]:
    def named(kind: str, number: int) -> alt.Axis:
        return alt.Axis(
            values=[place + FILLED / 2 for place in range(number)],
            labelExpr=f"'{kind} ' + floor(datum.value)",
            orient="top" if kind == "head" else "left",
            grid=False,
            domain=False,
            ticks=False,
            title=None,
        )

    across = alt.Scale(domain=[0, heads], nice=False)
    down = alt.Scale(domain=[blocks, 0], nice=False)
    return [
        alt.X("x:Q", scale=across, axis=named("head", heads)),
        alt.X2("x2:Q"),
        alt.Y("y:Q", scale=down, axis=named("block", blocks)),
        alt.Y2("y2:Q"),
    ]


def _columns(heads: int, blocks: int, letters: Sequence[int]) -> pd.DataFrame:
    """A column a token in every picture."""
    step = FILLED / len(letters)
    block, head, place = np.indices((blocks, heads, len(letters))).reshape(3, -1)
    x, y = head + place * step, block.astype(float)
    ends = pd.DataFrame({"x": x, "x2": x + step, "y": y, "y2": y + FILLED}).astype(np.float32)
    return ends.assign(letter=np.array(letters)[place])
