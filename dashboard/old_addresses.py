"""Addresses of earlier versions lead to the pages that answer the same now."""

from collections.abc import Mapping, Sequence

import streamlit as st

from dashboard import page
from sweeps.results import Outcome

Query = Mapping[str, Sequence[str]]


def pages() -> list[st.Page]:
    """Pages that are no longer in the navigation, each of which leads on."""
    return [
        st.Page(function, title=title, url_path=path, visibility="hidden")
        for path, (title, function) in {
            "compare": ("Compare", _compare),
            "compare_two": ("Compare two", _compare_two),
            "map": ("Map", _map),
            "failing": ("Failing models", _failing),
        }.items()
    ]


def _given() -> dict[str, list[str]]:
    """What the link names, in the words of now."""
    given = {name: st.query_params.get_all(name) for name in st.query_params}
    if given.pop("failing", []) and "outcome" not in given:
        given["outcome"] = [Outcome.NOT_LEARNED.value, Outcome.FAILS_BEYOND.value]
    return given


def _compare() -> None:
    st.switch_page(page.RESULTS, query_params=_given())


def _compare_two() -> None:
    given = _given()
    if runs := given.get("run"):
        query = {"run": runs[0], **({"beside": runs[1]} if len(runs) > 1 else {})}
        st.switch_page(page.MODEL, query_params=query)
    st.switch_page(page.RESULTS, query_params={**given, "rows": given.pop("config", [])})


def _map() -> None:
    st.switch_page(page.RESULTS, query_params={**_given(), "show": "Map"})


def _failing() -> None:
    given = _given()
    if run := given.get("run"):
        # The model that was chosen there, and its string.
        query = {"run": run[0], **({"string": given["string"][0]} if "string" in given else {})}
        st.switch_page(page.MODEL, query_params=query)
    st.switch_page(page.FAILURES, query_params=given)
