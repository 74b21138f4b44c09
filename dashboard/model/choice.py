"""Which run, which strings and which epoch the page is about: all of it in the address bar."""

from dataclasses import dataclass

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.languages import first_strings, shortest_strings
from dashboard.model import search
from dashboard.model.opened import OpenedModel
from dashboard.text import verbatim
from seqcls.config import REPORT_TASK, RunConfig
from seqcls.errors import InvalidStringError, SeqclsError, UnknownRunError
from seqcls.problem import resolve
from seqcls.tasks import LanguageTask
from sweeps.store.opening import open_reader
from sweeps.store.reading import queries
from sweeps.store.reading.selection import View

OFFERED_ERRORS = 200
"""A run's shortest errors, which are offered; any other string can be typed."""

OFFERED_MODELS = 100
"""Models that are offered by name; any other is found by typing."""

MOST_STRINGS = 8
"""Strings that are drawn beside each other at most."""

RUN = "run"
LAST_SWEEP = "model_last_sweep"
SEARCHED = "model_searched"
"""What was typed that means several models, and the sweep that it was looked for in."""

NOT_FOUND = "model_not_found"
"""Why what was typed means no model."""

ABLATED = ("heads_off", "heads_frozen", "dimensions_off")
"""What is ablated, in the link."""

OF_ONE_RUN = ("string", "strings", "epoch", *ABLATED)
"""Settings that mean nothing to another run, and so begin anew with it."""


def choose_run() -> int | None:
    """The run of the link, else the least accurate one; boxes to choose another.

    Returns:
        The run's id; None where no model is trained yet.

    Raises:
        UnknownRunError: the link names no run.
    """
    named = st.query_params.get(RUN)
    run_id = _worst() if named is None else queries.find_run(open_reader(), named)
    if run_id is None:
        return None
    sweep = _sweep_of(run_id)
    left, right = st.columns(2)
    st.session_state["model_sweep"] = sweep
    names = list(dict.fromkeys(data.memberships()["sweep"]))
    left.selectbox("Sweep", names, key="model_sweep", on_change=_take_sweep)
    labels = _labels(_offered(run_id, sweep))
    st.session_state["model_run"] = run_id if run_id in labels else None
    right.selectbox(
        "Model",
        list(labels),
        # What is typed is shown as it is.
        format_func=lambda own: labels.get(own, str(own)),
        key="model_run",
        on_change=_take_run,
        placeholder=f"run {run_id}",
        accept_new_options=True,
        help=f"Offers the {OFFERED_MODELS} least accurate models. {search.HELP}",
    )
    _say_what_was_found(sweep)
    return run_id


def _offered(run_id: int, sweep: str | None) -> pd.DataFrame:
    """The models to choose from: this one, and those that were searched or the sweep's worst."""
    searched = st.session_state.get(SEARCHED)
    if searched is not None and searched[1] == sweep:
        offered = _found(*searched)
    else:
        offered = data.worst_models(View(sweeps=(sweep,) if sweep else ()), OFFERED_MODELS)
    if run_id in offered["run_id"].tolist():
        return offered
    return pd.concat([data.model(run_id), offered], ignore_index=True)


def _found(text: str, sweep: str | None) -> pd.DataFrame:
    """What was searched; nothing where that is deleted since."""
    try:
        return search.find(text, sweep, OFFERED_MODELS)
    except UnknownRunError:
        return data.worst_models(View(), 0)


def _say_what_was_found(sweep: str | None) -> None:
    text, of_sweep = st.session_state.get(SEARCHED, (None, None))
    if NOT_FOUND in st.session_state:
        st.error(verbatim(st.session_state.pop(NOT_FOUND)))
    elif text is not None and of_sweep == sweep:
        number = len(_found(text, sweep))
        many = f"The {number} least accurate" if number == OFFERED_MODELS else f"{number}"
        st.caption(f"{many} of the models like {verbatim(repr(text))} are offered. Choose one.")


def _sweep_of(run_id: int) -> str | None:
    """The sweep that was chosen, if the run belongs to it, else the first that it belongs to."""
    names = data.sweeps_of_run(run_id)
    chosen = st.session_state.get(LAST_SWEEP)
    return chosen if chosen in names else next(iter(names), None)


def _worst() -> int | None:
    found = data.worst_models(View(), 1)
    return None if found.empty else int(found["run_id"].iloc[0])


def _labels(runs: pd.DataFrame) -> dict[int, str]:
    """What each run of a sweep is called: its seed, and its settings where they differ."""
    settings = data.settings()
    own = settings.loc[[x for x in runs["config_id"].unique() if x in settings.index]]
    own = own.loc[:, [name for name in own if own[name].nunique() > 1]]
    settled = own.to_dict("index")
    labels = {}
    for run in runs.to_dict("records"):
        errors = run["errors"]
        config_id, seed = run["config_id"], run["model_seed"]
        different = [f"{name}={value}" for name, value in settled.get(config_id, {}).items()]
        told = f"{errors:,} test strings wrong" if errors else "no test string wrong"
        labels[run["run_id"]] = f"{', '.join([*different, f'seed {seed}'])}: {told}"
    return labels


def _take_run() -> None:
    """Goes to the model that was chosen, or looks for what was typed."""
    chosen = st.session_state["model_run"]
    if not isinstance(chosen, str):
        _go_to(chosen)
        return
    sweep = st.session_state["model_sweep"]
    try:
        found = search.find(chosen, sweep, OFFERED_MODELS)
    except SeqclsError as error:
        st.session_state[NOT_FOUND] = str(error)
        return
    _go_to(int(found["run_id"].iloc[0]))
    if len(found) > 1:
        st.session_state[SEARCHED] = (chosen, sweep)


