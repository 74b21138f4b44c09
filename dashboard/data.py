"""Cached calls to the store's queries. A cached answer is used until the database changes."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pandas as pd
import streamlit as st

from dashboard.text import error_text, without_folder
from seqcls.errors import (
    PluginError,
    PluginMissingError,
    SeqclsError,
    StoreDamagedError,
    StoreLostError,
    StoreMissingError,
    VisitorError,
)
from sweeps.access import is_read_only
from sweeps.api import (
    Store,
    damage_of_last_opened,
    failing,
    open_reader,
    outcomes,
    reading,
)
from sweeps.api import languages as populating
from sweeps.api.reading import one_moment
from sweeps.work import progress as progressing
from sweeps.work.progress import SweepProgress

if TYPE_CHECKING:
    from seqcls.questions import RunModel

PAGE_SECONDS = 30.0
"""Time limit of a page's queries, in seconds."""

MOST_BYTES = "1GiB"
"""The size of all answers at most; of a hundred thousand models, the largest take 7 MB, of a
million 70."""

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


# A context variable, since sessions are drawn in threads of one process.
_moment: ContextVar[dict[Any, Any] | None] = ContextVar("moment", default=None)
"""Revisions that were read within a block of one moment."""


def sorted_values(column: pd.Series) -> list[Any]:
    """The values of a setting, in order; missing ones are left out."""
    known = column.dropna().unique().tolist()
    plain = all(isinstance(value, bool | int | float) for value in known)
    # Texts and numbers cannot be compared; as texts, values of any types have an order.
    return sorted(known) if plain else sorted(known, key=str)


def reader() -> Store:
    """The database that pages show."""
    return open_reader()


@contextmanager
def at_one_moment() -> Iterator[None]:
    """Reads the database in one transaction, and its revision once.

    A page makes dozens of queries, whose answers are cached and have to agree with each other:
    they are read in one transaction, and cached under its revision.
    """
    # An outer block holds the transaction already.
    if _moment.get() is not None:
        yield
        return
    before = _moment.set({})
    try:
        with ExitStack() as moment:
            # The first query raises the error again, where the page can show it.
            with suppress(SeqclsError):
                moment.enter_context(one_moment(reader()))
            yield
    finally:
        _moment.reset(before)


def state_shown(revision_of: Callable[[Store], Any] = reading.revision) -> tuple[Any, ...]:
    """Identifies the database and its state: a part of the key of every cached answer.

    Args:
        revision_of: gives the revision of what is read.
    """
    store, seen = reader(), _moment.get()
    key = (store.location, revision_of)
    if seen is None:
        return which_file(store), revision_of(store)
    if key not in seen:
        seen[key] = (which_file(store), revision_of(store))
    found: tuple[Any, ...] = seen[key]
    return found


def which_file(store: Store) -> tuple[Any, ...]:
    """Identifies the file, whatever is written to it; a file that replaces it is another."""
    file = None
    if store.path is not None:
        # If it is gone by now, its query raises.
        with suppress(OSError):
            status = store.path.stat()
            # A copy over it keeps its number.
            file = (status.st_ino, status.st_size, status.st_mtime_ns)
    return store.location, file


# Streamlit hashes no argument whose name begins with an underscore: the key alone counts.
@st.cache_data(max_size=MOST_BYTES, show_spinner=False)
def _remember(key: str, _ask: Callable[[], Any]) -> Any:  # noqa: ARG001, it is the key
    return _ask()


def cached(
    query: Callable[Concatenate[Store, Arguments], Answer],
    revision_of: Callable[[Store], Any] = reading.revision,
) -> Callable[Arguments, Answer]:
    """Caches a query for all sessions until the data that it reads change.

    Args:
        query: of a module; depends on nothing but the database and its arguments, which are told
            apart by their texts.
        revision_of: gives the revision of the data that the query reads.
    """

    @wraps(query)
    def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        with at_one_moment():
            name = f"{query.__module__}.{query.__qualname__}"
            # As a text, ten thousand numbers are hashed in a millisecond.
            key = repr((name, state_shown(revision_of), args, sorted(kwargs.items())))
            answer: Answer = _remember(key, partial(query, reader(), *args, **kwargs))
            return answer

    return ask


