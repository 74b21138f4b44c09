"""Which models fail, on which strings, and which strings break most seeds."""

from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, filters, layout, links, share
from dashboard.choosing.run import gives_way, remember_shown
from dashboard.server import visitors
from dashboard.text import verbatim
from dashboard.views import causes, error_places, protocol, remedies, shortcuts
from dashboard.words import languages, measures, names, outcomes
from seqcls.config import RunConfig
from seqcls.interpretability.wording import percent
from seqcls.kinds import Kind, Words
from sweeps.api.old_pages.reading import KINDS, ErrorSearch, Selection
from sweeps.api.presentation import describe_proofs, display_strings
from sweeps.results import Outcome

KINDS_OF_ERRORS = ["false_positives", "false_negatives"]
CONFIGURATION = "configuration"
RESULTS = [
    "outcome", "every_length", "first_wrong_length", "errors", "model_seed", "accuracy_within",
    "accuracy", "random", "border", *KINDS_OF_ERRORS, "run_id",
]  # fmt: skip
STRING_WIDTH = 240
MODELS_A_PAGE = 100
STRINGS_A_PAGE = 200
BREAKING = 100
LEAST_MODELS = 4
"""Models that have to get a row of a file wrong for its label to be doubted."""


def show() -> None:
    header = share.header("Which models fail, and on which strings?")
    view = filters.current()
    number = data.count_failing_models(view)
    if not number:
        _nothing(view)
        return
    most = min(number, share.MOST_ROWS)
    rows = partial(_rows, view, most)
    share.offer(header, "failing_models", rows, view, only=filters.describe_filters())
    model = _models(view, number)
    remember_shown(int(model["run_id"]), replace(view, failing=True))
    _model(model, view)
    causes.show(view)
    remedies.show(int(model["run_id"]), view)
    _breaking(view, number)


def _rows(view: Selection, most: int) -> pd.DataFrame:
    return shortcuts.with_border(data.failing_models(view, most))


def _nothing(view: Selection) -> None:
    tested = int(data.configurations(view)["seeds"].sum())
    if tested:
        makes = " and ".join(filters.describe_picked(replace(view, failing=view.kind is None)))
        match = "matches" if tested == 1 else "match"
        which = "that the other filters leave" if view.picks else f"that {match} the filters"
        st.success(
            f"The only tested model {which} is not one that {makes}."
            if tested == 1
            else f"None of the {tested:,} tested models {which} {makes}."
        )
    else:
        filters.say_none()


def _models(view: Selection, number: int) -> "pd.Series[Any]":
    """The table of failing models; the one that is chosen."""
    said = measures.words_of(data.configurations(view)["config_id"])
    errs = f"1 model {said.words.misses}" if number == 1 else f"{number:,} models {said.words.miss}"
    miss = errs.format(said.words.plural("test"))
    if view.below < 1:
        fails = "model has" if number == 1 else "models have"
        miss = f"{number:,} {fails} an accuracy below {percent(view.below, 1)}"
    order = "the least accurate first" if view.kind is None else f"by their share of {view.kind}"
    order = f", {order}" if number > 1 else ""
    these = ""
    if view.picks:
        tested = int(data.configurations(view)["seeds"].sum())
        these = f" They are among the {tested:,} tested models that match the filters."
    came_to = outcomes.describe_outcomes(data.failing_models(view, number)["outcome"])
    st.caption(
        f"{verbatim(miss)}{order}: {came_to}.{these} "
        f"{'Select one to see its' if number > 1 else 'Its'} {verbatim(said.words.plural(''))} "
        f"{'' if number > 1 else 'are '}below."
    )
    shortcuts.say_unpaired(view)
    first = links.first_of_page(number, MODELS_A_PAGE, "models_page")
    table = shortcuts.with_border(data.failing_models(view, MODELS_A_PAGE, first))
    texts = {x: shortcuts.within_and_beyond(table, x) for x in ("random", "border")}
    config_ids = table["config_id"].tolist()
    proved = describe_proofs(table, data.some_configs(tuple(dict.fromkeys(config_ids))))
    if any(proved):
        texts["every_length"] = pd.Series(proved, index=table.index)
    table = table.assign(**texts)
    named = names.configuration_names(list(dict.fromkeys(config_ids)))
    # Of tasks that are no languages there are no false positives and negatives.
    known = [name for name in RESULTS if name in table and not table[name].isna().all()]
    shown = table[known]
    shown.insert(0, CONFIGURATION, table["config_id"].map(named))
    elsewhere = _linked_elsewhere(table["run_id"].tolist(), view)
    chosen = links.selectable(
        shown,
        table["run_id"].tolist(),
        "run",
        mode="single-row-required" if elsewhere is None else "single-row",
        columns=measures.model_columns(said) | measures.setting_columns((), named.values()),
    )
    if elsewhere is not None and chosen == [elsewhere["run_id"]]:
        st.caption(f"Model {chosen[0]} is not in the table above; select another there.")
        return elsewhere
    # As objects: in a row of numbers of one type a large seed would be rounded.
    return table[table["run_id"] == chosen[0]].astype(object).iloc[0]


