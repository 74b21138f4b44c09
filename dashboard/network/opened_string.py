"""The model and the string that these sections are about, kept between reruns."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd
import streamlit as st

from dashboard.model.choice import examples
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries

if TYPE_CHECKING:
    from seqcls.interpretability.strings.trained_model import TrainedModel

NOTATION = (
    "Any other string can be typed, token by token or shortened: a{5} is five times a, and <ab>{5} "
    "five times ab."
)

OFFERED = 200
"""A run's shortest errors, which are offered; any other string can be typed."""

STRING = "string"
"""The parameter of the link."""


def opened(run_id: int) -> "TrainedModel":
    """The model of a run at its kept epoch.

    Raises:
        SeqclsError: the database cannot be read, or the run has no model.
    """
    store = open_reader()
    model: TrainedModel = _opened((store.location, queries.revision(store)), run_id)
    return model


@st.cache_resource(show_spinner="Opening the model", max_entries=16)
def _opened(key: Any, run_id: int) -> Any:  # noqa: ARG001 - which database, in which state
    # Imported where it is used: PyTorch takes a second or two to load.
    from sweeps.analysis.opened_models import ask_on_one_thread, trained_model

    ask_on_one_thread()
    return trained_model(open_reader(), run_id)


def choose_string(config: RunConfig, errors: pd.DataFrame) -> str:
    """The string to look at, as chosen, typed or linked; an error is offered first.

    Args:
        config: the model's.
        errors: its misclassified test strings, the shortest first.
    """
    offered = [*errors["string"].head(OFFERED).tolist(), *examples(config)[0]]
    linked = st.query_params.get(STRING, first_shown(errors, offered))
    st.session_state[STRING] = linked
    typed = st.selectbox(
        "String to look at",
        list(dict.fromkeys([*offered, linked])),
        key=STRING,
        on_change=_into_link,
        accept_new_options=True,
        help=f"The model's own errors are offered, the shortest first. {NOTATION}",
    )
    return typed or ""


def first_shown(errors: pd.DataFrame, offered: Sequence[str]) -> str:
    """The string that is looked at first: an error whose states can be shown, else an example.

    Args:
        errors: the model's misclassified test strings, the shortest first, with their lengths.
        offered: errors and then examples.
    """
    from seqcls.interpretability.strings.states import MAX_TOKENS

    if len(errors) and int(errors["length"].iloc[0]) > MAX_TOKENS:
        return offered[-1]
    return next(iter(offered), "")


def look_at(string: str) -> None:
    """Makes a string the one that is looked at, when a button is clicked."""
    st.query_params[STRING] = string


def _into_link() -> None:
    st.query_params[STRING] = st.session_state[STRING] or ""


def say(error: SeqclsError) -> None:
    """Says why a section shows nothing."""
    st.info(verbatim(str(error)), icon=":material/info:")
