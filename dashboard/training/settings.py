"""Settings of a new sweep beside its lists: rows of a name and values, and what each means.

All that is known of a field stands in `seqcls.config`: its place in `ABOUT`, its limits in its
type, its meaning in its docstring. Nothing here names a field that a new one would have to join.
"""

import ast
import inspect
import re
from collections.abc import Mapping
from functools import cache
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin

import pandas as pd
import streamlit as st

from dashboard import page
from dashboard.text import format_value
from dashboard.words.columns import Column, add_columns
from seqcls import config
from seqcls.config import ABOUT, GROUPS, PARTS, RunConfig, default_fields
from seqcls.models import MODELS
from seqcls.models.positions import POSITIONS
from seqcls.sampling import SAMPLERS
from sweeps.api.typed import values_of

add_columns(
    {
        "means": Column("What it is", width=520),
        "usual": Column("Usual", width=110),
        "offered": Column("Values", width=260),
    }
)

FIELDS: dict[str, tuple[str, ...]] = {
    group: tuple(
        sorted((x for x in ABOUT if ABOUT[x].group == group), key=lambda x: ABOUT[x].place)
    )
    for group in GROUPS
}
"""Every field that can be set, those first that are asked for most."""

OF_LISTS = ("task", "dataset")
"""What the lists say, and no row."""

REGISTERED = {"architecture": MODELS, "positions": POSITIONS}

OF_PARTS = {
    "sampler": "How {} strings are drawn.",
    "max_length": "Tokens of the longest {} string.",
    "min_length": "Tokens of the shortest {} string.",
    "alpha": "How evenly letters are mixed in {} strings; if small, one letter dominates.",
    "size": "Number of {} strings.",
    "batch_size": "Strings in a {} batch.",
    "seed": "Seed of the generator that draws {} strings.",
}
"""Meanings of the fields that training, validation and test each have."""

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
                "offered": [_limits(name) for name in names],
                "means": [meanings().get(name, "") for name in names],
            }
        )
        page.table(table, f"settings {group}", height=300)


def _limits(name: str) -> str:
    """What a field may be, in words."""
    field, usual = RunConfig.model_fields[name], default_fields()[name]
    if name in REGISTERED:
        return ", ".join(REGISTERED[name])
    if name in {f"{part}_sampler" for part in PARTS}:
        return ", ".join(SAMPLERS)
    if get_origin(field.annotation) is Literal:
        return ", ".join(map(str, get_args(field.annotation)))
    if isinstance(usual, bool):
        return "true, false"
    signs = {"ge": "≥", "gt": ">", "le": "≤", "lt": "<"}
    limits = [
        f"{word} {getattr(limit, sign):,}"
        for limit in field.metadata
        for sign, word in signs.items()
        if hasattr(limit, sign)
    ]
    return ", ".join(limits)


@cache
def meanings() -> dict[str, str]:
    """What each field of a configuration is, by name: the first sentence of its docstring."""
    texts = {
        f"{part}_{name}": text.format({"train": "training"}.get(part, part))
        for part in PARTS
        for name, text in OF_PARTS.items()
    }
    for made in ast.parse(inspect.getsource(config)).body:
        if not isinstance(made, ast.ClassDef) or made.name not in ("_NetworkFields", "RunConfig"):
            continue
        for before, after in pairwise(made.body):
            match before, after:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    texts[name] = re.split(r"(?<=\.)\s", " ".join(text.split()))[0]
    return texts
