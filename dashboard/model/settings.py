"""Settings of a model, on request: its protocol in words, and its fields."""

from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, page
from dashboard.model.opened import Opened
from dashboard.text import error_text, format_value
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.problem import with_samplers
from sweeps.api import Store, overlaps, reading
from sweeps.api.protocols import protocols

NOTHING = "none"
"""A value that is the empty text."""

_settings, _protocol = data.cached(reading.settings_of), data.cached(protocols)


def show(opened: Opened) -> None:
    """Draws the button that unfolds them."""
    popover = st.popover(
        "Settings", type="tertiary", icon=":material/tune:", key="settings", on_change="rerun"
    )
    if not popover.open:
        return
    with popover:
        run, config_id = opened.run, int(opened.row["config_id"])
        sentences = [*_sentences(opened, config_id), *_names(run, opened)]
        st.markdown("\n".join(f"- {page.plain(sentence)}" for sentence in sentences))
        settings = _settings((config_id,))[config_id]
        page.table(table_of(settings), f"settings {run}", height=460)


def table_of(settings: dict[str, Any]) -> pd.DataFrame:
    """Settings with their values, first those that are not usual of the task and architecture."""
    usual = usual_settings(settings)
    changed = {x: y for x, y in settings.items() if x not in usual or y != usual[x]}
    known = {**changed, **{x: y for x, y in settings.items() if x not in changed}}
    rows = [
        (name, _text(value), _text(usual[name]) if name in changed and name in usual else "")
        for name, value in known.items()
        if not _is_missing(value)
    ]
    return pd.DataFrame(rows, columns=["setting", "value", "usual"])


def _text(value: object) -> str:
    return format_value(value) or NOTHING


def _is_missing(value: object) -> bool:
    return value is None or bool(pd.isna(value))  # type: ignore[call-overload]


def usual_settings(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings at their usual values for the task and architecture, without these two."""
    parts: dict[str, Any] = {x: settings[x] for x in ("task", "architecture") if x in settings}
    usual = dict(RunConfig.from_mapping(with_samplers(parts)))
    return {x: y for x, y in usual.items() if x not in parts}


def _sentences(opened: Opened, config_id: int) -> list[str]:
    """Describes training and test, and the test strings that it was trained on."""
    try:
        overlap = _trained_on(config_id, opened.run)
        return [*_protocol(config_id, (opened.run,)), *filter(None, [overlap])]
    except SeqclsError as error:  # Of a package that is not here nothing is known.
        return [error_text(error)]


@data.cached
def _trained_on(store: Store, config_id: int, run: int) -> str | None:
    # Of a run that stopped early no more than its own epochs.
    epochs = len(reading.epochs(store, run))
    configs = reading.configs(store, (config_id,)).values()
    return overlaps.trained_on(configs, epochs=epochs or None)


def _names(run: int, opened: Opened) -> list[str]:
    """Names of the model and its configuration in commands and files."""
    seed = opened.row["model_seed"]
    names = [f"{sweep}/{seed}" for sweep in data.sweeps_of((run,)).get(run, ())]
    # In a sweep of several configurations a seed is no name of one model.
    own = [name for name in names if len(reading.runs_named(data.reader(), name)) == 1]
    called = " or ".join([f"run {run}", *own])
    return [f"Commands call it {called}; its configuration's key is {opened.config.key[:16]}."]
