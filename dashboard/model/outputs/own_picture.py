"""A picture of one's own, uploaded or drawn of any text, is read by the models of the page."""

from collections.abc import Sequence

import streamlit as st

from dashboard.elements import pictures
from dashboard.model.by_strings.states import Look
from dashboard.model.choosing.epochs import Named
from dashboard.model.opened import say
from dashboard.model.outputs import seen
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.interpretability.states.user_picture import read_picture
from seqcls.models.two_streams.pictures import page_of
from seqcls.pictures.user_pictures import (
    MAX_BYTES,
    MAX_PIXELS,
    Ink,
    picture_of_png,
    picture_of_text,
)
from sweeps.read_only import control, refuse_writes

DRAWN, UPLOADED = "Drawn from text", "Uploaded"
FONTS = {"pillow": "Pillow's bitmap font", "digits": "handwritten digits"}


def show(models: Sequence[tuple[Named, Look]]) -> None:
    """Draws the section: how the picture comes about, and what each model reads of it."""
    st.subheader("A picture of your own")
    st.fragment(_section)(models)


def _section(models: Sequence[tuple[Named, Look]]) -> None:
    how = st.segmented_control(
        "Picture", (DRAWN, UPLOADED), default=DRAWN, required=True, key="own_picture"
    )
    (named, _), *_ = models
    try:
        ink = _drawn(named) if how == DRAWN else _uploaded(named)
        if ink is None:
            return
        for column, (each, look) in zip(st.columns(len(models)), models, strict=True):
            with column:
                _read(each, ink, look)
    except SeqclsError as error:
        say(error)


def _drawn(named: Named) -> Ink | None:
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


def _uploaded(named: Named) -> Ink | None:
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


def _read(named: Named, ink: Ink, look: Look) -> None:
    read = read_picture(named.model, ink)
    shown = named.model.tokenizer.display(read.text)
    text = f"The model reads {shown!r}" if shown else "The model reads nothing"
    ends = read.tokens[-1].token == "END"
    surest = min(read.tokens, key=lambda token: token.probability)
    st.markdown(verbatim(f"{text}{'' if ends else ' and did not end'}."))
    st.caption(
        f"Least sure of {verbatim(surest.token)}: probability {surest.probability:.1%}, then "
        f"{verbatim(surest.runner_up)} with {surest.runner_up_probability:.1%}."
    )
    if read.weights is None:
        pictures.place(pictures.heated(ink))
        return
    seen.show(seen.Seen.of(ink, read.tokens, read.weights), "own_seen", look)
