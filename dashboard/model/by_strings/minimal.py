"""Minimal failing strings, and the nearest right one."""

import streamlit as st

from dashboard.model.choosing.strings import look_at
from dashboard.model.opened import AnyModel, remembered, say
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.interpretability.minimal.minimal import minimal_failing, shortest_failing
from seqcls.interpretability.minimal.nearest import nearest_right
from seqcls.interpretability.model.trained_model import Answer, Letters
from sweeps.analysis.answer_sentences import (
    how_near,
    nearest_sentence,
    said_of,
    shortest_sentences,
    whose_known,
)

minimal_of = remembered(minimal_failing)
nearest_of = remembered(nearest_right)
shortest_of = remembered(shortest_failing, "Trying")


def show(opened: AnyModel, letters: Letters) -> None:
    """What is left of a failing string, and the nearest string that is answered rightly."""
    try:
        given = opened.model.answer(letters)
        st.markdown(verbatim(f"{said_of(given)}."))
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
        st.subheader(f"Nearest {words.hit} {words.string}")
        if nearest.answer is not None:
            _string(nearest.answer, "nearest")
            st.caption(f"{how_near(nearest.edits, nearest.answer, given)}.")
        else:
            st.caption(verbatim(nearest_sentence(nearest, given, words, whose)))
        _shortest(opened)
    except SeqclsError as error:
        say(error)


def _shortest(opened: AnyModel) -> None:
    st.subheader("Shortest failing strings")
    if not st.toggle("Try all strings, the shortest first", key="shortest", bind="query-params"):
        st.caption("Up to 200,000 strings; it may take a minute.")
        return
    problem = opened.model.problem
    for said in shortest_sentences(shortest_of(opened), problem.kind.words, whose_known(problem)):
        st.markdown(verbatim(said))


def _string(answer: Answer, key: str) -> None:
    left, right = st.columns([5, 2], vertical_alignment="center")
    left.code(said_of(answer), language=None, wrap_lines=True)
    right.button(
        "Look at it",
        key=f"look at {key}",
        on_click=look_at,
        args=(answer.string,),
        width="stretch",
    )
