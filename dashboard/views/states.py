"""What a model makes of a string, token by token: parts, attention or units, and every prefix."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd
import streamlit as st

from dashboard import layout, links
from dashboard.charts import token_states
from dashboard.charts.attention import LARGEST, ROW_WIDTH, attention_matrix, small_patterns
from dashboard.charts.parts import WIDTH
from dashboard.charts.readout import (
    DRAWN,
    prefixes_frame,
    steps_frame,
    steps_of_one,
    token_names,
    with_letters,
    with_margin,
)
from dashboard.choosing.opened import AnyModel, remembered, say
from dashboard.choosing.strings import Named
from dashboard.data import explaining
from dashboard.placement import stretch_part
from dashboard.text import verbatim
from seqcls.interpretability.attribution import has_residual_stream, logit_steps
from seqcls.interpretability.states_by_strings import (
    Patterns,
    Units,
    attention_patterns,
    has_attention,
    has_decoder,
    has_units,
    layer_word,
    prefix_logits,
    principal_path,
    recurrent_units,
)
from seqcls.interpretability.trained_model import Letters, TrainedModel
from sweeps.api import presentation

steps_of = remembered(logit_steps)
prefixes_of = remembered(prefix_logits)
patterns_of = remembered(attention_patterns)
units_of = remembered(recurrent_units)


@dataclass(frozen=True, eq=False)
class StringResults:
    """A model and a string."""

    opened: AnyModel
    letters: Letters

    @property
    def model(self) -> TrainedModel:
        return self.opened.model

    @cached_property
    def has_residual_stream(self) -> bool:
        return has_residual_stream(self.model)

    @cached_property
    def has_attention(self) -> bool:
        return has_attention(self.model) and not self.has_decoder

    @cached_property
    def has_decoder(self) -> bool:
        return has_decoder(self.model)

    @cached_property
    def has_units(self) -> bool:
        return has_units(self.model)

    @property
    def has_prefixes(self) -> bool:
        """Whether prefixes of the string have answers of their own."""
        return self.model.problem.lacks("prefixes") is None

    @cached_property
    def names(self) -> list[str]:
        """The tokens along the axis; where a decoder reads the output alone, its own."""
        names = token_names(self.model, self.letters)
        return names[len(self.letters) + 1 :] if self.has_decoder else names

    @property
    def is_long(self) -> bool:
        """Whether there are too many tokens to draw attention or units."""
        tokens = self.letters if self.has_prefixes else self.names
        return len(tokens) > DRAWN

    @cached_property
    def steps(self) -> pd.DataFrame:
        """What each part of a Transformer adds to the logit, as a waterfall draws it."""
        return steps_frame(steps_of(self.opened, self.letters), self.model.display(self.letters))

    @cached_property
    def prefixes(self) -> pd.DataFrame:
        """The logit after every prefix: the frame of `prefixes_frame`."""
        prefixes = prefixes_of(self.opened, self.letters)
        return prefixes_frame(self.model, self.letters, prefixes)

    @cached_property
    def patterns(self) -> Patterns:
        """What every token attends to.

        Raises:
            ConfigError: the model is no Transformer.
        """
        return patterns_of(self.opened, self.letters)

    @cached_property
    def units(self) -> Units:
        """The states of a recurrent network.

        Raises:
            ConfigError: the model is none.
        """
        return units_of(self.opened, self.letters)

    def prefix_logits(self) -> list[float]:
        """Every prefix's logit; none of a model that writes."""
        return self.prefixes["logit"].tolist() if self.has_prefixes else []

    def logit_ends(self) -> Iterator[float]:
        """Every sum of parts of the logit; none without a residual stream."""
        if self.has_residual_stream:
            yield from self.steps[["start", "end"]].to_numpy().ravel().tolist()

    def reaches(self) -> dict[str, float]:
        """The greatest value of each recurrent state; of what is not recurrent none."""
        if not self.has_units:
            return {}
        values = {"state": self.units.states, **self.units.gates}
        return {name: float(abs(states).max()) for name, states in values.items() if states.size}


NARROW = 320
"""Pixels along the tokens where two models share the page."""

