"""Launching a sweep: one that is shipped, or one of your own."""

import json
import os
import uuid
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin

import streamlit as st
from pydantic import TypeAdapter, ValidationError

from dashboard import data, steering
from dashboard.durations import spoken
from seqcls.config import RunConfig, default_fields
from seqcls.errors import SeqclsError, SpecError, StoreMissingError
from seqcls.sampling import SAMPLERS
from seqcls.tasks import TASKS
from sweeps.estimate import Estimate, estimate
from sweeps.spec import CHECKPOINTS, SweepSpec, load_specs, parse_spec, shipped_names
from sweeps.store import overview
from sweeps.store.engine import open_reader

USUAL = ("train_sampler", "hidden_size", "num_attention_heads")
"""The axes that are offered at once; the others can be added."""

SIZES = [1, 2, 4, 8, 16, 32]
REGISTERED: dict[str, list[str]] = {"train_sampler": sorted(SAMPLERS), "task": sorted(TASKS)}
TOKEN = "launch token"
PANEL = "launch"


def show() -> None:
    """Draws the panel; what it would launch is worked out only while it is open."""
    panel = st.expander("Launch a sweep", key=PANEL, on_change="rerun", icon=":material/rocket:")
    if not panel.open:
        return
    with panel:
        choices: dict[str, Callable[[], list[SweepSpec]]] = {
            "Preset": _preset,
            "Your own": _own,
        }
        kind = st.segmented_control(
            "What to train",
            list(choices),
            default="Preset",
            required=True,
            key="launch_kind",
            label_visibility="collapsed",
        )
        try:
            _offer(choices[kind]())
        except SeqclsError as error:
            st.error("This cannot be launched.")
            st.code(str(error), language=None, wrap_lines=True)


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


def _own() -> list[SweepSpec]:
    name = st.text_input("Name", "my_sweep", key="launch_name")
    seeds = st.text_input(
        "Model seeds", "0..7", key="launch_seeds", help="A range such as 0..31, or 1, 5, 7."
    )
    axes = {field: _axis(field) for field in USUAL}
    others = [field for field in RunConfig.model_fields if field not in USUAL]
    more = st.multiselect("Other settings", others, key="launch_more", placeholder="Add one")
    axes |= {field: _axis(field) for field in more}
    every_epoch = st.checkbox(
        "Keep the weights of every epoch",
        key="launch_every_epoch",
        help="Else those of the best epoch. The page of one model can then show how it learned.",
    )
    fixed = {field: values[0] for field, values in axes.items() if len(values) == 1}
    varied = {field: values for field, values in axes.items() if len(values) > 1}
    spec = {
        "name": name,
        "model_seeds": _seeds(seeds),
        "checkpoints": CHECKPOINTS[every_epoch],
        "fixed": fixed,
        "axes": varied,
    }
    return [parse_spec(spec)]


def _axis(field: str) -> list[Any]:
    default = default_fields()[field]
    options = _options(field)
    open_ended = field not in REGISTERED and not _literals(field) and not isinstance(default, bool)
    chosen = st.multiselect(
        field,
        options,
        key=f"launch {field}",
        placeholder=f"{default}",
        accept_new_options=open_ended,
        help="Choose values or type your own." if open_ended else "Several make an axis.",
    )
    return [_value(field, value) for value in chosen]


def _options(field: str) -> list[Any]:
    default = default_fields()[field]
    if field in REGISTERED:
        return REGISTERED[field]
    if literals := _literals(field):
        return literals
    if isinstance(default, bool):
        return [False, True]
    return SIZES if field.endswith(("_size", "_heads")) else [default]


def _literals(field: str) -> list[Any]:
    annotation = RunConfig.model_fields[field].annotation
    return list(get_args(annotation)) if get_origin(annotation) is Literal else []


def _value(field: str, value: Any) -> Any:
    """A value that was typed, as what the field holds."""
    if not isinstance(value, str):
        return value
    annotation: Any = RunConfig.model_fields[field].annotation
    try:
        return TypeAdapter(annotation).validate_strings(value)
    except ValidationError as error:
        expected = error.errors()[0]["msg"].removeprefix("Input should be ")
        raise SpecError(f"{field}={value!r}: expected {expected}") from None


def _seeds(text: str) -> str | list[int]:
    parts = [part.strip() for part in text.split(",")]
    if all(part.isdecimal() and len(part) < 20 for part in parts):
        return [int(part) for part in parts]
    return text.strip()


def _offer(specs: list[SweepSpec]) -> None:
    """Says what launching would mean, and the button."""
    expected = _estimate(specs)
    missing = expected.runs - expected.there
    if missing:
        time = "" if expected.seconds is None else f", in about {spoken(expected.seconds)}"
        st.markdown(
            f"**{expected.runs:,} models**: {expected.there:,} are there, {missing:,} are to be "
            f"trained{time}.",
            help=expected.basis,
        )
    else:
        st.markdown(f"**{expected.runs:,} models**, and all of them are there.")
    stored = _stored(specs)
    if stored == "as it is" and missing:
        st.caption("It is launched already: see under Running, or on the page Sweeps.")
    elif stored == "otherwise":
        st.caption("A sweep of this name is there; launching makes it what you ask for here.")
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
    steering.launch(specs, token)
    # The next launch is another one, also of the same specification.
    st.session_state[TOKEN] = uuid.uuid4().hex
    # Closed, so that what was launched is seen going on.
    st.session_state[PANEL] = False


def _estimate(specs: list[SweepSpec]) -> Estimate:
    workers = os.cpu_count() or 1
    try:
        return data.estimated(tuple(spec.submitted for spec in specs), workers)
    except StoreMissingError:
        return estimate(None, specs, workers)


def _stored(specs: list[SweepSpec]) -> str | None:
    """Whether the database has these sweeps: as they are here, otherwise, or not (None)."""
    try:
        named = overview.specifications(open_reader())
    except StoreMissingError:
        return None
    own = [named.get(spec.name) for spec in specs]
    if all(text == spec.submitted for text, spec in zip(own, specs, strict=True)):
        return "as it is"
    differ = [
        text is not None and json.loads(text) != json.loads(spec.submitted)
        for text, spec in zip(own, specs, strict=True)
    ]
    return "otherwise" if any(differ) else None
