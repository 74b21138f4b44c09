"""What a model makes of a string, token by token: parts, attention or units, and every prefix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from dashboard.charts import along
from dashboard.charts.heads import small_patterns
from dashboard.charts.parts import WIDTH, Part
from dashboard.charts.readout import steps_of_one
from dashboard.drawing import place_together
from dashboard.figures.along import DRAWN, steps_frame, token_names, with_letters, with_margin
from dashboard.network.asked import say
from dashboard.text import verbatim
from seqcls.errors import ConfigError, SeqclsError
from seqcls.interpretability.strings.asked import AskedModel, Letters
from sweeps import state_frames

NARROW = 320
"""Pixels along the tokens where two models share the page."""


SIDE_BY_SIDE = 4
"""Choices that have room beside each other, in a narrow window too."""


@dataclass(frozen=True)
class Look:
    """How a model's figures are drawn; beside another's, on the same axes."""

    name: str = ""
    """What it is called, where there are two."""
    steps: tuple[float, float] | None = None
    """Limits of the sum of parts, where both models' are the same."""
    prefixes: tuple[float, float] | None = None
    """Limits of the prefixes' logits, likewise."""
    reaches: Mapping[str, float] = field(default_factory=dict)
    """The greatest value of each recurrent state, likewise."""

    @property
    def room(self) -> int:
        """Pixels along the tokens."""
        return NARROW if self.name else WIDTH


def show(model: AskedModel, letters: Letters) -> None:
    """Draws the section for one string and one model."""
    _show([model], [Look()], letters)


def show_beside(models: Sequence[AskedModel], names: Sequence[str], letters: Letters) -> None:
    """The same string through two models, side by side: the same figures with the same limits.

    Args:
        models: of one alphabet.
        names: what they are called.
        letters: the string.
    """
    try:
        looks = _looks(models, names, letters)
    except SeqclsError as error:
        say(error)
        return
    for column, name in zip(st.columns(len(names)), names, strict=True):
        column.markdown(f"**{verbatim(name)}**")
    _show(models, looks, letters)


def _show(models: Sequence[AskedModel], looks: Sequence[Look], letters: Letters) -> None:
    try:
        if any(model.config.architecture == "transformer" for model in models):
            st.subheader("What each part adds to the logit")
            for column, model, look in zip(st.columns(len(models)), models, looks, strict=True):
                with column:
                    _steps(model, letters, look)
            st.caption(
                "Direct logit attribution: the logit is a sum over the parts that write into the "
                "residual stream. Norms after a sum are held at their scale for this string."
            )
        st.subheader("Along the string")
        if len(letters) > DRAWN:
            st.caption(f"Attention and units are drawn up to {DRAWN} tokens; this string has more.")
        for column, model, look in zip(st.columns(len(models)), models, looks, strict=True):
            with column:
                parts = _along(model, letters, look)
                place_together(parts, f"network along {look.name}")
        st.caption(
            "At the top, the logit after each prefix, each classified as a separate string: where "
            "it changes sign, the prediction changes. Hover over a token to see it in every figure."
        )
    except SeqclsError as error:
        say(error)


def _looks(models: Sequence[AskedModel], names: Sequence[str], letters: Letters) -> list[Look]:
    """On limits that hold all models' sums of parts, prefixes' logits and recurrent states."""
    from seqcls.interpretability.strings.attribution import logit_steps
    from seqcls.interpretability.strings.states import prefix_logits, recurrent_units

    sums, reaches = [0.0], dict[str, float]()
    for model in models:
        if model.config.architecture == "transformer":
            sums += [step.logit for step in logit_steps(model, letters)]
            continue
        try:
            frame = state_frames.units_frame(recurrent_units(model, letters))
        except ConfigError:
            continue
        for state, values in frame.groupby("state")["value"]:
            reaches[str(state)] = max(reaches.get(str(state), 0.0), float(values.abs().max()))
    logits = [x for model in models for x in prefix_logits(model, letters).logits.tolist()]
    limits = with_margin(sums), with_margin([x for x in [0.0, *logits] if x == x])
    return [Look(name, *limits, reaches) for name in names]


