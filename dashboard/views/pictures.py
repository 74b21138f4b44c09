"""Pictures that a model reads: where it looks as it writes, and pictures of one's own."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import streamlit as st
from jaxtyping import Float

from dashboard import elements
from dashboard.choosing.opened import say
from dashboard.choosing.strings import Named
from dashboard.data import explaining
from dashboard.text import verbatim
from dashboard.views.states import FigureStyle, one_of
from seqcls.interpretability.states_of_outputs import OutputToken, read_picture
from seqcls.interpretability.wording import percent
from seqcls.models.pictures import page_of
from seqcls.pictures.user_pictures import (
    MAX_BYTES,
    MAX_PIXELS,
    Ink,
    picture_of_png,
    picture_of_text,
)
from sweeps.access import refuse_writes
from sweeps.api.old_pages.database import control

SECONDS = 0.8
"""Between two characters, as it plays."""

OF_ALL = "mean of all"

Heat = Float[np.ndarray, "token row column"]


@dataclass(frozen=True, eq=False)
class Seen:
    """A picture, what is written of it, and the weights over it at each token."""

    ink: Ink
    written: Sequence[str]
    weights: Float[np.ndarray, "block head token row column"]

    @classmethod
    def of(cls, ink: Ink, tokens: Sequence[OutputToken], weights: np.ndarray) -> "Seen":
        """Builds what is seen from the tokens that are written."""
        return cls(ink, [token.token for token in tokens][: weights.shape[2]], weights)


def show_attention(seen: Seen, name: str, look: FigureStyle) -> None:
    """Draws the picture, the weights over it, and what plays them; nothing is computed again.

    Args:
        seen: what there is to draw.
        name: tells it from others on the page; also of the choice of a head in the link.
        look: of the model.
    """
    st.fragment(_of_head)(seen, name, look)


def _of_head(seen: Seen, name: str, look: FigureStyle) -> None:
    blocks, heads = seen.weights.shape[:2]
    options = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    heat = seen.weights.mean(axis=(0, 1))
    if len(options) > 1:
        chosen = one_of("Head", [OF_ALL, *options], OF_ALL, name, look)
        if chosen in options:
            heat = seen.weights[divmod(options.index(chosen), heads)]
    key = f"{name} {look.name}"
    last = len(seen.written)
    plays = st.session_state.get(_plays(key), False)
    if last > 1:
        st.button(
            "Pause" if plays else "Play",
            key=f"{key} play",
            icon=":material/pause:" if plays else ":material/play_arrow:",
            help="Steps through the heat map, character by character.",
            on_click=_turn,
            args=(key, last),
        )
    st.fragment(_at_token, run_every=SECONDS if plays else None)(seen, heat, key)


def _plays(key: str) -> str:
    return f"{key} plays"


def _at(key: str) -> str:
    return f"{key} step"


def _turn(key: str, last: int) -> None:
    """Plays or pauses; from the start where the end was reached."""
    state = st.session_state
    state[_plays(key)] = not state.get(_plays(key), False)
    if state[_plays(key)] and state.get(_at(key), 1) >= last:
        # The first picture that is drawn goes on by one.
        state[_at(key)] = 0


def _at_token(seen: Seen, heat: Heat, key: str) -> None:
    state, last = st.session_state, len(seen.written)
    step = int(state.get(_at(key), 1))
    if state.get(_plays(key)):
        step += 1
    # Another picture's output may be shorter.
    state[_at(key)] = step = min(max(step, 1), last)
    if last > 1:
        step = st.slider("Written so far", 1, last, key=_at(key))
    elements.place_picture(elements.overlay_heat(seen.ink, heat[step - 1]))
    before, token = "".join(seen.written[: step - 1]), seen.written[step - 1]
    st.markdown(f"{verbatim(before)}:orange-background[{verbatim(token)}]")
    st.caption(
        "Orange: where the model looks as it writes the marked character. The strongest orange is "
        f"the largest weight, {heat[step - 1].max():.3f}."
    )
    if state.get(_plays(key)) and step == last:
        state[_plays(key)] = False
        # What draws the button, and stops the clock, is around this part.
        st.rerun()


DRAWN, UPLOADED = "Drawn from text", "Uploaded"
FONTS = {"pillow": "Pillow's bitmap font", "digits": "handwritten digits"}


def show_own(models: Sequence[tuple[Named, FigureStyle]]) -> None:
    """Draws the section: how the picture comes about, and what each model reads of it."""
    st.subheader("A picture of your own")
    st.fragment(_section)(models)


@explaining(say)
def _section(models: Sequence[tuple[Named, FigureStyle]]) -> None:
    how = st.segmented_control(
        "Picture", (DRAWN, UPLOADED), default=DRAWN, required=True, key="own_picture"
    )
    (named, _), *_ = models
    ink = _draw_text(named) if how == DRAWN else _upload(named)
    if ink is None:
        return
    for column, (each, look) in zip(st.columns(len(models)), models, strict=True):
        with column:
            _show_reading(each, ink, look)


def _draw_text(named: Named) -> Ink | None:
    """The picture of the text that is typed; None before."""
    page = page_of(named.model.problem.network)
    left, middle, right = st.columns([2, 1, 1])
    text = left.text_input(
        "Text",
        key="own_text",
        placeholder="such as 12/345",
        help=f"Up to {page.max_lines} lines of {page.line_length} characters, / between them.",
    )
    font = middle.selectbox(
        "Font", list(FONTS), list(FONTS).index(page.font), FONTS.__getitem__, key="own_font"
    )
    distortion = right.slider(
        "Distortion",
        0.0,
        1.0,
        page.distortion,
        key="own_distortion",
        help="Jitter, slant, faint ink and noise. The model was trained on "
        f"{page.distortion:g} of it.",
    )
    if not text:
        st.caption("Type a text: it is drawn, and the model reads it.")
        return None
    return picture_of_text(text, page.shape, font, distortion)


def _upload(named: Named) -> Ink | None:
    """The picture that is uploaded; None before."""
    page = page_of(named.model.problem.network)
    rows, columns = page.shape
    uploaded = st.file_uploader(
        "A picture of text (PNG)",
        type=["png"],
        key="own_png",
        max_upload_size=MAX_BYTES // 1_000_000,
        **control("Dark on light, with lines that begin at the left."),
    )
    if uploaded is None:
        st.caption(
            f"Up to {MAX_BYTES // 1_000_000} MB and {MAX_PIXELS // 1_000_000} million pixels. It "
            f"is made gray and scaled to the {columns} x {rows} pixels that the model reads: a "
            f"character is about {columns // page.line_length} wide and "
            f"{rows // page.max_lines} high there. It is not kept."
        )
        return None
    refuse_writes("reading a picture")
    return picture_of_png(uploaded.getvalue(), page.shape)


def _show_reading(named: Named, ink: Ink, look: FigureStyle) -> None:
    read = read_picture(named.model, ink)
    shown = named.model.tokenizer.display(read.text)
    text = f"The model reads {shown!r}" if shown else "The model reads nothing"
    ends = read.tokens[-1].token == "END"
    surest = min(read.tokens, key=lambda token: token.probability)
    st.markdown(verbatim(f"{text}{'' if ends else ' and did not end'}."))
    st.caption(
        f"Least sure of {verbatim(surest.token)}: probability {percent(surest.probability)}, "
        f"then {verbatim(surest.runner_up)} with {percent(surest.runner_up_probability)}."
    )
    if read.weights is None:
        elements.place_picture(elements.overlay_heat(ink))
        return
    show_attention(Seen.of(ink, read.tokens, read.weights), "own_seen", look)
