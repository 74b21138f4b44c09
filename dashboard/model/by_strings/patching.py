"""What turns the answer when states are carried over from another string."""

import streamlit as st

from dashboard.charts.model import token_states
from dashboard.elements.placement import stretch_part
from dashboard.figures.string_axes import token_names, with_letters
from dashboard.model.by_strings.minimal import nearest_of
from dashboard.model.choosing.strings import NOTATION
from dashboard.model.opened import AnyModel, remembered, say
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.interpretability.model.trained_model import Letters
from seqcls.interpretability.patching import Patched, patch
from sweeps.analysis import state_frames
from sweeps.analysis.answer_sentences import said_of
from sweeps.analysis.state_frames import LISTED, flip_table

UNITS = 16
"""The most units of a recurrent network that are drawn where states are carried over."""

patched_of = remembered(patch, "Patching")


def show(opened: AnyModel, letters: Letters) -> None:
    """Which state, carried over from another string of the same length, turns the answer."""
    model = opened.model
    typed = st.text_input(
        "Source string",
        key=f"network_source {model.text(letters)}",
        placeholder="nearest correct string of this length with the other prediction",
        help="Its states replace those of the base string; it must have as many tokens. "
        f"{NOTATION}",
    )
    try:
        source = model.letters(typed) if typed else _nearest(opened, letters)
        if source is None:
            st.info("No such string is within two substitutions. Type one of the same length.")
            return
        patched = patched_of(opened, letters, source)
        ends = [verbatim(said_of(model.answer(string))) for string in (letters, source)]
    except SeqclsError as error:
        say(error)
        return
    st.markdown(f"Base: {ends[0]}.  \nSource: {ends[1]}.")
    frame = state_frames.patched_frame(patched, UNITS)
    frame = frame.assign(letter=with_letters(model, frame["place"]))
    names = patched.base_tokens if model.writes else token_names(model, letters)
    logits = patched.base_logit, patched.source_logit
    drawing = token_states.patched(frame, names, *logits, patched.unit)
    stretch_part(drawing, "network patched")
    _say_how_to_read(patched, model.writes)
    flips = flip_table(patched)
    if not flips.empty:
        st.subheader("States that flip the prediction")
        st.dataframe(flips.head(LISTED), hide_index=True, width="content")


def _nearest(opened: AnyModel, letters: Letters) -> Letters | None:
    nearest = nearest_of(opened, letters, other_answer=True, same_length=True, known=False)
    return None if nearest.answer is None else nearest.letters


def _say_how_to_read(patched: Patched, writes: bool) -> None:
    st.caption(
        f"Activation patching: each cell is the base string's {patched.number} with one state at "
        "one position replaced by the source string's. A dot marks those that flip the "
        "prediction; a state that carries the whole difference restores the source string's "
        f"{patched.unit}."
    )
    if writes:
        st.caption(
            "States of the input and of SEP are replaced; the output is teacher forced. If the "
            "model writes the target for the base string, the number is the target's "
            "log-probability, and the prediction flips where another token is likelier; else the "
            "log-probability of what the model writes is subtracted, and the sign decides."
        )
    if any(site.side for site in patched.sites):
        st.caption(
            "Encoder states are replaced at CLS and the input, decoder states only at SEP; those "
            "at later tokens of the output are left as they are."
        )
    if any(site.is_whole for site in patched.sites):
        st.caption(
            "A layer's whole state carries over all that the layer has read so far; the rows of "
            f"single units show which of them decide. Up to {UNITS} units are drawn, those that "
            f"restore most of the source's {patched.unit}."
        )
