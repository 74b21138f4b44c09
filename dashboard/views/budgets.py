"""Learning by budget: which share of a model's seeds has learned with how many epochs."""

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import actions, data, placement
from dashboard.charts.colors import OKABE_ITO
from dashboard.charts.pointing import chart_with_names
from dashboard.charts.scales import configuration_color, share_axis, title_params
from dashboard.text import verbatim
from dashboard.words import names
from seqcls.interpretability.wording import percent
from sweeps.api import open_reader
from sweeps.api.budgets import more_training
from sweeps.api.old_pages.database import control
from sweeps.api.old_pages.reading import Selection
from sweeps.statistics.intervals import wilson
from sweeps.work.progress import SweepProgress

TITLE = "Learned by budget"

PLOT_HEIGHT = 260

MOST_LISTED = 100
"""Models in the table."""

APART = 0.03
"""How far the points of a budget lie apart that would hide each other, as a share of it."""


def of_models(view: Selection, config_ids: Collection[int]) -> pd.DataFrame:
    """The models of these configurations that were trained with several budgets.

    Returns:
        As `sweeps.store.reads.budgets.learned_by_budget`, and configuration (what the model is
        called), share (of seeds that have learned), low, high (its interval): missing where it is
        not known of all seeds.
    """
    found = data.learned_by_budget(view)
    chosen = found[found["config_id"].isin(config_ids)]["model"]
    found = found[found["model"].isin(chosen)].reset_index(drop=True)
    named = names.configuration_names(found["model"].drop_duplicates().tolist())
    intervals = [astuple(wilson(*x)) for x in zip(found["learned"], found["seeds"], strict=True)]
    columns = ["share", "low", "high"]
    shares = pd.DataFrame(intervals, index=found.index, columns=columns, dtype=float)
    known = shares.where(found["unknown"] == 0)
    return found.assign(configuration=found["model"].map(named)).join(known)


def smallest_budget(model: pd.DataFrame) -> str:
    """The smallest budget with which all seeds of a model have learned, or how many have.

    Args:
        model: a row a budget, as `of_models`, of one model.
    """
    known = model[model["unknown"] == 0]
    all_learn = known[known["learned"] == known["seeds"]]
    if len(all_learn):
        return f"{all_learn['budget'].iloc[0]:,}"
    last = known.iloc[-1]
    return f"{last['learned']} of {last['seeds']} at {last['budget']:,}"


def table(models: pd.DataFrame) -> pd.DataFrame:
    """One row a model: what it is called, and how many of its seeds have learned by each budget.

    Args:
        models: as `of_models`.
    """
    budgets = sorted(models["budget"].unique())
    rows = []
    for _, model in models.groupby("model", sort=False):
        by_budget = {row["budget"]: _count(row) for row in model.to_dict("records")}
        rows.append(
            {
                "Configuration": model["configuration"].iloc[0],
                "All seeds learn at (epochs)": smallest_budget(model),
                **{_epochs(budget): by_budget.get(budget, "") for budget in budgets},
            }
        )
    return pd.DataFrame(rows)


def _epochs(budget: int) -> str:
    return "1 epoch" if budget == 1 else f"{budget:,} epochs"


def _count(row: Mapping[Any, Any]) -> str:
    waiting = f", {row['unknown']} not trained" if row["unknown"] else ""
    return f"{row['learned']} of {row['seeds'] + row['unknown']}{waiting}"


def learned_share(
    models: pd.DataFrame, colors: Mapping[str, str]
) -> alt.LayerChart | alt.FacetChart:
    """The share of seeds that have learned against the budget, a line a model.

    Args:
        models: as `of_models`, none missing; at, where a point lies, is near its budget.
        colors: of each model.
    """
    budgets = sorted(int(x) for x in models["budget"].unique())
    x = alt.X(
        "at:Q",
        title="Budget (epochs that training may take)",
        scale=alt.Scale(type="log", nice=False, padding=24),
        axis=alt.Axis(values=budgets, format=",d", grid=False, labelOverlap=True),
    )
    base = chart_with_names(models, list(colors)).encode(x, color=configuration_color(colors))
    y = share_axis("share", "Seeds that have learned")
    tooltip = [
        alt.Tooltip("configuration:N", title="Configuration"),
        alt.Tooltip("budget:Q", title="Budget (epochs)", format=",d"),
        alt.Tooltip("learned:Q", title="Seeds that have learned"),
        alt.Tooltip("seeds:Q", title="Of"),
        alt.Tooltip("trained:Q", title="Trained with this budget"),
        alt.Tooltip("low:Q", title="95% interval, from", format=".0%"),
        alt.Tooltip("high:Q", title="to", format=".0%"),
    ]
    title = title_params(
        "Share of seeds that have learned, by budget",
        subtitle="A line is one model with several budgets; bars are 95% intervals (Wilson).",
    )
    return alt.layer(
        base.mark_rule(opacity=0.5).encode(alt.Y("low:Q"), alt.Y2("high:Q")),
        base.mark_line().encode(y),
        base.mark_point(filled=True, size=70, opacity=1).encode(y, tooltip=tooltip),
    ).properties(height=PLOT_HEIGHT, title=title)