def _linked_elsewhere(shown: list[int], view: Selection) -> "pd.Series[Any] | None":
    """The failing model of the link, where the table does not show it; None where there is none, or
    where filters that were changed since leave it no longer.
    """
    linked = links.numbers_of("run")[:1]
    if not linked or linked[0] in shown or gives_way(linked[0], replace(view, failing=True)):
        return None
    rows = data.model(linked[0], view)
    if rows.empty:
        st.warning(f"Model {linked[0]} (from the link) is not in this database.")
    elif not int(rows["errors"].iloc[0]):
        st.warning(f"Model {linked[0]} (from the link) has no errors.")
    else:
        return rows.astype(object).iloc[0]
    return None


def _model(model: "pd.Series[Any]", view: Selection) -> None:
    run_id, config_id = int(model["run_id"]), int(model["config_id"])
    st.subheader(f"Model {run_id}")
    sweeps = names.sweep_names([config_id], data.memberships())[config_id]
    st.text(f"Seed {model['model_seed']} of {sweeps}")
    config = data.some_configs((config_id,))[config_id]
    protocol.show(run_id, config_id, config)
    errors = data.string_errors(run_id, ErrorSearch(), error_places.MAX_POINTS)
    (kind,) = measures.kinds_of((config_id,))
    st.markdown(verbatim(outcomes.describe_outcome(run_id, config, view)))
    _in_short(display_strings(errors, config), model, kind.words)
    remedies.rounding(run_id)
    links.to_model(run_id, "Look inside this model")
    _strings(run_id, view, kind, config)
    error_places.show(run_id, errors, config)


def _in_short(errors: pd.DataFrame, model: "pd.Series[Any]", words: Words) -> None:
    # In a row that wraps, as on Compare. The shortest comes first; code shows the string as it is.
    row = st.container(horizontal=True, gap="medium", key="in_short")
    with row.container(width=STRING_WIDTH):
        st.caption("Shortest error", help="The first one of that length.")
        st.code(errors["string"].iloc[0], language=None, wrap_lines=True)
    # Of a model that has not learned nothing is said about length.
    if model["outcome"] != Outcome.NOT_LEARNED:
        solved = measures.solved_length(words)
        length = measures.solved_or_none(model["solved_length"])
        row.metric("Solved length", length, help=verbatim(solved), width="content")
    counted: dict[str, str] = dict(zip(KINDS, KINDS_OF_ERRORS, strict=True))
    if pd.isna(model[KINDS_OF_ERRORS[0]]):
        # Of a task that is no language there is one kind of error.
        counted = {words.missed: "errors"}
    for kind, column in counted.items():
        row.metric(
            verbatim(kind.capitalize()),
            f"{int(model[column]):,}",
            help=verbatim(
                f"Of the whole test, {words.one} as often as it occurs in it. The table below has "
                f"each {words.string} once."
            ),
            width="content",
        )


