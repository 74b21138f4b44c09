"""The model that the page looks into, and what has been computed of it, kept between reruns."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

import streamlit as st

from dashboard import data
from dashboard.figures.history import History, Traces
from dashboard.server.opened_models import MODELS
from dashboard.server.visitors import ask
from dashboard.text import error_text, verbatim
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError, VisitorError
from seqcls.interpretability.network import Network
from seqcls.problem import Problem, resolve
from seqcls.questions import RunModel
from sweeps.api import open_reader
from sweeps.api.old_pages.reading import stored_model

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")

Answerer = TypeVar("Answerer")
Answerer_co = TypeVar("Answerer_co", covariant=True)

Key = tuple[Any, ...]
"""Which database, in which state, which run, and which epoch."""


class Askable(Protocol[Answerer_co]):
    """A model of the database."""

    @property
    def key(self) -> Key:
        """What tells it from all others, and from itself in another state of the database."""

    @property
    def answerer(self) -> Answerer_co:
        """What answers."""


@dataclass(frozen=True, eq=False)
class OpenedModel:
    """A run's model at one epoch, which letter counts give an account of."""

    of_run: Key
    run_id: int
    epoch: int

    @property
    def key(self) -> Key:
        return *self.of_run, self.epoch

    @property
    def answerer(self) -> Network:
        return self.network

    @property
    def config(self) -> RunConfig:
        return self.stored.config

    @property
    def problem(self) -> Problem:
        return resolve(self.config)

    @property
    def stored(self) -> History:
        """The run at every stored epoch; without the initial weights, PyTorch stays unloaded."""
        return _history(self.of_run, with_initial=False)

    @property
    def network(self) -> Network:
        """The model at the epoch that is looked at."""
        history = self.stored if self.epoch else _history(self.of_run, with_initial=True)
        return history.networks[self.epoch]

    def traces(self, strings: tuple[str, ...]) -> Traces:
        """Strings through the model at every epoch, the initial weights too."""
        return ask(
            ("traces", self.of_run, strings),
            lambda: _history(self.of_run, with_initial=True).through(strings),
        )

    def at(self, epoch: int) -> "OpenedModel":
        return OpenedModel(self.of_run, self.run_id, epoch)


@dataclass(frozen=True, eq=False)
class AnyModel:
    """A run's model at one epoch, of any architecture."""

    key: Key
    model: RunModel

    @property
    def run_id(self) -> int:
        return int(self.key[-2])

    @property
    def epoch(self) -> int | None:
        """None where it is the kept one."""
        epoch: int | None = self.key[-1]
        return epoch

    @property
    def answerer(self) -> RunModel:
        return self.model


def open_model(run_id: int) -> OpenedModel:
    """The model of a run at its kept epoch, which letter counts give an account of.

    Raises:
        SeqclsError: the database cannot be read, or the run has no model.
    """
    key = key_of(run_id)
    return OpenedModel(key, run_id, _history(key, with_initial=False).kept_epoch)


def open_any(run_id: int, epoch: int | None = None) -> AnyModel:
    """The model of a run, of any architecture.

    Args:
        run_id: of the run.
        epoch: whose model; 0 is before training. The kept epoch's, if none is named.

    Raises:
        SeqclsError: the database cannot be read, or the run has no such model.
    """
    key = (*key_of(run_id), epoch)
    with st.spinner("Opening the model"):
        model = MODELS.answer(("model", key), lambda: data.trained_model(run_id, epoch))
    return AnyModel(key, model)


def key_of(run_id: int) -> Key:
    """What tells a run from others, and from itself in another state of the database."""
    return (*data.state_shown(), run_id)


def remembered(
    compute: Callable[Concatenate[Answerer, Arguments], Answer], says: str = ""
) -> Callable[Concatenate[Askable[Answerer], Arguments], Answer]:
    """A function of a model that is asked once for every model, epoch and arguments.

    What it returns is shared between sessions and so must not be changed.

    Args:
        compute: the function; its arguments are hashable.
        says: what the page says while it is computed.
    """

    @wraps(compute)
    def answer(
        model: Askable[Answerer], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Answer:
        name = f"{compute.__module__}.{compute.__qualname__}"
        key = (name, model.key, args, tuple(kwargs.items()))
        return ask(key, lambda: compute(model.answerer, *args, **kwargs), says)

    return answer


def _history(of_run: Key, *, with_initial: bool) -> History:
    *_, run_id = of_run
    return MODELS.answer(
        ("history", of_run, with_initial),
        lambda: History.of(stored_model(open_reader(), run_id), with_initial=with_initial),
    )


def say(error: SeqclsError) -> None:
    """Says why a section shows nothing."""
    st.info(verbatim(error_text(error)), icon=":material/info:")


def say_of_input(error: SeqclsError) -> None:
    """Says what is wrong with what was typed, or why a visitor gets no answer now."""
    if isinstance(error, VisitorError):
        say(error)
    else:
        st.error(verbatim(str(error)))
