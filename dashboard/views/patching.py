"""Minimal failing strings, and what turns an answer when states are carried over."""

import pandas as pd
import streamlit as st

from dashboard.charts import token_states
from dashboard.charts.readout import token_names, with_letters
from dashboard.choosing.opened import AnyModel, remembered, say
from dashboard.choosing.strings import NOTATION, look_at
from dashboard.data import explaining
from dashboard.placement import stretch
from dashboard.text import verbatim
from seqcls.interpretability.answers import LISTED
from seqcls.interpretability.minimal import (
    how_near,
    minimal_failing,
    nearest_right,
    shortest_failing,
    whose_known,
)
from seqcls.interpretability.patching import Patched, patch
from seqcls.interpretability.trained_model import Answer, Letters
from sweeps.api.old_pages import presentation

minimal_of = remembered(minimal_failing)
nearest_of = remembered(nearest_right)
shortest_of = remembered(shortest_failing, "Trying")


@explaining(say)
def show_minimal(opened: AnyModel, letters: Letters) -> None:
    """What is left of a failing string, and the nearest string that is answered rightly."""
    given = opened.model.answer(letters)
    st.markdown(verbatim(f"{given.text}."))
    whose = whose_known(opened.model.problem)
    if given.is_wrong:
        minimal = minimal_of(opened, letters)
        st.subheader("Minimal failing string")
        _string(minimal.found, "minimal")
        st.caption(
            f"Delta debugging: it fails, and no string{whose} with one token less does "
            f"({minimal.tried:,} strings tried, each labeled by the task)."
            if whose
            else "Delta debugging: it fails, but no longer does if any one token is deleted "
            f"({minimal.tried:,} strings tried, each labeled by the task)."
        )
    nearest = nearest_of(opened, letters, prefer_other_answer=True)
    words = opened.model.problem.kind.words
    st.subheader(verbatim(f"Nearest {words.hit} {words.string}"))
    if nearest.answer is not None:
        _string(nearest.answer, "nearest")
        st.caption(f"{how_near(nearest.edits, nearest.answer, given)}.")
    else:
        st.caption(verbatim(nearest.describe(opened.model, given)))
    _shortest(opened)


def _shortest(opened: AnyModel) -> None:
    st.subheader("Shortest failing strings")
    if not st.toggle("Try all strings, the shortest first", key="shortest", bind="query-params"):
        st.caption("Up to 200,000 strings; it may take a minute.")
        return
    for said in shortest_of(opened).describe(opened.model):
        st.markdown(verbatim(said))


def _string(answer: Answer, key: str) -> None:
    left, right = st.columns([5, 2], vertical_alignment="center")
    left.code(answer.text, language=None, wrap_lines=True)
    right.button(
        "Look at it",
        key=f"look at {key}",
        on_click=look_at,
        args=(answer.string,),
        width="stretch",
    )


UNITS = 16
"""The most units of a recurrent network that are drawn where states are carried over."""

patched_of = remembered(patch, "Patching")


@explaining(say)
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
    source = model.letters(typed) if typed else _nearest(opened, letters)
    if source is None:
        st.info("No such string is within two substitutions. Type one of the same length.")
        return
    patched = patched_of(opened, letters, source)
    ends = [verbatim(model.answer(string).text) for string in (letters, source)]
    st.markdown(f"Base: {ends[0]}.  \nSource: {ends[1]}.")
    frame = with_letters(model, presentation.patched_frame(patched, UNITS))
    names = patched.base_tokens if patched.of_output else token_names(model, letters)
    logits = patched.base_logit, patched.source_logit
    drawing = token_states.patching_chart(frame, names, *logits, patched.unit)
    stretch(drawing, "network patched")
    _say_how_to_read(patched)
    if flips := patched.flip_rows():
        st.subheader("States that flip the prediction")
        st.dataframe(pd.DataFrame(flips[:LISTED]), hide_index=True, width="content")


def _nearest(opened: AnyModel, letters: Letters) -> Letters | None:
    nearest = nearest_of(opened, letters, other_answer=True, same_length=True, known=False)
    return None if nearest.answer is None else nearest.letters


def _say_how_to_read(patched: Patched) -> None:
    st.caption(
        f"Activation patching: each cell is the base string's {patched.number} with one state at "
        "one position replaced by the source string's. A dot marks those that flip the "
        "prediction; a state that carries the whole difference restores the source string's "
        f"{patched.unit}."
    )
    if patched.of_output:
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
