"""What a model makes of a string, token by token: parts, attention or units, and every prefix."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from dashboard.charts.model import token_states
from dashboard.charts.model.heads import small_patterns
from dashboard.charts.model.parts import WIDTH, Part
from dashboard.charts.model.readout import steps_of_one
from dashboard.drawing import place_together
from dashboard.figures.string_axes import DRAWN, with_letters, with_margin
from dashboard.model.choosing.epochs import Named
from dashboard.model.opened import say
from dashboard.model.string_results import StringResults
from dashboard.text import verbatim
from seqcls.errors import SeqclsError
from seqcls.interpretability.model.trained_model import Letters
from seqcls.interpretability.states.by_strings import principal_path
from sweeps.analysis import state_frames

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
    """Limits that the sum of parts reaches, where both models' are the same."""
    prefixes: tuple[float, float] | None = None
    """Limits that the prefixes' logits reach, likewise."""
    reaches: Mapping[str, float] = field(default_factory=dict)
    """The greatest value of each recurrent state, likewise."""

    @property
    def width(self) -> int:
        """Pixels along the tokens."""
        return NARROW if self.name else WIDTH


def show(first: Named, letters: Letters, second: Named | None) -> None:
    """Draws the section for one string and one model, or beside a second one."""
    try:
        if second is None:
            _show([StringResults(first.opened, letters)], [Look()])
            return
        other = second.model.letters(first.model.text(letters))
        found = [StringResults(first.opened, letters), StringResults(second.opened, other)]
        looks = _looks(found, [first.name, second.name])
    except SeqclsError as error:
        say(error)
        return
    side_by_side([first, second])
    _show(found, looks)


def side_by_side(models: Sequence[Named]) -> None:
    """What the columns of two models are called."""
    for column, named in zip(st.columns(len(models)), models, strict=True):
        column.markdown(f"**{verbatim(named.name)}**")


def _show(models: Sequence[StringResults], looks: Sequence[Look]) -> None:
    try:
        if any(found.has_residual_stream for found in models):
            st.subheader("What each part adds to the logit")
            for column, found, look in zip(st.columns(len(models)), models, looks, strict=True):
                with column:
                    _steps(found, look)
            st.caption(
                "Direct logit attribution: the logit is a sum over the parts that write into the "
                "residual stream. Norms after a sum are held at their scale for this string."
            )
        writes = any(found.model.writes for found in models)
        along = "input and output" if writes else "the string"
        if any(found.has_decoder for found in models):
            along = "the output"
        st.subheader(f"Along {along}")
        if any(found.is_long for found in models):
            st.caption(f"Attention and units are drawn up to {DRAWN} tokens; this string has more.")
        figures = 0
        for column, found, look in zip(st.columns(len(models)), models, looks, strict=True):
            with column:
                parts = _along(found, look)
                if parts:
                    place_together(parts, f"network along {look.name}")
                figures += len(parts)
        if writes:
            st.caption(f"{_read_by(models)} {_hint(figures, len(models))}")
            return
        number, means = "logit", "where it changes sign, the prediction changes"
        if any(found.model.problem.no_language for found in models):
            number, means = "margin of what is right", "below 0, another answer is preferred"
        st.caption(
            f"At the top, the {number} after each prefix, each classified as a separate string: "
            f"{means}. {_hint(figures, len(models))}"
        )
    except SeqclsError as error:
        say(error)


def _read_by(models: Sequence[StringResults]) -> str:
    """What is along the axis of models that write."""
    if not any(found.has_decoder for found in models):
        return "What the model reads: the input, SEP, and the output that it writes."
    where = "over the picture" if models[0].model.problem.network.picture else "to the input"
    return (
        "What the decoder reads: SEP, and the output that it writes; its states after each token. "
        f"Writing shows its attention {where}."
    )


def _hint(figures: int, models: int) -> str:
    """What pointing does, where there is more than one figure that it marks."""
    if figures < 2:
        return ""
    every = "every figure of both models" if models > 1 else "every figure"
    return f"Hover over a token to mark it in {every}."


