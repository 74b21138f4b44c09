"""Why small Transformers fail on long strings, told step by step with the shipped models."""

import streamlit as st

from dashboard import data
from dashboard.guide.steps import STEPS
from seqcls.errors import SeqclsError


def show() -> None:
    st.title("Why do small Transformers fail on long strings?")
    st.caption(
        "The argument of Richard Stebbing's report *Transformer Sequence Classification* (2022), "
        "in eight steps. All figures and numbers are of the models in your database."
    )
    for number, (title, step) in enumerate(STEPS.items(), start=1):
        st.subheader(f"{number}. {title}", anchor=f"step-{number}")
        try:
            step()
        except SeqclsError as error:
            data.explain(error)
            return


show()
