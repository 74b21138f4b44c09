"""Loss curves of a sweep's models across seeds: of those that are finished, and in training."""

from collections import Counter
from collections.abc import Mapping

import altair as alt
import pandas as pd
import streamlit as st

from dashboard import data, placement
from dashboard.charts.colors import OKABE_ITO
from dashboard.charts.legend import fade_others
from dashboard.charts.pointing import CONFIGURATION, pointer
from dashboard.charts.scales import LOG_AXIS, Drawing, configuration_color, title_params
from dashboard.words import names
from seqcls.problem import missing_plugin, resolve
from sweeps.api import open_reader
from sweeps.api.old_pages.reading import losses_in_training
from sweeps.work.progress import SweepProgress

PLOT_HEIGHT, FURNITURE = 240, 110
STATES_ROW = 40

FINISHED, IN_TRAINING, DIED = "finished", "in training", "worker died"
DASHES = {FINISHED: [1, 0], IN_TRAINING: [5, 3], DIED: [1, 3]}


def loss_curves(frame: pd.DataFrame, colors: Mapping[str, str]) -> Drawing:
    """The chart, without the names of the configurations.

    Args:
        frame: run_id, configuration, model_seed, state (`FINISHED`, `IN_TRAINING` or `DIED`),
            epoch, loss (mean nats a string).
        colors: of each configuration, in order.
    """
    # A logarithm needs more than zero.
    drawn = frame[frame["loss"] > 0]
    states = [state for state in DASHES if (frame["state"] == state).any()]
    base = alt.Chart(drawn).encode(
        x=alt.X("epoch:Q", title="Epoch", axis=alt.Axis(tickMinStep=1, format="d")),
        y=alt.Y(
            "loss:Q",
            title="Nats per string (log)",
            scale=alt.Scale(type="log"),
            axis=alt.Axis(**LOG_AXIS),
        ),
        detail="run_id:N",
        color=configuration_color(colors, legend=False),
        tooltip=[
            alt.Tooltip("configuration:N", title="Configuration"),
            alt.Tooltip("model_seed:Q", title="Model seed"),
            alt.Tooltip("epoch:Q", title="Epoch"),
            alt.Tooltip("loss:Q", title="Loss (nats per string)", format=".4g"),
        ],
    )
    dash = alt.StrokeDash(
        "state:N",
        title="Model",
        scale=alt.Scale(domain=states, range=[DASHES[state] for state in states]),
        legend=alt.Legend(orient="top", titleOrient="left", symbolStrokeWidth=2, symbolSize=400),
    )
    finished = alt.datum.state == FINISHED
    shown = base.encode(opacity=fade_others())
    lines = shown.mark_line(strokeWidth=1.2, point=alt.OverlayMarkDef(size=12))
    # As wide as a fingertip, unseen, so that a line is hit anywhere.
    wide = base.mark_line(strokeWidth=11, opacity=0.001).add_params(pointer(CONFIGURATION))
    layers, height = [lines.transform_filter(finished)], PLOT_HEIGHT + FURNITURE
    if states != [FINISHED]:
        # Dashes are seen where no point lies on them; one point shows where a line goes on, and
        # one that died after its first epoch.
        dashed = shown.transform_filter(~finished).mark_line(strokeWidth=1.6)
        epochs = drawn.groupby("run_id")["epoch"].transform("size")
        alone = (drawn["state"] == DIED) & (epochs == 1)
        last = drawn[(drawn["state"] == IN_TRAINING) | alone].groupby("run_id").tail(1)
        ends = base.properties(data=last).mark_point(filled=True, opacity=1, size=45)
        layers += [dashed.encode(strokeDash=dash), ends]
        height += STATES_ROW
    return alt.layer(*layers, wide).properties(
        height=height,
        title=title_params("Validation loss by epoch", subtitle="Each line is a model."),
    )


MOST_MODELS = 96
"""Lines in the chart."""

MOST_IN_TRAINING = 32
"""Lines besides, of models in training."""


def show(sweep: SweepProgress) -> None:
    """The chart, or why there is none yet."""
    losses = _losses(sweep)
    if losses.empty:
        if sweep.running:
            st.caption(
                "Loss curves appear after the first seconds of training; on a Dask cluster, as "
                "models finish."
            )
        return
    frame = _per_string(losses)
    if len(frame) < len(losses):
        st.caption("Loss curves of models that need a plug-in are shown where it is installed.")
    if frame.empty:
        return
    named = names.configuration_names(sorted(frame["config_id"].unique().tolist()))
    frame["configuration"] = frame["config_id"].map(named)
    colors = {named[config_id]: color for config_id, color in names.colors(list(named)).items()}
    chart = placement.build(loss_curves, frame.drop(columns="config_id"), colors)
    placement.with_legend(chart, colors, f"loss curves {sweep.id}")
    if any(x.check_every for x in data.some_configs(tuple(named)).values()):
        st.caption("The last epoch of a model that was right at a check within it ended early.")
    models = losses.drop_duplicates("run_id")
    _say_how_many(sweep, Counter(models["state"].tolist()))


def _losses(sweep: SweepProgress) -> pd.DataFrame:
    """Reads `newest_losses`, and the state: of finished models, and of those in training."""
    # Models in training are read first: one that finishes in between is then in both, not in
    # neither.
    training = _in_training(sweep)
    finished = data.newest_losses(sweep.id, len(OKABE_ITO), MOST_MODELS).assign(state=FINISHED)
    training = training[~training["run_id"].isin(finished["run_id"])]
    both = pd.concat([training, finished]) if len(training) else finished
    shown = both["config_id"].drop_duplicates().head(len(OKABE_ITO))
    return both[both["config_id"].isin(shown)]


def _in_training(sweep: SweepProgress) -> pd.DataFrame:
    if not sweep.running:
        return pd.DataFrame(columns=["run_id"])
    # Never remembered: new losses raise no revision.
    curves = losses_in_training(open_reader(), sweep.id, len(OKABE_ITO), MOST_IN_TRAINING)
    return curves.assign(state=curves.pop("is_orphaned").map({False: IN_TRAINING, True: DIED}))


def _say_how_many(sweep: SweepProgress, shown: Counter[str]) -> None:
    finished, training, died = (shown[state] for state in (FINISHED, IN_TRAINING, DIED))
    if finished < sweep.done:
        st.caption(
            f"The chart shows {finished:,} of {sweep.done:,} finished models, the most recent ones "
            f"of up to {len(OKABE_ITO)} configurations."
        )
    if training:
        going_on = max(training, sweep.running - sweep.orphaned)
        st.caption(f"{training:,} of {going_on:,} models in training are shown, dashed.")
    if died:
        st.caption(
            f"The worker of {died:,} models shown died (dotted). The next worker trains them again "
            "from the beginning."
        )


def _per_string(losses: pd.DataFrame) -> pd.DataFrame:
    """With the mean over an epoch's strings, which configurations differ in: loss."""
    configs = data.some_configs(tuple(losses["config_id"].drop_duplicates().tolist()))
    strings = {
        config_id: resolve(config).validation.epoch_size
        for config_id, config in configs.items()
        if missing_plugin(config) is None
    }
    losses = losses[losses["config_id"].isin(strings)]
    curves = losses.assign(loss=losses["validation_loss"] / losses["config_id"].map(strings))
    return curves.drop(columns="validation_loss")
