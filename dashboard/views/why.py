"""What is wrong with the model, the cause of one of its errors, and all its figures."""

from collections.abc import Callable, Iterable
from itertools import groupby
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, elements, links
from dashboard.charts.legend import deduplicate_legends
from dashboard.charts.pointing import hint
from dashboard.charts.scales import SIDE
from dashboard.choosing.opened import OpenedModel, remembered
from dashboard.choosing.strings import Chosen, look_at
from dashboard.figures import gallery
from dashboard.figures.figure import Figure
from dashboard.placement import place, place_chart, show_keys, stretch, stretch_chart
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.errors import InvalidStringError
from seqcls.interpretability.causes import attributions
from seqcls.interpretability.explanations import Explanation, explain, explanation_text
from seqcls.interpretability.mechanisms import AttributedError
from seqcls.interpretability.states_by_counts import letter_orders
from sweeps.api.presentation import display_strings

PLANE_WIDTH = SIDE + 75
PLANES_IN_ROW = 2
"""Pixels of a plane with its axis, and how many a row of the page holds."""


def draw_figures(figures: Iterable[Figure], prefix: str = "") -> None:
    """Each figure with its note below; planes stand side by side as far as they fit.

    What colors and shapes mean stands above them all, once, and what pointing at them does.

    Args:
        figures: in order.
        prefix: tells the figures from others of the page.
    """
    drawn, keys = [], []
    for figure in figures:
        make = stretch_chart if figure.is_line else place_chart
        spec, its_keys = deduplicate_legends(make(figure.chart, f"{figure.panel}. {figure.note}"))
        drawn.append((figure, spec))
        keys += its_keys
    show_keys(keys)
    if said := hint([spec for _, spec in drawn]):
        st.caption(said)
    for together, some in groupby(drawn, key=lambda pair: pair[0].is_plane):
        with st.container(horizontal=together, gap="small"):
            for _, panels in groupby(some, key=lambda pair: (pair[0].number, pair[0].title)):
                _draw_one(list(panels), prefix)


def _draw_one(panels: list[tuple[Figure, dict[str, Any]]], prefix: str) -> None:
    first, _ = panels[0]
    planes = len(panels[:PLANES_IN_ROW]) if first.is_plane else 0
    with st.container(width=PLANE_WIDTH * planes or "stretch"):
        with st.container(horizontal=True, gap="small"):
            for figure, spec in panels:
                show = stretch if figure.is_line else place
                show(spec, prefix + figure.file_name)
        st.caption(f"Figure {first.number}. {first.note}")


EVIDENCE = (6, 8, 13)
"""The figures that an explanation is checked against."""

MOST_HEADS = 4

explained = remembered(explain)
attributed = remembered(attributions, "Finding causes")


def show(chosen: Chosen) -> None:
    """Why the model fails, why this string does, and the figures to check it against."""
    if chosen.errors:
        _summary(chosen)
        st.subheader("Why this string?")
    explanation = explained(chosen.model, chosen.string)
    _cause(explanation, chosen.model.network.tokenizer.display)
    heads = heads_for(chosen.model, explanation)
    st.subheader("Check it")
    st.caption("The numbers above, read off the model at this epoch.")
    traces = chosen.model.traces(chosen.strings)
    draw_figures(gallery.figures(traces, chosen.model.epoch, heads, EVIDENCE))
    with st.expander("Show data"):
        _tables(explanation, chosen.model.config)


def _summary(chosen: Chosen) -> None:
    """The causes of all test errors, each with its shortest example to look at.

    Of a model that has not learned they say what it does instead, and nothing about length.
    """
    model = chosen.model.at(chosen.model.stored.kept_epoch)
    found: dict[str, list[AttributedError]] = {}
    for error in attributed(model, chosen.errors):
        head = "" if error.head is None else f" in head {error.head}"
        about = f": {error.tokens}" if error.tokens else ""
        found.setdefault(f"{error.mechanism}{head}{about}", []).append(error)
    examined = sum(map(len, found.values()))
    st.subheader("Why does this model fail?")
    learned_at = links.thresholds().learned_at
    if (not_learned := data.why_not_learned(chosen.model.run_id, learned_at)) is not None:
        st.markdown(
            f"It has not learned the trained lengths: it is {verbatim(not_learned)}. Its errors, "
            "short and long, come from:"
        )
    for phrase, some in sorted(found.items(), key=lambda x: -len(x[1])):
        # As wide as its label: in a column, a string would be cut off at 820 pixels.
        row = st.container(horizontal=True, vertical_alignment="center")
        part, shortest = f"{len(some):,} of {examined:,}", some[0].string
        row.markdown(f"**{part}**: {verbatim(phrase)}")
        row.button(
            f"Explain {verbatim(chosen.model.network.tokenizer.display(shortest))}",
            key=f"explain {phrase}",
            on_click=look_at,
            args=(shortest,),
        )
    errors = len(chosen.errors)
    which = "" if examined == errors else f"{examined:,} of "
    how = "" if examined == errors else ", taken at even intervals"
    st.caption(
        f"Causes of {which}the {errors:,} different test strings that the kept model "
        f"misclassifies{how}: what would have to change inside it for the answer to be right."
    )


