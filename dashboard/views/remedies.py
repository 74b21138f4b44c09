"""What would help a failing model: fields to change, and what came of it where that was trained."""

import uuid
from collections.abc import Sequence

import pandas as pd
import streamlit as st

from dashboard import actions, background, data
from dashboard.text import verbatim
from seqcls.config import RunConfig
from seqcls.interpretability.mechanisms import NOT_LEARNED
from seqcls.problem import obstacle_of
from sweeps.api import open_reader, tried
from sweeps.api import trials as remedy_trials
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.database import control
from sweeps.api.old_pages.reading import EVERY_ERROR, Selection
from sweeps.api.trials import RemedyTrial
from sweeps.grid.spec import SweepSpec


def show(run_id: int, view: Selection) -> None:
    """Draws the section of one model, where its causes are known.

    That a model has not learned is known before any of its errors is looked at.

    Args:
        run_id: a finished run, which the link names too.
        view: which seeds of its configuration are compared, and what fails and has learned.
    """
    mechanisms = remedy_trials.mechanisms_of(data.causes([run_id], view.learned_at))
    not_learned = data.why_not_learned(run_id, view.learned_at)
    if not_learned is not None and NOT_LEARNED not in mechanisms:
        mechanisms = [NOT_LEARNED, *mechanisms]
    if not mechanisms:
        if len(data.string_errors(run_id, EVERY_ERROR)):
            background.want([run_id])
        return
    st.subheader(f"What would help model {run_id}?")
    if not_learned is not None:
        st.markdown(
            f"First, it has to learn the trained lengths: the model is {verbatim(not_learned)}."
        )
    config = reading.run_config(open_reader(), run_id)
    if (obstacle := obstacle_of(config)) is not None:
        st.info(f"No remedy can be trained here: {verbatim(obstacle)}.")
        return
    trials = data.trials(run_id, mechanisms, view)
    if not trials:
        st.info(
            "No known remedy changes a field of this configuration. The page Results shows which "
            "other settings do better."
        )
        return
    st.caption(
        "Each suggestion changes one field, and with it those that must follow, to address what "
        "some of the model's errors come from or have in common. Train the same seeds with it to "
        "see whether it helps."
    )
    _train_all(run_id, config, trials)
    for number, trial in enumerate(trials):
        suggestion = trial.suggestion
        left, right = st.columns([5, 2], vertical_alignment="center")
        left.markdown(
            f"**{verbatim(suggestion.text)}** (for: {verbatim(suggestion.mechanism)}). "
            f"{verbatim(suggestion.reason)} *Source: {verbatim(suggestion.source)}.*"
        )
        left.caption(verbatim("; ".join(remedy_trials.sentences(trial))))
        if not trial.is_begun:
            models = len(trial.spec.model_seeds)
            right.button(
                f"Try it: {models:,} model{'' if models == 1 else 's'}",
                key=f"try {run_id} {number}",
                on_click=_launch,
                args=([trial.spec], uuid.uuid4().hex),
                width="stretch",
                **control("Trains the same seeds with this change."),
            )


def _train_all(run_id: int, config: RunConfig, trials: Sequence[RemedyTrial]) -> None:
    """Launches what is not trained yet of all suggestions, as one sweep."""
    new = [trial for trial in trials if not trial.is_begun]
    if len(new) < 2:
        return
    spec = tried.all_spec(run_id, config, new)
    models = len(new) * len(spec.model_seeds)
    st.button(
        f"Train {'both' if len(new) == 2 else f'all {len(new)}'} suggestions ({models:,} models)",
        key=f"train_all {run_id}",
        icon=":material/rocket_launch:",
        on_click=_launch,
        args=([spec], uuid.uuid4().hex),
        **control("Launches all of these suggestions as one sweep, with the same seeds."),
    )


def rounding(run_id: int) -> None:
    """Says where a model's outcome hangs on rounding.

    Args:
        run_id: a finished run.
    """
    retrained: pd.DataFrame = data.sensitivity()
    for outcome in retrained[retrained["run_id"] == run_id].to_dict("records"):
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


def _launch(specs: Sequence[SweepSpec], token: str) -> None:
    # A button's callback gives nothing.
    actions.launch(specs, token)
