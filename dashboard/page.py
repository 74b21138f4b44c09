"""Rendering of sections in Streamlit, and links between pages."""

import html
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import style
from dashboard.section import Panel, Section
from dashboard.text import plain as plain
from dashboard.words import columns
from dashboard.words.columns import Column

RESULTS = "results/page.py"
FAILURES = "failures/page.py"
MODEL = "model/page.py"
SWEEPS = "training/page.py"
NEW_SWEEP = "training/launch.py"
GUIDE = "guide/page.py"

ROW, TALL, LETTER = 35, 77, 7
"""Pixels of a row of a table, of one of three lines, and about of a letter's width. Streamlit wraps
texts of rows above 64.
"""


def is_dark() -> bool:
    """Returns True if the page is drawn in the dark theme."""
    return bool(st.context.theme.type == "dark")


def markdown(sentence: str) -> str:
    """Renders a sentence of plain text as Markdown; text between backquotes is code."""
    parts = sentence.split("`")
    return "".join(
        # Every second part stood between backquotes.
        f"`{part}`" if number % 2 and part else plain(part)
        for number, part in enumerate(parts)
    )


def say(sentences: Sequence[str], *, answer: bool = True) -> None:
    """Sentences, the first of which is the answer."""
    first, *others = sentences or ("",)
    if first:
        st.markdown(f"**{markdown(first)}**" if answer else markdown(first))
    if others:
        bullet = "- " if len(others) > 1 else ""
        st.markdown("\n".join(f"{bullet}{markdown(other)}" for other in others))


def render(
    section: Section,
    key: str,
    *,
    heading: bool = True,
    select: str = "single-row",
    across: int = 3,
) -> Any:
    """Draws a section: its title, its sentences, its pictures and its table.

    Args:
        key: unique among the sections of the page.
        select: how rows are selected, if the section opens something.
        across: panels beside each other at most.

    Returns:
        The value of `section.opens` that was clicked; with `multi-row`, the selected rows' numbers.
    """
    if section.is_empty:
        return None
    if heading and section.title:
        st.header(plain(section.title), anchor=False)
    say(section.says)
    clicked = None
    if section.panels:
        say_legend(section)
        clicked = draw(section, key, across)
    if section.table is not None and len(section.table):
        opens = section.opens if section.opens in section.table else ""
        select = select if opens else ""
        chosen = table(section.table, f"{key} table", select, opens, shown=section.shown)
        clicked = chosen if clicked is None else clicked
    return clicked


def say_legend(section: Section) -> None:
    """Shows the meaning of the pictures' colors, and the caption, in one line."""
    colors = style.DARK if is_dark() else style.LIGHT
    meanings = {name: html.escape(columns.LEGEND.get(name, name)) for name in section.legend}
    names = [
        f'<span><i style="color:{colors[name]}">●</i> {meaning}</span>'
        for name, meaning in meanings.items()
    ]
    parts = section.caption.split("`")
    caption = "".join(
        f"<code>{html.escape(part)}</code>" if number % 2 else html.escape(part)
        for number, part in enumerate(parts)
    )
    if names or caption:
        st.html(f'<p class="legend">{"".join(names)}<span>{caption}</span></p>')


def draw(section: Section, key: str, across: int = 3) -> Any:
    """The pictures of a section, several beside each other as far as they fit.

    Returns:
        The value of `section.opens` of the mark that was clicked.
    """
    clicked, panels = None, section.panels
    across = across if len(panels) > 1 else 1
    for first in range(0, len(panels), across):
        slots = st.columns(across, gap="medium") if across > 1 else [st.container()]
        row = panels[first : first + across]
        # The last row may have fewer panels than slots.
        for number, (slot, panel) in enumerate(zip(slots, row, strict=False), first):
            # Streamlit makes the key a class, by which the style finds panels.
            with slot.container(gap=None, key=f"panel {key} {number}"):
                found = _draw_panel(panel, f"{key} {number}", section.opens)
            clicked = found if clicked is None else clicked
    return clicked


def _draw_panel(panel: Panel, key: str, opens: str) -> Any:
    if panel.opens is not None:
        st.page_link(
            MODEL,
            label=f"**{plain(panel.title)}**",
            icon=":material/chevron_right:",
            icon_position="right",
            help=panel.link or None,
            query_params={"run": str(panel.opens)},
        )
    elif panel.title:
        st.markdown(f"**{plain(panel.title)}**")
    if panel.note:
        st.markdown(f":small[:gray[{markdown(panel.note)}]]")
    dark = is_dark()
    spec, key = style.on_screen(panel.spec, dark=dark), f"{key} {dark}"
    # Streamlit refuses to listen to a selection that the chart does not have.
    if not (opens and "clicked" in str(spec.get("params", ""))):
        # What has a width of its own keeps it: the scales of a plane are equal.
        width: Any = "content" if isinstance(spec.get("width"), int) else "stretch"
        width = None if {"facet", "vconcat", "hconcat"} & spec.keys() else width
        st.vega_lite_chart(spec, width=width, key=key, theme=None)
        return None
    event: Any = st.vega_lite_chart(
        spec, key=key, theme=None, on_select="rerun", selection_mode="clicked"
    )
    marks = event["selection"].get("clicked")
    return marks[0].get(opens) if marks else None


