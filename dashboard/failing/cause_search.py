"""The button that finds causes, and how far that is."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard import data
from dashboard.sweeps_page import sweep_actions
from dashboard.sweeps_page.running import SECONDS
from dashboard.text import told
from seqcls.errors import SeqclsError
from sweeps.analysis import causes, causes_process
from sweeps.analysis.causes_process import Attribution
from sweeps.read_only import control
from sweeps.store.opening import open_reader


def offer(waiting: Sequence[int]) -> None:
    """A button that attributes the models whose causes are not known yet; or how far that is.

    Args:
        waiting: these models.
    """
    job = _jobs().get(data.which_file(open_reader()))
    if job is not None and job.goes_on:
        st.fragment(_progress, run_every=SECONDS)(job)
        return
    if job is not None and job.problem is not None:
        st.error("Not all causes could be found.")
        st.code(job.problem, language=None, wrap_lines=True)
    if waiting:
        what = "the model fails" if len(waiting) == 1 else f"{len(waiting):,} models fail"
        st.button(
            f"Find why {what}",
            key="find_causes",
            on_click=_start,
            args=(tuple(waiting),),
            **control(),
        )


def _start(run_ids: tuple[int, ...]) -> None:
    store = open_reader()
    file = data.which_file(store)
    before = _jobs().get(file)
    # A second request sees the progress of the first.
    if before is not None and before.goes_on:
        return
    try:
        _jobs()[file] = causes_process.start(store, run_ids)
    except (SeqclsError, OSError) as error:
        st.session_state[sweep_actions.PROBLEM] = told(error)


def _progress(job: Attribution) -> None:
    if not job.goes_on:
        st.rerun()
    try:
        done = causes.leading(data.causes(list(job.run_ids)))["run_id"].nunique()
    except SeqclsError as error:
        data.explain(error)
        return
    of = len(job.run_ids)
    st.progress(done / of, f"Finding causes: {done:,} of {of:,} models")


@st.cache_resource(show_spinner=False)
def _jobs() -> dict[tuple[Any, ...], Attribution]:
    """The process of each database, by its file; all sessions share it."""
    return {}
