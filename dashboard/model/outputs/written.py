"""What a model writes for an input, token by token, what it attends to, and other outputs."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd
import streamlit as st

from dashboard.charts.model.output_attention import output_attention
from dashboard.charts.model.output_tree import output_tree as drawn_tree
from dashboard.elements import pictures
from dashboard.elements.placement import place_together
from dashboard.figures import output_tree_frames as frames
from dashboard.figures.string_axes import DRAWN
from dashboard.model.by_strings.states import NARROW, Look, one_of, side_by_side
from dashboard.model.by_strings.string_results import patterns_of
from dashboard.model.choosing.epochs import Named
from dashboard.model.opened import remembered, say
from dashboard.model.outputs import own_picture, seen
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.interpretability.model.trained_model import Letters, TrainedModel
from seqcls.interpretability.states.by_strings import (
    Kind,
    Patterns,
    attention_kinds,
    has_attention,
    has_decoder,
    picture_attention,
)
from seqcls.interpretability.states.output_tokens import (
    OutputToken,
    output_tokens,
    require_writing,
)
from seqcls.interpretability.states.output_tree import output_tree
from sweeps.analysis import state_frames
from sweeps.analysis.answer_sentences import displayed, said_of

WIDTH = 5
"""The width of the beam whose outputs are shown."""

PIXELS = 900
"""For the tokens of the tree of outputs."""

tokens_of = remembered(output_tokens, "Writing")
tree_of = remembered(output_tree, "Writing")
seen_of = remembered(picture_attention)


def show(first: Named, letters: Letters, second: Named | None) -> None:
    """Draws the section for one input and one model, or beside a second one."""
    try:
        shown = [_Shown(first, letters, Look())]
        if second is not None:
            other = second.model.letters(first.model.text(letters))
            models = ((first, letters), (second, other))
            shown = [_Shown(each, read, Look(each.name)) for each, read in models]
            side_by_side([first, second])
        for title, draw in (
            ("", _answer),
            ("Token by token", _tokens),
            ("Attention while it writes", partial(_or_why_not, _attention)),
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
            own_picture.show([(each.named, each.look) for each in shown])
    except SeqclsError as error:
        say(error)


@dataclass(frozen=True, eq=False)
class _Shown:
    """A model, what it reads, and how that is drawn."""

    named: Named
    letters: Letters
    look: Look

    @property
    def model(self) -> TrainedModel:
        return self.named.model

    @cached_property
    def tokens(self) -> tuple[OutputToken, ...]:
        return tokens_of(self.named.opened, self.letters)


def _or_why_not(draw: Callable[[_Shown], None], shown: _Shown) -> None:
    """Draws; what cannot be drawn is said here, and hides nothing that follows."""
    try:
        draw(shown)
    except SeqclsError as error:
        say(error)


def _answer(shown: _Shown) -> None:
    require_writing(shown.model)
    st.markdown(verbatim(f"{said_of(shown.model.answer(shown.letters))}."))


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
        _seen(shown)
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
    look, (blocks, heads) = shown.look, patterns.weights.shape[:2]
    options = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    if kind is not None and len(options) == 1:
        chosen, title = options[0], str(kind)
    else:
        chosen = one_of("Head", options, options[0], "head", look)
        title = chosen if kind is None else f"{kind}, {chosen}"
    place = divmod(options.index(chosen), heads)
    start = len(shown.letters) + 1 if kind is None else 0
    frame = state_frames.output_attention_frame(patterns, start, *place)
    written = [token.token for token in shown.tokens]
    part = output_attention(frame, patterns.tokens, written, title, look.width)
    place_together([part], f"output attention {look.name}")


def _absent(model: TrainedModel) -> str:
    """Why there are no weights to show."""
    config = model.config
    if has_decoder(model):
        return verbatim(f"attention={config.attention!r}: this {config.architecture} has none.")
    return f"{verbatim(config.architecture)} names no attention."


def _seen(shown: _Shown) -> None:
    """Attention over the picture, token by token."""
    model, letters = shown.model, shown.letters
    page = pictures.page_of(model.problem.task)
    assert page is not None
    (ink,) = page.draw(np.array([letters], dtype=np.uint8))
    weights = seen_of(shown.named.opened, letters)
    seen.show(seen.Seen.of(ink, shown.tokens, weights), "seen", shown.look)


def _others(shown: _Shown) -> None:
    look = shown.look
    tree = tree_of(shown.named.opened, shown.letters, WIDTH)
    places = frames.drawn_places(tree)
    drawn = drawn_tree(
        frames.cells_frame(tree, places),
        frames.links_frame(tree, places),
        displayed(frames.ends_frame(tree, places), shown.model.config),
        NARROW if look.name else PIXELS,
    )
    place_together([drawn], f"output tree {look.name}")
    if any(leaf.tokens > len(places) for leaf in tree.leaves):
        st.caption(f"Drawn are the tokens {places[0] + 1} to {places[-1] + 1}; outputs have more.")
    st.caption(
        f"Beam search with a beam of {WIDTH}. The stronger a token's color, the likelier it is "
        "after those before it; where outputs part its probability stands above it. At the end of "
        "each row is the probability of the whole output."
    )
    with st.expander("Show data"):
        st.dataframe(
            displayed(frames.leaves_frame(tree), shown.model.config),
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
