"""Inside one model: why it fails, where it breaks, and every figure of what it does."""

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.model import breaking, choice, looks, surgery, verdict, why
from dashboard.model.opened import OpenedModel, open_model
from dashboard.words import verbatim
from seqcls.config import RunConfig
from seqcls.data import sampler_of
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
    errors = data.string_errors(model.run_id, ErrorSearch())
    st.caption(verbatim(task_sentence(model.config)))
    st.markdown(verbatim(verdict_sentence(data.model(model.run_id).iloc[0], model.config)))
    chosen = choice.choose_view(model, errors)
    tabs = st.tabs(list(SECTIONS), key="view", bind="query-params")
    for tab, section in zip(tabs, SECTIONS.values(), strict=True):
        if tab.open:
            with tab:
                section(chosen)


def task_sentence(config: RunConfig) -> str:
    """What the model should do, in a line."""
    letters = " and ".join(f"at least one {letter}" for letter in config.required_letters)
    longest = sampler_of(config, "train").longest
    return (
        f"The model should call a string positive that holds {letters}, whatever else it holds, "
        f"and any other negative. It was trained on strings of up to {longest} "
        f"letters and tested on strings of up to {config.test_max_length}."
    )


def verdict_sentence(run: pd.Series, config: RunConfig) -> str:
    """What testing made of the run, in a line."""
    strings = config.test_size // config.test_batch_size * config.test_batch_size
    wrong = int(run["false_positives"] + run["false_negatives"])
    if not wrong:
        return (
            f"It is right on all {strings:,} test strings, of up to {config.test_max_length} "
            "letters. Whether it is right on every string, the tab All strings tells."
        )
    return (
        f"It is wrong on {wrong:,} of {strings:,} test strings: "
        f"{int(run['false_positives']):,} false positives and {int(run['false_negatives']):,} "
        f"false negatives. {_solved(int(run['solved_length']))}"
    )


def _solved(length: int) -> str:
    if length == 0:
        return "Even strings of one letter are among them."
    return f"Up to {length} letters it is right on all of them."


show()
