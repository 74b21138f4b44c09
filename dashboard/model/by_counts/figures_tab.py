"""All figures of the model, by what they are about, and the letter-order switch."""

import pandas as pd
import streamlit as st

from dashboard import links
from dashboard.figures.by_counts import gallery
from dashboard.model.by_counts.why import explained, heads_for
from dashboard.model.choosing.strings import Chosen
from dashboard.model.figure_placement import draw
from dashboard.model.opened import remembered
from dashboard.text import verbatim
from seqcls.errors import InvalidStringError
from seqcls.interpretability.states.letter_order import letter_orders
from sweeps.analysis.answer_sentences import displayed

FIGURES = "figures_of"
"""The parameter of the link that says which group of figures is shown."""

orders = remembered(letter_orders)


def show(chosen: Chosen) -> None:
    """One group of figures at a time, so that the epoch can be moved without a wait."""
    groups = list(gallery.GROUPS)
    # It was called as a setting of languages is, which is a filter.
    if (former := st.query_params.get("group")) in groups and FIGURES not in st.query_params:
        st.session_state.setdefault(FIGURES, former)
    group = links.choice("Figures of", groups, FIGURES, groups[1])
    heads = list(range(chosen.model.config.num_attention_heads))
    if len(heads) > 4:
        suggested = heads_for(chosen.model, explained(chosen.model, chosen.string))
        heads = st.multiselect(
            "Heads", heads, default=suggested, key=f"heads {chosen.model.run_id}"
        )
    st.caption(
        "Axis limits cover all epochs: move the epoch slider above to animate the figures. Hover "
        "over a mark for exact values."
    )
    traces = chosen.model.traces(chosen.strings)
    draw(gallery.figures(traces, chosen.model.epoch, sorted(heads), gallery.GROUPS[group]))
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
        displayed(
            pd.DataFrame({"string": shuffled.strings, "logit": shuffled.logits}),
            chosen.model.config,
        ),
        hide_index=True,
        column_config={"logit": st.column_config.NumberColumn("Logit", format="%.12f")},
    )
    st.markdown(f"The largest difference of any two logits is {shuffled.spread:.2g}.")
