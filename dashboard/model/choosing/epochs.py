"""Which epoch of a model is looked at, and a second model to compare it with."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from dashboard.model.choosing.linked_widgets import from_link, into_link
from dashboard.model.opened import AnyModel, open_any, say
from seqcls.errors import SeqclsError
from seqcls.interpretability.model.trained_model import TrainedModel
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.reading.models import stored_epochs

EPOCH = "epoch"
BESIDE = "beside"
BESIDE_EPOCH = "beside_epoch"
"""Parameters of the link: the epoch, a second model, and its epoch."""


@dataclass(frozen=True, eq=False)
class Named:
    """A model at an epoch, and what it is called beside another."""

    name: str
    opened: AnyModel

    @property
    def model(self) -> TrainedModel:
        return self.opened.model


def choose_epoch(stored: Sequence[int], kept: int, parameter: str = EPOCH) -> int:
    """The epoch that the link names, or the kept one; a slider to choose another.

    Args:
        stored: the epochs whose weights are stored, in order.
        kept: one of them.
        parameter: of the link.
    """
    epochs = [0, *stored]
    linked = st.query_params.get(parameter, "")
    st.session_state[parameter] = next((x for x in epochs if str(x) == linked), kept)
    return int(
        st.select_slider(
            f"Epoch (best: {kept}; 0 = untrained)",
            epochs,
            key=parameter,
            on_change=into_link,
            args=(parameter,),
        )
    )


def choose_model(run_id: int, parameter: str = EPOCH) -> Named:
    """A run's model at the epoch that is chosen.

    Raises:
        SeqclsError: the run has no model.
    """
    *others, kept = stored_epochs(open_reader(), run_id)
    epoch = choose_epoch(sorted([*others, kept]), kept, parameter)
    name = f"Model {run_id}" if epoch == kept else f"Model {run_id}, epoch {epoch}"
    return Named(name, open_any(run_id, epoch))


def second_model(first: Named) -> Named | None:
    """The model to show beside, as typed or linked; None where none is named or can be opened."""
    from_link(BESIDE, "")
    left, right = st.columns(2)
    typed = left.text_input(
        "Compare with a second model",
        key=BESIDE,
        on_change=into_link,
        args=(BESIDE,),
        placeholder="a run's number, or SWEEP/SEED",
        help="Shows the same string in both models, side by side, on the same axes. The same "
        "model's number compares two of its epochs.",
    )
    if not typed:
        return None
    try:
        run_id = queries.find_run(open_reader(), typed)
        with right:
            second = choose_model(run_id, BESIDE_EPOCH)
    except SeqclsError as error:
        say(error)
        return None
    # Widgets and figures are told apart by the names.
    same = second.name == first.name
    return Named(f"{second.name} again", second.opened) if same else second
