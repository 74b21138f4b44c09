"""Why does this model fail? Two lines, one bar, six tabs."""

from collections.abc import Callable, Mapping

import streamlit as st

from dashboard import data, filters, page
from dashboard.model import automaton, bar, errors, inside, limits, settings, training, why
from dashboard.model.chosen import choose_run, follow_next
from dashboard.model.opened import Opened
from dashboard.text import error_text
from dashboard.words.outcomes import describe_outcome
from dashboard.words.sentences import say
from seqcls.errors import SeqclsError, StoreLostError, UnknownRunError
from sweeps.results import Outcome

BADGES = {
    Outcome.AT_EVERY_LENGTH: "green", Outcome.GENERALIZES: "green",
    Outcome.FAILS_BEYOND: "orange", Outcome.NOT_LEARNED: "gray", Outcome.NOT_KNOWN: "gray",
}  # fmt: skip

_losses = data.cached(training.losses)

TABS: Mapping[str, Callable[[Opened], None]] = {
    "Errors": errors.show,
    "Why": why.show,
    "Inside": inside.show,
    "Limits": limits.show,
    "Automaton": automaton.show,
    "Training": lambda opened: page.render(_losses(opened.run), f"training {opened.run}"),
}

WITHOUT_WEIGHTS = ("Errors", "Training")
"""Tabs of a model without stored weights."""

FORMER = {
    "Answers": ("Errors", ""), "Second model": ("Errors", ""), "Minimal and nearest": ("Why", ""),
    "Breaking point": ("Limits", ""), "All strings": ("Limits", ""), "All inputs": ("Limits", ""),
    "Figures": ("Inside", "Figures"), "States": ("Inside", "States"), "Live": ("Inside", "Live"),
    "Patching": ("Inside", "Patching"), "Ablation": ("Inside", "Ablation"),
    "Surgery": ("Inside", "Ablation"), "Writing": ("Inside", "Writing"),
}  # fmt: skip
"""Tab, and part of *Inside*, by the names of sections in earlier links."""


def show() -> None:
    """Draws the page."""
    run = choose_run()
    if run is None:
        st.info(filters.why_empty())
        return
    follow_former()
    follow_next()
    # It is shown first and filled last: the bar decides its epoch.
    head = st.container()
    opened = bar.choose(run)
    with head:
        _show_head(opened)
    bar.show_answers(opened)
    _show_tabs(opened)


def _say_missing(error: SeqclsError) -> None:
    """Says why there is no model to look into."""
    if isinstance(error, UnknownRunError):
        st.error("This run has no model to show.")
        st.code(error_text(error), language=None, wrap_lines=True)
    else:
        data.say(error)


def follow_former() -> None:
    """Leads a link that names a section of earlier versions to the tab that has it now."""
    if (former := st.query_params.get("view")) in FORMER:
        tab, part = FORMER[former]
        # In both, as the one that was left would bring the former name back.
        st.session_state["view"] = st.query_params["view"] = tab
        if part:
            st.session_state["part"] = st.query_params["part"] = part


def _show_head(opened: Opened) -> None:
    """Shows the model's name and outcome; on request its settings and its handout."""
    st.set_page_config(page_title=f"{opened.name} · seqcls", layout="wide")
    outcome = Outcome(opened.row["outcome"])
    left, right = st.columns([5, 2], vertical_alignment="center")
    badge = f":{BADGES[outcome]}-badge[{outcome.value}]"
    left.title(f"{page.plain(opened.name)} {badge}", anchor=False)
    with right.container(horizontal=True, horizontal_alignment="right", gap="small"):
        settings.show(opened)
        if not opened.lacks_weights:
            why.offer_handout(opened)
    st.markdown(page.plain(describe_outcome(opened.run, opened.config, opened.judged)))
    if opened.at_epoch is not None:
        st.caption(page.plain(say("kept_in_words", kept=opened.kept_epoch, epoch=opened.epoch)))


def _show_tabs(opened: Opened) -> None:
    names = WITHOUT_WEIGHTS if opened.lacks_weights else tuple(TABS)
    if opened.lacks_weights:
        st.info(
            f"Tabs that look inside this model are left out: {page.plain(opened.lacks_weights)}.",
            icon=":material/info:",
        )
    first = "Why" if opened.fails and "Why" in names else "Errors"
    page.say_not_offered("view", names)
    tabs = st.tabs(names, key="view", bind="query-params", default=first, on_change="rerun")
    for name, tab in zip(names, tabs, strict=True):
        # Only the open tab is drawn, since drawing one evaluates the model.
        if tab.open:
            with tab:
                _show_tab(TABS[name], opened)


def _show_tab(show_it: Callable[[Opened], None], opened: Opened) -> None:
    """Draws a tab, or an error in a line if the question does not apply to this model."""
    try:
        with data.at_one_moment():
            show_it(opened)
    # A lost connection concerns the whole page, which is drawn anew over another one.
    except StoreLostError:
        raise
    except SeqclsError as error:
        st.info(page.plain(error_text(error)), icon=":material/info:")


with data.explaining(_say_missing):
    show()
