"""The offer to launch: number of models, time, estimated in the background, and the button."""

import json
import os
import uuid
from collections.abc import Sequence
from functools import lru_cache, partial

import streamlit as st

from dashboard import actions, data, page
from dashboard.server import visitors
from dashboard.text import error_text
from dashboard.training import form
from dashboard.training.beside import Beside
from seqcls.errors import SeqclsError
from seqcls.text import count
from sweeps.access import is_read_only
from sweeps.api import Store, existing, open_reader, sweeping, watching
from sweeps.grid.spec import SweepSpec, parse_spec, spec_as_written
from sweeps.terminal import format_duration
from sweeps.work.estimate import Estimate, Timer, guess_times, known_times

SECONDS = 0.5
"""So often is looked whether all is timed."""

TIMINGS = Beside[Estimate]("timing")
"""Timings of specifications, done or running, for all sessions of the server."""

TOKEN, LAUNCHED = "launch token", "sweeps that were launched"

Submitted = tuple[str, ...]
"""Specifications as they were submitted."""


def prepare() -> None:
    """Loads, beside the page, what timing needs: PyTorch takes seconds, while somebody types."""
    if not is_read_only():
        TIMINGS.begin((), _load)


def _load() -> Estimate:
    from seqcls import evaluation, training
    from seqcls.interpretability import verdicts

    # Imported to be loaded, and for nothing else.
    del evaluation, training, verdicts
    return Estimate(0, 0, None, "")


def specs_of(tables: Sequence[str]) -> list[SweepSpec]:
    """Specifications, each as JSON, checked as a whole.

    Raises:
        SpecError: one is refused.
        VisitorError: they are more than a visitor of a read-only page may ask for.
    """
    # Counted before they are made: a visitor may ask for millions.
    visitors.refuse_many(sum(spec_as_written(json.loads(x)).num_runs() for x in tables))
    return [_parse(table) for table in tables]


@lru_cache(maxsize=64)
def _parse(table: str) -> SweepSpec:
    return parse_spec(json.loads(table))


def as_submitted(specs: Sequence[SweepSpec]) -> Submitted:
    """Specifications as they were submitted."""
    return tuple(spec.submitted for spec in specs)


def show(specs: Sequence[SweepSpec], place: str) -> None:
    """Draws the line: models, time, and the button that launches them.

    Args:
        specs: on offer; empty after an error, which is shown elsewhere.
        place: unique to the line.
    """
    with st.container(
        horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"
    ):
        missing = _say(specs) if specs else 0
        if not specs:
            st.markdown("Nothing to train yet.")
        # One until it is used: a second click on the same launch submits nothing more.
        token = st.session_state.setdefault(TOKEN, uuid.uuid4().hex)
        actions.button(
            "Launch",
            f"launch {place}",
            _launch,
            list(specs),
            token,
            disabled=not missing,
            type="primary",
            icon=":material/rocket_launch:",
        )


def _launch(specs: Sequence[SweepSpec], token: str) -> None:
    launched = actions.launch(specs, token)
    # The next launch is another one, also of the same specification.
    st.session_state[TOKEN] = uuid.uuid4().hex
    if launched:
        st.session_state[LAUNCHED] = specs[-1].name
        # In both, or the next page would take the launched name from the stored values.
        st.session_state[form.NAME] = st.session_state[form.BOX_VALUES][form.NAME] = ""
        st.session_state[form.SHORT] = False


def follow() -> None:
    """Goes to the sweep that was launched, once."""
    if name := st.session_state.pop(LAUNCHED, None):
        st.switch_page(page.SWEEPS, query_params={"shown": name})


def _say(specs: Sequence[SweepSpec]) -> int:
    """Says how many models and how long, and has that timed; how many there are to train."""
    key = as_submitted(specs)
    is_timed = TIMINGS.is_done(key)
    found = _estimate(key, is_timed)
    missing = found.runs - found.there
    there = f", {found.there:,} are there" if found.there else ""
    if not missing:
        st.markdown(f"All **{count(found.runs, 'model')}** are trained already.")
        return 0
    is_waiting = not is_timed and not is_read_only()
    basis, qualifier = found.basis, "about"
    if found.seconds is None:
        # Parts that were not timed are estimated by cost.
        found, qualifier = _estimate(key, is_timed, guess_times), "about" if is_timed else "roughly"
        basis = "By what its steps cost; a few of them are being timed." if is_waiting else basis
    time = "how long is not known"
    if found.seconds is not None:
        duration = format_duration(found.seconds)
        time = duration if duration.startswith("under") else f"{qualifier} {duration}"
    st.markdown(f"**{count(missing, 'model')}**{there} · {time}", help=basis or None)
    if is_waiting:
        TIMINGS.begin(key, partial(_time, key))
        page.rerun_when(lambda: TIMINGS.is_done(key), SECONDS)
    return missing


def _time(key: Submitted) -> Estimate:
    return sweeping.estimate(existing(), [_parse(x) for x in key], _workers())


def _workers() -> int:
    return os.cpu_count() or 1


def _estimate(key: Submitted, is_timed: bool, timer: Timer = known_times) -> Estimate:
    """By what is known without timing anything now."""
    # What is cached has a database's state in its key, and before the first sweep there is none.
    if existing() is None:
        return sweeping.estimate(None, [_parse(x) for x in key], _workers(), timer)
    return _estimate_here(key, is_timed, timer)


@data.cached
def _estimate_here(store: Store, key: Submitted, is_timed: bool, timer: Timer) -> Estimate:
    # Once it is timed, it is another answer.
    del is_timed
    return sweeping.estimate(store, [_parse(x) for x in key], _workers(), timer)


def guess(submitted: str) -> float | None:
    """Seconds that the rest of a stored sweep will take, estimated without timing."""
    try:
        return _estimate((submitted,), TIMINGS.is_done((submitted,)), guess_times).seconds
    except SeqclsError:
        # What is left needs a package that is not installed here.
        return None


def warnings(specs: Sequence[SweepSpec]) -> list[str]:
    """Warnings before launching: growth by `until`, lack of memory, specifications replaced."""
    sentences = [sweeping.growth_sentence(spec) for spec in specs if spec.until]
    try:
        sentences += filter(None, [sweeping.memory_warning(list(specs), _workers())])
        sentences += _say_what_is_replaced(specs) if existing() is not None else []
    except SeqclsError as error:
        sentences.append(error_text(error))
    return sentences


def _say_what_is_replaced(specs: Sequence[SweepSpec]) -> list[str]:
    store, sentences = open_reader(), list[str]()
    named = watching.specifications(store)
    for spec in specs:
        there = named.get(spec.name)
        # Compared as values: two texts of one specification may differ in the order of their keys.
        if there is not None and json.loads(there) != json.loads(spec.submitted):
            leaving = sweeping.leaving_sentence(store, spec)
            sentences.append(
                f"A sweep {spec.name} exists; launching replaces its specification."
                f"{f' {leaving}.' * bool(leaving)}"
            )
    return sentences
