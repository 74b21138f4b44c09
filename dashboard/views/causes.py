"""Why the failing models fail: causes that are searched for, and mechanisms by configuration."""

from collections.abc import Sequence
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import actions, data, layout, links, placement
from dashboard.charts.colors import GREY
from dashboard.charts.scales import (
    LOW_TO_HIGH,
    Drawing,
    readable_on,
    rows,
    title_params,
)
from dashboard.text import error_text, verbatim
from dashboard.views.running import SECONDS
from dashboard.words import measures, names
from seqcls.errors import SeqclsError
from seqcls.interpretability.mechanisms import FORM, NOT_LEARNED, SAMPLE, forgetting_text
from seqcls.interpretability.wording import percent
from seqcls.kinds import MISCLASSIFIED
from seqcls.problem import obstacle_of, resolve
from sweeps.api import failures, open_reader
from sweeps.api.old_pages.database import control
from sweeps.api.old_pages.failures import CauseSearch, start_cause_search
from sweeps.api.old_pages.reading import NO_WEIGHTS, Selection, why_no_weights
from sweeps.api.presentation import display_of

ROW_HEIGHT = 40
FURNITURE_HEIGHT = 210


def mechanism_grid(shares: pd.DataFrame, names: list[str]) -> Drawing:
    """A row a configuration, a column a mechanism: the share of failing seeds, with its interval.

    Args:
        shares: one row a cell: configuration, mechanism, seeds, failing, share, low, high (the
            last three in [0, 1]).
        names: the configurations, from the top.
    """
    order = shares.groupby("mechanism")["seeds"].sum().sort_values(ascending=False).index.tolist()
    axis = alt.Axis(labelAngle=-20, labelLimit=220)
    base = alt.Chart(shares).encode(
        x=alt.X("mechanism:N", title=None, sort=order, axis=axis),
        y=rows(names, grid=False),
        tooltip=[
            alt.Tooltip("configuration:N", title="Configuration"),
            alt.Tooltip("mechanism:N", title="Mechanism"),
            alt.Tooltip("seeds:Q", title="Failing seeds with it"),
            alt.Tooltip("failing:Q", title="Failing seeds looked at"),
            alt.Tooltip("share:Q", title="Share", format=".1~%"),
            alt.Tooltip("low:Q", title="At least (95%)", format=".1~%"),
            alt.Tooltip("high:Q", title="At most (95%)", format=".1~%"),
        ],
    )
    cells = base.mark_rect(cornerRadius=2, stroke=GREY, strokeWidth=0.3).encode(
        color=alt.Color(
            "share:Q",
            title="Share of failing seeds",
            scale=alt.Scale(scheme=LOW_TO_HIGH, domain=[0, 1]),
            legend=alt.Legend(format="~%", orient="bottom", gradientLength=200, tickCount=3),
        )
    )
    ink = readable_on("share")
    share = base.mark_text(dy=-7, fontSize=12).encode(
        text=alt.Text("share:Q", format=".0%"), color=ink
    )
    interval = (
        base.mark_text(dy=8, fontSize=10)
        .encode(text="interval:N", color=ink)
        .transform_calculate(
            interval="format(datum.low, '.0%') + ' to ' + format(datum.high, '.0%')"
        )
    )
    height = ROW_HEIGHT * len(names) + FURNITURE_HEIGHT
    return alt.layer(cells, share, interval).properties(
        height=height, title=title_params("Main mechanism of each failing seed's errors")
    )


def offer_search(waiting: Sequence[int]) -> None:
    """A button that attributes the models whose causes are not known yet; or how far that is.

    Args:
        waiting: these models.
    """
    job = _jobs().get(data.which_file(open_reader()))
    if job is not None and job.goes_on:
        st.fragment(_progress, run_every=SECONDS)(job)
        return
    if job is not None and job.problem is not None:
        st.error("Not all causes could be found.")
        st.code(job.problem, language=None, wrap_lines=True)
    if waiting:
        what = "the model fails" if len(waiting) == 1 else f"{len(waiting):,} models fail"
        st.button(
            f"Find why {what}",
            key="find_causes",
            on_click=_start,
            args=(tuple(waiting),),
            **control(),
        )


def _start(run_ids: tuple[int, ...]) -> None:
    store = open_reader()
    file = data.which_file(store)
    before = _jobs().get(file)
    # A second request sees the progress of the first.
    if before is not None and before.goes_on:
        return
    try:
        _jobs()[file] = start_cause_search(store, run_ids)
    except (SeqclsError, OSError) as error:
        st.session_state[actions.PROBLEM] = error_text(error)


@data.explaining()
def _progress(job: CauseSearch) -> None:
    if not job.goes_on:
        st.rerun()
    done = failures.leading_causes(data.causes(list(job.run_ids)))["run_id"].nunique()
    of = len(job.run_ids)
    st.progress(done / of, f"Finding causes: {done:,} of {of:,} models")


@st.cache_resource(show_spinner=False)
def _jobs() -> dict[tuple[Any, ...], CauseSearch]:
    """The process of each database, by its file; all sessions share it."""
    return {}


AT_ONCE = 1_000
"""Models whose causes one click finds."""

MOST_ROWS = 20
"""Configurations in the chart; the table has them all."""

MECHANISM = "mechanism"