WIDEST = 60
"""Pixels of a cell of attention at most: a map of few tokens is not as wide as the page."""

FURNITURE = 170
"""Pixels beside a map: its axis and its legend."""


SIDE_BY_SIDE = 4
"""Choices that have room beside each other, in a narrow window too."""


@dataclass(frozen=True)
class FigureStyle:
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


@explaining(say)
def show(first: Named, letters: Letters, second: Named | None) -> None:
    """Draws the section for one string and one model, or beside a second one."""
    if second is None:
        _show([StringResults(first.opened, letters)], [FigureStyle()])
        return
    other = second.model.letters(first.model.text(letters))
    models = [StringResults(first.opened, letters), StringResults(second.opened, other)]
    looks = _looks(models, [first.name, second.name])
    _show(models, looks)


def side_by_side(models: Sequence[Named]) -> None:
    """What the columns of two models are called."""
    for column, named in zip(st.columns(len(models)), models, strict=True):
        column.markdown(f"**{verbatim(named.name)}**")


def _show(models: Sequence[StringResults], looks: Sequence[FigureStyle]) -> None:
    shown = list(zip(models, looks, strict=True))
    named = list(_sections(models))
    parts = [_SECTIONS[name] for name in named]
    if len(shown) == 1:
        # What each part adds stands beside the running logit.
        with layout.grid("states"):
            for section in parts[:2]:
                with st.container():
                    _headed(section)
                    section.draw(*shown[0])
        for section in parts[2:]:
            _headed(section)
            section.draw(*shown[0])
    else:
        for section in parts:
            _headed(section)
            with layout.grid(section.title):
                for results, look in shown:
                    with st.container():
                        st.markdown(f"**{verbatim(look.name)}**")
                        section.draw(results, look)
    of_tokens = [name for name in named if name != "parts"]
    _say_how_to_read(models, len(of_tokens) * len(models) > 1)


@dataclass(frozen=True)
class _Section:
    title: str
    note: str
    draw: Callable[[StringResults, FigureStyle], None]


def _sections(models: Sequence[StringResults]) -> Iterator[str]:
    """Those that any of the models has."""
    if any(results.has_residual_stream for results in models):
        yield "parts"
    if any(results.has_prefixes for results in models):
        yield "prefixes"
    drawn = [results for results in models if not results.is_long]
    if any(results.has_attention for results in drawn):
        yield "attention"
    if any(results.has_units for results in drawn):
        yield "units"


def _headed(section: _Section) -> None:
    st.subheader(section.title)
    st.caption(section.note)


def _say_how_to_read(models: Sequence[StringResults], several: bool) -> None:
    """What is read, what was left out, and what pointing does."""
    if not all(results.has_prefixes for results in models):
        st.caption(_read_by(models))
    elif any(results.model.problem.lacks("labels") for results in models):
        st.caption("The margin of the correct answer: below 0, the model prefers another.")
    if any(results.is_long for results in models):
        st.caption(f"Attention and units are drawn up to {DRAWN} tokens; this string has more.")
    for results in models:
        if not (results.has_attention or results.has_units):
            name = verbatim(results.model.config.architecture)
            st.caption(f"{name} names no attention and no units.")
    if several:
        every = "every figure of both models" if len(models) > 1 else "every figure"
        st.caption(f"Hover over a token to mark it in {every}.")


def _read_by(models: Sequence[StringResults]) -> str:
    """What is along the axis of models that write."""
    if not any(results.has_decoder for results in models):
        return "The model reads the input, SEP, and the output that it writes."
    said = (
        "The decoder reads SEP and the output that it writes; its states are those after each "
        "token."
    )
    if not any(results.has_decoder and has_attention(results.model) for results in models):
        return said
    attended = "over the picture" if models[0].model.problem.network.picture else "to the input"
    return f"{said} Writing shows its attention {attended}."


def _looks(models: Sequence[StringResults], names: Sequence[str]) -> list[FigureStyle]:
    """On limits that hold all models' sums of parts, prefixes' logits and recurrent states."""
    reaches = dict[str, float]()
    for results in models:
        for state, reach in results.reaches().items():
            reaches[state] = max(reaches.get(state, 0.0), reach)
    sums = [0.0, *(end for results in models for end in results.logit_ends())]
    logits = [x for results in models for x in results.prefix_logits()]
    limits = with_margin(sums), with_margin([x for x in [0.0, *logits] if x == x])
    return [FigureStyle(name, *limits, reaches) for name in names]


