"""Tab *Errors*: how many test strings are wrong, of what kinds, which, and which beside another."""

import streamlit as st

from dashboard import data, page
from dashboard.model import errors_sections as sections
from dashboard.model import picture_errors
from dashboard.model.chosen import go_to
from dashboard.model.opened import Opened
from dashboard.results import models

_counts, _drawn = data.cached(sections.counts), data.cached(sections.by_drawn)
_by_features = data.cached(picture_errors.by_features)
_shortcuts, _strings = data.cached(sections.shortcuts), data.cached(sections.strings)
_two_models = data.cached(models.two_models)


def show(opened: Opened) -> None:
    """Draws the tab."""
    run = opened.run
    counts = _counts(run)
    page.say(counts.says)
    assert counts.table is not None
    page.table(counts.table, f"counts {run}", shown=counts.shown)
    if counts.panels:
        page.say_legend(counts)
        page.draw(counts, f"errors {run}", across=2)
    if (found := _strings(run)) is not None:
        string = page.render(found, f"wrong strings {run} {opened.string}")
        if string is not None and string != opened.display(opened.string):
            rows = found.table
            assert rows is not None
            # A click gives the string as it is shown; a link wants it as it is stored.
            stored = rows.loc[rows["string"] == string, "stored"].iloc[0]
            go_to(run, stored, "Why")
            st.rerun()
    if opened.second is not None:
        st.header("Strings that only one of them gets wrong", anchor=False)
        compared = _two_models(run, opened.second.run)
        page.render(compared, f"beside {run} {opened.second.run}", select="")
    for found in (_drawn(run), _by_features(run), _shortcuts(run, int(opened.row["config_id"]))):
        if found is not None:
            page.render(found, f"{found.title} {run}", across=2)
