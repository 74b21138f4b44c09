"""What a model writes for an input, token by token, what it attends to, and other outputs."""

from dataclasses import dataclass
from functools import cached_property
from math import exp

import altair as alt
import numpy as np
import pandas as pd
import streamlit as st

from dashboard import elements
from dashboard.charts.colors import GREY, INK, OKABE_ITO
from dashboard.charts.parts import WIDTH, Layers, TokenDrawing, chart_of, title_of
from dashboard.charts.readout import DRAWN
from dashboard.choosing.opened import remembered, say
from dashboard.choosing.strings import Named
from dashboard.data import explaining
from dashboard.figures.string_states import draw_output_head, heads_of
from dashboard.placement import place
from dashboard.text import verbatim
from dashboard.views import pictures
from dashboard.views.states import NARROW, FigureStyle, one_of, side_by_side
from seqcls.interpretability.states_by_strings import (
    Kind,
    Patterns,
    attention_kinds,
    attention_patterns,
    has_attention,
    has_decoder,
    picture_attention,
)
from seqcls.interpretability.states_of_outputs import (
    Leaf,
    OutputToken,
    OutputTree,
    output_tokens,
    output_tree,
    require_writing,
)
from seqcls.interpretability.trained_model import Letters, TrainedModel
from seqcls.interpretability.wording import percent
from sweeps.api.presentation import display_strings

BEFORE = 3
"""Tokens that are drawn before the first at which outputs part, where all are too many."""


def drawn_positions(tree: OutputTree) -> range:
    """The places that are drawn: all, or some from those on where outputs part."""
    end = max(leaf.tokens for leaf in tree.leaves)
    parting = min((leaf.branch for leaf in tree.leaves if leaf.row), default=0)
    first = max(parting - BEFORE, 0) if end > DRAWN else 0
    return range(first, min(end, first + DRAWN))


def cells_frame(tree: OutputTree, places: range) -> pd.DataFrame:
    """row, place, token, probability, so_far, strength, choice: of the tokens that are drawn."""
    others = [leaf for leaf in tree.leaves if leaf.row]
    parting = {(row, leaf.branch) for leaf in others for row in (leaf.parent, leaf.row)}
    rows = [
        {
            "row": token.row,
            "place": token.place,
            "token": token.token,
            "probability": token.probability,
            "so_far": exp(token.log_probability),
            "strength": 0.06 + 0.36 * token.probability,
            "choice": share(token.probability) if (token.row, token.place) in parting else "",
        }
        for token in tree.tokens
        if token.place in places
    ]
    return pd.DataFrame(rows)


def links_frame(tree: OutputTree, places: range) -> pd.DataFrame:
    """row, parent, place: where a row leaves another."""
    rows = [
        {"row": leaf.row, "parent": leaf.parent, "place": leaf.branch}
        for leaf in tree.leaves
        if leaf.row and leaf.branch in places
    ]
    return pd.DataFrame(rows, columns=["row", "parent", "place"])


def ends_frame(tree: OutputTree, places: range) -> pd.DataFrame:
    """row, place, said, output, probability, log_probability."""
    rows = [
        {
            "row": leaf.row,
            "place": min(leaf.tokens - 1, places[-1]),
            "said": f"{_outcome(leaf)}, {share(exp(leaf.log_probability))}",
            "output": leaf.text or "the empty output",
            "probability": exp(leaf.log_probability),
            "log_probability": leaf.log_probability,
        }
        for leaf in tree.leaves
    ]
    return pd.DataFrame(rows)


def leaves_frame(tree: OutputTree) -> pd.DataFrame:
    """output, right, ended, probability, log_probability: the likeliest first."""
    rows = [
        {
            "output": leaf.text or "the empty output",
            "right": leaf.right,
            "ended": leaf.ended,
            "probability": exp(leaf.log_probability),
            "log_probability": leaf.log_probability,
        }
        for leaf in sorted(tree.leaves, key=lambda leaf: -leaf.log_probability)
    ]
    return pd.DataFrame(rows).astype({"right": "boolean"})


def share(probability: float) -> str:
    """A probability in a few characters."""
    if probability > 0.9995:
        return ">99.9%"
    if probability < 0.001:
        return "<0.1%"
    return percent(probability, 1)


