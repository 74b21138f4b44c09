"""Launching a sweep: one that is shipped, or one of your own; how long it takes; ways to here."""

import json
import os
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import Future

import streamlit as st

from dashboard import actions, data, links
from dashboard.launch import custom, starting_point, strings, variants
from dashboard.server import visitors
from dashboard.text import error_text, verbatim
from seqcls.errors import SeqclsError, VisitorError
from sweeps.access import is_read_only
from sweeps.api import existing, open_reader, overlaps, sweeping
from sweeps.api.old_pages import reading
from sweeps.api.old_pages.database import control
from sweeps.grid.spec import SweepSpec, load_specs, shipped_names
from sweeps.terminal import format_duration
from sweeps.work.estimate import Estimate, known_times

SECONDS = 1.0
"""After so long without a change it is timed, and so often is looked whether that is done."""

Key = tuple[str, ...]
"""Specifications as they were submitted."""


class Timings(visitors.Beside[Estimate]):
    """Which specifications this server has timed, or is timing."""

    def begin(self, key: Key, specs: Sequence[SweepSpec], workers: int) -> Future[Estimate]:
        """Times what is not known of these specifications, unless that was begun before."""
        return self.begin_making(key, lambda: sweeping.estimate(existing(), list(specs), workers))


@st.cache_resource(show_spinner=False)
def timings() -> Timings:
    """Those of this server."""
    return Timings()


def when_left_alone(specs: Sequence[SweepSpec], workers: int) -> None:
    """Times what is offered once it has been left alone, and has the page drawn again with it."""
    key = key_of(specs)
    if not is_read_only() and not timings().is_done(key):
        # The first drawing is that of the page; those that follow come after a pause.
        st.fragment(_look, run_every=SECONDS)(key, list(specs), workers, [])


def key_of(specs: Sequence[SweepSpec]) -> Key:
    """Specifications as they were submitted."""
    return tuple(spec.submitted for spec in specs)


def _look(key: Key, specs: Sequence[SweepSpec], workers: int, drawn: list[bool]) -> None:
    if timings().is_done(key):
        st.rerun()
    if drawn:
        timings().begin(key, specs, workers)
        st.caption("Timing a few steps to estimate how long this takes.")
    drawn.append(True)


TOKEN = "launch token"
PATH = "launch"
PANEL = "launch"
"""Whether the panel is to be opened: something has filled it in."""

LAUNCHED = "sweeps that were launched"
ABOUT = ("run", "config")
"""What a link says of models, from which a sweep can start."""

KIND = "launch_kind"
CUSTOM, PRESET = "Your own", "Preset"
DRAWN_ANEW = ("launch_button", "launch_add_variant", "launch_take_near")
"""What has no state."""


def show_link(page: str) -> None:
    """The link of the sidebar that leads to the panel; what was entered there is kept.

    Args:
        page: the path of the page that is shown.
    """
    if page == PATH:
        return
    _keep()
    with st.container(key="to_launch"):
        st.page_link(
            links.LAUNCH_PAGE,
            label="Launch a sweep",
            icon=":material/rocket_launch:",
            query_params=_models_of_link(),
        )


def _models_of_link() -> dict[str, list[str]]:
    return {name: st.query_params.get_all(name) for name in ABOUT if name in st.query_params}


def switch(page: str, clear_filters: Callable[[], None]) -> None:
    """Goes to the panel where something has filled it, and to a sweep that was launched.

    Args:
        page: the path of the page that is shown.
        clear_filters: takes back those that a new sweep may not match.
    """
    state = st.session_state
    opened, launched = state.pop(PANEL, False), state.pop(LAUNCHED, [])
    if opened or launched:
        _keep()
    if opened and page != PATH:
        st.switch_page(links.LAUNCH_PAGE, query_params=_models_of_link())
    if launched and page == PATH:
        state[links.SWITCHED] = True
        with data.explaining():
            clear_filters()
        st.switch_page(links.SWEEPS_PAGE, query_params={"sweep_id": str(launched[-1])})


def show() -> None:
    """Draws the panel."""
    choices: dict[str, Callable[[], list[SweepSpec]]] = {PRESET: _preset, CUSTOM: custom.show}
    kind = st.segmented_control(
        "What to train",
        list(choices),
        default=CUSTOM,
        required=True,
        key=KIND,
        label_visibility="collapsed",
    )
    if kind != CUSTOM:
        _keep(but=KIND)
    try:
        with visitors.one_at_a_time(), st.spinner("Reading the settings", show_time=True):
            specs = choices[kind]()
            if specs:
                with st.container(border=True, key="launch_offer"):
                    _offer(specs)
        if not specs:
            st.caption("Fix the settings above to launch.")
    except VisitorError as error:
        data.say(error)
    except SeqclsError as error:
        st.error("This can't be launched.")
        st.code(error_text(error), language=None, wrap_lines=True)


