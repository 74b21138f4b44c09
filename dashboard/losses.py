"""Loss curves of a sweep's models across seeds, as they are committed."""

import pandas as pd
import streamlit as st

from dashboard import data, drawing, names
from dashboard.charts.colors import OKABE_ITO
from dashboard.charts.loss_curves import loss_curves
from seqcls.data import sampler_of
from sweeps.progress import SweepProgress

MOST_MODELS = 96
"""Lines in the chart."""


def show(sweep: SweepProgress) -> None:
    """The chart, or why there is none yet."""
    losses = data.newest_losses(sweep.id, len(OKABE_ITO), MOST_MODELS)
    if losses.empty:
        if sweep.running:
            st.caption("Loss curves appear as models finish.")
        return
    frame, shown = _per_string(losses), losses["run_id"].nunique()
    named = names.configuration_names(frame["config_id"].drop_duplicates().tolist())
    frame["configuration"] = frame["config_id"].map(named)
    colors = {named[own]: color for own, color in names.colors(list(named)).items()}
    drawing.show(loss_curves(frame.drop(columns="config_id"), colors), f"loss curves {sweep.id}")
    if shown < sweep.done:
        st.caption(
            f"The chart shows {shown:,} of {sweep.done:,} finished models, the most recent ones of "
            f"up to {len(OKABE_ITO)} configurations."
        )


def _per_string(losses: pd.DataFrame) -> pd.DataFrame:
    """With the mean over an epoch's strings, which configurations differ in: loss."""
    configs = data.some_configs(tuple(losses["config_id"].drop_duplicates().tolist()))
    strings = {own: sampler_of(config, "validation").epoch_size for own, config in configs.items()}
    found = losses.assign(loss=losses["validation_loss"] / losses["config_id"].map(strings))
    return found.drop(columns="validation_loss")
