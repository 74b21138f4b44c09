"""Strings of one's own: a file is chosen on the page, and what is in it is said at once."""

import tempfile
from dataclasses import asdict
from pathlib import Path

import pandas as pd
import streamlit as st

from dashboard.sweeps_page.sweep_actions import PROBLEM
from dashboard.text import verbatim
from seqcls.datasets.known import remember
from seqcls.errors import ReadOnlyError
from sweeps.datasets.formats import ENDINGS
from sweeps.datasets.lines import ending_of
from sweeps.datasets.reading import read_content
from sweeps.datasets.summary import Summary, summary_of
from sweeps.read_only import control, refuse_writes
from sweeps.store.databases.engine import Store
from sweeps.store.opening import existing
from sweeps.store.results.datasets import stored_datasets

# Not among the keys that the form keeps: the state of an uploader cannot be set.
UPLOAD = "strings_file"
SUMMARY = "strings_summary"


def choose(task: str, key: str) -> str | None:
    """Draws the choice of a file, or of strings that the database has.

    Args:
        task: the task that they are for, `file` or `pairs`.
        key: where the form keeps the digest of what is chosen.

    Returns:
        The digest; None where nothing is chosen.
    """
    state = st.session_state
    st.file_uploader(
        "A file of strings",
        type=[ending[1:] for ending in ENDINGS],
        key=UPLOAD,
        on_change=_read,
        args=(key,),
        max_upload_size=200,
        **control("Columns: tokens, and label or target; optionally split and id."),
    )
    summary: Summary | None = state.get(SUMMARY)
    if summary is not None:
        _show(summary, task)
    known = {} if (store := existing()) is None else _stored(store)
    if summary is not None and summary.digest is not None:
        known = {summary.digest: summary.path} | known
    if state.get(key) not in known:
        state[key] = None
    chosen: str | None = st.selectbox(
        "dataset",
        list(known),
        index=None,
        key=key,
        format_func=lambda digest: known.get(digest, digest),
        placeholder="Upload a file, or choose strings already in the database",
    )
    return chosen


def _stored(store: Store) -> dict[str, str]:
    with store.begin() as connection:
        return stored_datasets(connection)


def _read(key: str) -> None:
    try:
        refuse_writes("reading a file of strings")
    except ReadOnlyError as error:
        st.session_state[PROBLEM] = str(error)
        return
    uploaded = st.session_state[UPLOAD]
    if uploaded is None:
        st.session_state.pop(SUMMARY, None)
        return
    name = Path(uploaded.name).name
    with tempfile.TemporaryDirectory() as folder:
        # What a visitor calls a file is no path of this machine's: only its ending is used.
        path = Path(folder) / f"strings{ending_of(name)}"
        path.write_bytes(uploaded.getbuffer())
        content = read_content(path, name)
    st.session_state[SUMMARY] = summary_of(content, name)
    if content.dataset is not None:
        st.session_state[key] = remember(content.dataset)


def _show(summary: Summary, task: str) -> None:
    for problem in summary.refused:
        st.error(verbatim(f"{summary.path}: {problem}"))
    if summary.refused:
        return
    if summary.task != task:
        st.warning(verbatim(f"{summary.path} is for task = {summary.task}; choose that task."))
    frame = pd.DataFrame([asdict(part) for part in summary.parts])
    st.dataframe(frame.rename(columns={"mean_length": "mean"}), hide_index=True, height="content")
    st.caption(verbatim("; ".join([f"{summary.rows:,} rows", *summary.sentences]) + "."))
