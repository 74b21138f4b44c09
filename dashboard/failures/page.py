"""Why do models fail, and what helps?"""

from typing import Any

import streamlit as st

from dashboard import background, data, filters, page
from dashboard.failures import sections
from sweeps.api import failing
from sweeps.api.reading import Selection

REQUESTED_PER_TASK = 50
"""Models of a task whose causes are requested before all others."""

SECONDS = 5.0
"""The page looks so often whether more causes are known."""

causes, remedies = data.cached(sections.causes), data.cached(sections.remedies)
strings, models = data.cached(sections.strings), data.cached(sections.models)
failing_models, waiting = data.cached(failing.failing_models), data.cached(failing.waiting_of)


def show() -> None:
    """Draws the page: each task's sections, one below the other."""
    st.title("Why do models fail, and what helps?", anchor=False)
    chosen = filters.selections()
    if not any(map(data.count_tested, chosen.values())):
        st.info(filters.why_empty())
        return
    for number, (task, selection) in enumerate(chosen.items()):
        if len(chosen) > 1:
            st.header(page.plain(filters.task_name(task)), anchor=False)
        _show_task(selection, number)


def _show_task(selection: Selection, number: int) -> None:
    _open(page.render(causes(selection), f"causes {number}", heading=False))
    _follow(selection)
    tried, broken = remedies(selection), strings(selection)
    if not tried.is_empty:
        _open(page.render(tried, f"remedies {number}"))
    if broken.table is None:
        return
    # A click gives what is shown; the link wants the string as it is stored.
    if (string := page.render(broken, f"strings {number}")) is not None:
        row = broken.table[broken.table["string"] == string].iloc[0]
        _open(row["run"], string=row["stored"])
    # The table is shown above its pager, which is drawn first, since it decides the rows.
    table, shown = st.container(), 1
    if (pages := -(-len(failing_models(selection)) // sections.PAGE)) > 1:
        shown = st.pagination(pages, key=f"models_page{number or ''}", bind="query-params")
    with table:
        _open(page.render(models(selection, shown), f"models {number} {shown}"))


def _open(run: Any, **query: str) -> None:
    # Where no model is an example, pandas has NaN, which is unlike itself.
    if run is not None and run == run:
        page.to_model(int(run), **query)


def _follow(selection: Selection) -> None:
    """Has causes that are not known yet looked for, and the page drawn anew when there are more."""
    left = waiting(selection)
    if left and background.request(left[:REQUESTED_PER_TASK]):
        st.caption("They are being looked for, those of these models first.")
        known = failing.count_explained(data.reader())
        page.rerun_when(lambda: failing.count_explained(data.reader()) != known, SECONDS)


show()
