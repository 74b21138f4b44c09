"""The page Model where letter counts say nothing: any architecture, any language."""

from collections.abc import Callable

import streamlit as st

from dashboard import data
from dashboard.model import plain
from dashboard.network import ablation, near, states
from dashboard.network.asked import choose_string, opened, say
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.strings.asked import AskedModel, Letters
from sweeps.store.overview import ErrorSearch

OF_A_STRING: dict[str, Callable[[AskedModel, Letters], None]] = {
    "States": states.show,
    "Minimal and nearest": near.show_minimal,
    "Patching": near.show_patching,
}
ANSWERS, ABLATION = "Answers", "Ablation"


def show(run_id: int, config: RunConfig) -> None:
    """Draws the sections; PyTorch is loaded where one of them is opened."""
    names = [ANSWERS, *OF_A_STRING, ABLATION]
    tabs = dict(zip(names, st.tabs(names, key="view", bind="query-params"), strict=True))
    for name, tab in tabs.items():
        if not tab.open:
            continue
        with tab:
            if name == ANSWERS:
                plain.show(run_id, config)
            elif name == ABLATION:
                ablation.show(run_id, opened(run_id))
            else:
                _of_a_string(run_id, config, OF_A_STRING[name])


def _of_a_string(
    run_id: int, config: RunConfig, section: Callable[[AskedModel, Letters], None]
) -> None:
    string = choose_string(config, data.string_errors(run_id, ErrorSearch()))
    try:
        model = opened(run_id)
        letters = model.letters(string)
    except SeqclsError as error:
        say(error)
        return
    section(model, letters)
