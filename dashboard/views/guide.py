"""The models that the guide speaks of, as the database has them."""

from collections.abc import Sequence
from functools import lru_cache

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.charts.scales import (
    Drawing,
    model_outcome_color,
    model_outcome_dash,
    reserve_height,
)
from dashboard.choosing.opened import OpenedModel, open_model
from dashboard.figures.gallery import figures
from dashboard.links import COMPARE_PAGE
from dashboard.placement import stretch
from dashboard.text import verbatim
from dashboard.views.why import draw_figures
from seqcls.errors import StoreMissingError, UnknownRunError
from seqcls.interpretability.network import obstacle
from sweeps.api import open_reader
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import Selection
from sweeps.grid.spec import load_specs
from sweeps.results import Outcome

ROW = 44

NOT_LEARNED = f"datum.outcome === '{Outcome.NOT_LEARNED.value}'"

# Away from the points at zero, which lie across the axis.
_NAMES = alt.Axis(labelLimit=260, labelPadding=10, grid=True)


def compare_sweeps(frame: pd.DataFrame) -> Drawing:
    """A row a sweep, its models along the number of test strings that they misclassify.

    Args:
        frame: sweep, model_seed, errors, accuracy in [0, 1], outcome, in the order in which sweeps
            are to stand.
    """
    names = list(dict.fromkeys(frame["sweep"]))
    color = model_outcome_color(symbolStrokeWidth=1.5, columns=2)
    chart: alt.Chart = (
        alt.Chart(frame)
        .mark_point(size=110, strokeWidth=1.5)
        .encode(
            # Square root: zero has a place, and hundreds are told from thousands.
            x=alt.X(
                "errors:Q",
                title="Misclassified test strings (square root)",
                scale=alt.Scale(type="sqrt", zero=True),
                # Where there is little room it goes on below the names.
                axis=alt.Axis(titleAnchor="end"),
            ),
            y=alt.Y("sweep:N", title=None, sort=names, axis=_NAMES),
            yOffset=alt.YOffset("model_seed:O"),
            color=color,
            fill=alt.Fill("outcome:N", scale=color["scale"], legend=None),
            strokeDash=model_outcome_dash(),
            fillOpacity=alt.condition(NOT_LEARNED, alt.value(0.15), alt.value(0.75)),
            tooltip=[
                alt.Tooltip("sweep:N", title="Sweep"),
                alt.Tooltip("model_seed:Q", title="Model seed"),
                alt.Tooltip("errors:Q", title="Misclassified", format=","),
                alt.Tooltip("accuracy:Q", title="Accuracy", format=".2~%"),
                alt.Tooltip("outcome:N", title="Outcome"),
            ],
        )
    )
    height = ROW * len(names)
    return chart.properties(
        height=height, title="Every model of these sweeps", **reserve_height(height, legend=True)
    )


def find(sweep: str, model_seed: int) -> OpenedModel | None:
    """The model of a shipped run; where the database lacks it the page says so."""
    reference = f"{sweep}/{model_seed}"
    try:
        model = open_model(reading.find_run(open_reader(), reference))
        if model.config.key in _report_keys(sweep) and obstacle(model.problem) is None:
            return model
        st.info(
            f"This step uses run {verbatim(reference)} of the report, which cannot be shown: the "
            "sweep of that name in this database asks for other models."
        )
    except StoreMissingError:
        raise
    except UnknownRunError:
        st.info(
            f"This step uses run {verbatim(reference)}, which cannot be shown: it is not in this "
            "database. `seqcls sweep report` trains it."
        )
    return None


@lru_cache(maxsize=16)
def _report_keys(sweep: str) -> frozenset[str]:
    """The keys of the configurations that a sweep of the report has.

    The guide's sentences hold for these models; a sweep of the same name may be of others.
    """
    (spec,) = load_specs(f"report/{sweep}")
    return frozenset(config.key for config in spec.configs())


def show_figures(
    model: OpenedModel, strings: Sequence[str], numbers: Sequence[int], prefix: str
) -> None:
    """Figures of a model's kept epoch; `prefix` tells them from others of the page."""
    heads = range(model.config.num_attention_heads)
    draw_figures(figures(model.traces(tuple(strings)), model.epoch, heads, numbers), prefix)


def compare(sweeps: Sequence[str], key: str) -> pd.DataFrame:
    """The models of some sweeps as a chart, with a link to the page that compares them.

    Returns:
        sweep, model_seed, errors, accuracy, outcome; sweeps that are not there have no row.
    """
    frame = _models(sweeps)
    missing = [name for name in sweeps if name not in set(frame["sweep"])]
    if missing:
        st.info(
            f"The database has no finished model of {verbatim(', '.join(missing))}. "
            "`seqcls sweep report` trains what is missing."
        )
    if not frame.empty:
        stretch(compare_sweeps(frame), key)
        st.page_link(
            COMPARE_PAGE,
            label="Compare them",
            icon=":material/bar_chart:",
            query_params={"sweep": [name for name in sweeps if name not in missing]},
        )
    return frame


def _models(sweeps: Sequence[str]) -> pd.DataFrame:
    frames = [of_report(name).assign(sweep=name) for name in sweeps]
    return pd.concat(frames, ignore_index=True)


def of_report(sweep: str) -> pd.DataFrame:
    """The finished models of a sweep that are the report's."""
    models = data.models(Selection(sweeps=(sweep,)))
    configs = data.some_configs(tuple(models["config_id"].unique().tolist()))
    config_ids = [key for key, config in configs.items() if config.key in _report_keys(sweep)]
    return models[models["config_id"].isin(config_ids)]


def whole_report() -> pd.DataFrame:
    """The finished models of all of the report's sweeps, each once, with one of its sweeps."""
    frames = [of_report(spec.name).assign(sweep=spec.name) for spec in load_specs("report")]
    return pd.concat(frames, ignore_index=True).drop_duplicates("run_id")


def learned_sentence(models: pd.DataFrame) -> str:
    """How many of the report's models fail, how many of these had learned, and which had not."""
    fail = models[models["errors"] > 0]
    unlearned = fail[["run_id", "model_seed", "sweep"]].merge(
        data.not_learned(fail["run_id"].tolist()), on="run_id"
    )
    said = f"Of the report's {len(models):,} models {len(fail):,} fail"
    if fail.empty:
        return f"Of the report's {len(models):,} models none fails."
    if unlearned.empty:
        return f"{said}; all of these had learned the trained lengths."
    listed = "; ".join(
        f"seed {row['model_seed']} of `{row['sweep']}` is wrong on {row['wrong_within']:,} of the "
        f"{row['tested_within']:,} {row['within_from']} strings of trained lengths"
        for row in unlearned.to_dict("records")
    )
    return (
        f"{said}. {len(fail) - len(unlearned):,} of these had learned the trained lengths, and "
        f"{len(unlearned):,} had not ({listed})."
    )


def failing(frame: pd.DataFrame, sweep: str) -> str:
    """`7 of 8`, or `none of 0` where there are none."""
    runs = frame[frame["sweep"] == sweep]
    wrong = int((runs["errors"] > 0).sum())
    return f"{wrong or 'none'} of {len(runs)}"
