"""Cached calls to the store's queries. A cached answer is used until the database changes."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import streamlit as st

from seqcls.errors import SeqclsError, StoreMissingError
from sweeps.store import overview, queries
from sweeps.store.engine import Store, open_reader

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def _cached(
    query: Callable[Concatenate[Store, Arguments], Answer],
) -> Callable[Arguments, Answer]:
    # The name and the revision are only part of the key: which query, of which state of the file.
    @st.cache_data(show_spinner=False, max_entries=32)
    def answer(name: str, db: str, revision: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ARG001
        return query(open_reader(db), *args, **kwargs)

    @wraps(query)
    def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        store = open_reader()
        path = store.location
        found: Answer = answer(query.__name__, path, queries.revision(store), *args, **kwargs)
        return found

    return ask


configs = _cached(queries.configs)
failing_models = _cached(overview.failing_models)
memberships = _cached(overview.memberships)
model = _cached(overview.model)
model_errors = _cached(overview.string_errors)
models = _cached(overview.models)
settings = _cached(overview.settings)
length_scores = _cached(queries.length_scores)
runs = _cached(queries.runs)
string_errors = _cached(queries.string_errors)
sweeps = _cached(queries.sweeps)


def explain(error: SeqclsError) -> None:
    """Says on the page what is the case with the database and what to do."""
    if isinstance(error, StoreMissingError):
        st.info("There are no models to show yet. Train the report's models, in about a minute:")
        st.code("seqcls sweep report", language="bash")
    else:
        st.error("The database cannot be shown.")
    # As code: the path and the reason appear as they are, whatever characters they hold.
    st.code(str(error), language=None, wrap_lines=True)