def _looks(models: Sequence[StringResults], names: Sequence[str]) -> list[Look]:
    """On limits that hold all models' sums of parts, prefixes' logits and recurrent states."""
    reaches = dict[str, float]()
    for found in models:
        for state, reach in found.reaches().items():
            reaches[state] = max(reaches.get(state, 0.0), reach)
    sums = [0.0, *(end for found in models for end in found.logit_ends())]
    logits = [x for found in models for x in found.prefix_logits()]
    limits = with_margin(sums), with_margin([x for x in [0.0, *logits] if x == x])
    return [Look(name, *limits, reaches) for name in names]


def _steps(found: StringResults, look: Look) -> None:
    if not found.has_residual_stream:
        st.caption("It has no residual stream.")
        return
    place_together([steps_of_one(found.steps, look.steps)], f"network steps {look.name}")


def _along(found: StringResults, look: Look) -> list[Part]:
    parts = [] if found.model.writes else [_prefixes(found, look)]
    if found.is_long:
        return parts
    if found.has_attention:
        return parts + _attention(found, look)
    if found.has_units:
        return parts + _units(found, look)
    st.caption(f"{verbatim(found.model.config.architecture)} names no attention and no units.")
    return parts


def _prefixes(found: StringResults, look: Look) -> Part:
    model, letters, prefixes = found.model, found.letters, found.prefixes
    text = [model.text(letters[:end]) or "the empty string" for end in prefixes["length"]]
    frame = prefixes.assign(letter=prefixes["length"], prefix=text, label=prefixes["label"])
    return token_states.prefix_logits(frame, found.names, look.prefixes, look.width)


def _attention(found: StringResults, look: Look) -> list[Part]:
    model, patterns = found.model, found.patterns
    blocks, heads, tokens = patterns.weights.shape[:3]
    if not heads:
        return []
    options = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    chosen = one_of("Head to open", options, options[0], "head", look)
    frame = state_frames.head_frame(patterns, *divmod(options.index(chosen), heads))
    frame = frame.assign(
        letter=with_letters(model, frame["key"]), query=with_letters(model, frame["query"])
    )
    places = with_letters(model, pd.Series(range(tokens))).tolist()
    return [
        small_patterns(state_frames.pattern_runs(patterns), places, look.width),
        token_states.attention_matrix(frame, found.names, chosen, look.width),
    ]


def one_of(label: str, options: Sequence[str], first: str, name: str, look: Look) -> str:
    """A choice that is in the link; of the second of two models, it is not."""
    if look.name:
        key = f"{name} {look.name}"
        return str(st.selectbox(label, options, index=options.index(first), key=key))
    if len(options) > SIDE_BY_SIDE:
        chosen = st.selectbox(
            label, options, index=options.index(first), key=name, bind="query-params"
        )
        return str(chosen)
    chosen = st.segmented_control(
        label, options, default=first, required=True, key=name, bind="query-params"
    )
    return str(chosen)


def _units(found: StringResults, look: Look) -> list[Part]:
    model, units = found.model, found.units
    left, right = st.columns(2)
    with left:
        state = one_of("State", ["state", *units.gates], "state", "state", look)
    layers = [str(layer) for layer in range(len(units.states))]
    with right:
        block = "Block of the decoder" if found.has_decoder else "Layer"
        layer = int(one_of(block, layers, layers[-1], "layer", look))
    frame = state_frames.layer_frame(units, state, layer)
    frame = frame.assign(letter=with_letters(model, frame["place"]))
    path = principal_path(units.states[layer])
    points = state_frames.path_frame(path, units.tokens)
    points = points.assign(letter=with_letters(model, points["place"]))
    title = f"{block.lower()} {layer}: {verbatim(state.replace('_', ' '))}"
    return [
        token_states.unit_states(frame, found.names, title, look.reaches.get(state), look.width),
        token_states.state_path(points, path.shares, look.width),
    ]
