"""Validation loss by epoch of many models: a line each, a color a configuration."""

from collections.abc import Mapping

import altair as alt
import pandas as pd

from dashboard.charts.encodings import Drawing
from dashboard.charts.scales import titled

PLOT_HEIGHT, FURNITURE, LEGEND_ROW = 240, 110, 22


def loss_curves(frame: pd.DataFrame, colors: Mapping[str, str]) -> Drawing:
    """The chart, as high as its legend needs it.

    Args:
        frame: run_id, configuration, model_seed, epoch, loss (mean nats a string).
        colors: of each configuration, in order.
    """
    color = alt.Color(
        "configuration:N",
        title="Configuration",
        scale=alt.Scale(domain=list(colors), range=list(colors.values())),
        legend=alt.Legend(orient="bottom", columns=1, labelLimit=0, symbolStrokeWidth=3),
    )
    lines: alt.Chart = (
        # A logarithm needs more than zero.
        alt.Chart(frame[frame["loss"] > 0])
        .mark_line(strokeWidth=1.2, point=alt.OverlayMarkDef(size=12))
        .encode(
            x=alt.X("epoch:Q", title="Epoch", axis=alt.Axis(tickMinStep=1, format="d")),
            y=alt.Y(
                "loss:Q",
                title="Nats per string (log)",
                scale=alt.Scale(type="log"),
            ),
            detail="run_id:N",
            color=color,
            tooltip=[
                alt.Tooltip("configuration:N", title="Configuration"),
                alt.Tooltip("model_seed:Q", title="Model seed"),
                alt.Tooltip("epoch:Q", title="Epoch"),
                alt.Tooltip("loss:Q", title="Loss (nats per string)", format=".4g"),
            ],
        )
    )
    height = PLOT_HEIGHT + FURNITURE + LEGEND_ROW * len(colors)
    return lines.properties(
        height=height, title=titled("Validation loss by epoch", subtitle="Each line is a model.")
    )
