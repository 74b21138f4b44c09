"""Settings as chips: only those that differ, a name and a value each."""

import html
from collections.abc import Mapping

import pandas as pd
import streamlit as st

from dashboard.text import written


def show(settings: Mapping[str, object], *, empty: str = "") -> None:
    """A row of chips.

    Args:
        settings: values by the names of the settings; what is missing has no chip.
        empty: what is said where there is none.
    """
    known = {name: value for name, value in settings.items() if not _is_missing(value)}
    if known or empty:
        st.html(f'<div class="chips">{"".join(map(_chip, known, known.values())) or empty}</div>')


def show_apart(fields: Mapping[str, tuple[object, object]]) -> None:
    """A row of chips with the two values of each setting in which two things differ."""
    each = "".join(
        f"<span><em>{html.escape(name)}</em> {_value(first)} <i>→</i> {_value(second)}</span>"
        for name, (first, second) in fields.items()
    )
    with st.container(key="apart"):
        st.html(f'<div class="chips">{each or "All their settings are the same."}</div>')


def _chip(name: str, value: object) -> str:
    return f"<span><em>{html.escape(name)}</em> {_value(value)}</span>"


def _value(value: object) -> str:
    return f"<b>{html.escape('not read' if _is_missing(value) else written(value))}</b>"


def _is_missing(value: object) -> bool:
    return value is None or bool(pd.isna(value))  # type: ignore[call-overload]
