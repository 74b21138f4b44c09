"""The box of a setting: one value that is typed, or one or several of those that are offered."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from dashboard.launch import fields
from dashboard.launch.starting_point import shown

SUCH_AS = {
    "alphabet": "such as ab",
    "pattern": "such as (ab)*",
    "formula": "such as a % 2 == 0",
    "replacement": r"such as b or \1; nothing deletes",
}
MEANING = {
    "alphabet": "The letters of strings, one character each; in counting and rewrite "
    "also names, with a space between: push pop a.",
    "pattern": "A regular expression: letters, * + ? | and parentheses. It matches whole strings; "
    "in rewrite, what is replaced.",
    "formula": "A letter stands for how often it occurs: a > b, a % 2 == 0, a == b and c <= 3.",
    "replacement": r"What replaces each match; \1 is what the pattern's first "
    "parentheses hold.",
}
FIRST_ALPHABET = "ab"


def box(
    field: str, key: str, values: fields.Values, unchosen: fields.Values, begun: fields.Values
) -> Any:
    """Draws it, and returns what it holds.

    Args:
        field: the setting.
        key: of the box.
        values: what each field is as things stand.
        unchosen: what a field is while nothing is chosen for it.
        begun: its values in what the sweep starts from.
    """
    if field in fields.TYPED:
        return _typed(field, key, begun(field)[0])
    return _axis(field, key, values, unchosen(field))


def _typed(field: str, key: str, begun: Any) -> str:
    first = FIRST_ALPHABET if field == "alphabet" and not begun else ""
    placeholder = str(begun) or SUCH_AS.get(field, "")
    return st.text_input(field, first, key=key, placeholder=placeholder, help=MEANING.get(field))


def _axis(field: str, key: str, values: fields.Values, unchosen: Sequence[Any]) -> Any:
    placeholder, offered = shown(unchosen), fields.options(field, values)
    if field == "task":
        return st.selectbox(field, offered, index=None, key=key, placeholder=placeholder)
    is_open = fields.is_open_ended(field)
    more = ", or type your own: 2, 4, 8." if is_open else "."
    return st.multiselect(
        field,
        offered,
        key=key,
        placeholder=placeholder,
        accept_new_options=is_open,
        help=f"Choose several values to vary it{more}",
    )