def _strings(run_id: int, view: Selection, kind: Kind, config: RunConfig) -> None:
    words = kind.words
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    right = right.container(horizontal=True, vertical_alignment="center")
    text = left.text_input(
        verbatim(f"Find {words.plural('')} that contain"),
        key="find",
        bind="query-params",
        placeholder="such as ab{100}",
        help="As strings are written: a{100} is the letter a, a hundred times.",
    )
    search = ErrorSearch(text.strip(), view.kind, _choose_drawn(run_id))
    number = data.count_string_errors(run_id, search)
    right.download_button(
        "Save as CSV",
        visitors.later(lambda: data.string_errors(run_id, search).to_csv(index=False)),
        file_name=f"errors_of_model_{run_id}.csv",
        mime="text/csv",
        on_click="ignore",
        disabled=not number,
    )
    right.download_button(
        "For spreadsheets",
        visitors.later(lambda: share.csv_for_spreadsheets(data.string_errors(run_id, search))),
        file_name=f"errors_of_model_{run_id}.spreadsheet.csv",
        mime="text/csv",
        on_click="ignore",
        disabled=not number,
        type="tertiary",
        help="As CSV, with ' before texts that a spreadsheet would compute as formulas.",
    )
    if not number:
        st.info(
            f"No {verbatim(f'{words.missed} {words.string}')} of this model matches. Search for "
            "something else."
        )
        return
    first = links.first_of_page(number, STRINGS_A_PAGE, "strings_page")
    table = data.string_errors(run_id, search, STRINGS_A_PAGE, first)
    st.caption(
        f"{number:,} different {verbatim(words.plural(words.missed))}, the shortest first. Select "
        "one to look at it."
        if number > 1
        else f"One {verbatim(words.missed)} {verbatim(words.string)}. Select it to look at it."
    )
    string = links.texts(
        measures.kinds_first(display_strings(table, config), kind),
        table["string"].tolist(),
        "string",
        columns=measures.string_columns(kind),
        key=f"strings of {run_id} {search} {first}",
    )
    if string is not None:
        links.to_model(
            run_id,
            f"Look inside this model at the selected {verbatim(words.string)}",
            string=string,
        )
    error_places.show_alignment(
        config, table[table["string"] == (string or table["string"].iloc[0])]
    )


def _choose_drawn(run_id: int) -> str | None:
    """How the strings that are listed were drawn; None for all, and where that is not known."""
    counts = data.accuracy_by_drawn((run_id,))
    wrong: list[str] = counts.loc[counts["wrong"] > 0, "drawn"].tolist()
    if len(wrong) < 2:
        return None
    links.say_what_is_not("drawn", wrong)
    return st.pills("Drawn", wrong, key="drawn", bind="query-params", help=measures.DRAWN)


def _breaking(view: Selection, number: int) -> None:
    said = measures.words_of(data.configurations(view)["config_id"])
    st.subheader(f"Which {verbatim(said.words.plural(''))} break most models?")
    breaking = data.breaking_strings(view, BREAKING)
    if breaking.strings.empty:
        return
    language = languages.choose(pd.Series(breaking.languages))
    of, several = breaking.languages[language], len(breaking.languages) > 1
    table = breaking.strings[breaking.strings["language"] == language]
    table = table.assign(share=table["models"] / table["of"]).drop(columns="language")
    ids = [config_id for config_id, name in data.languages().items() if name == language]
    (kind, *_), said = measures.kinds_of(tuple(ids)), measures.words_of(ids)
    table = display_strings(table, *data.some_configs(tuple(ids[:1])).values())
    whose = (
        f"{of:,} models of this {verbatim(said.words.task)}" if several else f"{number:,} models"
    )
    if breaking.every > 1:
        whose = f"{of:,} models, spread evenly among those that fail: all would take too long"
    miss = " ".join(said.words.miss.format("").split())
    strings, miss = verbatim(said.words.plural("test")), verbatim(miss)
    learned = "" if view.outcomes else " Models count whether they learned or not."
    st.caption(f"The {len(table)} {strings} that most models {miss}, of {whose}.{learned}")
    st.dataframe(
        table,
        hide_index=True,
        column_config=measures.string_columns(kind),
        height=layout.table_height(len(table), 390),
    )
    _say_ceiling(view, ids, table, of)


def _say_ceiling(view: Selection, config_ids: list[int], table: pd.DataFrame, models: int) -> None:
    """Says of rows of a file that no model gets right what a model reaches that has all others."""
    never, found = int((table["models"] == models).sum()), data.configurations(view)
    found = found[found["config_id"].isin(config_ids)]
    is_file = all(x.dataset for x in data.some_configs(tuple(found["config_id"])).values())
    if not is_file or not never or models < max(LEAST_MODELS, int(found["seeds"].sum())):
        return
    worst = data.failing_models(view, 1).iloc[0]
    tested = round(worst["errors"] / (1 - worst["accuracy"]))
    least, are = "At least " if never == BREAKING else "", "is" if never == 1 else "are"
    st.caption(
        f"{least}{never:,} of the {tested:,} test strings {are} wrong in all {models:,} models: "
        f"check the labels. A model that is right on all others reaches "
        f"{percent(1 - never / tested)}; with that as the accuracy below which a model fails (in "
        "the sidebar), it does not fail."
    )


show()
