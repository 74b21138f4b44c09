"""Settings of a new sweep beside its lists: rows of a name and values, and what each means.

A field is described where it is declared (`seqcls.declarations`). A new field needs no line here.
"""

from collections.abc import Mapping
from typing import Any, get_args

import pandas as pd
import streamlit as st

from dashboard import page
from dashboard.text import format_value
from dashboard.words.columns import Column, add_columns
from seqcls.config import ABOUT, default_fields
from seqcls.declarations import Group
from seqcls.fields import limits_of
from sweeps.api.typed import values_of

add_columns(
    {
        "means": Column("What it is", width=520),
        "usual": Column("Usual", width=110),
        "offered": Column("Values", width=260),
    }
)

FIELDS: dict[str, tuple[str, ...]] = {
    group: tuple(name for name, about in ABOUT.items() if about.group == group)
    for group in get_args(Group)
}
"""Every field that can be set, by group, the most used first."""

OF_LISTS = ("task", "dataset")
"""Fields set by the lists, and by no row."""

ROWS, TYPED = "settings", "typed settings"
"""The editor of rows, and where the session keeps what it held on the last page."""

Values = dict[str, list[Any]]


def rows() -> pd.DataFrame:
    """Draws the rows, and returns those that are filled in: setting, values."""
    state = st.session_state
    if ROWS not in state:
        # An editor forgets its rows on another page.
        empty = pd.DataFrame({"setting": pd.Series(dtype=str), "values": pd.Series(dtype=str)})
        state["begun settings"] = state.get(TYPED, empty)
    names = [x for group in FIELDS.values() for x in group if x not in OF_LISTS]
    # The same frame each time: an editor that is given another one loses its edits.
    begun = state["begun settings"]
    edited: pd.DataFrame = st.data_editor(
        begun,
        num_rows="dynamic",
        hide_index=True,
        key=ROWS,
        width="stretch",
        placeholder="",
        column_config={
            "setting": st.column_config.SelectboxColumn("Setting", options=names, width=230),
            "values": st.column_config.TextColumn("Values", width=230),
        },
    )
    state[TYPED] = edited
    return edited


def read(table: pd.DataFrame | None) -> Values:
    """The values of each setting that is named; several make a configuration each.

    Raises:
        ConfigError, SpecError: one of them is none of its setting's.
    """
    if table is None:
        return {}
    # A row with half of its cells is still being typed.
    filled = table.dropna()
    pairs = zip(filled["setting"], filled["values"], strict=True)
    return {name: values for name, text in pairs if (values := values_of(name, str(text)))}


def say(values: Mapping[str, list[Any]]) -> str:
    """Settings as they are written: `hidden_size = 16, 32`."""
    return "; ".join(f"{x} = {', '.join(map(format_value, y))}" for x, y in values.items())


@st.dialog("Settings", width="large")
def show_all() -> None:
    """Every setting: what it is, what it usually is, and what it may be."""
    for group, names in FIELDS.items():
        st.subheader(group, anchor=False)
        table = pd.DataFrame(
            {
                "setting": names,
                "usual": [format_value(default_fields()[name]) for name in names],
                "offered": [limits_of(name) for name in names],
                "means": [ABOUT[name].line for name in names],
            }
        )
        page.table(table, f"settings {group}", height=300)