def show(view: Selection) -> None:
    """Draws the section.

    Args:
        view: which models the page is about.
    """
    st.subheader("Why do they fail?")
    failing = data.failing_models(view, data.count_failing_models(view))
    mechanisms = data.causes(None, view.learned_at)
    mechanisms = mechanisms[mechanisms["run_id"].isin(failing["run_id"])]
    leading = failures.leading_causes(mechanisms)
    # By another threshold, what is stored of a model may be no cause of its errors.
    waiting = failing[~failing["run_id"].isin(data.causes()["run_id"])]
    reasons = without_causes(waiting)
    if not failing["config_id"].isin(reasons).all():
        _say_share(len(failing), len(leading), failing[~failing["config_id"].isin(reasons)])
    configs = data.some_configs(tuple(reasons))
    obstacles = {obstacle_of(config) for config in configs.values()}
    for reason in dict.fromkeys(reasons.values()):
        if reason == NO_WEIGHTS:
            st.caption(f"Of imported models no causes can be found: each {reason[3:]}.")
        elif reason in obstacles:
            st.caption(f"Causes cannot be found here: {verbatim(reason)}.")
        else:
            st.caption(f"Causes are found for languages and transductions, and {verbatim(reason)}.")
    _say_what_is_forgotten(failing)
    waiting = waiting[~waiting["config_id"].isin(reasons)]
    offer_search([int(run_id) for run_id in waiting["run_id"].head(AT_ONCE)])
    if leading.empty:
        return
    _grid(failing, mechanisms, view)
    _models_of_one(failing, leading, mechanisms)


MOST_FORGET = 8
"""Models of which it is told what they forget."""


def _say_what_is_forgotten(models: pd.DataFrame) -> None:
    """What proofs found of models that a repetition refutes."""
    found = data.forgettings()
    refuted = models[models["run_id"].isin(found)].head(MOST_FORGET)
    configs = data.some_configs(tuple(refuted["config_id"].drop_duplicates().tolist()))
    for run_id, config_id in zip(refuted["run_id"], refuted["config_id"], strict=True):
        said = forgetting_text(found[run_id], display_of(configs[config_id]))
        st.markdown(f"- Model {run_id}: {verbatim(said)}")


def without_causes(models: pd.DataFrame) -> dict[int, str]:
    """Why no causes are found for models of some configurations."""
    configs = data.some_configs(tuple(models["config_id"].drop_duplicates().tolist()))
    # The kind of a plug-in's task is unknown unless it is installed.
    here = {
        config_id: config for config_id, config in configs.items() if obstacle_of(config) is None
    }
    reasons = {config_id: resolve(config).lacks("causes") for config_id, config in here.items()}
    reasons |= {
        key: why_no_weights(config) or obstacle_of(config)
        for key, config in configs.items()
        if key not in here
    }
    return {config_id: reason for config_id, reason in reasons.items() if reason is not None}


def _say_share(failing: int, attributed: int, models: pd.DataFrame) -> None:
    what = {
        _OF_OUTPUTS if kind.words != MISCLASSIFIED else _OF_STRINGS
        for kind in measures.kinds_of(tuple(models["config_id"].drop_duplicates().tolist()))
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


KAPPA = (
    "Answers by form: a shortcut reader, which knows less than the language, gives the model's "
    "answer to at least 95% of the test strings of trained lengths. Kappa says whether the two err "
    "on the same strings: 1 if always, 0 if no more often than unrelated errors would coincide; in "
    "brackets is its 95% interval."
)
"""What the cause is, and the number that it comes with."""


def _grid(failing: pd.DataFrame, mechanisms: pd.DataFrame, view: Selection) -> None:
    table = failures.causes_by_configuration(failing.rename(columns={"run_id": "id"}), mechanisms)
    order = table["config_id"].drop_duplicates().tolist()
    named = names.configuration_names(order)
    table.insert(0, "configuration", table["config_id"].map(named))
    drawn = order[:MOST_ROWS]
    shown = table[table["config_id"].isin(drawn)]
    chart = placement.build(mechanism_grid, shown, [named[config_id] for config_id in drawn])
    placement.show(chart, "mechanism_grid")
    st.caption(
        "A seed counts for the mechanism of most of its errors, or for *order not seen* where any "
        "error is of that kind. Below each share is its 95% interval (Wilson) over failing seeds."
        + describe_not_learned(mechanisms, view.learned_at)
        + describe_form(mechanisms)
        + (
            f" The chart shows {MOST_ROWS} of {len(order)} configurations."
            if len(order) > MOST_ROWS
            else ""
        )
    )


def describe_not_learned(mechanisms: pd.DataFrame, learned_at: float) -> str:
    """What *not learned* means, where any model fails by it; else nothing."""
    if not (mechanisms["mechanism"] == NOT_LEARNED).any():
        return ""
    return (
        f" A seed that has not learned, by an accuracy of less than {percent(learned_at)} on "
        "trained lengths, counts as not learned, whatever else its errors have in common."
    )


def describe_form(mechanisms: pd.DataFrame) -> str:
    """What *answers by form* means, where any model fails by it; else nothing."""
    return f" {KAPPA}" if (mechanisms["mechanism"] == FORM).any() else ""


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
            # Of a model that has not learned it is said as a whole.
            "share": models["share"].where(models["mechanism"] != NOT_LEARNED),
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
