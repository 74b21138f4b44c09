"""Which settings matter: how far each moves the failing share, and every configuration at once."""

import pandas as pd
import streamlit as st

from dashboard import data, drawing
from dashboard.charts.encodings import Drawing
from dashboard.charts.importance import importance_chart
from dashboard.charts.parallel import parallel_coordinates, places
from sweeps.store.views import View

MOST_LINES = 150
MOST_AXES = 8


def show(table: pd.DataFrame, view: View, named: list[str]) -> None:
    """A section for configurations that differ in any setting; nothing where they do not.

    Args:
        table: one row a configuration: config_id, failing_share, seeds.
        view: which models of them.
        named: what the configurations are called, row by row.
    """
    table = table.assign(configuration=named)
    table = table[table["seeds"] > 0]
    ids = tuple(table["config_id"].astype(int))
    found, settings = data.importance(view, ids)
    if found.empty or len(table) < 2:
        return
    st.subheader("Which setting matters?")
    first = found.iloc[0]
    several = len(first["fields"]) > 1
    names = ", ".join(f"`{name}`" for name in first["fields"])
    # Without minus signs of a keyboard, which read as dashes here.
    low, high = (f"{first[end]:.0%}".replace("-", "\N{MINUS SIGN}") for end in ("low", "high"))
    unsure = "; it includes 0, so more seeds are needed to tell" if first["low"] <= 0 else ""
    st.markdown(
        f"{names} {'(changed together) move' if several else 'moves'} the failing share most: "
        f"{first['worst_share']:.0%} of models "
        f"fail with {first['worst']}, {first['best_share']:.0%} with {first['best']} "
        f"(difference {first['moves']:.0%}, 95% interval {low} to {high}{unsure})."
    )
    drawing.show(drawing.built(importance_chart, found), "importance")
    st.caption(
        "A value's share is the mean over the configurations with that value; configurations whose "
        "language or network does not use the setting are left out. Settings that always change "
        "together are grouped, since their effects cannot be separated. In sweeps that are not "
        "full grids, effects of settings may be confounded."
    )
    fields = [name for names in found["fields"] for name in names][:MOST_AXES]
    if len(fields) < 2:
        return
    few = table.head(MOST_LINES)
    label, rows = "Settings of every configuration", len(few) * (len(fields) + 1)
    if (place := drawing.unfolded(rows, label, "parallel")) is None:
        return
    joined = few[["config_id", "configuration", "failing_share"]].join(settings, on="config_id")
    with place:
        if len(few) < len(table):
            st.caption(f"The chart shows the worst {MOST_LINES} of {len(table):,} configurations.")
        drawing.show(drawing.built(_parallel, joined, fields), "parallel")


def _parallel(joined: pd.DataFrame, fields: list[str]) -> Drawing:
    return parallel_coordinates(places(joined, fields))
