"""Minimal failing strings, the nearest right one, and what turns the answer when carried over."""

import streamlit as st

from dashboard.charts.model import token_states
from dashboard.drawing import place_together
from dashboard.figures.string_axes import token_names, with_letters
from dashboard.network.opened_string import NOTATION, look_at, say
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.interpretability.strings.trained_model import Answer, Letters, TrainedModel
from sweeps.analysis import state_frames

UNITS = 16
"""Of a recurrent network that are drawn where states are carried over."""


def show_minimal(model: TrainedModel, letters: Letters) -> None:
    """What is left of a failing string, and the nearest string that is answered rightly."""
    from seqcls.interpretability.strings.minimal import minimal_failing
    from seqcls.interpretability.strings.nearest import nearest_right
    from sweeps.cli.commands.any_model import nearest_sentence, said_of

    try:
        given = model.answer(letters)
        st.markdown(verbatim(f"{said_of(given)}."))
        if given.is_wrong:
            found = minimal_failing(model, letters)
            st.subheader("Minimal failing string")
            _string(found.found, "minimal")
            st.caption(
                "Delta debugging: it fails, but no longer does if any one token is deleted "
                f"({found.tried:,} strings tried, each labeled by the task)."
            )
        near = nearest_right(model, letters, prefer_other_answer=True)
        st.subheader("Nearest correctly classified string")
        if near.answer is not None:
            _string(near.answer, "nearest")
        st.caption(verbatim(nearest_sentence(near, given)))
        _shortest(model)
    except SeqclsError as error:
        say(error)


def _shortest(model: TrainedModel) -> None:
    from seqcls.interpretability.strings.minimal import shortest_failing
    from sweeps.cli.commands.any_model import shortest_sentences

    st.subheader("Shortest failing strings")
    if not st.toggle("Try all strings, the shortest first", key="shortest", bind="query-params"):
        st.caption("Up to 200,000 strings; it may take a minute.")
        return
    with st.spinner("Trying", show_time=True):
        found = shortest_failing(model)
    for said in shortest_sentences(found):
        st.markdown(verbatim(said))


def _string(answer: Answer, key: str) -> None:
    from sweeps.cli.commands.any_model import said_of

    left, right = st.columns([5, 2], vertical_alignment="center")
    left.code(said_of(answer), language=None, wrap_lines=True)
    right.button(
        "Look at it",
        key=f"look at {key}",
        on_click=look_at,
        args=(answer.string,),
        width="stretch",
    )


def show_patching(model: TrainedModel, letters: Letters) -> None:
    """Which state, carried over from another string of the same length, turns the answer."""
    from seqcls.interpretability.strings.nearest import nearest_right
    from seqcls.interpretability.strings.patching import patch
    from sweeps.cli.commands.any_model import said_of
    from sweeps.cli.commands.states import LISTED, flip_table

    typed = st.text_input(
        "Source string",
        key=f"network_source {model.text(letters)}",
        placeholder="nearest correct string of this length with the other prediction",
        help="Its states are put in the place of the other's; it must have as many tokens. "
        f"{NOTATION}",
    )
    try:
        if typed:
            source = model.letters(typed)
        else:
            near = nearest_right(model, letters, other_answer=True, same_length=True)
            if near.answer is None:
                st.info("No such string is within two substitutions. Type one of the same length.")
                return
            source = near.letters
        found = patch(model, letters, source)
        ends = [verbatim(said_of(model.answer(own))) for own in (letters, source)]
    except SeqclsError as error:
        say(error)
        return
    st.markdown(f"Base: {ends[0]}.  \nSource: {ends[1]}.")
    frame = state_frames.patched_frame(found, UNITS)
    frame = frame.assign(letter=with_letters(model, frame["place"]))
    names = token_names(model, letters)
    drawing = token_states.patched(frame, names, found.base_logit, found.source_logit)
    place_together([drawing], "network patched")
    st.caption(
        "Activation patching: each cell is the base string's logit with one state at one position "
        "replaced by the source string's. A dot marks those that flip the prediction; a state that "
        "carries the whole difference restores the source string's logit."
    )
    if any(site.is_whole for site in found.sites):
        st.caption(
            "What a layer keeps as a whole carries over all that was read so far; which unit holds "
            f"what decides, its own row shows. Drawn are the {UNITS} units at most that restore "
            "most of the source's logit."
        )
    flips = flip_table(found)
    if not flips.empty:
        st.subheader("States that flip the prediction")
        st.dataframe(flips.head(LISTED), hide_index=True, width="content")