def _outcome(leaf: Leaf) -> str:
    if not leaf.ended:
        return "cut off"
    if leaf.right is None:
        return "target not known"
    return "right" if leaf.right else "wrong"


LEAST_STEP, STEP = 14, 30
ROW = 30
END_ROOM = 190
"""Pixels for what is said of an output at the end of its row."""

_CELLS, _LINKS, _ENDS = "tree_cells", "tree_links", "tree_ends"


def output_tree_chart(
    cells: pd.DataFrame, links: pd.DataFrame, ends: pd.DataFrame, space: int = WIDTH
) -> TokenDrawing:
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
    return TokenDrawing(_output_tree_chart, (first, last, rows, space), data)


def _output_tree_chart(first: int, last: int, rows: int, space: int) -> Layers:
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
                alt.Tooltip("probability:Q", title="Its probability", format=".4~%"),
                alt.Tooltip("so_far:Q", title="With all before it", format=".4~%"),
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
                alt.Tooltip("probability:Q", title="Probability", format=".4~%"),
                alt.Tooltip("log_probability:Q", title="Log-probability", format=".4f"),
            ],
        )
    )
    return alt.layer(down, cells, names, choices, ends).properties(
        width=step * places + END_ROOM,
        height=ROW * rows + 12,
        title=title_of("Each row is an output; rows share the tokens with which they begin"),
    )


BEAM = 5
"""The width of the beam whose outputs are shown."""

PIXELS = 900
"""For the tokens of the tree of outputs."""

tokens_of = remembered(output_tokens, "Writing")
tree_of = remembered(output_tree, "Writing")
patterns_of = remembered(attention_patterns)
seen_of = remembered(picture_attention)


@explaining(say)
def show(first: Named, letters: Letters, second: Named | None) -> None:
    """Draws the section for one input and one model, or beside a second one."""
    shown = [_Shown(first, letters, FigureStyle())]
    if second is not None:
        other = second.model.letters(first.model.text(letters))
        models = ((first, letters), (second, other))
        shown = [_Shown(each, read, FigureStyle(each.name)) for each, read in models]
        side_by_side([first, second])
    for title, draw in (
        ("", _answer),
        ("Token by token", _tokens),
        ("Attention while it writes", explaining(say)(_attention)),
        ("Likeliest outputs", _others),
    ):
        if title == "Attention while it writes" and not any(
            has_attention(each.model) for each in shown
        ):
            st.caption(_absent(shown[0].model))
            continue
        if title:
            st.subheader(title)
        for column, each in zip(st.columns(len(shown)), shown, strict=True):
            with column:
                draw(each)
    if first.model.problem.network.picture:
        pictures.show_own([(each.named, each.look) for each in shown])


@dataclass(frozen=True, eq=False)
class _Shown:
    """A model, what it reads, and how that is drawn."""

    named: Named
    letters: Letters
    look: FigureStyle

    @property
    def model(self) -> TrainedModel:
        return self.named.model

    @cached_property
    def tokens(self) -> tuple[OutputToken, ...]:
        return tokens_of(self.named.opened, self.letters)


def _answer(shown: _Shown) -> None:
    require_writing(shown.model)
    st.markdown(verbatim(f"{shown.model.answer(shown.letters).text}."))


def _tokens(shown: _Shown) -> None:
    tokens = shown.tokens
    st.dataframe(
        pd.DataFrame(list(map(vars, tokens))),
        hide_index=True,
        width="content",
        column_config={
            "token": "Written",
            "probability": st.column_config.ProgressColumn(
                "Probability",
                help="Of the token, after the input and the tokens before it.",
                format="percent",
                min_value=0,
                max_value=1,
            ),
            "runner_up": st.column_config.TextColumn("Runner-up", help="The likeliest other one."),
            "runner_up_probability": st.column_config.ProgressColumn(
                "Its probability", format="percent", min_value=0, max_value=1
            ),
        },
    )
    if tokens[-1].token != "END":
        st.caption("The output was cut off: the model had not written END.")


