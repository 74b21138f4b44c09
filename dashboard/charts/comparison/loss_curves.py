"""Validation loss by epoch of many models: a line each, a color a configuration."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from dashboard.charts.style.encodings import Drawing
from dashboard.charts.style.legend import unfaded
from dashboard.charts.style.pointing import CONFIGURATION, pointed
from dashboard.charts.style.scales import configuration_color, titled

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
        y=alt.Y("loss:Q", title="Nats per string (log)", scale=alt.Scale(type="log")),
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
    shown = base.encode(opacity=unfaded())
    lines = shown.mark_line(strokeWidth=1.2, point=alt.OverlayMarkDef(size=12))
    # As wide as a fingertip, unseen, so that a line is hit anywhere.
    wide = base.mark_line(strokeWidth=11, opacity=0.001).add_params(pointed(CONFIGURATION))
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
        height=height, title=titled("Validation loss by epoch", subtitle="Each line is a model.")
    )
