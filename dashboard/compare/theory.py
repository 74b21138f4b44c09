"""What theory predicts of configurations, beside what their models do."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.text import verbatim
from seqcls.theory.table import NOT_KNOWN

MOST_SAID = 12
"""Configurations that are named at most."""


def show(table: pd.DataFrame, named: Sequence[str]) -> None:
    """What is predicted of each configuration, and why; nothing where nothing is known.

    Args:
        table: a row a configuration: config_id, predicted, seeds, failing.
        named: what the configurations are called, row by row.
    """
    known = table.assign(configuration=named)[table["predicted"].to_numpy() != NOT_KNOWN]
    if known.empty:
        return
    predictions = data.predictions(tuple(known["config_id"]))
    against = known[(known["predicted"] == "cannot") & (known["failing"] < known["seeds"])]
    if len(against):
        st.caption(contradicted(against["configuration"].tolist()))
    with st.expander("Predicted beside measured", key="predicted"):
        for row in known.head(MOST_SAID).to_dict("records"):
            said = predictions[row["config_id"]]
            right = row["seeds"] - row["failing"]
            st.markdown(
                f"{verbatim(row['configuration'])}: predicted **{said.verdict}**; measured: "
                f"{right:,} of {row['seeds']:,} do not fail."
            )
            source = f" {verbatim(said.source)}." if said.source else ""
            st.caption(f"{verbatim(said.sentence)}.{source}")
        if len(known) > MOST_SAID:
            st.caption(f"The first {MOST_SAID} of {len(known):,}; select others in the table.")


def contradicted(named: Sequence[str]) -> str:
    """What to say where models do what is predicted to be impossible."""
    shown = "; ".join(map(verbatim, named[:MOST_SAID]))
    more = f"; and {len(named) - MOST_SAID:,} more" if len(named) > MOST_SAID else ""
    return (
        f"Predicted cannot, and yet not all models fail: {shown}{more}. Either the tested strings "
        "alone are solved, or a condition of the prediction does not hold."
    )