def open_with(start: str) -> None:
    """Has the panel opened on a sweep of one's own, with nothing of what was entered before.

    Args:
        start: what it starts from, by its label.
    """
    clear()
    st.session_state[PANEL] = True
    st.session_state[KIND] = CUSTOM
    st.session_state[starting_point.KEY] = start


def open_preset(name: str) -> None:
    """Has the panel opened on a specification that comes with seqcls."""
    st.session_state[PANEL] = True
    st.session_state[KIND] = PRESET
    st.session_state["launch_preset"] = name


def clear() -> None:
    """Empties the form of a sweep of one's own."""
    for key in map(str, st.session_state):
        if key.startswith(("launch ", "launch_more ")) or key in (
            "launch_seeds",
            "launch_until",
            variants.KEY,
            variants.ADDED,
        ):
            del st.session_state[key]


def _keep(but: str = "") -> None:
    """Keeps what was entered while it is not shown; Streamlit would forget it."""
    for key in map(str, st.session_state):
        if key.startswith(("launch ", "launch_")) and key not in (*DRAWN_ANEW, but):
            st.session_state[key] = st.session_state[key]


def _preset() -> list[SweepSpec]:
    name = st.selectbox(
        "Preset",
        shipped_names(),
        key="launch_preset",
        help="Specifications that come with seqcls; `report` is all of the report's sweeps.",
    )
    specs = load_specs(name)
    st.caption(specs[0].description if len(specs) == 1 else f"{len(specs)} sweeps")
    return specs


def _offer(specs: list[SweepSpec]) -> None:
    """Says what launching would mean, and the button."""
    expected = _estimate(specs)
    missing = expected.runs - expected.there
    if missing:
        time = "" if expected.seconds is None else f" ({_about(expected.seconds)})"
        there = f"; {expected.there:,} already trained" if expected.there else ""
        st.markdown(f"**{_models(missing)} to train**{time}{there}.", help=expected.basis)
        when_left_alone(specs, _workers())
    else:
        st.markdown(f"**{_models(expected.runs)}**, all already trained.")
    if growing := next((spec for spec in specs if spec.until), None):
        st.caption(verbatim(sweeping.growth_sentence(growing)))
    if missing and (short := sweeping.memory_warning(specs, _workers())):
        st.warning(short)
    if existing() is None:
        said = overlaps.trained_on(config for spec in specs for config in spec.configs())
    else:
        said = data.offered_trained_on(key_of(specs))
    if said:
        st.caption(verbatim(said))
    stored = _describe_stored(specs)
    if stored == "as it is" and missing:
        st.caption("Already launched. See Running in the sidebar, or the Sweeps page.")
    elif stored == "otherwise":
        store = open_reader()
        sentences = [sweeping.leaving_sentence(store, spec) for spec in specs]
        more = "".join(f" {sentence}." for sentence in sentences if sentence)
        replaces = "A sweep with this name exists; launching replaces its specification."
        st.caption(verbatim(f"{replaces}{more}"))
    strings.show(key_of(specs), custom.take if st.session_state[KIND] == CUSTOM else None)
    st.button(
        f"Launch {_models(missing)}" if missing else "Launch",
        key="launch_button",
        type="primary",
        width="stretch",
        **control(disabled=stored == "as it is"),
        on_click=_launch,
        args=(specs, st.session_state.setdefault(TOKEN, uuid.uuid4().hex)),
    )


def _models(number: int) -> str:
    return f"{number:,} model{'' if number == 1 else 's'}"


def _about(seconds: float) -> str:
    text = format_duration(seconds)
    return text if text.startswith("under") else f"about {text}"


def _launch(specs: list[SweepSpec], token: str) -> None:
    launched = actions.launch(specs, token)
    # The next launch is another one, also of the same specification.
    st.session_state[TOKEN] = uuid.uuid4().hex
    if launched and st.session_state.get(KIND) == CUSTOM:
        # What was entered stays, to be changed and launched again as another sweep.
        st.session_state["launch_name"] = starting_point.free_name(specs[0].name)
    st.session_state[LAUNCHED] = launched


def _estimate(specs: list[SweepSpec]) -> Estimate:
    """By what is known without timing anything now."""
    if existing() is None:
        return sweeping.estimate(None, specs, _workers(), known_times)
    key = key_of(specs)
    return data.estimate(key, _workers(), timings().is_done(key), known_times)


def _workers() -> int:
    return os.cpu_count() or 1


def _describe_stored(specs: list[SweepSpec]) -> str | None:
    """Whether the database has these sweeps: as they are here, otherwise, or not (None)."""
    if (store := existing()) is None:
        return None
    named = reading.specifications(store)
    stored = [named.get(spec.name) for spec in specs]
    if all(text == spec.submitted for text, spec in zip(stored, specs, strict=True)):
        return "as it is"
    differ = [
        text is not None and json.loads(text) != json.loads(spec.submitted)
        for text, spec in zip(stored, specs, strict=True)
    ]
    return "otherwise" if any(differ) else None
