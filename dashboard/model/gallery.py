"""*Inside · Figures*: every figure of a model that reads letter counts, at any stored epoch."""

from collections.abc import Sequence
from itertools import groupby

import streamlit as st

from dashboard import page
from dashboard.figures.epochs import are_figures_by_counts
from dashboard.figures.gallery import GROUPS, sections
from dashboard.model.opened import Opened
from dashboard.section import Section
from seqcls.errors import InvalidStringError
from seqcls.questions import RunModel
from sweeps.api import open_reader

FEW_HEADS = 4
"""Heads that are all drawn; of more, those are chosen that weigh the string's letters."""


def has_figures(opened: Opened) -> bool:
    """Returns True if the gallery has figures of the model; *States* and *Circuits* draw others."""
    return are_figures_by_counts(opened.problem)


def show(opened: Opened) -> None:
    """Draws one group of figures at a time, for the bar's string and others."""
    left, right = st.columns([5, 4], vertical_alignment="bottom")
    with left:
        group = page.choose("Figures of", list(GROUPS), "figures_of", first="Attention")
    tokenizer = opened.problem.tokenizer
    usual = [x for x in opened.examples if x != opened.string]
    typed = right.text_input(
        "Strings beside the one above",
        tokenizer.line_of(usual),
        key="strings",
        bind="query-params",
        help="Separated by spaces; limits of axes are those of all epochs.",
    )
    numbers = GROUPS[group]
    heads = _choose_heads(opened)
    try:
        strings = (opened.string, *tokenizer.strings_of(typed))
        found = opened.ask(_figures, strings, opened.epoch, numbers, heads)
    except InvalidStringError as error:
        st.error(page.plain(str(error)))
        return
    # Rows of facets are one plot wide.
    columns = [1 if "field" in x.panels[0].spec.get("facet", {}) else 2 for x in found]
    for place, (across, some) in enumerate(
        groupby(zip(columns, found, strict=True), lambda pair: pair[0])
    ):
        together = list(some)
        for number, (_, section) in enumerate(together):
            page.render(section, f"figures {opened.key} {group} {place} {number}", across=across)


def _figures(
    model: RunModel,
    strings: tuple[str, ...],
    epoch: int,
    numbers: tuple[int, ...],
    heads: tuple[int, ...] | None,
) -> tuple[Section, ...]:
    assert model.run is not None
    return sections(open_reader(), model.run, strings, numbers, epoch, heads)


def _choose_heads(opened: Opened) -> tuple[int, ...] | None:
    """The heads that are drawn; None for all of a few."""
    # Each head is a drawing of its own in most figures: of many, a page would take long.
    heads = range(opened.config.num_attention_heads)
    if len(heads) <= FEW_HEADS:
        return None
    chosen: Sequence[int] = st.multiselect(
        "Heads", heads, default=list(heads[:FEW_HEADS]), key=f"heads {opened.run}"
    )
    return tuple(sorted(chosen))
