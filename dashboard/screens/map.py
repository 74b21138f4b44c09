"""Two fields of the configuration against each other: where do models begin to generalize?"""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dashboard import data, elements, filters, layout, links, placement, share
from dashboard.text import verbatim
from dashboard.views import budgets, configurations, heat_map, shortcuts
from dashboard.views.heat_map import CANNOT, CLICKED, NOT_GIVEN
from dashboard.words import languages, measures
from seqcls.kinds import Measure
from sweeps.api.old_pages.judging_naming import say_field, say_value
from sweeps.api.old_pages.reading import Selection
from sweeps.naming import say_setting
from sweeps.results import describe_longer
from sweeps.statistics.populations import CLASS

OUTCOMES = ("both", "learned_share", "generalizing_share")
SHARES = ("median", "failing_share", "worst", "best")

# What may be mapped, where all models are measured so.
MEASURES = ("accuracy", "right_length_given", "token_error_rate")


def show() -> None:
    header = share.header("Where do models begin to generalize?")
    view = filters.current()
    models = heat_map.models_by_language(view)
    if models.empty:
        filters.say_none()
        return
    every = f"All {measures.words_of_languages(map(str, models.index)).words.task}s"
    first = str(models.idxmax())
    of_first, of_all = (set(heat_map.fields(view, x)) for x in (first, None))
    # Of languages drawn of several classes the class is an axis, as is what a link asks for.
    wanted = {CLASS} & heat_map.language_settings(view, first).keys()
    wanted |= {st.query_params.get(name, "") for name in ("x", "y", "facet")}
    is_one_of_many = len(of_first) < 2 <= len(of_all) or bool(wanted & of_all - of_first)
    chosen = languages.choose(models, [every], more_first=is_one_of_many)
    language = None if chosen == every else chosen
    fields = heat_map.fields(view, language)
    if len(fields) < 2:
        _too_few(fields)
        return
    _maps(view, language, fields, header)


def _too_few(fields: list[str]) -> None:
    differs = f"only {verbatim(say_field(fields[0]))} differs" if fields else "no setting differs"
    st.info(
        "A map needs two settings in which the models differ; among those that match the "
        f"filters, {differs}. Clear the filters, or launch a sweep with two axes."
    )


def _maps(view: Selection, language: str | None, fields: list[str], header: DeltaGenerator) -> None:
    x, y, facet = _axes(fields)
    if x == y or facet in (x, y):
        st.info("Choose different settings for the two axes and for the separate maps.")
        return
    grouped = [x, y] if facet is None else [x, y, facet]
    measured = heat_map.config_ids(view, language)
    measure = _measure(view, measured)
    rows = partial(heat_map.cells, view, language, grouped, measure)
    shown = replace(view, config_ids=tuple(measured))
    share.offer(header, "map", rows, shown, only=filters.describe_filters())
    others = heat_map.other_settings(view, language, grouped)
    table = rows().merge(others, on=grouped, how="left")
    if table.empty:
        used = " and ".join(verbatim(say_field(x)) for x in grouped)
        st.info(f"No model uses {used}. Choose other settings.")
        return
    differing = [str(name) for name in others if name not in grouped]
    settings = {} if language is None else heat_map.language_settings(view, language)
    names = [*OUTCOMES, *SHARES] if table["judged"].any() else list(SHARES)
    if not table["judged_beyond"].any():
        names = [name for name in names if name != "generalizing_share"]
    if not (table["seeds"] > table["judged"]).any() and table["judged_beyond"].any():
        # Of models that are judged on trained and on longer lengths, it says the same less well.
        names.remove("failing_share")
    if facet is None:
        with layout.grid("maps"):
            for name in names:
                with st.container():
                    _map(table, grouped, name, settings, measure, differing)
    else:
        for name in names:
            _map(table, grouped, name, settings, measure, differing)
    words = measures.words_of(measured).words
    _say_what_is_left_out(view, language, grouped, words.task)
    _say_what_is_pooled(table, fields, grouped)
    if said := describe_longer(heat_map.longer_lengths(view, language)):
        st.caption(said)
    if said := budgets.describe_further(heat_map.count_further(view, language, grouped)):
        st.caption(said)
    _say_what_is_predicted(table, grouped)
    shortcuts.say_unpaired(shown)
    fail = measures.failing(view.below, words)
    st.caption(
        f"{verbatim(measure.title)}: {verbatim(measure.meaning)} Failing: {verbatim(fail)} Each "
        "number summarizes models, not pooled strings. A missing cell has no model with these "
        "settings. Click a cell to compare its models."
    )