def _attention(shown: _Shown) -> None:
    model, look = shown.model, shown.look
    if not has_attention(model):
        st.caption(_absent(model))
        return
    if model.problem.network.picture:
        _show_attention(shown)
        return
    kinds = attention_kinds(model)
    kind = kinds[0] if kinds else None
    if len(kinds) > 1:
        kind = kinds[kinds.index(one_of("Attention", kinds, kinds[0], "attends", look))]
    patterns = patterns_of(shown.named.opened, shown.letters, kind=kind or "cross-attention")
    if why_not := _undrawn(patterns, bool(kinds)):
        st.caption(why_not)
        return
    _heat_map(shown, patterns, kind)
    more = "" if kind == "self-attention" else " Copying from left to right shows a diagonal."
    if kinds == ("cross-attention",):
        more = f" They follow from the state before that token is read.{more}"
    st.caption(
        "Each row is a token as it is written: the weights are those of the token read last before "
        f"it, SEP for the first.{more} Cells are empty where the weight rounds to 0.0000."
    )


def _undrawn(patterns: Patterns, apart: bool) -> str:
    """Why weights are not drawn; empty where they are."""
    if not patterns.weights.shape[1]:
        return "It has no attention heads."
    tokens = max(len(patterns.tokens), len(patterns.rows))
    if tokens <= DRAWN:
        return ""
    what = "the longer of input and output has" if apart else "input and output have"
    return f"Attention is drawn up to {DRAWN} tokens; {what} {tokens}."


def _heat_map(shown: _Shown, patterns: Patterns, kind: Kind | None) -> None:
    """The weights of one head that is chosen, while tokens are written."""
    look, options = shown.look, list(heads_of(patterns))
    chosen = options[0]
    if kind is None or len(options) > 1:
        chosen = one_of("Head", options, chosen, "head", look)
    start = len(shown.letters) + 1 if kind is None else 0
    written = [token.token for token in shown.tokens]
    part = draw_output_head(patterns, chosen, written, kind=kind, start=start, width=look.width)
    place(part, f"output attention {look.name}")


def _absent(model: TrainedModel) -> str:
    """Why there are no weights to show."""
    config = model.config
    if has_decoder(model):
        return verbatim(f"attention={config.attention!r}: this {config.architecture} has none.")
    return f"{verbatim(config.architecture)} names no attention."


def _show_attention(shown: _Shown) -> None:
    """Attention over the picture, token by token."""
    model, letters = shown.model, shown.letters
    page = elements.page_of(model.problem.task)
    assert page is not None
    (ink,) = page.draw(np.array([letters], dtype=np.uint8))
    weights = seen_of(shown.named.opened, letters)
    pictures.show_attention(pictures.Seen.of(ink, shown.tokens, weights), "seen", shown.look)


def _others(shown: _Shown) -> None:
    look = shown.look
    tree = tree_of(shown.named.opened, shown.letters, BEAM)
    places = drawn_positions(tree)
    drawn = output_tree_chart(
        cells_frame(tree, places),
        links_frame(tree, places),
        display_strings(ends_frame(tree, places), shown.model.config),
        NARROW if look.name else PIXELS,
    )
    place(drawn, f"output tree {look.name}")
    if any(leaf.tokens > len(places) for leaf in tree.leaves):
        st.caption(f"Tokens {places[0] + 1} to {places[-1] + 1} are drawn; some outputs have more.")
    st.caption(
        f"Beam search with a beam of {BEAM}. The stronger a token's color, the likelier it is "
        "after those before it; where outputs part its probability stands above it. At the end of "
        "each row is the probability of the whole output."
    )
    with st.expander("Show data"):
        st.dataframe(
            display_strings(leaves_frame(tree), shown.model.config),
            hide_index=True,
            width="content",
            column_config={
                "output": "Output",
                "right": st.column_config.CheckboxColumn("Right"),
                "ended": st.column_config.CheckboxColumn(
                    "Ended", help="Whether the model wrote END; else the output was cut off."
                ),
                "probability": st.column_config.ProgressColumn(
                    "Probability", format="percent", min_value=0, max_value=1
                ),
                "log_probability": st.column_config.NumberColumn("Log-probability", format="%.4f"),
            },
        )
