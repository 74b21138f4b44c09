"""Why the failing models fail: mechanism by configuration, and the models of one mechanism."""

import pandas as pd
import streamlit as st

from dashboard import data, layout, links
from dashboard.charts.errors.mechanisms import mechanism_grid
from dashboard.elements import placement
from dashboard.failing import cause_search
from dashboard.text import verbatim
from dashboard.words import kind_words, names
from seqcls.interpretability.causes.mechanisms import SAMPLE
from seqcls.kinds import MISCLASSIFIED
from seqcls.problem import obstacle_of, resolve
from sweeps.analysis import causes
from sweeps.store.reading.queries import NO_WEIGHTS, why_no_weights
from sweeps.store.reading.selection import View

AT_ONCE = 1_000
"""Models whose causes one click finds."""

MOST_ROWS = 20
"""Configurations in the chart; the table has them all."""

MECHANISM = "mechanism"


def show(view: View) -> None:
    """Draws the section.

    Args:
        view: which models the page is about.
    """
    st.subheader("Why do they fail?")
    failing = data.failing_models(view, data.count_failing_models(view))
    mechanisms = data.causes()
    mechanisms = mechanisms[mechanisms["run_id"].isin(failing["run_id"])]
    leading = causes.leading(mechanisms)
    waiting = failing[~failing["run_id"].isin(leading["run_id"])]
    reasons = _without_causes(waiting)
    if not failing["config_id"].isin(reasons).all():
        _said(len(failing), len(leading), failing[~failing["config_id"].isin(reasons)])
    for reason in dict.fromkeys(reasons.values()):
        if reason == NO_WEIGHTS:
            st.caption(f"Finding causes takes a model to ask. For each imported one, {reason}.")
        else:
            st.caption(f"Causes are found for languages and transductions, and {verbatim(reason)}.")
    waiting = waiting[~waiting["config_id"].isin(reasons)]
    cause_search.offer([int(run_id) for run_id in waiting["run_id"].head(AT_ONCE)])
    if leading.empty:
        return
    _grid(failing, mechanisms)
    _models_of_one(failing, leading, mechanisms)


def _without_causes(models: pd.DataFrame) -> dict[int, str]:
    """Why no causes are found for models of some configurations."""
    configs = data.some_configs(tuple(models["config_id"].drop_duplicates().tolist()))
    # The kind of a plug-in's task is unknown unless it is installed.
    here = {
        config_id: config for config_id, config in configs.items() if obstacle_of(config) is None
    }
    reasons = {config_id: resolve(config).no_causes for config_id, config in here.items()}
    reasons |= {key: why_no_weights(config) for key, config in configs.items() if key not in here}
    return {config_id: reason for config_id, reason in reasons.items() if reason is not None}


def _said(failing: int, attributed: int, models: pd.DataFrame) -> None:
    what = {
        _OF_OUTPUTS if kind.words != MISCLASSIFIED else _OF_STRINGS
        for kind in kind_words.kinds_of(tuple(models["config_id"].drop_duplicates().tolist()))
    }
    st.caption(
        f"Causes found for {attributed:,} of {failing:,} failing models, from up to {SAMPLE} "
        "errors of each, spread evenly from the shortest to the longest. "
        + " ".join(sorted(what or {_OF_STRINGS}, reverse=True))
    )


_OF_STRINGS = (
    "Where letter counts explain a model exactly, each error's mechanism is verified by changing "
    "one thing inside the model; dilution is verified so in any model. Other causes are only what "
    "a model's errors have in common, checked against all short strings."
)
_OF_OUTPUTS = (
    "For wrong outputs, the cause is what most of a model's have in common (how many tokens are "
    "right, where they first go wrong, repeats in the input), else how they differ from their "
    "targets, and whether they first go wrong within the target lengths of training."
)


def _grid(failing: pd.DataFrame, mechanisms: pd.DataFrame) -> None:
    table = causes.table(failing.rename(columns={"run_id": "id"}), mechanisms)
    order = table["config_id"].drop_duplicates().tolist()
    named = names.configuration_names(order)
    table.insert(0, "configuration", table["config_id"].map(named))
    drawn = order[:MOST_ROWS]
    shown = table[table["config_id"].isin(drawn)]
    chart = placement.built(mechanism_grid, shown, [named[config_id] for config_id in drawn])
    placement.show(chart, "mechanism_grid")
    st.caption(
        "A seed counts for the mechanism of most of its errors, or for *order not seen* where any "
        "error is of that kind. Below each share is its 95% interval (Wilson) over failing seeds."
        + (
            f" The chart shows {MOST_ROWS} of {len(order)} configurations."
            if len(order) > MOST_ROWS
            else ""
        )
    )


def _models_of_one(failing: pd.DataFrame, leading: pd.DataFrame, mechanisms: pd.DataFrame) -> None:
    """The models that fail by the mechanism that is chosen, to look into."""
    known = list(leading["mechanism"].value_counts().index)
    links.say_what_is_not(MECHANISM, known)
    chosen = st.pills(
        "Models that fail by",
        known,
        format_func=verbatim,
        key=MECHANISM,
        bind="query-params",
    )
    if chosen is None:
        return
    models = leading[leading["mechanism"] == chosen].merge(failing, on="run_id")
    parts = mechanisms[mechanisms["mechanism"] == chosen].groupby("run_id")[["head", "tokens"]]
    told = {run_id: _parts(rows) for run_id, rows in parts}
    shown = pd.DataFrame(
        {
            "run_id": models["run_id"],
            "model_seed": models["model_seed"],
            "share": models["share"],
            "parts": models["run_id"].map(told),
            "configuration": models["config_id"].map(
                names.configuration_names(models["config_id"].drop_duplicates().tolist())
            ),
        }
    )
    st.dataframe(
        shown,
        hide_index=True,
        column_config={
            "run_id": st.column_config.NumberColumn("Run"),
            "model_seed": st.column_config.NumberColumn("Seed"),
            "share": st.column_config.NumberColumn(
                "Share",
                format="percent",
                help="The share of the model's errors that were examined.",
            ),
            "parts": st.column_config.TextColumn("Where", width="large"),
            "configuration": st.column_config.TextColumn("Configuration", width="large"),
        },
        height=layout.table_height(len(shown)),
    )
    links.to_model(int(shown["run_id"].iloc[0]), f"Look inside model {shown['run_id'].iloc[0]}")


def _parts(rows: pd.DataFrame) -> str:
    """Heads and tokens of a mechanism in one model, such as `head 1: a by b; head 0: b by a`."""
    return "; ".join(
        row["tokens"] if pd.isna(row["head"]) else f"head {row['head']:.0f}: {row['tokens']}"
        for row in rows.to_dict("records")
    )