def _steps(results: StringResults, look: FigureStyle) -> None:
    if not results.has_residual_stream:
        st.caption("It has no residual stream.")
        return
    stretch_part(steps_of_one(results.steps, look.steps), f"network steps {look.name}")


def _prefixes(results: StringResults, look: FigureStyle) -> None:
    drawn = token_states.prefix_logits(results.prefixes, results.names, look.prefixes)
    stretch_part(drawn, f"network prefixes {look.name}")


def _attention(results: StringResults, look: FigureStyle) -> None:
    if not results.has_attention:
        st.caption(
            "Writing shows its attention."
            if has_attention(results.model)
            else "It has no attention."
        )
        return
    if results.is_long:
        return
    model, patterns = results.model, results.patterns
    blocks, heads, tokens = patterns.weights.shape[:3]
    if not heads:
        return
    places = with_letters(model, pd.DataFrame({"place": range(tokens)}))["letter"].tolist()
    options = [f"block {block}, head {head}" for block in range(blocks) for head in range(heads)]
    if len(options) > 1:
        width = ROW_WIDTH // 2 if look.name else ROW_WIDTH
        small = small_patterns(presentation.pattern_runs(patterns), places, width)
        stretch_part(small, f"network heads {look.name}", heads * LARGEST + FURNITURE)
    chosen = one_of("Head to open", options, options[0], "head", look)
    frame = presentation.head_frame(patterns, *divmod(options.index(chosen), heads))
    frame = with_letters(model, frame)
    drawn = attention_matrix(frame, results.names, chosen)
    stretch_part(drawn, f"network attention {look.name}", tokens * WIDEST + FURNITURE)


def one_of(label: str, options: Sequence[str], first: str, name: str, look: FigureStyle) -> str:
    """A choice that is in the link; of the second of two models, it is not."""
    if look.name:
        key = f"{name} {look.name}"
        return str(st.selectbox(label, options, index=options.index(first), key=key))
    if len(options) > SIDE_BY_SIDE:
        chosen = st.selectbox(
            label, options, index=options.index(first), key=name, bind="query-params"
        )
        return str(chosen)
    return links.choice(label, options, name, first)


def _units(results: StringResults, look: FigureStyle) -> None:
    if not results.has_units:
        st.caption("It has no recurrent units.")
        return
    if results.is_long:
        return
    model, units = results.model, results.units
    left, right = st.columns(2)
    with left:
        state = one_of("State", ["state", *units.gates], "state", "state", look)
    layers = [str(layer) for layer in range(len(units.states))]
    with right:
        word = layer_word(model).capitalize()
        layer = int(one_of(word, layers, layers[-1], "layer", look))
    frame = with_letters(model, presentation.layer_frame(units, state, layer))
    path = principal_path(units.states[layer])
    points = with_letters(model, presentation.path_frame(path, units.tokens))
    title = f"{word} {layer}: {verbatim(state.replace('_', ' '))}"
    drawn = token_states.unit_states(frame, results.names, title, look.reaches.get(state))
    with layout.grid(f"units {look.name}"):
        stretch_part(drawn, f"network units {look.name}")
        stretch_part(token_states.state_path(points, path.shares), f"network path {look.name}")


_SECTIONS = {
    "parts": _Section(
        "What each part adds to the logit",
        "The logit is a sum over the parts that write into the residual stream (direct logit "
        "attribution). Norms after a sum are held at their scale for this string.",
        _steps,
    ),
    "prefixes": _Section(
        "Running logit",
        "After each prefix, classified as a string of its own. Where the sign changes, the "
        "prediction does.",
        _prefixes,
    ),
    "attention": _Section(
        "Attention",
        "A row is a token that attends, a column what it attends to; each row sums to 100%.",
        _attention,
    ),
    "units": _Section("Units", "Each unit after every token, and the state's path.", _units),
}