causes = cached(reading.causes)
configurations = cached(reading.configurations)
count_tested = cached(failing.count_tested)
languages = cached(reading.language_names, reading.configs_revision)
model = cached(reading.model)
model_seeds = cached(reading.model_seeds, reading.members_revision)
models = cached(reading.models)
sweep_counts = cached(progressing.counts)
sweep_names = cached(reading.sweep_names)
sweep_notes = cached(reading.notes)
read_settings = cached(outcomes.settings_read)
settings = cached(reading.settings, reading.configs_revision)
some_configs = cached(reading.configs, reading.configs_revision)
string_errors = cached(reading.string_errors)
sweeps_of = cached(reading.sweeps_of, reading.members_revision)


def _classes(store: Store) -> "pd.Series[Any]":
    """The class of the language of one configuration of each task, by id."""
    # A task's configurations share its language, so one of them gives its class.
    first = {task: config_id for config_id, task in languages().items()}
    return populating.classes_of(store, some_configs(tuple(first.values())))


classes = cached(_classes, reading.configs_revision)


def trained_model(run_id: int, epoch: int | None) -> "RunModel":
    """The model of a run at an epoch: 0 is before training, None the stored result's epoch.

    Raises:
        SeqclsError: the database cannot be read, or the run has no such model.
    """
    # Imported where it is used: PyTorch takes a second or two to load.
    from sweeps.api import models as opened_models

    # Threads of a tiny model only wait for each other, which training beside it would feel.
    opened_models.ask_on_one_thread()
    if epoch == 0:
        return opened_models.untrained_model(open_reader(), run_id)
    return opened_models.trained_model(open_reader(), run_id, epoch)


def _this_second(store: Store) -> tuple[int, int]:
    # Time left and died workers change with the clock, and raise no revision.
    return reading.revision(store), int(time.monotonic())


def _progress(store: Store) -> list[SweepProgress]:
    """Every sweep's progress, of which only what the clock changes is read anew."""
    return progressing.progress(store, sweep_counts())


progress = cached(_progress, _this_second)


def say(error: SeqclsError) -> None:
    """Says on the page what is the case with the database, and nothing else."""
    if isinstance(error, StoreMissingError):
        none = "There are no models to show yet."
        if is_read_only():
            st.info(none)
            return
        st.info(
            f"{none} New sweep, in the sidebar, trains a question of your own; this trains the "
            "report's models, in about a minute:"
        )
        # It names the database, too.
        st.code(without_folder(error.command), language="bash", wrap_lines=True)
        return
    if isinstance(error, VisitorError):
        st.info(str(error))
        return
    if isinstance(error, PluginMissingError | PluginError):
        st.warning("These models need a plug-in that is not installed here.")
        st.code(error_text(error), language=None, wrap_lines=True)
        return
    st.error("The database cannot be shown.")
    # As code: the path and the reason appear as they are, whatever characters they hold.
    st.code(error_text(error), language=None, wrap_lines=True)


LOST = "connection was lost"
"""Key in the session: the page is being drawn anew since the server ended the connection."""


@contextmanager
def explaining(says: Callable[[SeqclsError], None] = say) -> Iterator[None]:
    """Shows the error of a block, or as a decorator of a function, in its place on the page.

    A page whose connection a server ended is drawn anew, once.
    """
    try:
        yield
    except StoreLostError as error:
        if st.session_state.pop(LOST, False):
            says(error)
            return
        # For one rerun: a connection that is lost again is reported, not retried forever.
        st.session_state[LOST] = True
        st.rerun()
    except SeqclsError as error:
        says(error)
    except Exception:
        # What a page breaks on may be what somebody wrote into the file.
        if (damage := damage_of_last_opened()) is None:
            raise
        says(StoreDamagedError(damage))
