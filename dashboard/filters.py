"""The state that every page shares, kept in the address bar so that a link reproduces the view."""

import streamlit as st

from dashboard import data
from seqcls.errors import SeqclsError
from sweeps.store.queries import RunFilter


def show() -> None:
    """Draws the filters in the sidebar, where there is anything to filter."""
    try:
        names = data.sweeps()["name"].tolist()
        seeds = sorted(data.runs(RunFilter())["model_seed"].unique().tolist())
    except SeqclsError:
        return
    st.header("Filter")
    st.multiselect("Sweeps", names, key="sweep", placeholder="All sweeps", bind="query-params")
    st.multiselect("Model seeds", seeds, key="seed", placeholder="All seeds", bind="query-params")
    st.toggle(
        "Only failing models",
        key="failing",
        bind="query-params",
        help="A model fails if it misclassifies at least one of its test strings.",
    )
    st.button("Clear filters", on_click=_clear, disabled=current() == RunFilter())
    st.header("Train more")
    st.markdown("Write the runs that you want into a TOML file, then run:")
    st.code("seqcls sweep FILE.toml", language="bash")


def current() -> RunFilter:
    """The filters as they are set now."""
    state = st.session_state
    return RunFilter(
        sweeps=tuple(state.get("sweep") or ()),
        model_seeds=tuple(state.get("seed") or ()),
        failing=bool(state.get("failing")),
    )


def _clear() -> None:
    st.session_state.update(sweep=[], seed=[], failing=False)