def heads_for(model: OpenedModel, explanation: Explanation) -> list[int]:
    """The heads to draw: all of a few, else those that move this string's logit the most."""
    heads = range(model.config.num_attention_heads)
    if len(heads) <= MOST_HEADS:
        return list(heads)
    moves = {head.head: abs(sum(seen.adds for seen in head.seen)) for head in explanation.heads}
    return sorted(sorted(heads, key=lambda head: -moves[head])[:MOST_HEADS])


def _cause(explanation: Explanation, display: Callable[[str], str]) -> None:
    answer, *reasons = explanation_text(explanation, display)
    say = st.success if explanation.error is None else st.error
    say(verbatim(answer))
    for reason in reasons:
        st.markdown(f"- {verbatim(reason)}")


def _tables(explanation: Explanation, config: RunConfig) -> None:
    seen = [
        {"head": head.head, "attends to": seen.kind, "occurs": seen.count,
         "score": seen.score, "weight": seen.weight,
         "value": ", ".join(f"{v:.4f}" for v in seen.value),
         "adds to the logit directly": seen.adds}
        for head in explanation.heads
        for seen in head.seen
    ]  # fmt: skip
    st.markdown("**What each head sees**")
    st.dataframe(pd.DataFrame(seen), hide_index=True)
    gaps = [
        {"head": head.head, "scores highest": gap.over, "then": gap.under, "gap": gap.gap,
         "count of equal weight": gap.outweighed_by}
        for head in explanation.heads
        for gap in head.gaps
    ]  # fmt: skip
    st.markdown("**Gaps between scores**")
    st.dataframe(pd.DataFrame(gaps), hide_index=True)
    changes = [
        {"letter": change.letter, "occurs": change.count, "answer flips at": change.left,
         "string": change.string, "logit": change.logit}
        for change in (*explanation.removals, *explanation.additions)
    ]  # fmt: skip
    st.markdown("**Changes that flip the answer**")
    st.dataframe(display_strings(pd.DataFrame(changes), config), hide_index=True)


FIGURES = "figures_of"
"""The parameter of the link that says which group of figures is shown."""

orders = remembered(letter_orders)


def show_figures(chosen: Chosen) -> None:
    """One group of figures at a time, so that the epoch can be moved without a wait."""
    groups = list(gallery.GROUPS)
    # It was called as a setting of languages is, which is a filter.
    if (former := st.query_params.get("group")) in groups and FIGURES not in st.query_params:
        st.session_state.setdefault(FIGURES, former)
    group = links.choice("Figures of", groups, FIGURES, groups[1])
    heads = list(range(chosen.model.config.num_attention_heads))
    if len(heads) > 4:
        suggested = heads_for(chosen.model, explained(chosen.model, chosen.string))
        heads = elements.choose_several(
            "Heads",
            heads,
            default=suggested,
            key=f"heads {chosen.model.run_id}",
        )
    st.caption(
        "Axis limits cover all epochs: move the epoch slider above to animate the figures. Hover "
        "over a mark for exact values."
    )
    traces = chosen.model.traces(chosen.strings)
    draw_figures(gallery.figures(traces, chosen.model.epoch, sorted(heads), gallery.GROUPS[group]))
    if group == "Circuits":
        _letter_order(chosen)


def _letter_order(chosen: Chosen) -> None:
    st.subheader("Does the order of the letters matter?")
    st.caption(
        "The model has no positions, so it should not. Checked with the model that reads strings "
        "letter by letter (this loads PyTorch), not with letter counts."
    )
    if not st.toggle("Shuffle the letters", key="shuffle"):
        return
    try:
        shuffled = orders(chosen.model, chosen.string)
    except InvalidStringError as error:
        st.error(verbatim(str(error)))
        return
    st.dataframe(
        display_strings(
            pd.DataFrame({"string": shuffled.strings, "logit": shuffled.logits}),
            chosen.model.config,
        ),
        hide_index=True,
        column_config={"logit": st.column_config.NumberColumn("Logit", format="%.12f")},
    )
    st.markdown(f"The largest difference of any two logits is {shuffled.spread:.2g}.")
