"""Two fields of the configuration against each other: where do models begin to generalize?"""

from collections.abc import Iterable, Mapping
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, drawing, filters, languages, links, measures
from dashboard.charts.heat_map import CLICKED, heat_map
from seqcls.errors import SeqclsError
from seqcls.fields_read import language_fields
from sweeps.intervals import wilson
from sweeps.median_intervals import FEWEST, median_intervals
from sweeps.store.views import View

# Beyond so many values of a field, its cells could not be read.
MAX_VALUES = 30

EVERY_LANGUAGE = "All languages"

MOST_NAMED = 6
"""Settings in which the models of a cell differ that are named."""

SHARES = {
    "median": "Median accuracy",
    "worst": "Worst seed's accuracy",
    "best": "Best seed's accuracy",
    "failing_share": "Share of failing models",
}


def show() -> None:
    st.title("Where do models begin to generalize?")
    try:
        view = filters.current()
        models = data.models(view)
        if not (models["picked"] > 0).any():
            st.info(
                "No model that matches the filters is trained and tested. Clear them in the "
                "sidebar, or wait for the first results."
            )
            return
        models, language = _of_one_language(models)
        settings = data.read_settings(tuple(models["config_id"].drop_duplicates().astype(int)))
        models = models.join(settings, on="config_id", how="left")
        fields = [str(x) for x in settings if 1 < models[x].nunique() <= MAX_VALUES]
        if len(fields) < 2:
            _too_few(fields)
            return
        _maps(models, fields, view, language)
    except SeqclsError as error:
        data.explain(error)


def _of_one_language(models: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The models of the language that is chosen, and the settings that say which it is."""
    own = models["config_id"].map(data.languages())
    chosen = languages.choose(own.value_counts(), [EVERY_LANGUAGE])
    if chosen == EVERY_LANGUAGE:
        return models, {}
    models = models[own == chosen]
    settings = data.settings().loc[int(models["config_id"].iloc[0])].to_dict()
    fields = language_fields(str(settings.get("task")))
    return models, {name: settings[name] for name in fields if name in settings}


def _too_few(fields: list[str]) -> None:
    differs = f"only `{fields[0]}` differs" if fields else "no setting differs"
    st.info(
        "A map needs two settings in which the models differ; among those that match the "
        f"filters, {differs}. Clear the filters, or launch a sweep with two axes from the sidebar."
    )


def _maps(models: pd.DataFrame, fields: list[str], view: View, language: Mapping[str, Any]) -> None:
    x, y, facet = _axes(fields)
    if x == y or facet in (x, y):
        st.info("Choose different settings for the two axes and for the separate maps.")
        return
    grouped = [x, y] if facet is None else [x, y, facet]
    table = cells(models, grouped)
    if facet is None:
        for left, right in (("median", "failing_share"), ("worst", "best")):
            for column, name in zip(st.columns(2), (left, right), strict=True):
                with column:
                    _map(table, grouped, name, language)
    else:
        for name in SHARES:
            _map(table, grouped, name, language)
    _say_what_is_left_out(models, grouped)
    _say_what_is_pooled(table, fields, grouped)
    st.caption(
        f"Accuracy: {measures.ACCURACY} Failing: {measures.failing(view.below)} Each number "
        "summarizes models, not pooled strings. A missing cell has no model with these settings. "
        "Click a cell to compare its models."
    )


def _map(table: pd.DataFrame, grouped: list[str], value: str, language: Mapping[str, Any]) -> None:
    """One map; a click on a cell leads to its models."""
    x, y, *facet = grouped
    chart = drawing.built(heat_map, table, x, y, value, SHARES[value], *facet)
    worst = max(table.to_dict("records"), key=lambda cell: cell["failing_share"])
    says = (
        f"{len(table)} cells. Most models fail with "
        f"{', '.join(f'{name}={worst[name]}' for name in grouped)}: "
        f"{worst['failing']} of {worst['seeds']}."
    )
    event = drawing.show(chart, f"map {value}", says=says, click=CLICKED)
    for point in event["selection"].get(CLICKED) or []:
        cell = table[table["cell"] == point["cell"]].iloc[0]
        links.to_compare({**language, **{name: cell[name] for name in grouped}})


def _axes(fields: list[str]) -> tuple[str, str, str | None]:
    # Fields of numbers make the better axes, and come first.
    columns = st.columns(3)
    x = columns[0].selectbox("Horizontal axis", fields, index=0, key="x", bind="query-params")
    y = columns[1].selectbox("Vertical axis", fields, index=1, key="y", bind="query-params")
    facet = columns[2].selectbox(
        "One map for each",
        fields,
        index=None,
        placeholder="One map",
        key="facet",
        bind="query-params",
        help="Draws a map for each value of this setting.",
    )
    return x, y, facet


def cells(models: pd.DataFrame, fields: list[str]) -> pd.DataFrame:
    """One row a cell of the map, sorted by the fields' values, which become text.

    Args:
        models: one row a model, with accuracy, failing, config_id and the fields.
        fields: what makes the cells.

    Returns:
        The fields; median, best and worst accuracy and failing_share in [0, 1]; seeds (models),
        failing (models), configurations, their number (cell), and the 95% intervals of the median
        and of the failing share as text: median_interval, failing_interval.
    """
    grouped = models.groupby(fields, sort=True)
    table = grouped.agg(
        median=("accuracy", "median"),
        best=("accuracy", "max"),
        worst=("accuracy", "min"),
        failing=("failing", "sum"),
        seeds=("run_id", "size"),
        configurations=("config_id", "nunique"),
    ).reset_index()
    table["failing_share"] = table["failing"] / table["seeds"]
    table["cell"] = range(len(table))
    medians = median_intervals(models, "accuracy", fields)
    table["median_interval"] = _spans(medians["low"], medians["high"])
    shares = [
        wilson(int(failing), int(seeds))
        for failing, seeds in zip(table["failing"], table["seeds"], strict=True)
    ]
    table["failing_interval"] = _spans([x.low for x in shares], [x.high for x in shares])
    return table.astype(dict.fromkeys(fields, str))


def _spans(lows: Iterable[float], highs: Iterable[float]) -> list[str]:
    return [
        f"none: fewer than {FEWEST} models" if pd.isna(low) else f"{low:.1%} to {high:.1%}"
        for low, high in zip(lows, highs, strict=True)
    ]


def _say_what_is_left_out(models: pd.DataFrame, grouped: list[str]) -> None:
    for name in grouped:
        if unread := int(models[name].isna().sum()):
            st.caption(
                f"{unread:,} of {len(models):,} models are in no cell: their language or network "
                f"does not use `{name}`."
            )


def _say_what_is_pooled(table: pd.DataFrame, fields: list[str], grouped: list[str]) -> None:
    if table["configurations"].max() > 1:
        pooled = [f"`{name}`" for name in fields if name not in grouped]
        more = [f"{len(pooled) - MOST_NAMED} more"] if len(pooled) > MOST_NAMED else []
        others = ", ".join([*pooled[:MOST_NAMED], *more])
        st.caption(
            f"Some cells hold models that differ in other settings too ({others}): choose one "
            "under One map for each, or filter by it."
        )


show()
