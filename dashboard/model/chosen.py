"""The run of the page: the link's, else the one that fails worst; the sidebar has others.

A link decides all that the page shows, and so each box writes into it.
"""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data, filters, page
from dashboard.text import error_text
from dashboard.words.tasks import task_names
from seqcls.errors import SeqclsError
from sweeps.api import Selection, find_run, names_of
from sweeps.results import Outcome

SIGNS = {
    Outcome.AT_EVERY_LENGTH: "●", Outcome.GENERALIZES: "●", Outcome.FAILS_BEYOND: "○",
    Outcome.NOT_LEARNED: "x", Outcome.NOT_KNOWN: "?",
}  # fmt: skip

OFFERED = 500
"""Configurations, and seeds of one, that the boxes offer; any other model is found by typing."""

NOT_FOUND = "model that was not found"
"""Key in the session of the error where typed text names no model."""

_names = data.cached(names_of)


def choose_run() -> int | None:
    """The run that the link names, or the worst that the filters leave; boxes for another.

    Returns:
        None where no model is trained yet.

    Raises:
        UnknownRunError: the link names no run.
    """
    found = filters.of_every_task()
    models = data.models(found)
    # Filters may leave nothing: the page then begins with the worst model of all.
    models = models[models["picked"] == 1] if len(models) else data.models(Selection())
    linked = st.query_params.get("run")
    if linked is not None:
        run = find_run(data.reader(), linked)
    elif models.empty:
        return None
    else:
        run = worst_of(models)
    if linked is None:
        # What is worst may change, and a link stays.
        st.query_params["run"] = str(run)
    # A link may name a model that the filters leave out.
    if run not in set(models["run_id"]):
        models = pd.concat([data.model(run), models], ignore_index=True)
    with st.sidebar:
        _choose_another(run, models.set_index("run_id"))
    return run


def worst_of(models: pd.DataFrame) -> int:
    """The model that a page is about first: of those that learned and fail the least accurate."""
    order = {Outcome.FAILS_BEYOND: 0, Outcome.NOT_LEARNED: 1}
    ranked = models.assign(order=models["outcome"].map(order).fillna(len(order)))
    return int(ranked.sort_values(["order", "accuracy", "run_id"])["run_id"].iloc[0])


def _choose_another(run: int, models: pd.DataFrame) -> None:
    """Task, configuration and seed, each of which leads to the worst model of what is chosen."""
    if run not in models.index:
        return
    tasks = models["config_id"].map(data.languages())
    names = task_names(tasks.unique())
    task = _select("Task", [*names], tasks[run], names.__getitem__)
    alike = models[tasks == task]
    own = int(models["config_id"][run])
    # The run's own row may come first: it decides which are offered, not their order.
    offered = alike["config_id"].drop_duplicates().head(OFFERED).tolist()
    called = _names(tuple(sorted({*offered, own} if task == tasks[run] else offered)))
    chosen = _select("Configuration", [*called], own, called.__getitem__)
    seeds = alike[alike["config_id"] == chosen].sort_values("model_seed").head(OFFERED)
    if (task, chosen) != (tasks[run], own):
        go_to(worst_of(seeds.reset_index()))
        st.rerun()
    labels = {
        int(x): f"{SIGNS[Outcome(row['outcome'])]} seed {row['model_seed']}"
        for x, row in seeds.astype(object).iterrows()
    }
    # What was typed is looked for once, by the callback.
    st.session_state["model_run"] = run
    st.selectbox(
        "Seed",
        [*labels],
        key="model_run",
        format_func=lambda x: labels.get(x, str(x)),
        accept_new_options=True,
        on_change=_take_run,
        help="● generalizes, ○ fails beyond, x not learned. Any other model can be typed: its "
        "number, or SWEEP/SEED.",
    )
    if reason := st.session_state.pop(NOT_FOUND, None):
        st.error(page.plain(reason))


def _select(label: str, options: Sequence[Any], value: Any, name: Callable[[Any], str]) -> Any:
    """A box that follows the link: of another run it is another box."""
    index = options.index(value) if value in options else 0
    key = f"{label} {value} {len(options)}"
    return st.selectbox(label, options, index=index, format_func=name, key=key)


def _take_run() -> None:
    """Goes to the model that was chosen or typed, when the box changes."""
    chosen = st.session_state["model_run"]
    try:
        run = find_run(data.reader(), chosen) if isinstance(chosen, str) else chosen
    except SeqclsError as error:
        st.session_state[NOT_FOUND] = error_text(error)
        return
    if run is not None:
        go_to(run)


OF_ONE_RUN = ("string", "epoch")
"""Parameters of the link that mean nothing to another run."""

NEXT = "tab of the next run of the page"


def go_to(run: int, string: str | None = None, view: str = "") -> None:
    """Has the link name another run, or string, and tab; the page is to be drawn anew."""
    for name in OF_ONE_RUN:
        st.query_params.pop(name, None)
    st.query_params["run"] = str(run)
    if string is not None:
        st.query_params["string"] = string
    if view:
        # The tabs have their parameter for themselves.
        st.session_state[NEXT] = view


def follow_next() -> None:
    """Opens the tab that `go_to` named, before the tabs are drawn."""
    if view := st.session_state.pop(NEXT, ""):
        st.session_state["view"] = view
