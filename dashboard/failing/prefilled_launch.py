"""A suggestion into the launch panel: the same seeds with its fields changed."""

import json

import streamlit as st

from dashboard.launch import fields, panel
from seqcls.config import RunConfig
from sweeps.analysis.remedy_trials import Trial


def fill(run_id: int, config: RunConfig, trial: Trial) -> None:
    """Opens the launch panel with a trial filled in, when a button is clicked.

    Args:
        run_id: the run that the page is about, from whose configuration the form starts.
        config: that configuration.
        trial: what is to be trained.
    """
    state = st.session_state
    panel.open_with(f"Model {run_id}")
    state["launch_name"] = trial.spec.name
    state["launch_seeds"] = ", ".join(map(str, json.loads(trial.spec.submitted)["model_seeds"]))
    for field, value in trial.suggestion.fields.items():
        group = next(name for name, members in fields.GROUPS.items() if field in members)
        if field not in fields.USUAL[group]:
            key = f"launch_more {group}"
            state[key] = [*state.get(key, []), field]
        known = fields.options(field, lambda name: [getattr(config, name)])
        state[f"launch {field}"] = [value if value in known else str(value)]
