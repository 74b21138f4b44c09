"""Where a model's misclassified strings lie: by length, and by the task's own features."""

from collections.abc import Sequence
from functools import lru_cache

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.errors.errors_by_length import errors_by_length
from dashboard.charts.errors.features import feature_plane
from dashboard.charts.style.keys import told_once
from dashboard.compare.lengths import FEW_LENGTHS, named
from dashboard.elements import placement
from dashboard.failing import outputs
from dashboard.text import verbatim
from seqcls.config import REPORT_TASK, RunConfig
from seqcls.problem import missing_plugin, resolve
from seqcls.tokens.strings import TokenStrings
from seqcls.tokens.tokenizer import FIRST_LETTER

WIDTH = 5
"""Lengths in one bar, where the longest test strings are not few letters long."""

MAX_POINTS = 5_000
LENGTH = "length"


def show(run_id: int, errors: pd.DataFrame, config: RunConfig) -> None:
    """Two charts side by side; of models that write outputs, those of `outputs`.

    Args:
        run_id: the model.
        errors: its misclassified test strings, the shortest first.
        config: its configuration.
    """
    if reason := missing_plugin(config):
        st.caption(verbatim(f"Where in these strings the errors lie is not known here: {reason}."))
        return
    if "output" in errors:
        outputs.show(run_id, config)
        return
    errors = errors.head(MAX_POINTS)
    place, (left, right) = st.container(), st.columns(2)
    width = 1 if resolve(config).test.lengths[-1] <= FEW_LENGTHS else WIDTH
    with left:
        chart, _ = told_once(placement.built(errors_by_length, _by_length(run_id, width)))
        placement.show(chart, "errors by length")
    with right:
        values = features(config, tuple(errors["string"]))
        across, up = _axes(config, [str(name) for name in values])
        drawn = errors.assign(first=values[across].to_numpy(), second=values[up].to_numpy())
        chart, keys = told_once(placement.built(feature_plane, drawn, across, up))
        placement.show(chart, "errors by features")
    with place:
        placement.show_keys(keys)
    if len(errors) == MAX_POINTS:
        st.caption(f"The chart on the right shows the {MAX_POINTS:,} shortest strings.")


@lru_cache(maxsize=32)
def features(config: RunConfig, strings: tuple[str, ...]) -> pd.DataFrame:
    """The features by which the task distinguishes strings, a column each, with their length."""
    tokens = token_strings(config, strings)
    columns = dict(resolve(config).task.features(tokens))
    return pd.DataFrame({**columns, LENGTH: tokens.lengths})


def token_strings(config: RunConfig, strings: Sequence[str]) -> TokenStrings:
    """Strings in the notation of a task's alphabet.

    Raises:
        InvalidStringError: one is not of this alphabet, or too long to be spelled out.
    """
    tokenizer = resolve(config).tokenizer
    rows = [[x - FIRST_LETTER for x in tokenizer.encode(text)[1:]] for text in strings]
    return TokenStrings.of_lists(tokenizer.num_letters, rows)


def _axes(config: RunConfig, names: list[str]) -> tuple[str, str]:
    """The two features that are drawn; those that matter most in the task come first."""
    first = best_axes(config, names)
    columns = st.columns(2)
    across, up = (
        column.selectbox(label, names, index=names.index(feature), key=f"{key} {config.key[:12]}")
        for column, label, feature, key in zip(
            columns, ("Horizontal axis", "Vertical axis"), first, ("across", "up"), strict=True
        )
    )
    return across, up


def best_axes(config: RunConfig, names: Sequence[str]) -> tuple[str, str]:
    """The two features to begin with: required letters, the task's own features, then counts."""
    counts = [f"{letter}'s" for letter in resolve(config).task.alphabet]
    required = [f"{letter}'s" for letter in config.required_letters]
    task_features = [name for name in names if name not in {*counts, LENGTH}]
    order = required if config.task == REPORT_TASK else task_features
    ranked = [x for x in dict.fromkeys([*order, *task_features, *counts, LENGTH]) if x in names]
    return ranked[0], ranked[1] if len(ranked) > 1 else ranked[0]


@data.shared
def _by_length(run_id: int, width: int) -> pd.DataFrame:
    scores = data.scores_by_length((run_id,), width)
    scores["lengths"] = named(scores)
    kept = scores[["first_length", "last_length", "lengths"]]
    parts = []
    of_kinds = [
        ("false positive", scores["fp"], scores["fp"] + scores["tn"]),
        ("false negative", scores["fn"], scores["fn"] + scores["tp"]),
    ]
    if scores["fp"].isna().all():
        of_kinds = [("wrong", scores["wrong"], scores["tested"])]
    for kind, wrong, tested in of_kinds:
        part = kept.assign(kind=kind, strings=wrong, tested=tested)
        part["rate"] = part["strings"] / part["tested"].where(part["tested"] > 0)
        parts.append(part[part["strings"] > 0])
    return pd.concat(parts)