def _take_sweep() -> None:
    name = st.session_state["model_sweep"]
    st.session_state[LAST_SWEEP] = name
    found = data.worst_models(View(sweeps=(name,)), 1)
    if len(found):
        _go_to(int(found["run_id"].iloc[0]))


def _go_to(run_id: int | None) -> None:
    if run_id is None:
        return
    st.session_state.pop(SEARCHED, None)
    for name in OF_ONE_RUN:
        if name in st.query_params:
            del st.query_params[name]
    st.query_params[RUN] = str(run_id)


@dataclass(frozen=True)
class Chosen:
    """What the page shows of a run."""

    model: OpenedModel
    string: str
    """The one that is explained."""
    strings: tuple[str, ...]
    """Those that are drawn, the explained one among them."""
    errors: tuple[str, ...]
    """The run's misclassified test strings, the shortest first."""


def choose_view(model: OpenedModel, errors: pd.DataFrame) -> Chosen:
    """The strings and the epoch, as typed or as the link says; what is wrong is said in a line.

    Args:
        model: at its kept epoch.
        errors: its misclassified test strings, the shortest first.
    """
    left, middle, right = st.columns([2, 2, 3])
    with left:
        string = _explained(model.config, errors)
    with middle:
        others = _beside(model.config)
    with right:
        epoch = _epoch(model)
    strings = [*others, string] if string not in others else others
    if len(strings) > MOST_STRINGS:
        st.error(f"{len(strings)} strings are too many to draw at once: expected {MOST_STRINGS}.")
        strings = [*strings[: MOST_STRINGS - 1], string]
    return Chosen(model.at(epoch), string, tuple(dict.fromkeys(strings)), tuple(errors["string"]))


def explain_next(string: str) -> None:
    """Makes a string the one to explain, when a button is clicked."""
    st.query_params["string"] = string


def _explained(config: RunConfig, errors: pd.DataFrame) -> str:
    offered = errors["string"].head(OFFERED_ERRORS).tolist()
    both, _ = examples(config)
    first = (offered or list(both))[0]
    linked = _from_link("string", first)
    typed = st.selectbox(
        "String to explain",
        list(dict.fromkeys([*offered, *both, linked])),
        key="string",
        on_change=_into_link,
        args=("string",),
        accept_new_options=True,
        help="Offers the model's own errors, shortest first. You can type any other string: "
        "ab{100} is an a and a hundred b's, <ab>{50} is ab fifty times.",
    )
    return _readable(config, typed or "") or first


def _beside(config: RunConfig) -> list[str]:
    tokenizer = resolve(config).tokenizer
    _from_link("strings", tokenizer.line_of(examples(config)[0]))
    typed = st.text_input(
        "Strings beside it",
        key="strings",
        on_change=_into_link,
        args=("strings",),
        help=f"Separated by {separated_by(config)}, as in `aac baac ab{{100}}c{{55}}`; a{{100}} is "
        "a hundred a's, <ab>{50} is ab fifty times.",
    )
    return [
        string for string in tokenizer.strings_of(typed) if _readable(config, string) is not None
    ]


def separated_by(config: RunConfig) -> str:
    """What stands between strings that are typed in one line."""
    return "two spaces" if resolve(config).tokenizer.separator else "spaces"


def _epoch(model: OpenedModel) -> int:
    kept = model.stored.kept_epoch
    epochs = [0, *model.stored.networks]
    linked = st.query_params.get("epoch", "")
    st.session_state["epoch"] = next((x for x in epochs if str(x) == linked), kept)
    return int(
        st.select_slider(
            f"Epoch (kept is {kept}; 0 is before training)",
            epochs,
            key="epoch",
            on_change=_into_link,
            args=("epoch",),
        )
    )


def _from_link(name: str, otherwise: str) -> str:
    """Sets a widget to what the link says. The link decides: another run's has nothing of this."""
    value = st.query_params.get(name, otherwise)
    st.session_state[name] = value
    return value


def _into_link(name: str) -> None:
    value = st.session_state[name]
    st.query_params[name] = "" if value is None else str(value)


def _readable(config: RunConfig, string: str) -> str | None:
    try:
        resolve(config).tokenizer.counts(string)
    except InvalidStringError as error:
        st.error(verbatim(str(error)))
        return None
    return string


def examples(config: RunConfig) -> tuple[tuple[str, ...], str]:
    """A short negative and a short positive string, and a family that may break.

    The family is of tasks with required letters only.
    """
    task = resolve(config).task
    required = config.required_letters
    other = next((x for x in task.alphabet if x not in required), None)
    if config.task == REPORT_TASK and other is not None:
        negative = f"{required[0] * 2 if len(required) > 1 else other}{other}"
        return (negative, f"{required[::-1]}{required[0]}{other}"), f"{required}{{n}}"
    if not isinstance(task, LanguageTask):
        return tuple(first_strings(task, 2)), f"{required}{{n}}"
    positive, negative_ones = (list(filter(None, x)) for x in shortest_strings(task))
    return (*negative_ones[-1:], *positive[-1:]), f"{required}{{n}}"


def show_missing(error: SeqclsError) -> None:
    """Says on the page why there is no model to look into."""
    if isinstance(error, UnknownRunError):
        st.error("This run has no model to show.")
        st.code(str(error), language=None, wrap_lines=True)
    else:
        data.explain(error)
