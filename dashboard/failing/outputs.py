"""How a transduction's model fails: kinds of errors, and where its outputs leave the targets."""

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.errors.errors_by_length import errors_by_length
from dashboard.charts.errors.first_wrong import first_wrong_places
from dashboard.compare.lengths import FEW_LENGTHS, named
from dashboard.elements import placement
from dashboard.failing import by_features
from seqcls.config import RunConfig
from seqcls.problem import resolve

WIDTH = 5


def show(run_id: int, config: RunConfig) -> None:
    """Two charts side by side; of pictures two more."""
    problem = resolve(config)
    width = 1 if problem.test.lengths[-1] <= FEW_LENGTHS else WIDTH
    left, right = st.columns(2)
    with left:
        chart = placement.built(errors_by_length, _kinds(run_id, width), problem.kind.words)
        placement.show(chart, "errors by length")
    with right:
        chart = placement.built(first_wrong_places, _places(run_id, width))
        placement.show(chart, "first wrong places")
    by_features.show(run_id, config)


@data.shared
def _kinds(run_id: int, width: int) -> pd.DataFrame:
    """Rows for `errors_by_length`."""
    errors = data.error_kinds_by_length(run_id, width).rename(columns={"error_kind": "kind"})
    tested = data.scores_by_length((run_id,), width)[["first_length", "tested"]]
    errors = errors.merge(tested, on="first_length")
    return errors.assign(lengths=named(errors), rate=errors["strings"] / errors["tested"])


@data.shared
def _places(run_id: int, width: int) -> pd.DataFrame:
    """Rows for `first_wrong_places`."""
    places = data.first_wrong_places(run_id, width)
    first = places["first_wrong"] // width * width
    places = places.assign(first_place=first, last_place=first + width - 1)
    grouped = ["first_length", "last_length", "first_place", "last_place"]
    sums = places.groupby(grouped)["strings"].sum().reset_index()
    spans = sums[["first_place", "last_place"]].set_axis(["first_length", "last_length"], axis=1)
    return sums.assign(lengths=named(sums), places=named(spans))
