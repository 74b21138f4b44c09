"""How heads divide their attention over the tokens of a string, read or written."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from dashboard.charts.colors import INK
from dashboard.charts.parts import (
    TOKENS,
    WIDTH,
    Layers,
    Names,
    TokenAxis,
    TokenDrawing,
    chart_of,
    column_frame,
    letter_axis,
    places_of,
    title_of,
    token_axis,
    tokens_frame,
    width_of,
)
from dashboard.charts.pointing import add_frame, pointer, row_frames
from dashboard.charts.scales import LOW_TO_HIGH, Drawing, by_panel, reserve_height, token_colors
from dashboard.charts.token_states import ROW, compact, grid

WEIGHTS_WIDTH = 250
WEIGHTS_ROW = 24
ROOM_FOR_TEXT = 1.75
"""The axis goes on beyond a weight of 1, where nothing but the numbers stands."""


def attention_weights(frame: pd.DataFrame, tokens: Sequence[str], title: str) -> Drawing:
    """One head as a table of bars: one row a kind of token, strings below another.

    Args:
        frame: string, head, token, count, label (token and count), score, weight in [0, 1], which
            is that of all tokens of the kind together.
        tokens: the vocabulary in order.
        title: above the drawing.
    """
    base = alt.Chart().encode(
        y=alt.Y("label:N", title=None, sort=None),
        tooltip=[
            alt.Tooltip("string:N", title="String"),
            alt.Tooltip("head:N", title="Head"),
            alt.Tooltip("token:N", title="Token"),
            alt.Tooltip("count:Q", title="Occurs"),
            alt.Tooltip("score:Q", title="Score of each", format=".4f"),
            alt.Tooltip("weight:Q", title="Weight of all together", format=".6f"),
        ],
    )
    weight = alt.X(
        "weight:Q",
        title="Attention weight of all tokens of a type",
        scale=alt.Scale(domain=[0, ROOM_FOR_TEXT], nice=False),
        axis=alt.Axis(values=[0, 0.5, 1], format="%", grid=False),
    )
    bars = base.mark_bar().encode(weight, token_colors(tokens))
    texts = base.mark_text(align="left", dx=5, fontSize=12, color=INK).encode(weight, text="text:N")
    texts = texts.transform_calculate(
        text="format(datum.weight, '.3f') + '  (score ' + format(datum.score, '.2f') + ')'"
    )
    cell = alt.layer(row_frames(base), bars, texts, data=frame).properties(
        width=WEIGHTS_WIDTH, height=alt.Step(WEIGHTS_ROW)
    )
    string = alt.Row(**by_panel(frame, "string"))
    string = string.header(labelAngle=0, labelAlign="left", labelLimit=160, labelFontSize=13)
    facets = cell.facet(row=string, spacing=12).resolve_scale(y="independent")
    return facets.properties(title=title, **reserve_height(WEIGHTS_ROW * len(frame)))


def _weight_color() -> alt.Color:
    """The scale of attention weights."""
    return alt.Color(
        "weight:Q",
        title="Weight",
        scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[0, 1]),
        legend=alt.Legend(format="~%", tickCount=3),
    )


# One head of a string, token by token.

NOTHING = "#440154"
"""Where the scheme of amounts begins."""


def attention_matrix(frame: pd.DataFrame, names: Names, title: str) -> TokenDrawing:
    """What each token attends to in one head, a row a token that attends.

    Args:
        frame: letter (attended to), query (the letter that attends), weight in [0, 1].
        names: of the tokens.
        title: above it.
    """
    tokens = np.array(names)
    cells = compact(frame, "query", "letter", "weight").assign(
        attends=tokens[frame["query"]], to=tokens[frame["letter"]]
    )
    data = {"attention": cells, TOKENS: tokens_frame(names)}
    return TokenDrawing(_attention_matrix, (places_of(names), title), data, True)


def _attention_matrix(tokens: TokenAxis, title: str) -> Layers:
    rows = alt.Scale(domain=list(range(tokens.number)))
    cells = chart_of("attention").encode(
        x=token_axis(tokens, "Token attended to"),
        y=alt.Y("query:O", scale=rows, axis=letter_axis("Token that attends", every=True)),
        color=_weight_color(),
        tooltip=[
            alt.Tooltip("attends:N", title="Attends"),
            alt.Tooltip("to:N", title="To"),
            alt.Tooltip("weight:Q", title="Weight", format=".4f"),
        ],
    )
    drawn = grid(tokens, cells, rows=tokens.number).properties(title=title_of(title))
    # What is not sent rounds to 0.
    return drawn.properties(view=alt.ViewBackground(fill=NOTHING))


# All heads of a Transformer as small pictures, a row a block and a column a head.

ROW_WIDTH, LARGEST = 880, 220
"""Pixels for the pictures of a row, and of one picture with the gap beside it at most."""

FILLED = 0.94
"""The part of it that is no gap."""


def small_patterns(
    runs: pd.DataFrame, letters: Sequence[int], width: int = ROW_WIDTH
) -> TokenDrawing:
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
    return TokenDrawing(_small_patterns, (heads, blocks, min(LARGEST, width // heads)), data, True)


def _small_patterns(heads: int, blocks: int, side: int) -> Layers:
    cells = chart_of("pieces").mark_rect().encode(*_axes(heads, blocks), color=_weight_color())
    columns = chart_of("columns").encode(x="x:Q", x2="x2:Q", y="y:Q", y2="y2:Q")
    drawn = columns.mark_rect(fillOpacity=0).add_params(pointer())
    return alt.layer(cells, drawn, add_frame(columns)).properties(
        width=side * heads, height=side * blocks
    )


def _axes(heads: int, blocks: int) -> list[alt.X | alt.Y | alt.X2 | alt.Y2]:
    def numbers_axis(kind: str, number: int) -> alt.Axis:
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
        alt.X("x:Q", scale=across, axis=numbers_axis("head", heads)),
        alt.X2("x2:Q"),
        alt.Y("y:Q", scale=down, axis=numbers_axis("block", blocks)),
        alt.Y2("y2:Q"),
    ]


def _columns(heads: int, blocks: int, letters: Sequence[int]) -> pd.DataFrame:
    """A column a token in every picture."""
    step = FILLED / len(letters)
    block, head, place = np.indices((blocks, heads, len(letters))).reshape(3, -1)
    x, y = head + place * step, block.astype(float)
    ends = pd.DataFrame({"x": x, "x2": x + step, "y": y, "y2": y + FILLED}).astype(np.float32)
    return ends.assign(letter=np.array(letters)[place])


# What one head attends to while an output is written: tokens that are written against those read.
#
# A model that copies the tokens of its input one after another has a diagonal here.

_WRITTEN = "written"
"""The data set of the tokens that are written: row and name."""


def output_attention(
    frame: pd.DataFrame, names: Names, written: Sequence[str], title: str, width: int = WIDTH
) -> TokenDrawing:
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
    return TokenDrawing(_output_attention, (places_of(names), len(written), title, width), data)


def _output_attention(tokens: TokenAxis, rows: int, title: str, width: int) -> Layers:
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
        color=_weight_color(),
        tooltip=[
            alt.Tooltip("writes:N", title="Writes"),
            alt.Tooltip("to:N", title="Attends to"),
            alt.Tooltip("weight:Q", title="Weight", format=".4f"),
        ],
    )
    rectangles = cells.mark_rect().add_params(pointer())
    return alt.layer(height.encode(y=row), rectangles, column_frame()).properties(
        width=width_of(tokens.number, width), height=max(ROW * rows, 60), title=title_of(title)
    )
