"""New sweep: tasks and networks as lists, the specification beside them, one line to launch."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import actions, data, page
from dashboard.text import error_text
from dashboard.training import before, form, offer, other_task, settings
from seqcls.errors import SeqclsError
from sweeps.api import existing, watching
from sweeps.grid.spec import SweepSpec, load_specs, parse_toml, shipped_names, spec_as_written
from sweeps.grid.written_spec import toml_of

HEIGHT = 430
"""Pixels of the specification."""

_specifications = data.cached(watching.specifications)


def show() -> None:
    """Draws the form, the specification, and the line at the bottom."""
    # First of all, since it may lead to another page.
    offer.follow()
    offer.prepare()
    with st.sidebar:
        start = _choose_start()
    st.title("What to train next?", anchor=False)
    actions.say_problem()
    left, right = st.columns([6, 5], gap="large")
    with left:
        typed = form.read(*form.lists(), form.numbers(with_name=True))
        _other_settings()
        if typed.problem:
            st.error(page.plain(typed.problem))
    with right:
        tables = _tables(typed, start)
    specs: list[SweepSpec] = []
    if tables:
        try:
            specs = offer.specs_of(tables)
        except SeqclsError as error:
            # Beside what it is about: the text, or the form.
            (right if start else left).error(page.plain(error_text(error)))
    if specs:
        for sentence in offer.warnings(specs):
            st.warning(page.plain(sentence))
        before.show(offer.as_submitted(specs))
    with st.bottom:
        offer.show(specs, "page")


def _other_settings() -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        other_task.show()
        if st.button("What settings mean", type="tertiary", icon=":material/help:"):
            settings.show_all()
    st.caption("Settings that all share; several values, with commas, make a configuration each.")
    settings.rows()


def _choose_start() -> str | None:
    """A sweep of this database, or a specification that comes with seqcls."""
    stored = [] if existing() is None else [*_specifications()][::-1]
    offered = [*stored, *(x for x in shipped_names() if x not in stored)]
    start = st.selectbox(
        "Start from",
        offered,
        index=None,
        key=form.START,
        bind="query-params",
        persist_state="session",
        placeholder="What is typed",
        help="A sweep of this database, or a specification that comes with seqcls. Its text can "
        "be edited, and is then what is trained.",
    )
    return start if start in offered else None


def _start_texts(start: str) -> Sequence[str]:
    """The specifications of a start, as TOML; that of a sweep gets a free name."""
    stored: Mapping[str, str] = {} if existing() is None else _specifications()
    if start not in stored:
        return [toml_of(spec.submitted) for spec in load_specs(start)]
    table = {**parse_toml(toml_of(stored[start])), "name": form.free_name(f"{start} 2")}
    return [toml_of(spec_as_written(table).submitted)]


def _tables(typed: form.Typed, start: str | None) -> list[str]:
    """Shows the specifications' text for editing, and returns each as JSON."""
    try:
        made = [toml_of(spec_as_written(typed.table).submitted)] if typed.table else []
        texts = [*(_start_texts(start) if start else made)]
        edits = st.toggle(
            "Edit the specification",
            bool(start) and len(texts) == 1,
            key=f"{form.EDITS} {start}",
            disabled=len(texts) != 1,
            help="What stands here is trained then, and the form is not read.",
        )
        # A disabled toggle may still be on, from when there was one text.
        if edits and len(texts) == 1:
            st.caption("This is what is trained; the form is not read.")
            # The key names the start, so that edits of one text never appear in another.
            edited = st.text_area(
                "Specification",
                texts[0],
                key=f"{form.TEXT} {start}",
                height=HEIGHT,
                label_visibility="collapsed",
                persist_state="session",
            )
            texts = [edited or ""]
        else:
            st.code("\n".join(texts), language="toml", height=HEIGHT)
        return [spec_as_written(parse_toml(text)).submitted for text in texts]
    # Text that was edited may be nested deeper than Python's stack.
    except (SeqclsError, ValueError, RecursionError) as error:
        st.error(page.plain(error_text(error)))
        return []


show()
