"""Addresses of earlier versions lead to the pages that answer the same now."""

from collections.abc import Callable, Mapping, Sequence

import streamlit as st

from dashboard import page
from sweeps.results import Outcome

Query = Mapping[str, Sequence[str]]

FAILING = "failing"
"""The parameter that left those that fail, of whatever kind."""


def _query() -> dict[str, list[str]]:
    """What the link names, in the words of now."""
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
"""What these called measures; of others the usual one is shown."""

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


def _compare() -> None:
    st.switch_page(page.RESULTS, query_params=of_results(_query()))


def _compare_two() -> None:
    given = _query()
    if runs := given.get("run"):
        query = {
            "run": runs[0],
            **({"beside": runs[1], "view": "Errors"} if len(runs) > 1 else {}),
        }
        st.switch_page(page.MODEL, query_params=query)
    st.switch_page(page.RESULTS, query_params=of_results(given))


def _map() -> None:
    # The map was a page of its own, and is one of the pictures of Results now.
    st.switch_page(page.RESULTS, query_params={**of_results(_query()), "show": ["Map"]})


def _failing() -> None:
    given = _query()
    if run := given.get("run"):
        # The model that was chosen there, and its string.
        query = {"run": run[0], **({"string": given["string"][0]} if "string" in given else {})}
        st.switch_page(page.MODEL, query_params=query)
    st.switch_page(page.FAILURES, query_params=given)


PATHS: dict[str, tuple[str, Callable[[], None]]] = {
    "compare": ("Compare", _compare),
    "compare_two": ("Compare two", _compare_two),
    "map": ("Map", _map),
    "failing": ("Failing models", _failing),
}
"""What was at each path, and what leads on."""


def pages() -> list[st.Page]:
    """Pages that are no longer in the navigation."""
    return [
        st.Page(function, title=title, url_path=path, visibility="hidden")
        for path, (title, function) in PATHS.items()
    ]
