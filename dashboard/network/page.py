"""The page Model where letter counts say nothing: any architecture, any language."""

from collections.abc import Callable

import streamlit as st

from dashboard import concurrent_changes, data
from dashboard.model import plain
from dashboard.model.choice import show_missing
from dashboard.network import ablation, minimal_strings, states
from dashboard.network.opened_string import choose_string, opened, say
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.strings.trained_model import Letters, TrainedModel
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.strings.string_queries import ErrorSearch

OF_A_STRING: dict[str, Callable[[TrainedModel, Letters], None]] = {
    "States": states.show,
    "Minimal and nearest": minimal_strings.show_minimal,
    "Patching": minimal_strings.show_patching,
}
ANSWERS, ABLATION = "Answers", "Ablation"

BESIDE = "beside"
"""The parameter of the link that names a second model."""


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


@st.fragment
def _of_a_string(
    run_id: int, config: RunConfig, section: Callable[[TrainedModel, Letters], None]
) -> None:
    """A section and its string; where another is chosen, nothing else of the page is run again."""
    with concurrent_changes.redrawn_if_changed(part=True):
        try:
            string = choose_string(config, data.string_errors(run_id, ErrorSearch()))
            _section(run_id, string, section)
        except SeqclsError as error:
            show_missing(error)


def _section(run_id: int, string: str, section: Callable[[TrainedModel, Letters], None]) -> None:
    try:
        model = opened(run_id)
        letters = model.letters(string)
    except SeqclsError as error:
        say(error)
        return
    if section is states.show:
        _states(run_id, model, letters)
    else:
        section(model, letters)


def show_section(name: str, run_id: int, string: str) -> None:
    """One section, beside those that rest on letter counts.

    Args:
        name: one of `OF_A_STRING`.
        run_id: the model, at its kept epoch.
        string: in the notation of its alphabet.
    """
    _section(run_id, string, OF_A_STRING[name])


def _states(run_id: int, model: TrainedModel, letters: Letters) -> None:
    other = _second()
    if other is None:
        states.show(model, letters)
    else:
        names = (f"Model {run_id}", f"Model {other[0]}")
        states.show_beside((model, other[1]), names, letters)


def _second() -> tuple[int, TrainedModel] | None:
    """The model to show beside, as typed or linked; None where none is named or can be opened."""
    st.session_state[BESIDE] = st.query_params.get(BESIDE, "")
    typed = st.text_input(
        "Compare with a second model",
        key=BESIDE,
        on_change=_into_link,
        placeholder="a run's number, or SWEEP/SEED",
        help="Shows the same string in both models, side by side, on the same axes.",
    )
    if not typed:
        return None
    try:
        run_id = queries.find_run(open_reader(), typed)
        return run_id, opened(run_id)
    except SeqclsError as error:
        say(error)
        return None


def _into_link() -> None:
    st.query_params[BESIDE] = st.session_state[BESIDE]
