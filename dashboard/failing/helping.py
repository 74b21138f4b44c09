"""What would help a failing model: fields to change, and what came of it where that was trained."""

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.failing.filling import fill
from dashboard.text import verbatim
from sweeps.analysis import remedy_trials
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries


def show(run_id: int) -> None:
    """Draws the section of one model, where its causes are known.

    Args:
        run_id: a finished run, which the link names too.
    """
    mechanisms = remedy_trials.mechanisms_of(data.causes([run_id]))
    if not mechanisms:
        return
    st.subheader(f"What would help model {run_id}?")
    config = queries.run_config(open_reader(), run_id)
    trials = data.trials(run_id, mechanisms)
    if not trials:
        st.info(
            "No known remedy changes a field of this configuration. The page Compare shows which "
            "other settings do better."
        )
        return
    st.caption(
        "Each suggestion changes one field, and with it those that must follow, to address what "
        "some of the model's errors come from or have in common. Train the same seeds with it to "
        "see whether it helps."
    )
    for number, trial in enumerate(trials):
        suggestion = trial.suggestion
        left, right = st.columns([5, 2], vertical_alignment="center")
        left.markdown(
            f"**{verbatim(suggestion.text)}** (for: {verbatim(suggestion.mechanism)}). "
            f"{verbatim(suggestion.reason)} *Source: {verbatim(suggestion.source)}.*"
        )
        left.caption(verbatim(remedy_trials.trial_sentence(trial)))
        right.button(
            "Fill the launch panel",
            key=f"fill {run_id} {number}",
            on_click=fill,
            args=(run_id, config, trial),
            width="stretch",
        )


def rounding(run_id: int) -> None:
    """Says where a model's outcome hangs on rounding.

    Args:
        run_id: a finished run.
    """
    found: pd.DataFrame = data.sensitivity()
    for outcome in found[found["run_id"] == run_id].to_dict("records"):
        times = (
            f"{outcome['times']} times with other rounding (initial values moved by one unit in "
            "the last place, or double precision)"
        )
        if outcome["sensitive"]:
            st.warning(
                f"This model's outcome depends on rounding: retrained {times}, it misclassifies "
                f"{outcome['least']:,} to {outcome['most']:,} test strings.",
                icon=":material/casino:",
            )
        else:
            st.caption(f"Retrained {times}, the model has the same confusion matrix each time.")
