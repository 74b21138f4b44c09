"""Tasks that are chosen instead of typed: by name with their parameters, or by a file of one's own.

A choice is added to the list of tasks as text, so that the list is the only record.
"""

import tempfile
from pathlib import Path

import streamlit as st

from dashboard import page
from dashboard.actions import PROBLEM, control
from dashboard.text import format_value
from dashboard.training import form
from seqcls.config import ABOUT, default_fields
from seqcls.errors import ReadOnlyError, SeqclsError
from seqcls.strings.datasets import remember
from seqcls.tasks import TASKS
from sweeps.access import refuse_writes
from sweeps.api.typed import spell_task, values_of
from sweeps.datasets import read_content
from sweeps.datasets.summary import Summary, summary_of
from sweeps.datasets.tables import ENDINGS, ending_of

CHOSEN, UPLOAD, SUMMARY = "other task", "uploaded file", "summary of the uploaded file"


def show() -> None:
    """Draws the popover."""
    with st.popover("Other task", icon=":material/add:"):
        _choose()
        st.file_uploader(
            "Own strings, or an automaton",
            type=[ending[1:] for ending in ENDINGS],
            key=UPLOAD,
            on_change=_read_upload,
            max_upload_size=200,
            **control(
                "Columns: tokens, and label or target; optionally split and id. Or an automaton as "
                "AT&T text (.att), DOT or JSON."
            ),
        )
    summary: Summary | None = st.session_state.get(SUMMARY)
    if summary is not None:
        for problem in summary.refused:
            st.error(page.plain(f"{summary.path}: {problem}"))
        if not summary.refused:
            description = "; ".join([summary.heading, *summary.sentences])
            st.caption(page.plain(f"{summary.path}: {description}."))


def _choose() -> None:
    # Files are chosen below.
    offered = [x for x in TASKS.usable(list(TASKS)) if "dataset" not in TASKS[x].reads]
    task = st.selectbox("Task", offered, index=None, key=CHOSEN, placeholder="Choose a task")
    if task is None:
        return
    for name in sorted(TASKS[task].reads):
        st.text_input(
            name,
            key=_key(name),
            placeholder=format_value(default_fields()[name]) or "such as ab",
            help=ABOUT[name].line,
        )
    st.button("Add to the list", on_click=_add, args=(task,), type="primary")


def _key(name: str) -> str:
    return f"other task {name}"


def _add(task: str) -> None:
    texts = {x: str(st.session_state.get(_key(x)) or "") for x in sorted(TASKS[task].reads)}
    try:
        # In quotes, commas are part of the value.
        values = {x: values_of(x, f'"{text}"')[0] for x, text in texts.items() if text.strip()}
    except SeqclsError as error:
        st.session_state[PROBLEM] = str(error)
        return
    _append(spell_task(task, values))


def _append(text: str) -> None:
    listed = str(st.session_state.get(form.TASKS, form.FIRST[form.TASKS])).strip()
    st.session_state[form.TASKS] = ", ".join(filter(None, (listed.rstrip(", "), text)))


def _read_upload() -> None:
    # A disabled control keeps no browser from sending a file.
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
        form.uploads()[remember(content.dataset)] = name
        # Commas and spaces of a name would end it in the list, so that it is quoted.
        _append(name if name.replace(".", "").replace("_", "").isalnum() else f'"{name}"')
