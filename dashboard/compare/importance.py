"""Which settings matter in a language: how far each moves a measure, and every configuration."""

import pandas as pd
import streamlit as st

from dashboard import data, links
from dashboard.charts.comparison.importance_chart import importance_chart, written
from dashboard.charts.comparison.parallel import OUTCOME, parallel_coordinates, places
from dashboard.charts.style.encodings import Drawing
from dashboard.elements import placement
from dashboard.text import verbatim
from dashboard.words import kind_words, languages, measures
from sweeps.statistics.importance import MEASURES
from sweeps.statistics.median_intervals import FEWEST
from sweeps.store.reading.selection import View

MOST_LINES = 150
MOST_AXES = 8


def show(table: pd.DataFrame, view: View, named: list[str]) -> None:
    """A section for configurations that differ in any setting; nothing where they do not.

    Args:
        table: one row a configuration: config_id, seeds, and what these come to.
        view: which models of them.
        named: what the configurations are called, row by row.
    """
    table = table.assign(configuration=named)
    table = table[table["seeds"] > 0]
    table = table.assign(language=table["config_id"].map(data.languages()))
    # A single configuration of a language has nothing to be compared with.
    several = table[table["language"].duplicated(keep=False)]
    if several.empty:
        return
    known = several["language"].unique()
    st.subheader("Which setting matters?")
    seeds = {name: several["seeds"][several["language"] == name].sum() for name in known}
    language = languages.choose(pd.Series(seeds))
    said = kind_words.of(several.loc[several["language"] == language, "config_id"])
    measure = links.choice(
        "What it moves",
        list(MEASURES),
        "moves",
        next(iter(MEASURES)),
        help=f"Median accuracy: {said.accuracy} Median solved length: "
        f"{measures.solved_length(said.words)} Failing share: of seeds. "
        f"{measures.failing(view.below, said.words)}",
    )
    configs = several[several["language"] == language]
    ids = tuple(configs["config_id"].astype(int))
    effects = data.importance(view, ids, measure)
    if effects.empty:
        st.caption(
            "Its configurations differ in no setting that their "
            f"{said.words.task} and network read."
        )
        return
    if effects["moves"].max() > 0:
        _say(effects.iloc[0], measure, language)
    else:
        same = written(effects["at_best"].iloc[0], measure)
        st.caption(f"{measure}: {same} with every value of every setting.")
    placement.show(placement.built(importance_chart, effects, measure), "importance")
    st.caption(
        f"{measure} of a value: the mean over the configurations with it; configurations whose "
        f"{said.words.task} or network does not use the setting are left out. Settings that always "
        "change together are grouped, since their effects cannot be separated."
    )
    _parallel(configs, effects, measure.lower())


def _say(first: pd.Series, measure: str, language: str) -> None:
    """The setting that moves most, between which values, and how sure that is."""
    names = ", ".join(verbatim(name) for name in first["fields"])
    verb = "(changed together) move" if len(first["fields"]) > 1 else "moves"
    worst, best = (written(first[name], measure) for name in ("at_worst", "at_best"))
    of = " of models fail" if MEASURES[measure].fails else ""
    st.markdown(
        f"In {verbatim(language)}, {names} {verb} the {measure.lower()} most: {worst}{of} with "
        f"{verbatim(first['worst'])}, {best} with {verbatim(first['best'])} (difference "
        f"{written(first['moves'], measure)}, {_interval(first, measure)})."
    )
    kind = "Newcombe" if MEASURES[measure].fails else "bootstrap over seeds"
    seeds = "seed by seed" if first["paired"] else "as independent samples"
    others = "" if first["alike"] else " They differ in other settings too, which may be the cause."
    st.caption(
        f"Interval: {kind}, the configurations compared {seeds}.{others} The setting and its worst "
        "and best value were chosen from these same models; the interval does not take this choice "
        "into account."
    )


def _interval(first: pd.Series, measure: str) -> str:
    if pd.isna(first["low"]):
        return f"no interval: a configuration has fewer than {FEWEST} seeds"
    # Without minus signs of a keyboard, which read as dashes here.
    ends = [written(first[end], measure).replace("-", "\N{MINUS SIGN}") for end in ("low", "high")]
    unsure = "; it includes 0, so more seeds are needed to tell" if first["low"] <= 0 else ""
    return f"95% interval {' to '.join(ends)}{unsure}"


def _parallel(table: pd.DataFrame, effects: pd.DataFrame, outcome: str) -> None:
    fields = [name for names in effects["fields"] for name in names][:MOST_AXES]
    if len(fields) < 2:
        return
    column = outcome.replace(" ", "_")
    # As in the weights: where no tested length is solved, none is.
    table = table.fillna({column: 0})
    few = table.sort_values(column, ascending=outcome != OUTCOME, kind="stable").head(MOST_LINES)
    label, rows = "Settings of every configuration", len(few) * (len(fields) + 1)
    if (place := placement.unfolded(rows, label, "parallel")) is None:
        return
    settings = data.read_settings(tuple(table["config_id"].astype(int)))[fields]
    joined = few[["config_id", "configuration", column]].join(settings, on="config_id")
    with place:
        if len(few) < len(table):
            st.caption(f"The chart shows the worst {MOST_LINES} of {len(table):,} configurations.")
        placement.show(placement.built(_lines, joined, fields, outcome), "parallel")


def _lines(joined: pd.DataFrame, fields: list[str], outcome: str) -> Drawing:
    return parallel_coordinates(places(joined, fields, outcome), outcome)
