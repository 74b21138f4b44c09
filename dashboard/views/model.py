"""Inside one model: why it fails, where it breaks, and every figure of what it does."""

import streamlit as st

from dashboard import data
from dashboard.model import breaking, choice, looks, surgery, verdict, why
from dashboard.model.opened import OpenedModel, open_model
from seqcls.errors import SeqclsError
from sweeps.store.overview import ErrorSearch

SECTIONS = {
    "Why": why.show,
    "Figures": looks.show,
    "Breaking point": breaking.show,
    "All strings": verdict.show,
    "Surgery": surgery.show,
}


def show() -> None:
    st.header("Inside a model")
    try:
        run_id = choice.choose_run()
        if run_id is None:
            st.info("No model is trained yet. Train the report's models, in about a minute:")
            st.code("seqcls sweep report", language="bash")
            return
        _model(open_model(run_id))
    except SeqclsError as error:
        choice.show_missing(error)


def _model(model: OpenedModel) -> None:
    errors = data.model_errors(model.run_id, ErrorSearch())
    chosen = choice.choose_view(model, errors)
    tabs = st.tabs(list(SECTIONS), key="view", bind="query-params")
    for tab, section in zip(tabs, SECTIONS.values(), strict=True):
        if tab.open:
            with tab:
                section(chosen)


show()
