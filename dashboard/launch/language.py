"""The language of a sweep of one's own: its strings, its theory, or a file of own strings."""

import tempfile
from collections.abc import Mapping
from dataclasses import asdict
from itertools import islice, product
from pathlib import Path
from typing import Any

import pandas as pd
import streamlit as st

from dashboard.actions import PROBLEM
from dashboard.launch.fields import Values, optional_fields
from dashboard.text import verbatim
from dashboard.words import languages
from seqcls.config import ANY_SAMPLER, RunConfig
from seqcls.errors import ReadOnlyError, SeqclsError
from seqcls.problem import configuration, language, resolve
from seqcls.sampling.balanced import BalancedStrings
from seqcls.strings.datasets import remember
from seqcls.tasks import TASKS, LanguageTask
from seqcls.tasks.files import OfRows
from seqcls.theory.classes import RegularClass, Undecided
from seqcls.theory.predictions import NETWORK_FIELDS, theory_of
from sweeps.access import refuse_writes
from sweeps.api import existing
from sweeps.api.old_pages.database import control
from sweeps.api.old_pages.reading import stored_datasets
from sweeps.datasets import read_content
from sweeps.datasets.summary import Summary, summary_of
from sweeps.datasets.tables import ENDINGS, ending_of

MOST_PREDICTED = 64
"""Networks of which the form says what theory predicts."""

MOST_SHOWN = 6
"""Languages of a task whose strings are shown."""

LONGEST_CHANGED = 50
"""Tokens of the longest strings among which the form looks for near negatives."""


def show_language(task: str, values: Values, networks: Mapping[str, Values]) -> str | None:
    """What a task's languages accept, and what theory says of the networks chosen for them.

    Args:
        task: its name.
        values: what each field is as things stand.
        networks: what each field is in each variant, by its name.

    Returns:
        The setting that is still to be typed; None where all are there.

    Raises:
        ConfigError: the settings are of no language.
    """
    reads = sorted(TASKS[task].reads)
    for combined in islice(product(*map(values, reads)), MOST_SHOWN):
        missing = _show_one(task, dict(zip(reads, combined, strict=True)), networks)
        if missing is not None:
            return missing
    return None


def _show_one(task: str, settings: Mapping[str, Any], networks: Mapping[str, Values]) -> str | None:
    optional = optional_fields(task)
    for name in ("alphabet", "pattern", "formula", "dataset"):
        if settings.get(name) == "" and name not in optional:
            return name
    if issubclass(TASKS[task], OfRows):
        # Its rows are all that is known of it, and what they are is said above.
        return None
    # What an alphabet may be the configuration knows, not the language.
    RunConfig.from_mapping({"task": task, **settings})
    made = language(task, settings)
    if not isinstance(made, LanguageTask):
        st.caption(verbatim(made.describe()))
        return None
    with TASKS.wrap_errors(task):
        languages.shortest_strings(made)
    languages.show(made)
    _show_theory({"task": task, **settings}, networks)
    return None


def has_near_negatives(task: str, values: Values) -> bool:
    """Whether a language has near negatives, as far as its short strings tell.

    Args:
        task: its name; of what is no language, or no language yet, nothing is known.
        values: what each field is as things stand.
    """
    if task not in TASKS:
        return False
    fields = {field: values(field)[0] for field in TASKS[task].reads}
    longest = min(values("train_max_length")[0], LONGEST_CHANGED)
    fields |= {"task": task, "train_sampler": ANY_SAMPLER, "train_max_length": longest}
    try:
        train = resolve(configuration(fields)).train
        with TASKS.wrap_errors(task):
            return isinstance(train, BalancedStrings) and train.near_obstacle is None
    except SeqclsError:
        return False


def _show_theory(settings: Mapping[str, Any], networks: Mapping[str, Values]) -> None:
    """The class of a language, and a line a variant."""
    known = theory_of(settings).language
    if isinstance(known, Undecided):
        st.caption(verbatim(f"Its class is {known.describe()}."))
        return
    name = known.smallest_words if isinstance(known, RegularClass) else known.name
    lines = [f"Theory: its class is {name}."]
    for variant, values in networks.items():
        chosen = islice(product(*map(values, NETWORK_FIELDS)), MOST_PREDICTED)
        said = [
            theory_of({**settings, **dict(zip(NETWORK_FIELDS, x, strict=True))}) for x in chosen
        ]
        sentences = "; or ".join(dict.fromkeys(each.first.sentence for each in said))
        lines.append(f"{variant or 'This network'}: {sentences}.")
    for line in lines:
        st.caption(verbatim(line))


# Not among the keys that the form keeps: the state of an uploader cannot be set.
UPLOAD = "strings_file"
SUMMARY = "strings_summary"


def choose_strings(task: str, key: str) -> str | None:
    """Draws the choice of a file, or of what the database has of one.

    Args:
        task: the task that they are for, `file`, `pairs` or `automaton`.
        key: where the form keeps the digest of what is chosen.

    Returns:
        The digest; None where nothing is chosen.
    """
    state = st.session_state
    st.file_uploader(
        "A file of an automaton" if task == "automaton" else "A file of strings",
        type=[ending[1:] for ending in ENDINGS],
        key=UPLOAD,
        on_change=_read_upload,
        args=(key,),
        max_upload_size=200,
        **control(
            "AT&T text (.att), or what seqcls model automaton writes as JSON or DOT."
            if task == "automaton"
            else "Columns: tokens, and label or target; optionally split and id."
        ),
    )
    summary: Summary | None = state.get(SUMMARY)
    if summary is not None:
        _show_summary(summary, task)
    known = {} if (store := existing()) is None else stored_datasets(store)
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


def _read_upload(key: str) -> None:
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


def _show_summary(summary: Summary, task: str) -> None:
    for problem in summary.refused:
        st.error(verbatim(f"{summary.path}: {problem}"))
    if summary.refused:
        return
    if summary.task != task:
        st.warning(verbatim(f"{summary.path} is for task = {summary.task}; choose that task."))
    if summary.parts:
        frame = pd.DataFrame([asdict(part) for part in summary.parts])
        named = frame.rename(columns={"mean_length": "mean"})
        st.dataframe(named, hide_index=True, height="content")
    st.caption(verbatim("; ".join([summary.heading, *summary.sentences]) + "."))