def table(
    frame: pd.DataFrame,
    key: str,
    select: str = "",
    opens: str = "",
    height: int = 420,
    shown: Sequence[str] = (),
    selected: Sequence[int] = (),
) -> Any:
    """A table whose columns are named in `words.columns`.

    Args:
        select: how rows are selected, `single-row` or `multi-row`; not at all if empty.
        opens: the column whose value a selected row gives.
        height: in pixels at most; what is longer scrolls.
        shown: the columns, in order; all that are declared where it is empty.
        selected: the numbers of the rows that are selected at first.

    Returns:
        The value of the selected row, or with `multi-row` the numbers of the selected rows.
    """
    shown = list(shown) or [name for name in frame if name in columns.COLUMNS]
    known = {name: columns.column_of(name) for name in shown}
    of_shares = [name for name in shown if known[name].kind == "share"]
    row = TALL if _is_cut(frame, known) else ROW
    options: dict[str, Any] = {"row_height": row}
    if select:
        options |= {"on_select": "rerun", "selection_mode": select}
        options["selection_default"] = {"selection": {"rows": list(selected)}}
    event: Any = st.dataframe(
        frame.assign(**{name: 100 * frame[name] for name in of_shares}),
        hide_index=True,
        column_order=shown,
        column_config={name: _column_config(column) for name, column in known.items()},
        key=key,
        # 38 pixels are those of the head.
        height=min(38 + row * len(frame), height),
        placeholder="",
        **options,
    )
    if not select:
        return None
    # A selection may be left from a longer table of the same key.
    rows = [row for row in event["selection"]["rows"] if row < len(frame)]
    if select == "multi-row":
        return rows
    return frame.iloc[rows[0]][opens] if rows else None


def _is_cut(frame: pd.DataFrame, known: Mapping[str, Column]) -> bool:
    """Returns True if a text that may wrap is too long for one line."""
    wrapping = {name: column.width or 0 for name, column in known.items() if column.wraps}
    return any((frame[x].str.len() * LETTER > width).any() for x, width in wrapping.items())


_NUMBERS = {"percent": "percent", "p": "%.3g", "number": "%.3f", "whole": "localized"}
"""Streamlit's format of numbers, by kind."""


def _column_config(column: Column) -> Any:
    config, shown = st.column_config, {"help": column.help, "width": column.width}
    if column.kind == "share":
        limits = {"min_value": 0, "max_value": 100, "format": " ", "color": "green"}
        return config.ProgressColumn(column.title, **shown, **limits)  # type: ignore[arg-type]
    if column.kind == "link":
        return config.LinkColumn(column.title, **shown)  # type: ignore[arg-type]
    if column.kind in _NUMBERS:
        return config.NumberColumn(column.title, **shown, format=_NUMBERS[column.kind])  # type: ignore[arg-type]
    return config.TextColumn(column.title, **shown)  # type: ignore[arg-type]


def say_not_offered(key: str, options: Sequence[Any]) -> None:
    """Reports values of a link's parameter that are not offered, and removes them.

    Call it before the box is drawn, which would ignore them.
    """
    requested = st.query_params.get(key)
    if requested and requested not in map(str, options):
        # Cut off, since a link of any length may come from anywhere.
        sentence = f"The link asks for {key} {requested[:60]}, which is not offered here."
        st.warning(plain(sentence))
        # The session holds it as well, and would write it into the link again.
        st.session_state.pop(key, None)
        del st.query_params[key]


def choose(
    label: str,
    options: Sequence[Any],
    key: str,
    *,
    first: Any = None,
    hidden: bool = False,
    meaning: str | None = None,
    place: Any = st,
) -> Any:
    """A choice that the link names; without a box where there is but one.

    Args:
        label: above it.
        options: to choose from.
        key: the parameter of the link.
        first: what is chosen at first; the first option if none is named.
        hidden: leaves the label out.
        meaning: of the choice.
        place: container of the box.
    """
    first = options[0] if first is None else first
    say_not_offered(key, options)
    if len(options) < 2:
        return first
    chosen = place.segmented_control(
        label,
        options,
        default=first,
        required=True,
        key=key,
        bind="query-params",
        label_visibility="collapsed" if hidden else "visible",
        help=meaning,
    )
    return chosen or first


def unfold(label: str, key: str, icon: str | None = None) -> Any:
    """An expander, closed at first, that stays open or closed when the page is drawn anew.

    The server has to know its state: a browser closes it when elements above it change.
    """
    return st.expander(label, key=key, icon=icon, on_change="rerun")


def rerun_when(is_so: Callable[[], bool], seconds: float) -> None:
    """Draws the page anew once `is_so()`, which is polled, returns True."""

    def look() -> None:
        if is_so():
            st.rerun()

    # A fragment polls by itself, without drawing the page anew each time.
    st.fragment(look, run_every=seconds)()


def to_model(run_id: int, **query: str) -> None:
    """Goes to a model."""
    st.switch_page(MODEL, query_params={"run": str(run_id), **query})