def select_models(
    models: pd.DataFrame, colors: Mapping[int, str] | None = None
) -> tuple[pd.DataFrame, dict[str, str]]:
    """What `learned_share` draws: as many models as there are colors, and these.

    Args:
        models: as `of_models`.
        colors: of each model, by its id; those of the palette in order where none are given.
    """
    named = models.drop_duplicates("model").head(len(OKABE_ITO))
    known = models[models["model"].isin(named["model"])].dropna(subset=["share"])
    place = known["model"].map({x: n for n, x in enumerate(named["model"])}) - (len(named) - 1) / 2
    colors = colors or dict(zip(named["model"], OKABE_ITO, strict=False))
    at = known["budget"] * (1 + APART) ** place
    return known.assign(at=at), {
        name: colors[model]
        for model, name in zip(named["model"], named["configuration"], strict=True)
    }


def meaning(models: pd.DataFrame, view: Selection) -> str:
    """What is counted, and what is not drawn."""
    said = [
        f"A seed has learned if at least {percent(view.learned_at, 1)} of its answers to strings "
        "of trained lengths are right. One that learned with a smaller budget was not trained "
        "again and counts as learned. A budget is what training was allowed; it may have ended "
        "earlier."
    ]
    if models["share"].isna().any():
        said.append(
            "The share of a budget is not known where seeds that had not learned are yet to be "
            "trained with it."
        )
    several = models["model"].nunique()
    if several > len(OKABE_ITO):
        said.append(f"The chart shows the first {len(OKABE_ITO)} of {several:,} models.")
    return " ".join(said)


def show(config_ids: Sequence[int], view: Selection) -> None:
    """Draws the section of the page; nothing where no model was trained with several budgets.

    Args:
        config_ids: the configurations that the page shows.
        view: which seeds.
    """
    models = of_models(view, config_ids)
    if models.empty:
        return
    st.subheader(TITLE)
    st.dataframe(table(models).head(MOST_LISTED), hide_index=True)
    ids = models["model"].drop_duplicates().head(len(OKABE_ITO)).tolist()
    spec = placement.build(learned_share, *select_models(models, names.colors(ids)))
    placement.show_under_keys(spec, "learned_share")
    st.caption(verbatim(meaning(models, view)))


def describe_further(number: int) -> str:
    """That so many models are not counted beside the same with a larger budget; or nothing."""
    if not number:
        return ""
    are = "1 model is" if number == 1 else f"{number:,} models are"
    return f"{are} not counted: the same seeds were trained with a larger budget."


FURTHER = "4x"
"""The budget that a page offers; the command takes any."""


def offer_more(sweep: SweepProgress, judged: Selection) -> None:
    """A button that trains what has not learned with a larger budget, once the sweep is done.

    Args:
        sweep: which one.
        judged: says what has learned.
    """
    if sweep.state != "done" or f"{sweep.name}-{FURTHER}" in data.sweep_names().values():
        return
    counts = data.configurations(replace(judged, sweeps=(sweep.name,)))
    waiting = int((counts["judged"] - counts["learned"]).sum())
    if not waiting:
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        have = "1 model has" if waiting == 1 else f"{waiting:,} models have"
        st.caption(f"{have} not learned.", width="content")
        st.button(
            f"Train with {FURTHER.removesuffix('x')} times the epochs",
            key=f"more {sweep.id}",
            icon=":material/more_time:",
            on_click=_train_further,
            args=(sweep.name, judged.learned_at, uuid.uuid4().hex),
            **control("Launches these seeds, with a larger budget, as a sweep beside this one."),
        )


def _train_further(sweep: str, learned_at: float, token: str) -> None:
    def do() -> None:
        more = more_training(open_reader(), sweep, FURTHER, learned_at=learned_at)
        if more.spec is not None:
            actions.launch([more.spec], token)

    actions.attempt(do)
