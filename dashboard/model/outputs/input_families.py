"""Which outputs of a family of inputs are right, and up to which token."""

import pandas as pd
import streamlit as st

from dashboard.charts.errors.output_families import output_curve, output_map
from dashboard.elements.placement import place, stretch
from dashboard.figures.output_family_frames import outputs_frame
from dashboard.model.opened import AnyModel, remembered, say_of_input
from dashboard.text import verbatim
from dashboard.words.languages import family_example
from seqcls.errors import SeqclsError
from seqcls.interpretability.families.families import output_family
from seqcls.interpretability.families.output_family import OutputFamily, output_family_text
from sweeps.analysis.answer_sentences import displayed

family_of = remembered(output_family, "Writing outputs")


def show(opened: AnyModel) -> None:
    """A family of inputs, typed in, and what the model writes for each."""
    text = st.text_input(
        "Family of inputs",
        family_example(opened.model.task),
        key="family",
        bind="query-params",
        help="One or two counts are left free, as n or m: a{n}, ab{n}, <ab>{n}, a{m}b{n}.",
    )
    try:
        answers = family_of(opened, text.strip())
    except SeqclsError as error:
        say_of_input(error)
        return
    first, *others = output_family_text(answers)
    st.markdown(verbatim(first))
    for said in others:
        st.markdown(f"- {verbatim(said)}")
    frame = outputs_frame(answers)
    if len(answers.family.names) == 1:
        stretch(output_curve(frame, answers.family.names[0], answers.family.text), "output curve")
    else:
        first_name, second_name = answers.family.names
        place(output_map(frame, (first_name, second_name), answers.family.text), "output map")
    _table(answers, displayed(frame, opened.model.config))


def _table(answers: OutputFamily, frame: pd.DataFrame) -> None:
    names = list(answers.family.names)
    st.dataframe(
        frame[[*names, "outcome", "right_tokens", "target_tokens", "target", "output"]],
        hide_index=True,
        column_config={
            "outcome": st.column_config.TextColumn("Output is"),
            "right_tokens": st.column_config.NumberColumn(
                "Right tokens", help="Before the first in which output and target differ."
            ),
            "target_tokens": st.column_config.NumberColumn("Target tokens"),
            "target": st.column_config.TextColumn("Target"),
            "output": st.column_config.TextColumn("Output"),
        },
    )
