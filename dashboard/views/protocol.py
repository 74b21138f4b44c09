"""One configuration at a glance: what is not usual of it, all that it reads, and its protocol."""

import streamlit as st

from dashboard import data, elements
from dashboard.text import error_text, verbatim
from dashboard.words import names
from seqcls.config import RunConfig
from seqcls.errors import SeqclsError
from seqcls.problem import resolve
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.judging_naming import settings_changed
from sweeps.api.protocols import protocols

_protocols = data.cached(protocols)


def show(run_id: int, config_id: int, config: RunConfig) -> None:
    """Chips of what is not usual, and lengths; folded, the whole protocol, and all settings.

    Args:
        run_id: the model.
        config_id: its configuration.
        config: the same.
    """
    settings = names.settings_of((config_id,))[config_id]
    changed = settings_changed(settings)
    elements.show_chips(changed)
    st.caption(verbatim(_in_short(run_id, config)))
    with st.expander("How it was trained and tested, and all of its settings", key="protocol"):
        st.markdown("\n".join(f"- {verbatim(x)}" for x in _sentences(config_id, (run_id,))))
        st.caption(
            f"{verbatim(_elsewhere(run_id, config))} All other settings have their defaults:"
        )
        usual = {x: y for x, y in settings.items() if x not in changed}
        elements.show_chips({x: elements.NOTHING if y == "" else y for x, y in usual.items()})


def _in_short(run_id: int, config: RunConfig) -> str:
    """Which run it is, and how long the strings are that it was trained and tested on."""
    try:
        problem = resolve(config)
    except SeqclsError:  # Of a package that is not here nothing is known.
        return f"Run {run_id}."
    parts = {"trained": problem.train.lengths, "tested": problem.test.lengths}
    if not problem.knows_trained_lengths:
        del parts["trained"]
    said = (
        f"{word} on strings of {' to '.join(map(str, sorted({x[0], x[-1]})))} tokens"
        for word, x in parts.items()
    )
    return f"Run {run_id}: {', '.join(said)}."


def _elsewhere(run_id: int, config: RunConfig) -> str:
    """What commands and files call the model and its configuration."""
    seed = data.model(run_id)["model_seed"].astype(object).iloc[0]
    names = [f"{sweep}/{seed}" for sweep in data.sweeps_of_run(run_id)]
    # In a sweep of several configurations a seed is no name of one model.
    own = [name for name in names if len(reading.runs_named(data.reader(), name)) == 1]
    called = " or ".join([f"run {run_id}", *own])
    return f"Commands call it {called}; its configuration's key is {config.key[:16]}."


def _sentences(config_id: int, run_ids: tuple[int, ...]) -> list[str]:
    try:
        return _protocols(config_id, run_ids)
    except SeqclsError as error:  # Of a package that is not here nothing is known.
        return [error_text(error)]
