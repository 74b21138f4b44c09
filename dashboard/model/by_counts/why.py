"""The answer first: what is wrong with the model, and the cause of one of its errors."""

import pandas as pd
import streamlit as st

from dashboard.figures.by_counts import gallery
from dashboard.model.choosing.strings import Chosen, look_at
from dashboard.model.figure_placement import draw
from dashboard.model.opened import OpenedModel, remembered
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.interpretability.causes.shares import causes
from seqcls.interpretability.explanations.explain import explain
from seqcls.interpretability.explanations.explanation import Explanation
from seqcls.interpretability.explanations.text import explanation_text
from sweeps.analysis.answer_sentences import displayed

EVIDENCE = (6, 8, 13)
"""The figures that an explanation is checked against."""

MOST_HEADS = 4

explained = remembered(explain)
summed_up = remembered(causes, "Finding causes")


def show(chosen: Chosen) -> None:
    """Why the model fails, why this string does, and the figures to check it against."""
    if chosen.errors:
        _summary(chosen)
        st.subheader("Why this string?")
    explanation = explained(chosen.model, chosen.string)
    _cause(explanation)
    heads = heads_for(chosen.model, explanation)
    st.subheader("Check it")
    st.caption("The numbers above, read off the model at this epoch.")
    traces = chosen.model.traces(chosen.strings)
    draw(gallery.figures(traces, chosen.model.epoch, heads, EVIDENCE))
    with st.expander("Show data"):
        _tables(explanation, chosen.model.config)


def _summary(chosen: Chosen) -> None:
    """The causes of all test errors, each with its shortest example to look at."""
    model = chosen.model.at(chosen.model.stored.kept_epoch)
    summary = summed_up(model, chosen.errors)
    st.subheader("Why does this model fail?")
    for share in summary.shares:
        # As wide as its label: in a column, a string would be cut off at 820 pixels.
        row = st.container(horizontal=True, vertical_alignment="center")
        part = f"{share.errors:,} of {summary.examined:,}"
        row.markdown(f"**{part}**: {verbatim(share.phrase)}")
        row.button(
            f"Explain {verbatim(share.shortest)}",
            key=f"explain {share.phrase}",
            on_click=look_at,
            args=(share.shortest,),
        )
    errors, examined = summary.errors, summary.examined
    every = "all" if examined == errors else f"{examined:,}, evenly picked, "
    st.caption(
        f"The cause of {every} of the {errors:,} different test strings that the kept model "
        "misclassifies: what would have to change inside it for the answer to be right."
    )


def heads_for(model: OpenedModel, explanation: Explanation) -> list[int]:
    """The heads to draw: all of a few, else those that move this string's logit the most."""
    heads = range(model.config.num_attention_heads)
    if len(heads) <= MOST_HEADS:
        return list(heads)
    moves = {head.head: abs(sum(seen.adds for seen in head.seen)) for head in explanation.heads}
    return sorted(sorted(heads, key=lambda head: -moves[head])[:MOST_HEADS])


def _cause(explanation: Explanation) -> None:
    answer, *reasons = explanation_text(explanation)
    say = st.success if explanation.error is None else st.error
    say(verbatim(answer))
    for reason in reasons:
        st.markdown(f"- {verbatim(reason)}")


def _tables(explanation: Explanation, config: RunConfig) -> None:
    seen = [
        {"head": head.head, "attends to": seen.token_type, "occurs": seen.count,
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
         "of which so many weigh as much": gap.outweighed_by}
        for head in explanation.heads
        for gap in head.gaps
    ]  # fmt: skip
    st.markdown("**Gaps between scores**")
    st.dataframe(pd.DataFrame(gaps), hide_index=True)
    changes = [
        {"letter": change.letter, "occurs": change.count, "answered otherwise with": change.left,
         "string": change.string, "logit": change.logit}
        for change in (*explanation.removals, *explanation.additions)
    ]  # fmt: skip
    st.markdown("**Changes that flip the answer**")
    st.dataframe(displayed(pd.DataFrame(changes), config), hide_index=True)
