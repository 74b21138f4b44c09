"""What a model makes of a string, token by token: parts, attention or units, and every prefix."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd
import streamlit as st

from dashboard import layout, links
from dashboard.charts import token_states
from dashboard.charts.attention import LARGEST, ROW_WIDTH, attention_matrix, small_patterns
from dashboard.charts.parts import WIDTH
from dashboard.charts.readout import DRAWN, steps_of_one, with_letters, with_margin
from dashboard.choosing.opened import AnyModel, remembered, say
from dashboard.choosing.strings import Named
from dashboard.data import explaining
from dashboard.figures.string_states import Answer, StringStates, heads_of
from dashboard.placement import ground, stretch
from dashboard.text import verbatim
from dashboard.views import error_places
from seqcls.interpretability.states_by_strings import layer_word, prefix_logits, units_obstacle
from seqcls.interpretability.trained_model import Letters, TrainedModel
from sweeps.api.old_pages import presentation


@dataclass(frozen=True, eq=False)
class StringResults(StringStates):
    """A model of the page and a string; what is asked of it is kept between reruns."""

    opened: AnyModel

    def ask(self, question: Callable[[TrainedModel, Letters], Answer]) -> Answer:
        return remembered(question)(self.opened, self.letters)

    def prefix_logits(self) -> list[float]:
        """Every prefix's logit; none of a model that writes."""
        return self.prefixes["logit"].tolist() if self.has_prefixes else []

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
        _show([_results(first, letters)], [FigureStyle()])
        return
    other = second.model.letters(first.model.text(letters))
    models = [_results(first, letters), _results(second, other)]
    looks = _looks(models, [first.name, second.name])
    _show(models, looks)


def _results(named: Named, letters: Letters) -> StringResults:
    return StringResults(named.model, letters, named.opened)


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
                    _head(section)
                    section.draw(*shown[0])
        for section in parts[2:]:
            _head(section)
            section.draw(*shown[0])
    else:
        for section in parts:
            _head(section)
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


def _head(section: _Section) -> None:
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
        if units_obstacle(results.model.config):
            st.caption("Memories of several kinds have no states to set side by side.")
        elif not (results.has_attention or results.has_units):
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
    if not any(results.has_decoder and results.names_attention for results in models):
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
    stretch(steps_of_one(results.steps, look.steps), f"network steps {look.name}")


def _prefixes(results: StringResults, look: FigureStyle) -> None:
    stretch(results.draw_prefixes(look.prefixes), f"network prefixes {look.name}")
    prefixes = results.ask(prefix_logits)
    if not prefixes.answers:
        return
    wrong = [x != y for x, y in zip(prefixes.labels, prefixes.answers, strict=True)]
    rows = {
        "String": ["CLS", *prefixes.tokens[1:]],
        "Target": list(prefixes.labels),
        "Output": list(prefixes.answers),
    }
    first = wrong.index(True) if any(wrong) else len(wrong)
    st.html(error_places.alignment_table(rows, first, 0, ground().background))
    st.caption(error_places.FIRST_WRONG)


def _attention(results: StringResults, look: FigureStyle) -> None:
    if not results.has_attention:
        has_any = results.names_attention
        st.caption("Writing shows its attention." if has_any else "It has no attention.")
        return
    if results.is_long:
        return
    patterns = results.patterns
    places_of, tokens = heads_of(patterns), len(patterns.tokens)
    if not places_of:
        return
    options = list(places_of)
    if len(options) > 1:
        letters = with_letters(results.model, pd.DataFrame({"place": range(tokens)}))["letter"]
        width = ROW_WIDTH // 2 if look.name else ROW_WIDTH
        small = small_patterns(presentation.pattern_runs(patterns), letters.tolist(), width)
        most = patterns.weights.shape[1] * LARGEST + FURNITURE
        stretch(small, f"network heads {look.name}", most)
    chosen = one_of("Head to open", options, options[0], "head", look)
    drawn = attention_matrix(results.head(*places_of[chosen]), results.names, chosen)
    stretch(drawn, f"network attention {look.name}", tokens * WIDEST + FURNITURE)


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
    units = results.units
    left, right = st.columns(2)
    with left:
        state = one_of("State", ["state", *units.gates], "state", "state", look)
    layers = list(units.layers)
    with right:
        word = layer_word(results.model).capitalize()
        name = one_of(word, layers, layers[-1], "layer", look)
    layer = units.layers[name]
    title = f"{word} {name}: {verbatim(state.replace('_', ' '))}"
    reach = look.reaches.get(state)
    drawn = token_states.unit_states(results.layer(layer, state), results.names, title, reach)
    with layout.grid(f"units {look.name}"):
        stretch(drawn, f"network units {look.name}")
        stretch(results.draw_path(layer), f"network path {look.name}")


_SECTIONS = {
    "parts": _Section(
        "What each part adds to the logit",
        "The logit is a sum over the parts that write into the residual stream (direct logit "
        "attribution). Norms after a sum are held at their scale for this string.",
        _steps,
    ),
    "prefixes": _Section(
        "Running logit",
        "After each prefix, classified as a string of its own, or answered at its place. Where the "
        "sign changes, the prediction does.",
        _prefixes,
    ),
    "attention": _Section(
        "Attention",
        "A row is a token that attends, a column what it attends to; each row sums to 100%.",
        _attention,
    ),
    "units": _Section("Units", "Each unit after every token, and the state's path.", _units),
}
