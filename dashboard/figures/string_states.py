"""What a model makes of a string, token by token: its frames and charts, for pages and figures.

Whoever draws them chooses the head, the layer and the limits; figures draw all of them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import TypeVar

import pandas as pd

from dashboard.charts import token_states
from dashboard.charts.attention import attention_matrix, output_attention
from dashboard.charts.parts import WIDTH, Limits, TokenDrawing
from dashboard.charts.readout import (
    DRAWN,
    prefixes_frame,
    steps_frame,
    token_names,
    waterfall,
    with_letters,
    with_margin,
)
from dashboard.charts.scales import Drawing
from dashboard.figures.figure import Figure
from seqcls.errors import InvalidStringError
from seqcls.interpretability.attribution import has_residual_stream, logit_steps
from seqcls.interpretability.states_by_strings import (
    Kind,
    Patterns,
    Units,
    attention_kinds,
    attention_patterns,
    has_attention,
    has_decoder,
    has_units,
    layer_word,
    prefix_logits,
    principal_path,
    recurrent_units,
)
from seqcls.interpretability.states_of_outputs import output_tokens
from seqcls.interpretability.trained_model import Letters, TrainedModel
from sweeps.api.old_pages import presentation

Answer = TypeVar("Answer")

LONGEST_READ = 2 * DRAWN + 2
"""Tokens that are read of a string and its output at most, special ones among them."""


@dataclass(frozen=True, eq=False)
class StringStates:
    """A model and a string."""

    model: TrainedModel
    letters: Letters

    def ask(self, question: Callable[[TrainedModel, Letters], Answer]) -> Answer:
        """Asks the model about the string."""
        return question(self.model, self.letters)

    @cached_property
    def has_residual_stream(self) -> bool:
        return has_residual_stream(self.model)

    @cached_property
    def names_attention(self) -> bool:
        """Whether the model has attention of any kind, that of a decoder too."""
        return has_attention(self.model)

    @property
    def has_attention(self) -> bool:
        """Whether the tokens that are read attend to each other."""
        return self.names_attention and not self.has_decoder

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
    def read(self) -> list[str]:
        """The tokens that are read, and the output where there is one."""
        return token_names(self.model, self.letters)

    @property
    def names(self) -> list[str]:
        """The tokens along the axis; where a decoder reads the output alone, its own."""
        return self.read[len(self.letters) + 1 :] if self.has_decoder else self.read

    @property
    def is_long(self) -> bool:
        """Whether there are too many tokens to draw attention or units."""
        tokens = self.letters if self.has_prefixes else self.names
        return len(tokens) > DRAWN

    @cached_property
    def steps(self) -> pd.DataFrame:
        """What each part of a Transformer adds to the logit, as a waterfall draws it."""
        return steps_frame(self.ask(logit_steps), self.model.display(self.letters))

    @cached_property
    def prefixes(self) -> pd.DataFrame:
        """The logit after every prefix: the frame of `prefixes_frame`."""
        return prefixes_frame(self.model, self.letters, self.ask(prefix_logits))

    @cached_property
    def patterns(self) -> Patterns:
        """What every token attends to.

        Raises:
            ConfigError: the model is no Transformer.
        """
        return self.ask(attention_patterns)

    @cached_property
    def units(self) -> Units:
        """The states of a recurrent network.

        Raises:
            ConfigError: the model is none.
        """
        return self.ask(recurrent_units)

    def logit_ends(self) -> list[float]:
        """Every sum of parts of the logit; none without a residual stream."""
        if not self.has_residual_stream:
            return []
        ends: list[float] = self.steps[["start", "end"]].to_numpy().ravel().tolist()
        return ends

    def draw_prefixes(self, limits: Limits | None = None) -> TokenDrawing:
        """The logit after every prefix, on an axis that reaches these limits at least."""
        return token_states.prefix_logits(self.prefixes, self.names, limits)

    def head(self, block: int, head: int, *, whole: bool = False) -> pd.DataFrame:
        """Letter (attended to), query (the letter that attends), weight; as `head_frame`."""
        frame = presentation.head_frame(self.patterns, block, head, whole=whole)
        return with_letters(self.model, frame).drop(columns="key")

    def layer(self, layer: int, state: str) -> pd.DataFrame:
        """Place, unit, value, letter: of a layer its state (`state`), or one of its gates."""
        return with_letters(self.model, presentation.layer_frame(self.units, state, layer))

    def draw_path(self, layer: int) -> TokenDrawing:
        """The path of a layer's state in its first two principal components."""
        path = principal_path(self.units.states[layer])
        points = with_letters(self.model, presentation.path_frame(path, self.units.tokens))
        return token_states.state_path(points, path.shares)


