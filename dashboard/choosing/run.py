"""Which run the page is about, and how a model is found among any number by what is typed."""

import re
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from dashboard import data
from dashboard.text import error_text, verbatim
from dashboard.words.names import configuration_names
from seqcls.config import MAX_MODEL_SEED, default_fields
from seqcls.errors import SeqclsError, UnknownRunError
from seqcls.text import nearest
from sweeps.api import open_reader
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.reading import Selection

SEARCH_HELP = (
    "Type to find any other model: its number (`51`), a seed (`seed 12`), a sweep and a seed "
    "(`all_initializations/2`), or settings, with or without a seed (`hidden_size=4 seed 12`)."
)
EXPECTED = (
    "type a model's number (51), a seed (seed 12), a sweep and a seed (heads/2), or settings "
    "(field=4)"
)


def find_models(text: str, sweep: str | None, limit: int) -> pd.DataFrame:
    """The models that are meant, the least accurate first.

    Args:
        text: what was typed.
        sweep: where seeds and settings are looked for; None for everywhere.
        limit: how many at most.

    Returns:
        As `data.models`, at least one row.

    Raises:
        UnknownRunError: no trained model is meant, or the text means none.
    """
    words = _words(text)
    is_number = words[:1] in (["run"], ["model"], ["Model"])
    name, slash, seed = text.strip().rpartition("/")
    if slash and name in set(data.memberships()["sweep"]):
        view = Selection(sweeps=(name,), model_seeds=(_number(text, seed),))
        models = data.worst_models(view, limit)
    elif is_number:
        models = data.model(_number(text, words[-1]))
    else:
        models = data.worst_models(_view(text, sweep), limit)
        if len(words) == 1 and words[0].isdecimal():
            # A number alone is that of a model, and may be that of a seed.
            models = pd.concat([data.model(_number(text, words[0])), models])
            models = models.drop_duplicates("run_id", ignore_index=True)
    if models.empty:
        in_sweep = f" in sweep {sweep!r}" if sweep and not is_number and not slash else ""
        raise UnknownRunError(f"{text!r}: no trained model matches{in_sweep}; {EXPECTED}")
    return models


def _words(text: str) -> list[str]:
    return text.replace(",", " ").replace("=", " = ").replace(":", " ").split()


def _view(text: str, sweep: str | None) -> Selection:
    """The models with the seeds and the settings that are named."""
    settings = data.settings()
    left = text
    # As they are written first: names and values may have spaces, commas and colons.
    for name in sorted(map(str, settings), key=len, reverse=True):
        values = sorted(settings[name].dropna().map(str).unique(), key=len, reverse=True)
        for value in values if f"{name}=".casefold() in left.casefold() else ():
            written = rf"(?<![^\s,]){re.escape(name)}={re.escape(value)}(?![^\s,])"
            if re.search(written, left, re.IGNORECASE):
                settings = settings[settings[name].map(str).str.casefold() == value.casefold()]
                left = re.sub(written, " ", left, flags=re.IGNORECASE)
                break
    seeds: list[int] = []
    # Of `name = value` and `seed number` the words are taken one after another.
    rest = [word for word in _words(left) if word != "="]
    while rest:
        word = rest.pop(0)
        if word.isdecimal():
            seeds.append(_number(text, word))
        elif word in ("seed", "model_seed") and rest:
            seeds.append(_number(text, rest.pop(0)))
        elif word in settings and rest:
            value = rest.pop(0)
            settings = settings[settings[word].map(str).str.casefold() == value.casefold()]
        elif word in default_fields():
            raise UnknownRunError(f"{text!r}: {word} is the same for all models; {EXPECTED}")
        else:
            known = nearest(word, [str(name) for name in settings])
            raise UnknownRunError(f"{text!r}: {known}; {EXPECTED}")
    everything = len(settings) == len(data.settings())
    config_ids = None if everything else tuple(settings.index.tolist())
    return Selection((sweep,) if sweep else (), tuple(seeds), config_ids)


def _number(text: str, word: Any) -> int:
    if not (word.isascii() and word.isdecimal()) or len(word) > 19 or int(word) > MAX_MODEL_SEED:
        raise UnknownRunError(f"{text!r}: expected a number, not {word!r}; {EXPECTED}")
    return int(word)


OFFERED_MODELS = 100
"""Models that are offered by name; any other is found by typing."""

RUN = "run"
SHOWN = "model_shown"
"""The run that was shown last, and under which filters."""

LAST_SWEEP = "model_last_sweep"
SEARCHED = "model_searched"
"""What was typed that means several models, and the sweep that it was looked for in."""

NOT_FOUND = "model_not_found"
"""Why what was typed means no model."""

ABLATED = ("heads_off", "heads_frozen", "dimensions_off")
"""What is ablated, in the link."""

OF_ONE_RUN = ("string", "strings", "epoch", *ABLATED)
"""Settings that mean nothing to another run, and so begin anew with it."""


