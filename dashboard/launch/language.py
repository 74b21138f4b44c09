"""The language of a sweep of one's own, as soon as its settings say which: strings and theory."""

from collections.abc import Container, Mapping
from itertools import islice, product
from typing import Any

import streamlit as st

from dashboard.launch.fields import Values
from dashboard.text import verbatim
from dashboard.words import languages
from seqcls.config import RunConfig
from seqcls.problem import language
from seqcls.tasks import TASKS, LanguageTask
from seqcls.theory.classes import Undecided
from seqcls.theory.predictions import NETWORK_FIELDS, theory_of

MOST_PREDICTED = 64
"""Networks of which the form says what theory predicts."""


def show_language(task: str, values: Values, read: Container[str]) -> str | None:
    """What a language accepts, and what theory says of the networks that are chosen for it.

    Args:
        task: its name.
        values: what each field is as things stand.
        read: the fields that mean anything now.

    Returns:
        The setting that is still to be typed; None where all are there.

    Raises:
        ConfigError: the settings are of no language.
    """
    settings = {field: values(field)[0] for field in TASKS[task].reads}
    for name in ("alphabet", "pattern", "formula", "dataset"):
        if settings.get(name) == "":
            return name
    if "dataset" in settings:
        # Its rows are all that is known of it, and what they are is said above.
        return None
    # What an alphabet may be the configuration knows, not the language.
    RunConfig.from_mapping({"task": task, **settings})
    made = language(task, settings)
    if not isinstance(made, LanguageTask):
        st.caption(verbatim(made.describe()))
        return None
    with TASKS.guarded(task):
        languages.shortest_strings(made)
    languages.show(made)
    _show_theory(task, settings, values, read)
    return None


def _show_theory(
    task: str, settings: Mapping[str, Any], values: Values, read: Container[str]
) -> None:
    names = [name for name in NETWORK_FIELDS if name in read]
    networks = islice(product(*(values(name) for name in names)), MOST_PREDICTED)
    chosen = [dict(zip(names, network, strict=True)) for network in networks]
    said = [theory_of({"task": task, **settings, **network}) for network in chosen]
    if isinstance(said[0].language, Undecided):
        st.caption(verbatim(f"Class {said[0].language.describe()}."))
        return
    sentences = dict.fromkeys(each.first.sentence for each in said)
    st.caption(verbatim(f"{said[0].language.name}; {'; or '.join(sentences)}."))
