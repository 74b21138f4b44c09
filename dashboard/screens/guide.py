"""Why small Transformers fail on long strings, told step by step with the shipped models."""

import streamlit as st

from dashboard import data
from dashboard.guide.models import of_report
from dashboard.guide.steps import DEFAULT, STEPS
from seqcls.errors import SeqclsError


def show() -> None:
    st.title("Why do small Transformers fail on long strings?")
    st.caption(
        "The argument of Richard Stebbing's report *Transformer Sequence Classification* (2022), "
        "in eight steps, with its models as your database has them; a ninth is about copying."
    )
    try:
        if of_report(DEFAULT).empty:
            st.info(
                "This database has none of the report's models, which this guide is about. "
                "`seqcls sweep report` trains them."
            )
            return
    except SeqclsError as error:
        data.explain(error)
        return
    for number, (title, step) in enumerate(STEPS.items(), start=1):
        st.subheader(f"{number}. {title}", anchor=f"step-{number}")
        try:
            step()
        except SeqclsError as error:
            data.explain(error)
            return


show()
