"""The model that the page looks into, and what has been computed of it, kept between reruns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from dashboard.figures.history import History, Traces
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.interpretability.model.network import Network
from seqcls.interpretability.model.trained_model import TrainedModel
from seqcls.problem import Problem, resolve
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.reading.models import stored_model

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

Key = tuple[str, Any, int]
"""Which database, in which state, and which run."""


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """A run's model at one epoch."""

    key: Key
    run_id: int
    epoch: int

    @property
    def config(self) -> RunConfig:
        return self.stored.config

    @property
    def problem(self) -> Problem:
        return resolve(self.config)

    @property
    def stored(self) -> History:
        """The run at every stored epoch; without the initial weights, PyTorch stays unloaded."""
        return _history(self.key, with_initial=False)

    @property
    def network(self) -> Network:
        """The model at the epoch that is looked at."""
        history = self.stored if self.epoch else _history(self.key, with_initial=True)
        return history.networks[self.epoch]

    def traces(self, strings: tuple[str, ...]) -> Traces:
        """Strings through the model at every epoch, the initial weights too."""
        return _traces(self.key, strings)

    def at(self, epoch: int) -> "OpenedModel":
        return OpenedModel(self.key, self.run_id, epoch)


def open_model(run_id: int) -> OpenedModel:
    """The model of a run at its kept epoch, which letter counts give an account of.

    Raises:
        SeqclsError: the database cannot be read, or the run has no model.
    """
    key = key_of(run_id)
    return OpenedModel(key, run_id, _history(key, with_initial=False).kept_epoch)


def open_any(run_id: int, epoch: int | None = None) -> TrainedModel:
    """The model of a run, of any architecture.

    Args:
        run_id: of the run.
        epoch: whose model; 0 is before training. The kept epoch's, if none is named.

    Raises:
        SeqclsError: the database cannot be read, or the run has no such model.
    """
    model: TrainedModel = _trained_model(key_of(run_id), epoch)
    return model


def key_of(run_id: int) -> Key:
    """What tells a run from others, and from itself in another state of the database."""
    store = open_reader()
    return store.location, queries.revision(store), run_id


@st.cache_resource(show_spinner="Opening the model", max_entries=32)
def _trained_model(key: Key, epoch: int | None) -> Any:
    # Imported where it is used: PyTorch takes a second or two to load.
    from sweeps.analysis.opened_models import ask_on_one_thread, trained_model, untrained_model

    ask_on_one_thread()
    if epoch == 0:
        return untrained_model(open_reader(), key[2])
    return trained_model(open_reader(), key[2], epoch)


def remembered(
    compute: Callable[Concatenate[Network, Arguments], Answer],
) -> Callable[Concatenate["OpenedModel", Arguments], Answer]:
    """A function of a network that is asked once for every model, epoch and arguments.

    What it returns is shared between sessions and so must not be changed.
    """

    @wraps(compute)
    def ask(model: OpenedModel, /, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        name = f"{compute.__module__}.{compute.__qualname__}"
        found: Answer = _computed(
            name, model.key, model.epoch, args, tuple(kwargs.items()), _ask=(compute, model)
        )
        return found

    return ask


@st.cache_resource(show_spinner=False, max_entries=500)
def _computed(
    name: str,  # noqa: ARG001 - part of the key, as the next two
    key: Key,  # noqa: ARG001
    epoch: int,  # noqa: ARG001
    args: tuple[Any, ...],
    kwargs: tuple[tuple[str, Any], ...],
    _ask: tuple[Callable[..., Any], OpenedModel],
) -> Any:
    compute, model = _ask
    return compute(model.network, *args, **dict(kwargs))


@st.cache_resource(show_spinner=False, max_entries=32)
def _history(key: Key, *, with_initial: bool) -> History:
    return History.of(stored_model(open_reader(), key[2]), with_initial=with_initial)


@st.cache_resource(show_spinner=False, max_entries=64)
def _traces(key: Key, strings: tuple[str, ...]) -> Traces:
    return _history(key, with_initial=True).through(strings)


def say(error: SeqclsError) -> None:
    """Says why a section shows nothing."""
    st.info(verbatim(str(error)), icon=":material/info:")
