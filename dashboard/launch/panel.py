"""Launching a sweep: one that is shipped, or one of your own."""

import json
import os
import uuid
from collections.abc import Callable

import streamlit as st

from dashboard import data
from dashboard.launch import custom, start, variants
from dashboard.sweeps_page import sweep_actions
from seqcls.errors import SeqclsError
from sweeps.durations import spoken
from sweeps.grid.spec import SweepSpec, load_specs, shipped_names
from sweeps.questions import sweeping
from sweeps.store.opening import existing
from sweeps.store.reading import sweep_queries
from sweeps.work.estimate import Estimate

TOKEN = "launch token"
PANEL = "launch"
KIND = "launch_kind"
CUSTOM = "Your own"
DRAWN_ANEW = (KIND, "launch_preset", "launch_button", "launch_add_variant")
"""What has no state, or is there whatever is trained."""


def show() -> None:
    """Draws the panel; what it would launch is worked out only while it is open."""
    panel = st.expander("Launch a sweep", key=PANEL, on_change="rerun", icon=":material/rocket:")
    if not panel.open:
        _keep()
        return
    with panel:
        choices: dict[str, Callable[[], list[SweepSpec]]] = {
            "Preset": _preset,
            CUSTOM: custom.show,
        }
        kind = st.segmented_control(
            "What to train",
            list(choices),
            default="Preset",
            required=True,
            key=KIND,
            label_visibility="collapsed",
        )
        if kind != CUSTOM:
            _keep()
        try:
            with st.spinner("Reading the settings", show_time=True):
                specs = choices[kind]()
                if specs:
                    _offer(specs)
            if not specs:
                st.caption("Fix the settings above to launch.")
        except SeqclsError as error:
            st.error("This cannot be launched.")
            st.code(str(error), language=None, wrap_lines=True)


def clear() -> None:
    """Empties the form of a sweep of one's own."""
    for key in map(str, st.session_state):
        if key.startswith(("launch ", "launch_more ")) or key in (
            "launch_seeds",
            variants.KEY,
            variants.ADDED,
        ):
            del st.session_state[key]


def _keep() -> None:
    """Keeps what was entered while it is not shown; Streamlit would forget it."""
    for key in map(str, st.session_state):
        if key.startswith(("launch ", "launch_")) and key not in DRAWN_ANEW:
            st.session_state[key] = st.session_state[key]


def _preset() -> list[SweepSpec]:
    name = st.selectbox(
        "Preset",
        shipped_names(),
        key="launch_preset",
        help="The specifications that come with seqcls; `report` is all of the report's.",
    )
    specs = load_specs(name)
    st.caption(specs[0].description if len(specs) == 1 else f"{len(specs)} sweeps")
    return specs


def _offer(specs: list[SweepSpec]) -> None:
    """Says what launching would mean, and the button."""
    expected = _estimate(specs)
    missing = expected.runs - expected.there
    if missing:
        time = "" if expected.seconds is None else f", in about {spoken(expected.seconds)}"
        st.markdown(
            f"**{expected.runs:,} models**: {expected.there:,} trained already, {missing:,} to "
            f"train{time}.",
            help=expected.basis,
        )
    else:
        st.markdown(f"**{expected.runs:,} models**, all trained already.")
    if missing and (short := sweeping.memory_warning(specs, _workers())):
        st.warning(short)
    stored = _stored(specs)
    if stored == "as it is" and missing:
        st.caption("Already launched: see Running or the Sweeps page.")
    elif stored == "otherwise":
        st.caption("A sweep with this name exists; launching replaces its specification.")
    st.button(
        f"Launch {missing:,} models" if missing else "Launch",
        key="launch_button",
        type="primary",
        width="stretch",
        disabled=stored == "as it is",
        on_click=_launch,
        args=(specs, st.session_state.setdefault(TOKEN, uuid.uuid4().hex)),
    )


def _launch(specs: list[SweepSpec], token: str) -> None:
    sweep_actions.launch(specs, token)
    # The next launch is another one, also of the same specification.
    st.session_state[TOKEN] = uuid.uuid4().hex
    if st.session_state.get(KIND) == CUSTOM:
        # What was entered stays, to be changed and launched again as another sweep.
        st.session_state["launch_name"] = start.free_name(specs[0].name)
    # Closed, so that what was launched is seen going on.
    st.session_state[PANEL] = False


def _estimate(specs: list[SweepSpec]) -> Estimate:
    if existing() is None:
        return sweeping.estimate(None, specs, _workers())
    return data.estimated(tuple(spec.submitted for spec in specs), _workers())


def _workers() -> int:
    return os.cpu_count() or 1


def _stored(specs: list[SweepSpec]) -> str | None:
    """Whether the database has these sweeps: as they are here, otherwise, or not (None)."""
    if (store := existing()) is None:
        return None
    named = sweep_queries.specifications(store)
    stored = [named.get(spec.name) for spec in specs]
    if all(text == spec.submitted for text, spec in zip(stored, specs, strict=True)):
        return "as it is"
    differ = [
        text is not None and json.loads(text) != json.loads(spec.submitted)
        for text, spec in zip(stored, specs, strict=True)
    ]
    return "otherwise" if any(differ) else None