def _steps(model: AskedModel, letters: Letters, look: Look) -> None:
    from seqcls.interpretability.strings.attribution import logit_steps

    if model.config.architecture != "transformer":
        st.caption("It has no residual stream.")
        return
    frame = steps_frame(state_frames.steps_frame(logit_steps(model, letters)), model.text(letters))
    place_together([steps_of_one(frame, look.steps)], f"network steps {look.name}")


def _along(model: AskedModel, letters: Letters, look: Look) -> list[Part]:
    from seqcls.interpretability.strings.states import prefix_logits

    names = token_names(model, letters)
    prefixes = state_frames.prefixes_frame(prefix_logits(model, letters))
    text = [model.text(letters[:end]) or "the empty string" for end in prefixes["length"]]
    frame = prefixes.assign(letter=prefixes["length"], prefix=text, label=prefixes["label"] * 1)
    parts = [along.prefix_logits(frame, names, look.prefixes, look.room)]
    if len(letters) > DRAWN:
        return parts
    try:
        return parts + _attention(model, letters, names, look)
    except ConfigError:
        return parts + _units(model, letters, names, look)


def _attention(model: AskedModel, letters: Letters, names: list[str], look: Look) -> list[Part]:
    from seqcls.interpretability.strings.states import attention_patterns

    found = attention_patterns(model, letters)
    blocks, heads, tokens = found.weights.shape[:3]
    if not heads:
        return []
    options = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    chosen = _one_of("Head to open", options, options[0], "head", look)
    frame = state_frames.head_frame(found, *divmod(options.index(chosen), heads))
    frame = frame.assign(
        letter=with_letters(model, frame["key"]), query=with_letters(model, frame["query"])
    )
    places = with_letters(model, pd.Series(range(tokens))).tolist()
    return [
        small_patterns(state_frames.pattern_runs(found), places, look.room),
        along.attention_matrix(frame, names, chosen, look.room),
    ]


def _one_of(label: str, options: Sequence[str], first: str, name: str, look: Look) -> str:
    """A choice that is in the link; of the second of two models, it is not."""
    if look.name:
        own = f"{name} {look.name}"
        return str(st.selectbox(label, options, index=options.index(first), key=own))
    if len(options) > SIDE_BY_SIDE:
        chosen = st.selectbox(
            label, options, index=options.index(first), key=name, bind="query-params"
        )
        return str(chosen)
    chosen = st.segmented_control(
        label, options, default=first, required=True, key=name, bind="query-params"
    )
    return str(chosen)


def _units(model: AskedModel, letters: Letters, names: list[str], look: Look) -> list[Part]:
    from seqcls.interpretability.strings.states import principal_path, recurrent_units

    try:
        found = recurrent_units(model, letters)
    except ConfigError as error:
        say(error)
        return []
    frame = state_frames.units_frame(found)
    left, right = st.columns(2)
    states = list(dict.fromkeys(frame["state"]))
    with left:
        state = _one_of("State", states, states[0], "state", look)
    layers = sorted(set(frame["layer"]))
    with right:
        layer = int(_one_of("Layer", list(map(str, layers)), str(layers[-1]), "layer", look))
    own = frame[(frame["state"] == state) & (frame["layer"] == layer)]
    own = own.assign(letter=with_letters(model, own["place"]))
    path = principal_path(found.states[layer])
    points = state_frames.path_frame(path, found.tokens)
    points = points.assign(letter=with_letters(model, points["place"]))
    reach = look.reaches.get(state)
    title = f"layer {layer}: {verbatim(str(state).replace('_', ' '))}"
    return [
        along.unit_states(own, names, title, reach, look.room),
        along.state_path(points, path.shares, look.room),
    ]
