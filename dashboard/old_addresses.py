"""Addresses of earlier versions lead to the pages that answer the same now."""

from collections.abc import Mapping, Sequence
from functools import partial

import streamlit as st

from dashboard import page
from sweeps.results import Outcome

Query = Mapping[str, Sequence[str]]

FAILING = "failing"
"""The parameter that left those that fail, of whatever kind."""


def _query() -> dict[str, list[str]]:
    """The link's parameters under their current names."""
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    if given.pop(FAILING, []) and "outcome" not in given:
        given["outcome"] = [Outcome.NOT_LEARNED.value, Outcome.FAILS_BEYOND.value]
    return given


RENAMED = {"config": "rows", "x": "across", "y": "up", "mapped": "of", "moves": "measure"}
"""Parameters of Compare, Compare two and Map, and what Results calls them."""

MEASURES = {
    "Share that learned": "learned", "Share that generalizes": "generalizes",
    "Median accuracy": "beyond", "Accuracy": "median", "Learned and generalize": "generalize",
}  # fmt: skip
"""Measures by their names in earlier links; for other names the default is shown."""

DROPPED = ("lengths", "language")


def of_results(given: Query) -> dict[str, list[str]]:
    """The parameters of pages before, as Results has them."""
    query: dict[str, list[str]] = {}
    for name, values in given.items():
        # What Compare drew by length is always accuracy.
        if name in DROPPED or (name == "measure" and not {*values} & {*MEASURES.values()}):
            continue
        if name in ("mapped", "moves"):
            values = [MEASURES[x] for x in values if x in MEASURES]
        query[RENAMED.get(name, name)] = list(values)
    return {name: values for name, values in query.items() if values}


def follow() -> None:
    """Leads on from a link of the page Compare, which stood at the same address as Results.

    It runs before any widget takes the parameters of the link; those that stay are left alone, as
    widgets of a page before may have them.
    """
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    if not {*given} & {*RENAMED, *DROPPED, FAILING}:
        return
    now = of_results(_query())
    for name in {*given} - {*now}:
        del st.query_params[name]
    for name, values in now.items():
        if given.get(name) != values:
            st.query_params[name] = values


PATHS = {
    "compare": "Compare", "compare_two": "Compare two", "map": "Map", "failing": "Failing models",
}  # fmt: skip
"""Pages by the paths of earlier links."""


def _lead_on(path: str) -> None:
    """Goes to the page that has now what was at a path."""
    given = _query()
    if path in ("compare_two", "failing") and (runs := given.get("run")):
        # The model that was chosen there and its string, or two models side by side.
        query = {"run": runs[0], **{x: y[0] for x, y in given.items() if x == "string"}}
        query |= {"beside": runs[1], "view": "Errors"} if len(runs) > 1 else {}
        st.switch_page(page.MODEL, query_params=query)
    if path == "failing":
        st.switch_page(page.FAILURES, query_params=given)
    # The map was a page of its own, and is one of the pictures of Results now.
    shown = {"show": ["Map"]} if path == "map" else {}
    st.switch_page(page.RESULTS, query_params={**of_results(given), **shown})


def pages() -> list[st.Page]:
    """Pages that are no longer in the navigation."""
    return [
        st.Page(partial(_lead_on, path), title=title, url_path=path, visibility="hidden")
        for path, title in PATHS.items()
    ]