def _measure(view: Selection, config_ids: list[int]) -> Measure:
    """What the maps show; chosen where there is more than the accuracy."""
    known = {x.title: x for x in measures.measures_of(tuple(config_ids)) if x.name in MEASURES}
    by_kind = data.border_accuracies(replace(view, config_ids=tuple(config_ids)))
    known |= {x.title: x for x in measures.OF_KINDS if by_kind[x.name].notna().any()}
    first = next(iter(known))
    if len(known) == 1:
        return known[first]
    return known[links.choice("Measure", list(known), "mapped", first, format_func=verbatim)]


def _map(
    table: pd.DataFrame,
    grouped: list[str],
    value: str,
    language: dict[str, Any],
    measure: Measure,
    others: list[str],
) -> None:
    """One map; a click on a cell leads to its models."""
    x, y, *facet = grouped
    apart = next(iter(facet), None)
    if value == "both":
        chart = placement.build(heat_map.outcome_map, table, x, y, apart, others)
    else:
        known = table if value not in OUTCOMES else table.dropna(subset=[value])
        chart = placement.build(heat_map.heat_map, known, x, y, value, apart, measure, others)
    worst = max(table.to_dict("records"), key=lambda cell: cell["failing_share"])
    says = (
        f"{len(table)} cells. Most models fail with "
        f"{', '.join(f'{say_field(x)} {say_value(x, worst[x])}' for x in grouped)}: "
        f"{worst['failing']} of {worst['seeds']}."
    )
    event = placement.show(chart, f"map {value}", says=says, click=CLICKED)
    for point in event["selection"].get(CLICKED) or []:
        cell = table[table["cell"] == point["cell"]].iloc[0]
        if without := [say_field(name) for name in grouped if cell[name] == NOT_GIVEN]:
            said = " and ".join(map(verbatim, without))
            st.info(f"No filter chooses the models of this cell, of which {said} is not given.")
            continue
        links.to_compare({**language, **{name: cell[name] for name in grouped}})


def _axes(fields: list[str]) -> tuple[str, str, str | None]:
    for param in ("x", "y", "facet"):
        links.say_what_is_not(param, fields)
    # Fields of numbers make the better axes, and come first.
    columns = st.columns(3)
    x = columns[0].selectbox("Horizontal axis", fields, index=0, key="x", bind="query-params")
    y = columns[1].selectbox("Vertical axis", fields, index=1, key="y", bind="query-params")
    facet = columns[2].selectbox(
        "Facet by",
        fields,
        index=None,
        placeholder="One map",
        key="facet",
        bind="query-params",
        help="Draws a map for each value of this setting.",
    )
    return x, y, facet


def _say_what_is_left_out(
    view: Selection, language: str | None, grouped: list[str], task: str
) -> None:
    models, unread = heat_map.unread(view, language, grouped)
    for name, number in unread.items():
        if number:
            st.caption(
                f"{number:,} of {models:,} models are in no cell: their {verbatim(task)} or "
                f"network does not use {verbatim(say_field(name))}."
            )


def _say_what_is_predicted(table: pd.DataFrame, grouped: list[str]) -> None:
    cannot = table[table["predicted"] == "cannot"]
    if cannot.empty:
        return
    right = cannot["seeds"] - cannot["failing"]
    st.caption(
        f"{CANNOT}: theory predicts that these networks cannot be right at every length, under "
        f"conditions that the page Compare names. Tested: {cannot['failing'].sum():,} of "
        f"{cannot['seeds'].sum():,} models of these cells fail."
    )
    named = [
        ", ".join(say_setting(name, cell[name], cell.get("architecture", "")) for name in grouped)
        for cell in cannot[right > 0].to_dict("records")
    ]
    if named:
        st.caption(configurations.describe_contradiction(named))


def _say_what_is_pooled(table: pd.DataFrame, fields: list[str], grouped: list[str]) -> None:
    if "learned_n" in table and table["learned_n"].str.contains("language").any():
        st.caption(
            "Of a cell with several languages, the shares that learned and generalize are means "
            "over languages, as are their intervals: seeds of one language are no new languages."
        )
    if table["configurations"].max() > 1:
        pooled = {name: "" for name in fields if name not in grouped}
        st.caption(
            "Some cells hold models that differ in other settings too: choose one under Facet by, "
            "or filter by it."
        )
        elements.show_chips(pooled)


show()