def heads_of(patterns: Patterns) -> dict[str, tuple[int, int]]:
    """The block and the number of each head, by what it is called."""
    blocks, heads = patterns.weights.shape[:2]
    places = product(range(blocks), range(heads))
    return {f"block {patterns.number_of(x)}, head {head}": (x, head) for x, head in places}


def draw_output_head(
    patterns: Patterns,
    name: str,
    written: Sequence[str],
    *,
    kind: Kind | None = None,
    start: int = 0,
    width: int = WIDTH,
) -> TokenDrawing:
    """One head's weights while an output is written.

    Args:
        patterns: of an input with its output.
        name: of the head, as in `heads_of`.
        written: the tokens that are written.
        kind: what a decoder attends to, where it is one that attends.
        start: the row of `SEP`, from which on tokens are written; 0 where the output is apart.
        width: pixels for all tokens that are read, about.
    """
    frame = presentation.output_attention_frame(patterns, start, *heads_of(patterns)[name])
    title = _title_of_head(patterns, name, kind)
    return output_attention(frame, patterns.tokens, written, title, width)


def _title_of_head(patterns: Patterns, name: str, kind: Kind | None) -> str:
    if kind is None:
        return name
    return kind if len(heads_of(patterns)) == 1 else f"{kind}, {name}"


def figures_of_strings(model: TrainedModel, strings: Sequence[str]) -> Iterator[Figure]:
    """What each part adds to the logit, each prefix's logit, attention or units, string by string.

    Args:
        model: a Transformer with positions, or a recurrent network, for instance.
        strings: to draw.

    Raises:
        InvalidStringError: a string not of the alphabet, or longer than is drawn token by token.
    """
    for string in dict.fromkeys(strings):
        letters = model.letters(string)
        if len(letters) > DRAWN:
            raise InvalidStringError(
                f"{string[:60]!r} has {len(letters):,} tokens: this model's figures have a column "
                f"for each, up to {DRAWN}; shorten it"
            )
        yield from _of_string(StringStates(model, letters))


def _of_string(states: StringStates) -> Iterator[Figure]:
    model, letters = states.model, states.letters
    text = model.display(letters) or "empty"

    def figure(title: str, panel: str, note: str, data: pd.DataFrame, drawn: Drawing) -> Figure:
        return Figure(None, title, ", ".join(filter(None, [panel, text])), note, data, drawn)

    if states.has_residual_stream:
        steps = states.steps.assign(string=text)
        note = "Direct logit attribution: the parts sum to the logit."
        drawn = waterfall(steps, with_margin(states.logit_ends()), text)
        yield figure("What each part adds to the logit", "", note, steps, drawn)
    if len(states.read) > LONGEST_READ:
        raise InvalidStringError(
            f"{text[:60]!r} is read as {len(states.read)} tokens with its output: this model's "
            f"figures have a column for each, up to {LONGEST_READ}; shorten it"
        )
    if states.has_prefixes:
        note = "Each prefix is classified as a separate string."
        drawn = states.draw_prefixes().chart
        yield figure("Logit of every prefix", "", note, states.prefixes, drawn)
    for kind in attention_kinds(model):
        patterns = attention_patterns(model, letters, kind=kind)
        written = [token.token for token in output_tokens(model, letters)]
        note = "What each token that is written attends to: each row sums to 1."
        for name in heads_of(patterns):
            panel = _title_of_head(patterns, name, kind)
            part = draw_output_head(patterns, name, written, kind=kind)
            data = part.data["output_attention"]
            yield figure("Attention weights", panel, note, data, part.chart)
    if states.has_attention:
        note = "What each token attends to: each row sums to 1."
        for name, place in heads_of(states.patterns).items():
            weights = states.head(*place, whole=True)
            drawn = attention_matrix(weights, states.names, name).chart
            yield figure("Attention weights", name, note, weights, drawn)
    if states.has_units:
        word, units = layer_word(model), states.units
        for name, state in product(units.layers, sorted(["state", *units.gates])):
            frame = states.layer(units.layers[name], state)
            title = f"{word} {name}: {state.replace('_', ' ')}"
            drawn = token_states.unit_states(frame, states.names, title).chart
            yield figure("Units", title, "Each unit after every token.", frame, drawn)
        for name, layer in units.layers.items():
            part = states.draw_path(layer)
            note = "The state after every token, in its first two principal components."
            panel = f"{word} {name}"
            yield figure("Path of the state", panel, note, part.data["path"], part.chart)