def choose_run(view: Selection) -> int | None:
    """The run of the link, else the least accurate one; boxes to choose another.

    Args:
        view: what the filters leave. A run that they no longer leave, once they are changed, gives
            way to the least accurate one that they do.

    Returns:
        The run's id; None where no model is trained yet.

    Raises:
        UnknownRunError: the link names no run.
    """
    named = st.query_params.get(RUN)
    run_id = (
        _worst(view) or _worst(Selection())
        if named is None
        else reading.find_run(open_reader(), named)
    )
    if run_id is None:
        return None
    if gives_way(run_id, view):
        run_id = _worst(view) or run_id
        _go_to(run_id)
    remember_shown(run_id, view)
    sweep = _sweep_of(run_id)
    left, right = st.columns(2)
    st.session_state["model_sweep"] = sweep
    names = list(dict.fromkeys(data.memberships()["sweep"]))
    left.selectbox("Sweep", names, key="model_sweep", on_change=_take_sweep)
    labels = _labels(_models_to_choose(run_id, sweep))
    st.session_state["model_run"] = run_id if run_id in labels else None
    right.selectbox(
        "Model",
        list(labels),
        # What is typed is shown as it is.
        format_func=lambda run: labels.get(run, str(run)),
        key="model_run",
        on_change=_take_run,
        placeholder=f"run {run_id}",
        accept_new_options=True,
        help=f"Offers the {OFFERED_MODELS} least accurate models. {SEARCH_HELP}",
    )
    _say_what_was_found(sweep)
    return run_id


def gives_way(run_id: int, view: Selection) -> bool:
    """Whether filters that were changed since this run was shown leave it no longer."""
    shown, under = st.session_state.get(SHOWN, (None, None))
    return run_id == shown and under != view and not _worst(replace(view, run_ids=(run_id,)))


def remember_shown(run_id: int, view: Selection) -> None:
    """Remembers which run a page is about, and what the filters left then."""
    st.session_state[SHOWN] = (run_id, view)


def _models_to_choose(run_id: int, sweep: str | None) -> pd.DataFrame:
    """The models to choose from: this one, and those that were searched or the sweep's worst."""
    searched = st.session_state.get(SEARCHED)
    if searched is not None and searched[1] == sweep:
        offered = _search(*searched)
    else:
        offered = data.worst_models(Selection(sweeps=(sweep,) if sweep else ()), OFFERED_MODELS)
    if run_id in offered["run_id"].tolist():
        return offered
    return pd.concat([data.model(run_id), offered], ignore_index=True)


def _search(text: str, sweep: str | None) -> pd.DataFrame:
    """What was searched; nothing where that is deleted since."""
    try:
        return find_models(text, sweep, OFFERED_MODELS)
    except UnknownRunError:
        return data.worst_models(Selection(), 0)


def _say_what_was_found(sweep: str | None) -> None:
    text, of_sweep = st.session_state.get(SEARCHED, (None, None))
    if NOT_FOUND in st.session_state:
        st.error(verbatim(st.session_state.pop(NOT_FOUND)))
    elif text is not None and of_sweep == sweep:
        number = len(_search(text, sweep))
        many = f"The {number} least accurate" if number == OFFERED_MODELS else f"{number}"
        st.caption(
            f"{many} of the models that match {verbatim(repr(text))} "
            f"{'is' if number == 1 else 'are'} listed. Choose one."
        )


def _sweep_of(run_id: int) -> str | None:
    """The sweep that was chosen, if the run belongs to it, else the first that it belongs to."""
    names = data.sweeps_of_run(run_id)
    chosen = st.session_state.get(LAST_SWEEP)
    return chosen if chosen in names else next(iter(names), None)


def _worst(view: Selection) -> int | None:
    """The least accurate model that the filters leave."""
    models = data.worst_models(view, 1)
    return None if models.empty else int(models["run_id"].iloc[0])


def _labels(runs: pd.DataFrame) -> dict[int, str]:
    """What each run of a sweep is called: its configuration where there are several, its seed."""
    named = configuration_names(runs["config_id"].unique().tolist())
    labels = {}
    for run in runs.to_dict("records"):
        errors, seed = run["errors"], f"seed {run['model_seed']}"
        called = [named[run["config_id"]]] * (len(named) > 1)
        outcome = f"{errors:,} test strings wrong" if errors else "no test string wrong"
        labels[run["run_id"]] = f"{', '.join([*called, seed])}: {outcome}"
    return labels


def _take_run() -> None:
    """Goes to the model that was chosen, or looks for what was typed."""
    chosen = st.session_state["model_run"]
    if not isinstance(chosen, str):
        _go_to(chosen)
        return
    sweep = st.session_state["model_sweep"]
    try:
        models = find_models(chosen, sweep, OFFERED_MODELS)
    except SeqclsError as error:
        st.session_state[NOT_FOUND] = error_text(error)
        return
    _go_to(int(models["run_id"].iloc[0]))
    if len(models) > 1:
        st.session_state[SEARCHED] = (chosen, sweep)


def _take_sweep() -> None:
    name = st.session_state["model_sweep"]
    st.session_state[LAST_SWEEP] = name
    models = data.worst_models(Selection(sweeps=(name,)), 1)
    if len(models):
        _go_to(int(models["run_id"].iloc[0]))


def _go_to(run_id: int | None) -> None:
    if run_id is None:
        return
    st.session_state.pop(SEARCHED, None)
    for name in OF_ONE_RUN:
        if name in st.query_params:
            del st.query_params[name]
    st.query_params[RUN] = str(run_id)


def show_missing(error: SeqclsError) -> None:
    """Says on the page why there is no model to look into."""
    if isinstance(error, UnknownRunError):
        st.error("This run has no model to show.")
        st.code(error_text(error), language=None, wrap_lines=True)
    else:
        data.say(error)
