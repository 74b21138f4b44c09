"""Figures of a model that is read token by token: all that *Inside* shows of a string, as files."""

from collections.abc import Iterator, Sequence
from itertools import product

from dashboard.figures.figure import Figure
from dashboard.model import string_states, writing
from dashboard.model.string_states import DRAWN
from dashboard.section import Panel, Section
from seqcls.errors import InvalidStringError
from seqcls.interpretability.trained_model import Letters
from seqcls.questions import RunModel

LONGEST_READ = 2 * DRAWN + 2
"""Tokens that are read of a string and its output at most, special ones among them."""


def figures_of_strings(model: RunModel, strings: Sequence[str]) -> Iterator[Figure]:
    """Figures of strings: parts of the logit, each prefix's logit, attention and units.

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
        name = model.display(letters) or "empty"
        for title, part, note, panel in _panels(model, letters):
            yield Figure(None, title, ", ".join(filter(None, (part, name))), note, panel.spec)


def _panels(model: RunModel, letters: Letters) -> Iterator[tuple[str, str, str, Panel]]:
    """The title of each figure, its part, how to read it, and its drawing."""
    states = model.states(model.text(letters))
    read = len(letters) + len(states.output or ())
    if read + 1 > LONGEST_READ:
        raise InvalidStringError(
            f"{model.display(letters)[:60]!r} is read as {read + 1} tokens with its output: this "
            f"model's figures have a column for each, up to {LONGEST_READ}; shorten it"
        )
    note = "Direct logit attribution: the parts sum to the logit."
    for panel in _panels_in(string_states.stream_of(states)):
        yield "What each part adds to the logit", "", note, panel
    note = "Each prefix is classified as a separate string."
    for panel in _panels_in(string_states.running_of(model, letters, states)):
        yield "Logit of every prefix", "", note, panel
    if states.output is None:
        attention = string_states.attention_of(model, letters, states, every=True)
        note = "What each token attends to: each row sums to 1."
    else:
        attention = writing.attention(model, letters)
        note = "What each token that is written attends to: each row sums to 1."
    block = 0 if states.attention is None else states.attention.blocks[0]
    for panel in _panels_in(attention):
        # Of a model of one block the page leaves its number out.
        title = panel.title.lower()
        title = title if "block" in title else f"block {block}, {title}"
        # Files of a decoder's attention are named first.
        head, comma, kind = title.rpartition(", ")
        title = f"{kind}{comma}{head}" if kind.endswith("attention") else title
        yield "Attention weights", title, note, panel
    if states.units is None:
        return
    # Imported where it is used: PyTorch takes a second or two to load.
    from seqcls.interpretability.states_by_strings import layer_word

    layers, word = [*states.units.layers], layer_word(model)
    for layer, state in product(layers, sorted(["state", *states.units.gates])):
        # The path of a layer's state is drawn below, once and not for each of its gates.
        panel, *_ = _panels_in(string_states.units_of(states, state, layer))
        part = f"{word} {layer}: {state.replace('_', ' ')}"
        yield "Units", part, "Each unit after every token.", panel
    for layer in layers:
        _, panel = _panels_in(string_states.units_of(states, "state", layer))
        note = "The state after every token, in its first two principal components."
        yield "Path of the state", f"{word} {layer}", note, panel


def _panels_in(section: Section | None) -> tuple[Panel, ...]:
    return () if section is None else section.panels
